//! The bubblewrap arguments that build the sandbox.

use crate::local::isolation::IsolationSpec;
use crate::local::isolation::logins::covers::CoverMounts;
use crate::local::isolation::view::caches::Cache;
use crate::local::isolation::view::same_path;
use crate::local::isolation::view::same_path::Workspace;
use crate::local::isolation::view::system::SystemView;
use crate::local::isolation::view::tools::Shown;
use crate::local::isolation::view::{git, sockets};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// This program's path in the sandbox.
pub(in crate::local::isolation) const PROGRAM: &str = "/run/ralph/ralph";
/// The proxy socket's path in the sandbox.
pub(in crate::local::isolation) const SOCKET: &str = "/run/ralph/egress.sock";

/// Files that change the kernel.
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
/// Files that reveal its memory and keys.
const KERNEL_SECRETS: [&str; 5] =
    ["/proc/kcore", "/proc/kmsg", "/proc/keys", "/proc/timer_list", "/proc/sched_debug"];

/// Folders of the command's own.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// What the mounts of one command depend on.
pub(in crate::local::isolation) struct View<'a> {
    pub(in crate::local::isolation) bwrap: &'a Path,
    pub(in crate::local::isolation) spec: &'a IsolationSpec,
    /// What every command sees of the machine.
    pub(in crate::local::isolation) system: &'a SystemView,
    /// The user's home: hidden, with the run's home in its place.
    pub(in crate::local::isolation) home: &'a Path,
    pub(in crate::local::isolation) run_home: &'a Path,
    pub(in crate::local::isolation) program: &'a Path,
    pub(in crate::local::isolation) socket: Option<&'a Path>,
    /// Hidden even if something around them is visible.
    pub(in crate::local::isolation) hidden: &'a [PathBuf],
    /// What else is visible.
    pub(in crate::local::isolation) shown: &'a Shown,
    pub(in crate::local::isolation) caches: &'a [Cache],
    pub(in crate::local::isolation) workspace: &'a Workspace,
    pub(in crate::local::isolation) nothing: &'a Path,
    pub(in crate::local::isolation) alternates: &'a Path,
    pub(in crate::local::isolation) empty: &'a Path,
    /// What of the workspace this command finds empty.
    pub(in crate::local::isolation) covers: &'a CoverMounts,
    /// What is mounted at another path, such as programs that the workspace covers.
    pub(in crate::local::isolation) placed: &'a [(PathBuf, PathBuf)],
    pub(in crate::local::isolation) cwd: &'a Path,
}

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

    /// What is visible besides the system, the outer paths first; returns the hidden folders in it, which are empty.
    fn shown<'a>(&mut self, view: &View<'a>) -> Vec<&'a Path> {
        let (spec, workspace) = (view.spec, view.workspace);
        let shown = view.shown.mounts.iter().chain(&spec.lent);
        let mut places: Vec<(&Path, bool)> = shown.map(|place| (place.as_path(), false)).collect();
        let is_seen = |hidden: &Path| {
            let inside = |place: &Path| hidden.starts_with(place) && hidden != place;
            view.system.readable.iter().any(|place| inside(place))
                || places.iter().any(|(place, _)| inside(place))
        };
        // The home has the run's home in its place.
        let hidden = view.hidden.iter().map(PathBuf::as_path).filter(|place| *place != view.home);
        let hidden: Vec<&Path> = hidden.filter(|place| is_seen(place)).collect();
        places.extend(hidden.iter().map(|place| (*place, true)));
        places.sort_unstable();
        places.retain(|(place, _)| !workspace.covers(place));
        for (place, is_hidden) in &places {
            match is_hidden {
                true => self.room(spec.limits.temporary, place),
                false => self.mount("--ro-bind-try", place, place),
            }
        }
        let visible = |path: &PathBuf| {
            let places = view.system.readable.iter().chain(&view.shown.mounts).chain(&spec.lent);
            places.into_iter().any(|place| path.starts_with(place)) && !path.starts_with(&workspace.inside)
        };
        for socket in sockets::sockets(visible) {
            self.mount("--ro-bind", Path::new("/dev/null"), &socket);
        }
        places.into_iter().filter(|(_, is_hidden)| *is_hidden).map(|(place, _)| place).collect()
    }

    /// The objects that the workspace's git borrows. A workspace mounted over the repo it borrows from would hide
    /// them: they are mounted elsewhere, and git gets that path.
    fn borrowed_objects(&mut self, view: &View<'_>) {
        let (spec, workspace) = (view.spec, view.workspace);
        if !workspace.is_moved() {
            for folder in &spec.objects {
                self.mount("--ro-bind-try", folder, folder);
            }
            return;
        }
        let mut told = false;
        for (number, folder) in spec.objects.iter().enumerate().filter(|(_, folder)| folder.is_dir()) {
            let place = same_path::object_store(number);
            self.mount("--ro-bind", folder, &place);
            // Includes what it borrows itself.
            if folder.join("info/alternates").is_file() {
                self.mount("--ro-bind", view.nothing, &place.join("info/alternates"));
            }
            told = true;
        }
        if told && git::borrows(&workspace.host) {
            self.mount("--ro-bind", view.alternates, &workspace.inside.join(".git/objects/info/alternates"));
        }
    }
}

/// The program and its arguments, up to where `__inside` and its arguments begin.
pub(in crate::local::isolation) fn command(view: &View<'_>) -> (Vec<OsString>, git::GitMounts) {
    let spec = view.spec;
    let mut args = Args(vec![view.bwrap.into()]);
    args.plain(&["--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--as-pid-1"]);
    args.plain(&["--cap-drop", "ALL", "--hostname", "ralph"]);
    // The root is empty.
    for place in &view.system.readable {
        args.mount("--ro-bind", place, place);
    }
    for (at, target) in &view.system.links {
        args.mount("--symlink", target, at);
    }
    args.plain(&["--dir", "/sys", "--dev", "/dev", "--proc", "/proc"]);
    // In memory as well; other writes to /dev would be unbounded.
    args.plain(&["--perms", "1777"]);
    args.room(spec.limits.temporary, Path::new("/dev/shm"));
    args.at("--remount-ro", Path::new("/dev"));
    // The kernel's files belong to root, which is root in here, too: a setting such as `core_pattern` would be an
    // escape.
    for place in KERNEL.map(Path::new).into_iter().filter(|place| place.exists()) {
        args.mount("--ro-bind", place, place);
    }
    for file in KERNEL_SECRETS.map(Path::new).into_iter().filter(|file| file.exists()) {
        args.mount("--ro-bind", Path::new("/dev/null"), file);
    }
    for place in TEMPORARY {
        args.room(spec.limits.temporary, Path::new(place));
    }
    let workspace = view.workspace;
    args.mount("--bind", view.run_home, view.home);
    let covered = args.shown(view);
    for cache in view.caches.iter().filter(|cache| !workspace.covers(&cache.place)) {
        args.mount("--bind", &cache.merged(), &cache.place);
        for place in &cache.left_out {
            args.room(spec.limits.temporary, place);
        }
    }
    for place in &spec.writable {
        args.mount("--bind-try", place, place);
    }
    // Those in the home are made in the run's home.
    let links = view.shown.links.iter().filter(|(at, _)| !at.starts_with(view.home) && !workspace.covers(at));
    for (at, target) in links {
        args.mount("--symlink", target, at);
    }
    args.mount("--bind", &workspace.host, &workspace.inside);
    let git = git::mounts(&workspace.host, spec.git);
    for (path, writable) in &git.mounts {
        let inside = workspace.to_inside(path);
        args.mount(if *writable { "--bind" } else { "--ro-bind" }, path, &inside);
    }
    args.borrowed_objects(view);
    for place in spec.read_only.iter().chain(&spec.lent).filter(|place| workspace.covers(place)) {
        args.mount("--ro-bind-try", place, place);
    }
    for place in &view.covers.folders {
        args.mount("--ro-bind", view.empty, place);
    }
    for place in &view.covers.files {
        args.mount("--ro-bind", view.nothing, place);
    }
    for (from, place) in view.placed {
        args.mount("--ro-bind-try", from, place);
    }
    args.mount("--ro-bind", view.program, Path::new(PROGRAM));
    if let Some(socket) = view.socket {
        args.mount("--ro-bind", socket, Path::new(SOCKET));
    }
    // Writes outside the workspace should fail instead of silently disappearing.
    for place in covered.into_iter().chain([Path::new("/")]) {
        args.at("--remount-ro", place);
    }
    args.at("--chdir", view.cwd);
    args.plain(&["--", PROGRAM, "__inside", "--first"]);
    let own = ["/dev", "/proc"]
        .into_iter()
        .chain(TEMPORARY)
        .map(Path::new)
        .chain([workspace.inside.as_path(), view.home]);
    let allowed = git.mounts.iter().filter(|(_, writable)| *writable);
    let allowed: Vec<PathBuf> = allowed.map(|(path, _)| workspace.to_inside(path)).collect();
    for place in own.chain(spec.writable.iter().chain(&allowed).map(PathBuf::as_path)) {
        args.at("--writable", place);
    }
    (args.0, git)
}
