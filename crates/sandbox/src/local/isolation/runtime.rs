//! What the sandbox of one run needs: its home, its limits, its proxy.

use super::logins::{HOME, KEPT, LoggedIn, Logins};
use super::wrap::{ALTERNATES, EMPTY, LeftBehind, NOTHING};
use super::{IsolationSpec, LocalIsolation, detect};
use crate::local::LocalOptions;
use crate::local::egress::Egress;
use crate::local::isolation::kernel::limits::Groups;
use crate::local::isolation::logins::covers;
use crate::local::isolation::view::caches::{self, Cache};
use crate::local::isolation::view::same_path;
use crate::local::isolation::view::same_path::Workspace;
use crate::local::isolation::view::system::{self, SystemView};
use crate::local::isolation::view::tools;
use crate::local::isolation::view::tools::{Shown, Wanted};
use crate::local::isolation::view::versions;
use ralph_loop_domain::ports::{Credentials, ExecRequest, Loopback, SandboxError, SharedDir};
use ralph_loop_domain::vars::Vars;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The folder of the versions that the user has chosen.
const VERSIONS: &str = "versions";
/// The folder of the layers over downloaded packages.
const CACHES: &str = "caches";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Bwrap(PathBuf),
    Landlock,
}

/// A sandbox that is ready for commands. Its home is removed on drop.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(super) kind: Kind,
    pub(super) spec: IsolationSpec,
    /// The user's home.
    pub(super) home: PathBuf,
    pub(super) run_home: PathBuf,
    /// This program, at a path where bubblewrap can find it.
    pub(super) program: PathBuf,
    /// What every command sees of the machine.
    pub(super) system: SystemView,
    /// Hidden even if something around them is visible.
    pub(super) hidden: Vec<PathBuf>,
    /// What else is visible.
    pub(super) shown: Shown,
    /// Read-only files mounted at another path in the sandbox: source and target.
    pub(super) placed: Vec<(PathBuf, PathBuf)>,
    /// Packages that the user has downloaded.
    pub(super) caches: Vec<Cache>,
    pub(super) groups: Groups,
    pub(super) egress: Option<Egress>,
    logins: Logins,
}

fn broken(what: &str, reason: impl std::fmt::Display) -> SandboxError {
    SandboxError::Broken(format!("the sandbox cannot be built: {what}: {reason}"))
}

impl Runtime {
    /// Prepares the sandbox of `options`; `None` for no sandbox. The guard's program also runs as `__fence` and
    /// `__inside`.
    pub(crate) fn start(options: &LocalOptions) -> Result<Option<Self>, SandboxError> {
        let LocalOptions { isolation, run_id, vars, .. } = options;
        let (kind, spec) = match isolation {
            LocalIsolation::None => return Ok(None),
            LocalIsolation::Bwrap(spec) => {
                let bwrap = detect::find_bwrap(vars)
                    .ok_or_else(|| broken("bubblewrap", "`bwrap` is not on the PATH"))?;
                (Kind::Bwrap(bwrap), spec.clone())
            }
            LocalIsolation::Landlock(spec) => (Kind::Landlock, spec.clone()),
        };
        let folder = |path: &Path| {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|error| broken(&format!("`{}`", path.display()), error))
        };
        let (run_home, temporary) = (spec.folder.join(HOME), spec.folder.join("tmp"));
        // Left by a killed process; a command may have written it.
        for path in [&run_home, &temporary, &spec.folder.join(KEPT), &spec.folder.join(CACHES)] {
            if fs::remove_file(path).is_err() {
                ralph_loop_safe_fs::remove_tree(path).ok();
            }
        }
        folder(&run_home)?;
        folder(&spec.folder.join(EMPTY))?;
        if kind == Kind::Landlock {
            folder(&temporary)?;
        }
        let home = user_home(vars);
        let logins = Logins::new(&home, &spec.folder, &spec.logins);
        if let Some(identity) = &spec.identity {
            fs::write(run_home.join(".gitconfig"), identity.config_file())
                .map_err(|error| broken("git's identity", error))?;
        }
        for (name, text) in
            [(NOTHING, String::new()), (ALTERNATES, same_path::alternates(spec.objects.len()))]
        {
            fs::write(spec.folder.join(name), text).map_err(|error| broken(name, error))?;
        }
        let mut placed = Vec::new();
        if let Kind::Bwrap(_) = kind {
            for (name, text) in system::accounts() {
                let file = spec.folder.join(name);
                fs::write(&file, text).map_err(|error| broken(name, error))?;
                placed.push((file, Path::new("/etc").join(name)));
            }
        }
        folder(&spec.folder.join(VERSIONS))?;
        for (number, (name, bytes)) in versions::chosen(&home).into_iter().enumerate() {
            let file = match kind {
                Kind::Bwrap(_) => spec.folder.join(VERSIONS).join(number.to_string()),
                Kind::Landlock => run_home.join(name),
            };
            folder(file.parent().unwrap_or(&file))?;
            fs::write(&file, bytes).map_err(|error| broken("the chosen versions", error))?;
            placed.push((file, home.join(name)));
        }
        let system = SystemView::of_machine();
        let apart = [home.clone(), spec.folder.clone(), "/tmp".into(), "/var/tmp".into(), "/run".into()];
        let hidden = apart.iter().chain(&spec.hidden).filter_map(|path| path.canonicalize().ok());
        let hidden: Vec<PathBuf> = hidden.filter(|path| path.parent().is_some()).collect();
        // The repo by its name and by its real path.
        let real = spec.workspace_at.as_ref().and_then(|at| at.canonicalize().ok());
        let trees: Vec<&Path> = spec.workspace_at.as_deref().into_iter().chain(real.as_deref()).collect();
        let wanted = Wanted {
            home: &home,
            system: &system,
            hidden: &hidden,
            trees: &trees,
            programs: &spec.programs,
            named: &spec.read_only,
            environments: &spec.environments,
        };
        let mut shown = tools::shown(&wanted, |name| vars.get_os(name));
        let at = spec.workspace_at.as_deref().filter(|_| kind != Kind::Landlock);
        let here = vars.get_os("PWD").map(Path::new).filter(|path| path.is_absolute());
        let links = at.map_or_else(Vec::new, |at| same_path::links_to(at, &home, here));
        shown.links.extend(links.into_iter().filter(|(name, _)| !system.shows(name)));
        let egress = match &spec.egress {
            None => None,
            Some(policy) => Some(
                Egress::start(policy.clone(), &spec.folder, kind == Kind::Landlock)
                    .map_err(|error| broken("the proxy", error))?,
            ),
        };
        let program =
            real_program(options.program()?, &spec.folder).map_err(|error| broken("this program", error))?;
        let caches = match &kind {
            Kind::Bwrap(bwrap) => layered(&program, bwrap, &home, &spec.folder.join(CACHES), vars),
            Kind::Landlock => Vec::new(),
        };
        let groups = Groups::make(&group_name(run_id), &spec.limits);
        Ok(Some(Self {
            kind,
            spec,
            home,
            run_home,
            program,
            system,
            hidden,
            shown,
            placed,
            caches,
            groups,
            egress,
            logins,
        }))
    }

    pub(crate) fn workspace(&self, root: PathBuf) -> Workspace {
        let at = self.spec.workspace_at.as_ref().filter(|_| self.kind != Kind::Landlock);
        match at.filter(|at| same_path::is_usable(at, &self.home)) {
            Some(at) => Workspace { host: root, inside: at.clone() },
            None => Workspace::plain(root),
        }
    }

    /// Whether commands don't see what this machine has at `path`. Tools look for their own files in a home, so a
    /// missing one there says nothing.
    pub(crate) fn hides(&self, path: &Path, workspace: &Workspace) -> bool {
        let spec = &self.spec;
        let own = ["/proc", "/dev", "/sys", "/tmp", "/var/tmp", "/run/ralph"].map(Path::new);
        let links = self.shown.links.keys().chain(self.system.links.iter().map(|(at, _)| at));
        let added =
            [&self.shown.mounts, &spec.lent, &spec.writable, &spec.objects, &spec.programs, &spec.read_only];
        let mut visible = own
            .into_iter()
            .chain([workspace.inside.as_path()])
            .chain(self.system.readable.iter().map(PathBuf::as_path))
            .chain(links.map(PathBuf::as_path))
            .chain(added.into_iter().flatten().map(PathBuf::as_path));
        let name = path.strip_prefix(&self.home).ok().and_then(|below| below.components().next());
        let is_tools = name.is_some_and(|name| name.as_os_str().as_encoded_bytes().starts_with(b"."));
        path.is_absolute() && !is_tools && !visible.any(|place| path.starts_with(place))
    }

    /// Before an agent's session: its login is present until the value is dropped. Nothing for other commands.
    pub(crate) fn log_in(&self, request: &ExecRequest) -> Result<Option<LoggedIn<'_>>, SandboxError> {
        let program = request.argv.first().filter(|_| request.credentials == Credentials::Agent);
        let Some(program) = program else { return Ok(None) };
        self.logins.log_in(program).map_err(|error| broken("the login of the agent", error))
    }

    pub(crate) fn command_ended(&self, root: &Path, left: &LeftBehind) -> Result<(), SandboxError> {
        crate::local::isolation::view::git::restore_rights(root);
        covers::remove_made(root, &left.made);
        crate::local::isolation::view::git::clean(&left.unwanted)
    }

    /// A new file for the record of a watched command, invisible to commands. `None` if commands can't be watched: a
    /// program that changes its user loses its rights under ptrace.
    pub(crate) fn watch_file(&self) -> Option<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let Kind::Bwrap(bwrap) = &self.kind else { return None };
        let mode = fs::metadata(bwrap).ok()?.permissions().mode();
        if mode & 0o6000 != 0 && !nix::unistd::geteuid().is_root() {
            return None;
        }
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some(self.spec.folder.join(format!("watch-{number}.json")))
    }

    /// The run's home, which this process and commands can both write.
    pub(crate) fn exchange(&self) -> SharedDir {
        let (inside, sockets) = match self.kind {
            Kind::Bwrap(_) => (&self.home, true),
            Kind::Landlock => (&self.run_home, false),
        };
        let loopback = Loopback::OfCommand;
        SharedDir { outside: self.run_home.clone(), inside: inside.clone(), sockets, loopback }
    }

    /// Publishes a port of the sandbox on this machine, once; `None` if it is already published, or can't be.
    pub(crate) fn publish(&self, port: u16) -> std::io::Result<Option<SocketAddr>> {
        let (Kind::Bwrap(_), Some(egress)) = (&self.kind, &self.egress) else { return Ok(None) };
        egress.shown_at(port).map(Some)
    }

    pub(crate) fn egress(&self) -> Option<&Egress> {
        self.egress.as_ref()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        for name in [
            HOME,
            KEPT,
            VERSIONS,
            CACHES,
            "tmp",
            "egress.sock",
            "ralph",
            "passwd",
            "group",
            NOTHING,
            ALTERNATES,
            EMPTY,
        ] {
            let path = self.spec.folder.join(name);
            // Also removes folders that were made read-only, as Go does with its modules.
            ralph_loop_safe_fs::remove_tree(&path).ok();
        }
        fs::remove_dir(&self.spec.folder).ok();
    }
}

/// The user's caches with fresh layers; none if this machine allows no layers.
fn layered(program: &Path, bwrap: &Path, home: &Path, folder: &Path, vars: &Vars) -> Vec<Cache> {
    let mut caches = caches::caches(home, folder, |name| vars.get_os(name));
    let made = |cache: &Cache| {
        Cache::PARTS.iter().try_for_each(|part| {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(cache.layer.join(part))
        })
    };
    caches.retain(|cache| made(cache).is_ok());
    if !caches.is_empty() && !detect::layers_work(program, bwrap, &caches) {
        caches.clear();
    }
    caches
}

fn group_name(run_id: &str) -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let plain: String = run_id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(60).collect();
    format!("ralph-{plain}-{}-{number}", std::process::id())
}

fn user_home(vars: &Vars) -> PathBuf {
    let named = vars.get_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let own = || nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|user| user.dir);
    let home = named.or_else(own).unwrap_or_else(|| PathBuf::from("/root"));
    let home = home.canonicalize().unwrap_or(home);
    // A home that doesn't exist or is the root hides nothing.
    if home == Path::new("/") || !home.is_dir() { PathBuf::from("/tmp/home") } else { home }
}

/// A program's file that `/proc/self/exe` may name; a copy if that file has been replaced.
fn real_program(program: &Path, folder: &Path) -> std::io::Result<PathBuf> {
    let real = program.canonicalize();
    match real {
        Ok(real) if real.is_file() => Ok(real),
        _ => {
            let copy = folder.join("ralph");
            fs::copy(program, &copy)?;
            Ok(copy)
        }
    }
}
