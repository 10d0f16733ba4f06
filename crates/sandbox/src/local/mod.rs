//! Commands and files on this machine.

mod again;
pub mod egress;
pub mod escapes;
mod exec;
pub(crate) mod files;
pub mod isolation;
mod link;
mod request;
pub(crate) mod walk;
mod watch;

#[cfg(target_os = "linux")]
pub(crate) use watch::main as watch_main;

use egress::Egress;
use isolation::{LocalIsolation, Runtime, Workspace};
use link::GuardLink;
use ralph_loop_domain::ports::{
    ExecOutcome, ExecRequest, ExecSink, ExecTrace, HostAccess, Sandbox, SandboxCapabilities, SandboxError,
    SharedDir, WriteMode,
};
use ralph_loop_domain::repo::installed::InstalledFolder;
use ralph_loop_domain::secret_name::is_engine_secret;
use ralph_loop_domain::vars::Vars;
use ralph_loop_safe_fs::SafeDir;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a command that waits for its turn polls its sink.
const TURN_TICK: Duration = Duration::from_millis(100);

/// Settings of a [`LocalSandbox`].
#[derive(Debug)]
pub struct LocalOptions {
    /// The run id; every process carries it in `RALPH_RUN`.
    pub run_id: String,
    /// The program that runs as guard and builds sandboxes: `ralph`, or any other that calls [`crate::init`] first in
    /// its `main`. `None` is this program, which then must have called it.
    pub guard_exe: Option<PathBuf>,
    /// A descriptor that the guard keeps open until nothing of the run lives: the run's lock (`flock`).
    pub lock_fd: Option<OwnedFd>,
    /// When the lease on the run ends ([`crate::LeaseClock`]): then the guard ends everything, whatever the driver
    /// does.
    pub lease_fd: Option<OwnedFd>,
    /// The variables that commands inherit, and that local programs are found with.
    pub vars: Vars,
    /// Those that commands don't get.
    pub env_remove: Vec<String>,
    /// What commands may see, change and reach.
    pub isolation: LocalIsolation,
}

impl LocalOptions {
    /// Default options: this program as the guard, no lock, all of `vars`.
    pub fn new(run_id: impl Into<String>, vars: &Vars) -> Self {
        Self {
            run_id: run_id.into(),
            guard_exe: None,
            lock_fd: None,
            lease_fd: None,
            vars: vars.clone(),
            env_remove: Vec::new(),
            isolation: LocalIsolation::None,
        }
    }

    pub(super) fn program(&self) -> Result<&Path, SandboxError> {
        crate::helper_program::program(self.guard_exe.as_deref())
    }

    fn duplicate(&self) -> std::io::Result<Self> {
        Ok(Self {
            run_id: self.run_id.clone(),
            guard_exe: self.guard_exe.clone(),
            lock_fd: self.lock_fd.as_ref().map(OwnedFd::try_clone).transpose()?,
            lease_fd: self.lease_fd.as_ref().map(OwnedFd::try_clone).transpose()?,
            vars: self.vars.clone(),
            env_remove: self.env_remove.clone(),
            isolation: self.isolation.clone(),
        })
    }
}

/// Runs commands on this machine, under a guard, in one folder.
///
/// Sandboxes made with [`Sandbox::with_root`] share the guard unless they are sandboxed; it runs one command at a
/// time, so a second one waits for its turn (and polls its sink). One made with [`Sandbox::new_connection`] has a
/// separate guard. A sink must not run a command itself. The guard ends with the last of the sandboxes.
#[derive(Debug)]
pub struct LocalSandbox {
    workspace: Workspace,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: LocalOptions,
    /// What a command inherits, before the request's variables.
    env: Vec<(OsString, OsString)>,
    /// The sandbox's runtime; connections share it.
    isolation: Option<Arc<Runtime>>,
    slot: Mutex<Slot>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Slot {
    busy: bool,
    link: Option<GuardLink>,
}

/// One command's turn with the guard. A turn that ends without [`GuardTurn::give_back`] (the guard is lost, a sink
/// panicked) drops the link, which ends everything below that guard.
struct GuardTurn<'a> {
    shared: &'a Shared,
    link: Option<GuardLink>,
}

impl LocalSandbox {
    /// Starts a guard for the folder `root` and passes it the lock. Fails if no program can run as the guard (see
    /// [`LocalOptions::guard_exe`]).
    pub fn start(root: &Path, options: LocalOptions) -> Result<Self, SandboxError> {
        let root = real_folder(root)?;
        let dropped = |name: &OsStr| {
            options.env_remove.iter().any(|removed| name == removed.as_str())
                || ["PWD", "OLDPWD", crate::RUN_MARK].iter().any(|own| name == *own)
        };
        // An agent never gets the engine's secrets, isolated or not.
        let own =
            |name: &OsStr, value: &OsStr| is_engine_secret(&name.to_string_lossy(), &value.to_string_lossy());
        let kept = options.vars.iter().filter(|(name, value)| !dropped(name) && !own(name, value));
        let env = kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let isolation = Runtime::start(&options)?.map(Arc::new);
        let link = Some(GuardLink::start(&options)?);
        let slot = Mutex::new(Slot { busy: false, link });
        let workspace = workspace(root, isolation.as_deref());
        let shared = Arc::new(Shared { options, env, isolation, slot, freed: Condvar::new() });
        Ok(Self { workspace, shared })
    }

    /// The proxy of a sandbox with network access; [`Egress::publish`] publishes a port of the sandbox on this
    /// machine.
    pub fn egress(&self) -> Option<&Egress> {
        self.shared.isolation.as_ref().and_then(|isolation| isolation.egress())
    }

    /// The same folder with a separate guard, which starts with its first command.
    pub(crate) fn own_lane(&self) -> Result<Self, SandboxError> {
        let shared = Shared {
            options: self.shared.duplicate()?,
            env: self.shared.env.clone(),
            isolation: self.shared.isolation.clone(),
            slot: Mutex::new(Slot::default()),
            freed: Condvar::new(),
        };
        Ok(Self { workspace: self.workspace.clone(), shared: Arc::new(shared) })
    }

    /// Runs one command; records its activity in `seen` if it is watched.
    fn exec_seen(
        &self,
        request: &ExecRequest,
        sink: &mut dyn ExecSink,
        seen: Option<&Path>,
    ) -> Result<ExecOutcome, SandboxError> {
        let run = |sink: &mut dyn ExecSink| exec::exec(&self.workspace, &self.shared, request, sink, seen);
        let done = match self.shared.isolation {
            Some(_) => again::exec(request, sink, run),
            None => run(sink),
        };
        match &done {
            Ok(done) => {
                tracing::debug!(command = ?request.argv.first(), end = ?done.end, took = ?done.duration, survivors = done.survivors, "command ended")
            }
            Err(error) => tracing::warn!(command = ?request.argv.first(), %error, "command failed"),
        }
        done
    }

    /// The guard's process, unless it was lost or is in use by a running command.
    pub fn guard_pid(&self) -> Option<u32> {
        self.shared.slot().link.as_ref().map(GuardLink::pid)
    }
}

impl Shared {
    fn duplicate(&self) -> Result<LocalOptions, SandboxError> {
        let options = self.options.duplicate();
        options.map_err(|error| SandboxError::Broken(format!("the lock cannot be shared: {error}")))
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        // A slot has no half-made state, so a panic elsewhere doesn't matter.
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the guard to be free; `Break` if the sink stops the command before its turn.
    fn turn(
        &self,
        sink: &mut dyn ExecSink,
    ) -> ControlFlow<ralph_loop_domain::ports::StopCause, GuardTurn<'_>> {
        loop {
            sink.poll()?;
            let slot = self.slot();
            let waited = self.freed.wait_timeout_while(slot, TURN_TICK, |slot| slot.busy);
            let (mut slot, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if !slot.busy {
                slot.busy = true;
                return ControlFlow::Continue(GuardTurn { shared: self, link: slot.link.take() });
            }
        }
    }
}

impl GuardTurn<'_> {
    fn link(&mut self) -> Result<&mut GuardLink, SandboxError> {
        if self.link.is_none() {
            self.link = Some(GuardLink::start(&self.shared.options)?);
        }
        self.link.as_mut().ok_or_else(|| SandboxError::Broken("no guard".to_owned()))
    }

    fn give_back(mut self) {
        let link = self.link.take();
        self.shared.slot().link = link;
    }
}

impl Drop for GuardTurn<'_> {
    fn drop(&mut self) {
        drop(self.link.take());
        self.shared.slot().busy = false;
        self.shared.freed.notify_one();
    }
}

/// The folder without symbolic links, so that "inside" is decided once.
fn real_folder(root: &Path) -> Result<PathBuf, SandboxError> {
    let failed = |reason: String| SandboxError::File { verb: "open", path: root.to_owned(), reason };
    let real = root.canonicalize().map_err(|error| failed(error.to_string()))?;
    if real.is_dir() { Ok(real) } else { Err(failed("it is not a folder".to_owned())) }
}

/// The path at which commands see the workspace `root`.
fn workspace(root: PathBuf, isolation: Option<&Runtime>) -> Workspace {
    match isolation {
        Some(isolation) => isolation.workspace(root),
        None => Workspace::plain(root),
    }
}

impl Sandbox for LocalSandbox {
    fn kind(&self) -> &'static str {
        "local"
    }

    fn capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities { surroundings: HostAccess::Host }
    }

    fn root(&self) -> &Path {
        &self.workspace.inside
    }

    fn host_root(&self) -> Option<&Path> {
        Some(&self.workspace.host)
    }

    fn hides(&self, path: &Path) -> bool {
        self.shared.isolation.as_ref().is_some_and(|isolation| isolation.hides(path, &self.workspace))
    }

    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        self.exec_seen(request, sink, None)
    }

    fn exec_watched(
        &self,
        request: &ExecRequest,
        sink: &mut dyn ExecSink,
    ) -> Result<(ExecOutcome, Option<ExecTrace>), SandboxError> {
        let Some(file) = self.shared.isolation.as_ref().and_then(|isolation| isolation.watch_file()) else {
            return Ok((self.exec(request, sink)?, None));
        };
        let outcome = self.exec_seen(request, sink, Some(&file))?;
        Ok((outcome, watch::take(&file)))
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        files::read(&self.workspace.host, path)
    }

    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        files::write(&self.workspace.host, path, bytes, mode)
    }

    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        files::remove(&self.workspace.host, path)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        files::list(&self.workspace.host, path)
    }

    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(self.own_lane()?))
    }

    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.with_lent(root, &[])
    }

    /// Sandboxed, it is a separate sandbox: without what commands here left in their home.
    fn with_lent(&self, root: &Path, lent: &[InstalledFolder]) -> Result<Box<dyn Sandbox>, SandboxError> {
        let root = real_folder(root)?;
        let (workspace, shared) = if self.shared.isolation.is_none() {
            (Workspace::plain(root), Arc::clone(&self.shared))
        } else {
            let mut options = self.shared.duplicate()?;
            let folders = lent.iter().map(|folder| folder.from.clone()).collect();
            options.isolation = options.isolation.with_new_folder(&self.workspace, folders);
            let isolation = Runtime::start(&options)?.map(Arc::new);
            let (env, slot) = (self.shared.env.clone(), Mutex::new(Slot::default()));
            let workspace = workspace(root, isolation.as_deref());
            (workspace, Arc::new(Shared { options, env, isolation, slot, freed: Condvar::new() }))
        };
        // If the workspace isn't at the repo's own path, a link leads there.
        for folder in lent.iter().filter(|folder| !workspace.covers(&folder.from)) {
            let linked = SafeDir::open(&workspace.host).and_then(|top| top.link(&folder.at, &folder.from));
            linked.map_err(|error| SandboxError::File {
                verb: "link",
                path: folder.from.clone(),
                reason: error.to_string(),
            })?;
        }
        Ok(Box::new(Self { workspace, shared }))
    }

    fn exchange(&self) -> Option<SharedDir> {
        self.shared.isolation.as_ref().map(|isolation| isolation.exchange())
    }

    fn host_address(&self, port: u16) -> Result<Option<String>, SandboxError> {
        let Some(isolation) = &self.shared.isolation else { return Ok(None) };
        let published = isolation.publish(port);
        let address =
            published.map_err(|error| SandboxError::Broken(format!("can't forward port {port}: {error}")))?;
        Ok(address.map(|address| format!("http://{address}")))
    }
}
