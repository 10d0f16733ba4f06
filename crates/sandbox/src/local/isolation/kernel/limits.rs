//! Limits a sandboxed command's use of the machine: a control group if possible, resource limits in any case.

use std::fs;
use std::path::{Path, PathBuf};

const GIB: u64 = 1 << 30;

/// Limits for one command and all that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most processes and threads.
    pub processes: u64,
    /// Most memory in bytes; only a control group can enforce it. `None`: four fifths of the machine's memory.
    pub memory: Option<u64>,
    /// Largest file in bytes.
    pub file_size: u64,
    /// Size of each private temporary folder, in bytes.
    pub temporary: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { processes: 4096, memory: None, file_size: 16 * GIB, temporary: 2 * GIB }
    }
}

#[cfg(target_os = "linux")]
impl Limits {
    /// Sets the limits that need no control group, for this process and its children.
    pub(in crate::local::isolation) fn put_on(processes: u64, file_size: u64) {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        // Lowering is always allowed; a lower existing limit stays.
        for (what, most) in [
            (Resource::RLIMIT_NPROC, processes),
            (Resource::RLIMIT_FSIZE, file_size),
            (Resource::RLIMIT_CORE, 0),
        ] {
            let now = getrlimit(what).map_or(u64::MAX, |(_, hard)| hard);
            setrlimit(what, most.min(now), most.min(now)).ok();
        }
    }
}

/// Control groups of one sandbox; removed when dropped.
#[derive(Debug, Default)]
pub(in crate::local::isolation) struct Groups {
    folders: Vec<PathBuf>,
}

impl Groups {
    /// Creates the groups that this system allows, if any.
    pub(in crate::local::isolation) fn make(name: &str, limits: &Limits) -> Self {
        let memory = limits.memory.or_else(machine_memory).unwrap_or(u64::MAX);
        let mut made = Self::default();
        if let Some(parent) = unified() {
            let files = [("pids.max", limits.processes.to_string()), ("memory.max", memory.to_string())];
            made.add(&parent.join(name), &files);
        }
        if made.folders.is_empty() {
            // Older systems have one tree for each kind.
            made.add(&own_v1("pids").join(name), &[("pids.max", limits.processes.to_string())]);
            made.add(&own_v1("memory").join(name), &[("memory.limit_in_bytes", memory.to_string())]);
        }
        made
    }

    /// The files that a process writes its id into.
    pub(in crate::local::isolation) fn doors(&self) -> impl Iterator<Item = PathBuf> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs"))
    }

    fn add(&mut self, folder: &Path, files: &[(&str, String)]) {
        if fs::create_dir(folder).is_err() {
            return;
        }
        let set = files.iter().any(|(name, value)| fs::write(folder.join(name), value).is_ok());
        if set {
            self.folders.push(folder.to_owned());
        } else {
            fs::remove_dir(folder).ok();
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for folder in &self.folders {
            // Fails while something in it lives, which a guard doesn't allow.
            fs::remove_dir(folder).ok();
        }
    }
}

/// Whether control groups can be created here, for `ralph doctor`.
pub(in crate::local::isolation) fn groups_work() -> bool {
    let name = format!("ralph-try-{}", std::process::id());
    !Groups::make(&name, &Limits::default()).folders.is_empty()
}

fn machine_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib.saturating_mul(1024) / 5 * 4)
}

fn own_group(kind: &str) -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kinds, path) = (parts.next()?, parts.next()?);
        let ours = if kind.is_empty() { kinds.is_empty() } else { kinds.split(',').any(|k| k == kind) };
        ours.then(|| PathBuf::from(path.trim_start_matches('/')))
    })
}

fn own_v1(kind: &str) -> PathBuf {
    Path::new("/sys/fs/cgroup").join(kind).join(own_group(kind).unwrap_or_default())
}

/// The folder of the unified tree in which a group next to ours can be created: ours has processes, so it can't have
/// limited children.
fn unified() -> Option<PathBuf> {
    let top = Path::new("/sys/fs/cgroup");
    let own = top.join(own_group("")?);
    let parent = if own == top { own } else { own.parent()?.to_owned() };
    let given = fs::read_to_string(parent.join("cgroup.subtree_control")).ok()?;
    given.split_ascii_whitespace().any(|kind| kind == "pids").then_some(parent)
}
