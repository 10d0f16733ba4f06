//! Detects the sandboxing that this machine supports, by trying.

#![allow(clippy::disallowed_methods, reason = "bubblewrap is tried on nothing before it is relied on")]

use super::{IsolationSpec, LocalIsolation};
use crate::local::isolation::kernel::limits;
use crate::local::isolation::view::caches::{Cache, LAYER};
use ralph_loop_domain::vars::Vars;
use ralph_loop_task::config::Isolation;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The oldest bubblewrap with all required features.
const BWRAP_MIN: (u32, u32) = (0, 7);
/// The oldest Landlock with network rules.
const LANDLOCK_MIN: i32 = 4;

/// What bubblewrap is tried with.
const TRIED: [&str; 19] = [
    "--unshare-all",
    "--unshare-user",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--size",
    "1048576",
    "--tmpfs",
    "/tmp",
    "--",
    "/proc/self/exe",
    "--version",
];

/// What Landlock can't do but namespaces can; shown when Landlock is used.
pub const LANDLOCK_GAPS: [&str; 6] = [
    "a clone's git folder isn't protected, including its hooks and configuration",
    "other processes can be seen in /proc, though neither read nor signalled",
    "connections are bounded by port, not by host: the proxy's port is open on every host",
    "no limit on memory or processes without control groups",
    "sockets in the file system cannot be used at all, so tools that talk to a local daemon fail",
    "the agent's copy can't be mounted at your repo's path: virtual environments, shebangs and settings with your repo's full path don't work",
];

/// One thing that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `bwrap`, `landlock`, `seccomp`, `cgroups`.
    pub name: &'static str,
    /// Whether it is usable.
    pub works: bool,
    /// A version, or why it isn't usable.
    pub detail: String,
}

/// Which kinds of isolation work on this machine.
#[derive(Debug, Clone)]
pub struct IsolationReport {
    /// Everything that was tried.
    pub findings: Vec<Finding>,
}

impl IsolationReport {
    fn finding(&self, name: &str) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.name == name)
    }

    /// Whether `name` is usable.
    pub fn works(&self, name: &str) -> bool {
        self.finding(name).is_some_and(|finding| finding.works)
    }

    /// The strongest sandbox that works here; [`Isolation::None`] if none does.
    pub fn strongest(&self) -> Isolation {
        match (self.works("seccomp"), self.works("bwrap"), self.works("landlock")) {
            (true, true, _) => Isolation::Bwrap,
            (true, false, true) => Isolation::Landlock,
            _ => Isolation::None,
        }
    }

    /// The requested sandbox, or why it isn't available. Never a weaker one than requested.
    pub fn choose(&self, asked: Isolation, spec: IsolationSpec) -> Result<LocalIsolation, String> {
        let chosen = if asked == Isolation::Auto { self.strongest() } else { asked };
        let lacking = |names: [&str; 2]| {
            let reasons: Vec<String> = names
                .iter()
                .filter_map(|name| self.finding(name))
                .filter(|finding| !finding.works)
                .map(|finding| format!("{}: {}", finding.name, finding.detail))
                .collect();
            reasons.join("; ")
        };
        let usable = |names: [&str; 2]| {
            if names.iter().all(|name| self.works(name)) { Ok(()) } else { Err(lacking(names)) }
        };
        match (asked, chosen) {
            (Isolation::Auto, Isolation::None) => {
                Err([lacking(["bwrap", "landlock"]), lacking(["seccomp", ""])].join(" ").trim().to_owned())
            }
            (_, Isolation::Bwrap) => usable(["bwrap", "seccomp"]).map(|()| LocalIsolation::Bwrap(spec)),
            (_, Isolation::Landlock) => {
                usable(["landlock", "seccomp"]).map(|()| LocalIsolation::Landlock(spec))
            }
            (_, Isolation::None | Isolation::Auto) => Ok(LocalIsolation::None),
        }
    }
}

/// Tests what this machine supports. Takes some milliseconds and leaves nothing behind.
pub fn detect(vars: &Vars) -> IsolationReport {
    if cfg!(target_os = "macos") {
        let none = |name| Finding { name, works: false, detail: "macOS has none".to_owned() };
        return IsolationReport { findings: ["bwrap", "landlock", "seccomp", "cgroups"].map(none).to_vec() };
    }
    IsolationReport { findings: vec![bwrap(vars), landlock(), seccomp(), cgroups()] }
}

/// Finds bubblewrap; only in system folders or this user's PATH.
pub(super) fn find_bwrap(vars: &Vars) -> Option<PathBuf> {
    let path = Some(vars.own_path()).filter(|path| !path.is_empty());
    std::env::split_paths(path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin")))
        .filter(|f| f.is_absolute())
        .map(|f| f.join("bwrap"))
        .find(|file| file.is_file())
}

/// Whether this machine lets `__fence` of `program` put layers over caches, tried once with these.
pub(super) fn layers_work(program: &Path, bwrap: &Path, caches: &[Cache]) -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let mut command = Command::new(program);
        command.arg("__fence").args(layer_words(caches)).arg("--").arg(bwrap);
        command.args(TRIED).env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// The arguments of `__fence` for these caches.
pub(super) fn layer_words(caches: &[Cache]) -> impl Iterator<Item = OsString> {
    caches.iter().flat_map(|cache| [LAYER.into(), (&cache.from).into(), (&cache.layer).into()])
}

fn bwrap(vars: &Vars) -> Finding {
    let (works, detail) = match try_bwrap(vars) {
        Ok(version) => (true, version),
        Err(reason) => (false, reason),
    };
    Finding { name: "bwrap", works, detail }
}

fn try_bwrap(vars: &Vars) -> Result<String, String> {
    let program = find_bwrap(vars)
        .ok_or("bubblewrap is not installed (apt install bubblewrap, dnf install bubblewrap)")?;
    let output = |args: &[&str]| {
        Command::new(&program).args(args).stdin(Stdio::null()).output().map_err(|error| error.to_string())
    };
    let told = output(&["--version"])?;
    let version = String::from_utf8_lossy(&told.stdout).trim().to_owned();
    let mut numbers = version.rsplit(' ').next().unwrap_or_default().split('.').map(str::parse::<u32>);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
        return Err(format!("cannot read a version from `{version}`"));
    };
    if (major, minor) < BWRAP_MIN {
        return Err(format!("{version} is too old; 0.7 or newer is needed"));
    }
    let tried = output(&TRIED)?;
    if tried.status.success() {
        return Ok(version);
    }
    let why = String::from_utf8_lossy(&tried.stderr).lines().next().unwrap_or("no reason given").to_owned();
    Err(format!("{version} cannot make namespaces: {why}{}", userns_hint()))
}

/// Settings that are known to forbid user namespaces.
fn userns_hint() -> &'static str {
    let value =
        |file: &str| std::fs::read_to_string(file).map(|text| text.trim().to_owned()).unwrap_or_default();
    if value("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
        " (AppArmor forbids user namespaces; an AppArmor profile for bwrap, or `sysctl kernel.apparmor_restrict_unprivileged_userns=0`, allows them)"
    } else if value("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
        " (`sysctl kernel.unprivileged_userns_clone=1` allows them)"
    } else if value("/proc/sys/user/max_user_namespaces") == "0" {
        " (`sysctl user.max_user_namespaces` is 0)"
    } else {
        " (in a container, it may need `--security-opt seccomp=unconfined`)"
    }
}

fn landlock() -> Finding {
    let abi = crate::os::raw::landlock_abi();
    let (works, detail) = match abi {
        Ok(abi) if abi >= LANDLOCK_MIN => (true, format!("Landlock ABI {abi}")),
        Ok(abi) => {
            (false, format!("Landlock ABI {abi} has no rules for the network; 4 (Linux 6.7) is needed"))
        }
        Err(errno) => (false, format!("this kernel has no Landlock ({})", errno.desc())),
    };
    Finding { name: "landlock", works, detail }
}

fn seccomp() -> Finding {
    let actions = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    let works = actions.contains("errno");
    let detail =
        if works { "system calls can be filtered" } else { "this kernel cannot filter system calls" };
    Finding { name: "seccomp", works, detail: detail.to_owned() }
}

fn cgroups() -> Finding {
    let works = limits::groups_work();
    let detail = if works {
        "memory and processes can be limited"
    } else {
        "no control group can be made here; processes and file sizes are limited without one, memory is not"
    };
    Finding { name: "cgroups", works, detail: detail.to_owned() }
}
