//! The watcher's loop: turns stops of processes into a record.

use super::programs::{Program, classify, runs_product};
use super::resolve::{KnownFiles, resolved};
use super::{installed, local};
use crate::os::trace::{self, Call, Stop};
use nix::errno::Errno;
use nix::libc;
use nix::unistd::Pid;
use ralph_loop_domain::ports::{ExecTrace, TraceKind, TraceStep};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Most steps kept; a check that does more counts as unwatched.
const STEPS_MAX: usize = 200_000;
/// Most ports named.
const PORTS_MAX: usize = 8;
/// Folders that programs fill, in which a check opens too many files to keep. What is run there is kept.
const MADE: &[&str] = &[
    ".git",
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".pytest_cache",
    ".tox",
    ".nox",
    ".gradle",
];

/// A process, as far as it matters for what it opens.
#[derive(Debug, Clone)]
struct Process {
    /// Whether only runners and pass-through programs are between the check's command and this.
    trusted: bool,
    /// Whether it is a runner now.
    runner: bool,
    /// Scripts of the workspace that led to it.
    scripts: u32,
    /// Whether code of the workspace runs in it, or has started it.
    product: bool,
    /// The installed package whose own script it is: that may finish its installation.
    package: Option<Arc<str>>,
}

impl Process {
    fn new(trusted: bool) -> Self {
        Self { trusted, runner: false, scripts: 0, product: false, package: None }
    }
}

pub(super) struct Tracer {
    root: PathBuf,
    /// Processes by their id, and threads by theirs.
    processes: HashMap<Pid, Process>,
    threads: HashMap<Pid, Pid>,
    /// Whether the sandbox is built, so that later events are the command's.
    begun: bool,
    seen: ExecTrace,
    too_much: bool,
    /// The files of the workspace before the command, to recognize one by any name.
    known: Option<KnownFiles>,
    /// The home folder of the command.
    home: Option<PathBuf>,
}

impl Tracer {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            begun: false,
            seen: ExecTrace::default(),
            too_much: false,
            known: None,
            home: None,
        }
    }

    /// The record; `None` if there was too much, or the command never began.
    pub(super) fn seen(self) -> Option<ExecTrace> {
        (self.begun && !self.too_much).then_some(self.seen)
    }

    /// Runs until `main` ends; returns its exit code.
    pub(super) fn run(&mut self, main: Pid) -> i32 {
        self.processes.insert(main, Process::new(true));
        self.threads.insert(main, main);
        loop {
            let (pid, stop) = match trace::wait() {
                Ok(news) => news,
                Err(Errno::EINTR) => continue,
                Err(_) => return 2,
            };
            match stop {
                Stop::Ended(code) if pid == main => return code,
                Stop::Ended(_) => {
                    self.threads.remove(&pid);
                    self.processes.remove(&pid);
                    continue;
                }
                Stop::Rests => {
                    trace::let_rest(pid);
                    continue;
                }
                Stop::Call => {
                    self.begun = true;
                    self.known.get_or_insert_with(|| KnownFiles::below(pid, &self.root, MADE));
                    self.call(pid);
                }
                Stop::Forked(new) => drop(self.process_of(new)),
                Stop::Executed => self.executed(pid),
                Stop::Signal(_) => {}
            }
            trace::go_on(pid, if let Stop::Signal(signal) = stop { signal } else { 0 });
        }
    }

    /// The process of a thread; a new one inherits from its parent.
    fn process_of(&mut self, thread: Pid) -> Pid {
        if let Some(known) = self.threads.get(&thread) {
            return *known;
        }
        let (process, parent) = trace::family_of(thread).unwrap_or((thread, thread));
        self.threads.insert(thread, process);
        if !self.processes.contains_key(&process) {
            let parent = self.threads.get(&parent).copied().unwrap_or(parent);
            let like = self.processes.get(&parent).cloned().unwrap_or_else(|| Process::new(false));
            self.processes.insert(process, like);
        }
        process
    }

    fn executed(&mut self, pid: Pid) {
        let process = self.process_of(pid);
        if !self.begun {
            return;
        }
        let Some((program, arguments)) = trace::program_of(pid) else { return };
        let Some(mut now) = self.processes.get(&process).cloned() else { return };
        if self.home.is_none() {
            self.home = trace::variable_of(pid, "HOME").map(PathBuf::from);
        }
        now.runner = false;
        if !now.product && runs_product(&program, &arguments, &self.root) {
            now.product = true;
            // Package managers let each package finish its installation in its own folder.
            let folder = trace::folder_of(pid, None);
            let below = folder.as_deref().and_then(|folder| folder.strip_prefix(&self.root).ok());
            now.package = below.and_then(installed::in_workspace).map(Arc::from);
        }
        if now.trusted {
            match classify(&program, &arguments, &self.root) {
                Program::PassesOn => {}
                Program::Runner { script } => {
                    now.runner = true;
                    if self.ran(pid, script.as_deref(), now.scripts) {
                        now.scripts += 1;
                    }
                }
                Program::Interpreter { script } => {
                    self.ran(pid, script.as_deref(), now.scripts);
                    now.trusted = false;
                }
                Program::Other => {
                    self.ran(pid, program.to_str(), now.scripts);
                    now.trusted = false;
                }
            }
        }
        self.processes.insert(process, now);
    }

    /// Records a script of the workspace; returns whether it is one.
    fn ran(&mut self, pid: Pid, script: Option<&str>, scripts: u32) -> bool {
        let path = script.and_then(|script| absolute(pid, None, Path::new(script)));
        path.is_some_and(|path| self.remember(pid, TraceKind::Ran, scripts, &path))
    }

    fn call(&mut self, pid: Pid) {
        let process = self.process_of(pid);
        let Some(Process { runner, scripts, product, package, .. }) = self.processes.get(&process).cloned()
        else {
            return;
        };
        let Some(call) = trace::call(pid) else { return };
        if call.number == libc::SYS_connect {
            let port = trace::bytes(pid, call.args[1]).and_then(local::port);
            if let Some(port) =
                port.filter(|port| self.seen.kept_out.len() < PORTS_MAX && local::kept_out(pid, *port))
            {
                self.seen.kept_out.insert(port);
            }
            return;
        }
        if let Some((folder, name, flags)) = opened(pid, &call) {
            let writes = flags & (libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC) != 0;
            let folder_only = flags & (libc::O_DIRECTORY | libc::O_PATH) != 0;
            if folder_only || !(writes || runner) {
                return;
            }
            let kind = if writes { TraceKind::Wrote } else { TraceKind::Read };
            let path = self.named(pid, folder, name, kind, scripts);
            if let Some(path) = path.filter(|_| writes && product) {
                self.planted(pid, &path, package.as_deref());
            }
            return;
        }
        for (folder, name) in replaced(&call) {
            let path = self.named(pid, folder, name, TraceKind::Wrote, scripts);
            if let Some(path) = path.filter(|_| product) {
                self.planted(pid, &path, package.as_deref());
            }
        }
    }

    /// Records a write of the workspace's code to installed files; not of a package into its own folder.
    fn planted(&mut self, pid: Pid, path: &Path, package: Option<&str>) {
        for real in [resolved(pid, path, true), resolved(pid, path, false)] {
            let below = |folder: &Path| real.strip_prefix(folder).ok().map(Path::to_owned);
            let place = match (below(&self.root), self.home.as_deref().and_then(below)) {
                (Some(inside), _) => installed::in_workspace(&inside),
                (None, Some(inside)) => installed::at_home(&inside),
                (None, None) => None,
            };
            if let Some(path) = place.filter(|place| Some(place.as_str()) != package) {
                self.seen.steps.insert(TraceStep { kind: TraceKind::Planted, scripts: 0, path });
            }
        }
        self.too_much |= self.seen.steps.len() > STEPS_MAX;
    }

    /// The file that a name in a call refers to, which is recorded.
    fn named(
        &mut self,
        pid: Pid,
        folder: Option<i32>,
        name: u64,
        kind: TraceKind,
        scripts: u32,
    ) -> Option<PathBuf> {
        let name = trace::text(pid, name)?;
        let path = absolute(pid, folder, Path::new(OsStr::from_bytes(&name)))?;
        self.remember(pid, kind, scripts, &path);
        Some(path)
    }

    /// Records what was done to a file of the workspace, by the name used and its known names.
    fn remember(&mut self, pid: Pid, kind: TraceKind, scripts: u32, path: &Path) -> bool {
        let mut inside = self.note(kind, scripts, path);
        // A call that removes or replaces a name acts on a link itself; one that opens it follows it.
        let ways = match kind {
            TraceKind::Wrote => vec![resolved(pid, path, true), resolved(pid, path, false)],
            _ => vec![resolved(pid, path, true)],
        };
        for real in ways {
            if real != path {
                inside |= self.note(kind, scripts, &real);
            }
            if kind == TraceKind::Wrote
                && let Some(first) = self
                    .known
                    .as_ref()
                    .and_then(|known| known.find(pid, &real))
                    .filter(|first| *first != real)
            {
                let first = first.to_owned();
                inside |= self.note(kind, scripts, &first);
            }
        }
        inside
    }

    fn note(&mut self, kind: TraceKind, scripts: u32, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.root) else { return false };
        let is_made = |part: Component<'_>| MADE.iter().any(|made| part.as_os_str() == *made);
        let made = kind != TraceKind::Ran && below.components().any(is_made);
        if below.as_os_str().is_empty() || made {
            return false;
        }
        if self.seen.steps.len() >= STEPS_MAX {
            self.too_much = true;
            return true;
        }
        let path = below.to_string_lossy().into_owned();
        self.seen.steps.insert(TraceStep { kind, scripts, path });
        true
    }
}

/// The absolute path of a name, as the process sees it, without `.` and `..`.
fn absolute(pid: Pid, folder: Option<i32>, name: &Path) -> Option<PathBuf> {
    let whole = match name.is_absolute() {
        true => name.to_owned(),
        false => trace::folder_of(pid, folder)?.join(name),
    };
    let mut plain = PathBuf::new();
    for part in whole.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    Some(plain)
}

/// The folder of a descriptor number, or of the process.
fn folder(number: u64) -> Option<i32> {
    let number = number as i32;
    (number != libc::AT_FDCWD).then_some(number)
}

/// What a call opens: from which folder, where its name is, how.
fn opened(pid: Pid, call: &Call) -> Option<(Option<i32>, u64, i32)> {
    let [a, b, c, ..] = call.args;
    match call.number {
        libc::SYS_openat => Some((folder(a), b, c as i32)),
        libc::SYS_openat2 => Some((folder(a), b, trace::number(pid, c)? as i32)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => Some((None, a, b as i32)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => Some((None, a, libc::O_WRONLY | libc::O_CREAT)),
        _ => None,
    }
}

/// The names that a call replaces or removes, each with the folder it is looked up from.
fn replaced(call: &Call) -> Vec<(Option<i32>, u64)> {
    let [a, b, c, d, ..] = call.args;
    match call.number {
        libc::SYS_renameat | libc::SYS_renameat2 => vec![(folder(a), b), (folder(c), d)],
        libc::SYS_unlinkat => vec![(folder(a), b)],
        libc::SYS_linkat => vec![(folder(c), d)],
        libc::SYS_symlinkat => vec![(folder(b), c)],
        libc::SYS_truncate => vec![(None, a)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => vec![(None, a), (None, b)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink => vec![(None, a)],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_link | libc::SYS_symlink => vec![(None, b)],
        _ => Vec::new(),
    }
}
