//! The arguments that make bubblewrap build the fence.

use super::{FenceSpec, git, hide};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where this program stands behind the fence.
pub(super) const PROGRAM: &str = "/run/ralph/ralph";
/// Where the proxy's socket stands behind the fence.
pub(super) const SOCKET: &str = "/run/ralph/egress.sock";

/// What the mounts of one command depend on.
pub(super) struct View<'a> {
    pub(super) bwrap: &'a Path,
    pub(super) spec: &'a FenceSpec,
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
    for place in view.hidden {
        args.room(spec.limits.temporary, place);
    }
    for file in hide::files() {
        args.mount("--ro-bind", Path::new("/dev/null"), file);
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
    (args.0, git)
}
