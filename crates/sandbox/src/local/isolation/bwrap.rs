//! The arguments that make bubblewrap build the sandbox.

use super::{IsolationSpec, git, hide};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where this program stands in the sandbox.
pub(super) const PROGRAM: &str = "/run/ralph/ralph";
/// Where the proxy's socket stands in the sandbox.
pub(super) const SOCKET: &str = "/run/ralph/egress.sock";

/// What changes the kernel.
const KERNEL: [&str; 9] = [
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/acpi",
    "/proc/scsi",
    "/proc/driver",
    "/proc/mtrr",
];
/// What shows its memory and keys.
const KERNEL_SECRETS: [&str; 5] =
    ["/proc/kcore", "/proc/kmsg", "/proc/keys", "/proc/timer_list", "/proc/sched_debug"];

/// What the mounts of one command depend on.
pub(super) struct View<'a> {
    pub(super) bwrap: &'a Path,
    pub(super) spec: &'a IsolationSpec,
    /// The user's home: hidden, with the run's home in its place.
    pub(super) home: &'a Path,
    pub(super) run_home: &'a Path,
    pub(super) program: &'a Path,
    pub(super) socket: Option<&'a Path>,
    /// What of the hidden places is shown.
    pub(super) tools: &'a [PathBuf],
    pub(super) hidden: &'a [PathBuf],
    /// The workspace.
    pub(super) root: &'a Path,
    pub(super) cwd: &'a Path,
}

/// Collects arguments.
#[derive(Default)]
struct Args(Vec<OsString>);

impl Args {
    fn plain(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }
    fn at(&mut self, flag: &str, path: &Path) {
        self.0.extend([flag.into(), path.into()]);
    }
    fn mount(&mut self, flag: &str, from: &Path, to: &Path) {
        self.0.extend([flag.into(), from.into(), to.into()]);
    }
    fn room(&mut self, bytes: u64, path: &Path) {
        self.plain(&["--size", &bytes.to_string()]);
        self.at("--tmpfs", path);
    }
}

/// The program and its arguments, up to where `__inside` and its own begin.
pub(super) fn command(view: &View<'_>) -> (Vec<OsString>, git::GitMounts) {
    let spec = view.spec;
    let mut args = Args(vec![view.bwrap.into()]);
    args.plain(&["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--as-pid-1"]);
    args.plain(&["--cap-drop", "ALL", "--hostname", "ralph"]);
    args.plain(&["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    // Memory, too; what is written anywhere else in /dev would have no bound.
    args.plain(&["--perms", "1777"]);
    args.room(spec.limits.temporary, Path::new("/dev/shm"));
    args.at("--remount-ro", Path::new("/dev"));
    // The files of the kernel belong to root, who is root here, too: a setting as `core_pattern` would be a way out.
    for place in KERNEL.map(Path::new).into_iter().filter(|place| place.exists()) {
        args.mount("--ro-bind", place, place);
    }
    for file in KERNEL_SECRETS.map(Path::new).into_iter().filter(|file| file.exists()) {
        args.mount("--ro-bind", Path::new("/dev/null"), file);
    }
    for place in view.hidden {
        args.room(spec.limits.temporary, place);
    }
    for file in hide::files() {
        args.mount("--ro-bind", Path::new("/dev/null"), file);
    }
    for socket in hide::sockets(view.hidden, &[view.root, Path::new("/proc"), Path::new("/dev")]) {
        args.mount("--ro-bind", Path::new("/dev/null"), &socket);
    }
    args.mount("--bind", view.run_home, view.home);
    // What is bound twice is bound by the last one, so the outer places come first.
    for place in view.tools.iter().chain(&spec.read_only) {
        args.mount("--ro-bind-try", place, place);
    }
    for place in &spec.writable {
        args.mount("--bind-try", place, place);
    }
    args.mount("--bind", view.root, view.root);
    let git = git::mounts(view.root, spec.git);
    for (path, writable) in &git.mounts {
        args.mount(if *writable { "--bind" } else { "--ro-bind" }, path, path);
    }
    args.mount("--ro-bind", view.program, Path::new(PROGRAM));
    if let Some(socket) = view.socket {
        args.mount("--ro-bind", socket, Path::new(SOCKET));
    }
    // What is written where nobody will ever see it should fail, not vanish.
    let temporary = ["/tmp", "/var/tmp"].map(Path::new);
    for place in
        view.hidden.iter().filter(|place| !temporary.contains(&place.as_path()) && *place != view.home)
    {
        args.at("--remount-ro", place);
    }
    args.at("--chdir", view.cwd);
    args.plain(&["--", PROGRAM, "__inside", "--first"]);
    let own = ["/dev", "/proc", "/tmp", "/var/tmp"].map(Path::new).into_iter().chain([view.root, view.home]);
    let allowed = git.mounts.iter().filter(|(_, writable)| *writable).map(|(path, _)| path);
    for place in own.chain(spec.writable.iter().chain(allowed).map(PathBuf::as_path)) {
        args.at("--writable", place);
    }
    (args.0, git)
}
