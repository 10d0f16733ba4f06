//! A run whose commands run in a provider's sandbox, while its workspace is a local folder.
//!
//! The folder is authoritative: git, checkpoints, proofs and the journal work on it. A container or a microVM mounts
//! it; a cloud machine has a synced copy (`mirror`). So a sandbox can be lost at any moment: the next command gets
//! another one, made from the folder.

mod folder_sandbox;
mod host;
mod inside;
mod logins;
mod mirror;
mod tar;

pub use folder_sandbox::HostedKeeper;
pub use logins::{AuthFiles, Logins};
pub use mirror::Ignored;

use crate::local::files;
use folder_sandbox::{Connection, FolderSandbox, RunSandboxes};
use mirror::FolderMirror;
use ralph_loop_domain::ports::{
    Credentials, ExecEnd, ExecOutcome, ExecRequest, ExecSink, HostAccess, Sandbox, SandboxCapabilities,
    SandboxError, SandboxProvider, SandboxSpec, SharedDir, WriteMode,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The entry point of fuzzing: reads any bytes as an archive from a sandbox; returns how many bytes it holds.
#[doc(hidden)]
pub fn read_anything(bytes: &[u8]) -> usize {
    let members = tar::read(bytes).unwrap_or_default();
    let size = |member: &tar::Member| match &member.body {
        tar::Body::File(bytes) => bytes.len(),
        tar::Body::Link(to) => to.len(),
    };
    members.iter().map(|member| member.path.len() + size(member)).sum()
}

/// Which of the user's variables a command gets, by its arguments: an agent's program its keys, others none.
pub type Variables = Arc<dyn Fn(&[String]) -> Vec<(String, String)> + Send + Sync>;

/// The arguments that decide about keys and logins: only an agent session's.
fn agent_argv(request: &ExecRequest) -> &[String] {
    match request.credentials {
        Credentials::Agent => &request.argv,
        Credentials::None => &[],
    }
}

/// Creates providers whose sandboxes work on a local folder.
pub trait ProviderFactory: Send + Sync {
    /// Returns a provider for `folder`.
    fn provider(&self, folder: &Path) -> Result<Box<dyn SandboxProvider>, SandboxError>;
    /// Whether its sandboxes mount the folder at the same path; otherwise they get a copy.
    fn mounts(&self) -> bool;
    /// Where this process and commands in the sandbox over `folder` can exchange files, if anywhere.
    fn exchange(&self, folder: &Path) -> Option<SharedDir> {
        let _ = folder;
        None
    }
    /// A local address that leads to `port` of the sandbox over `folder`; `None` to use the provider's preview.
    fn host_address(&self, folder: &Path, port: u16) -> Result<Option<String>, SandboxError> {
        let _ = (folder, port);
        Ok(None)
    }
    /// Cleans up the folder after a command; an error if that is impossible.
    fn tidy(&self, folder: &Path) -> Result<(), SandboxError> {
        let _ = folder;
        Ok(())
    }
}

pub struct HostedOptions {
    pub spec: SandboxSpec,
    pub maker: Box<dyn ProviderFactory>,
    /// How often changes are copied back while a command runs.
    pub pull_every: Duration,
    /// Whether to keep sandboxes after the run.
    pub keep: bool,
    pub hourly: Option<Usd>,
    pub variables: Variables,
    pub logins: Logins,
    /// Who commits inside, unless set otherwise there.
    pub identity: Option<crate::GitIdentity>,
    pub ignored: Ignored,
    /// The run's record, outside the workspace. A copy of the workspace has the record files that a command mentions
    /// as `.ralph/runs/<name of the record>/…`.
    pub record: Option<PathBuf>,
}

pub struct HostedSandbox {
    folder_sandbox: Arc<FolderSandbox>,
    kind: &'static str,
    root: PathBuf,
    /// This handle's connection; taken out while a command runs.
    own: RefCell<Option<Connection>>,
}

impl std::fmt::Debug for HostedSandbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostedSandbox")
            .field("kind", &self.kind)
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

impl HostedSandbox {
    /// Creates or finds the sandbox of a run over `workspace`, and its keeper.
    pub fn start(workspace: &Path, options: HostedOptions) -> Result<(Self, HostedKeeper), SandboxError> {
        let run = options.spec.run.clone();
        let run_sandboxes = Arc::new(RunSandboxes::new(options));
        let folder_sandbox = Arc::new(FolderSandbox::new(&run_sandboxes, workspace, run, false)?);
        let sandbox = Self::open(&folder_sandbox)?;
        Ok((sandbox, HostedKeeper::new(folder_sandbox)))
    }

    fn open(folder_sandbox: &Arc<FolderSandbox>) -> Result<Self, SandboxError> {
        let connection = folder_sandbox.connect(None)?;
        let root = if folder_sandbox.is_mirrored() {
            connection.sandbox.root().to_owned()
        } else {
            folder_sandbox.host().to_owned()
        };
        Ok(Self {
            folder_sandbox: Arc::clone(folder_sandbox),
            kind: folder_sandbox.kind(),
            root,
            own: RefCell::new(Some(connection)),
        })
    }

    fn handle(&self) -> Self {
        Self {
            folder_sandbox: Arc::clone(&self.folder_sandbox),
            kind: self.kind,
            root: self.root.clone(),
            own: RefCell::new(None),
        }
    }

    fn run(
        &self,
        connection: &Connection,
        request: &ExecRequest,
        sink: &mut dyn ExecSink,
    ) -> Result<ExecOutcome, SandboxError> {
        let inside = &*connection.sandbox;
        let mut request = request.clone();
        request.env.splice(0..0, self.folder_sandbox.variables(agent_argv(&request)));
        let Some(mirror) = self.folder_sandbox.mirror() else {
            let outcome = self.logged_in(inside, &request, sink);
            self.folder_sandbox.tidy()?;
            return outcome;
        };
        let named = self.translate(&mut request, inside.root());
        mirror.push(inside, &named)?;
        let outcome = self.pulled(mirror, || self.logged_in(inside, &request, sink))?;
        for notice in mirror.pull(inside)? {
            self.folder_sandbox.notice(notice);
        }
        Ok(outcome)
    }

    /// Copies changes back during `work`, so that little is lost if the sandbox is lost in a long session.
    fn pulled<R>(&self, mirror: &FolderMirror, work: impl FnOnce() -> R) -> R {
        let (stop, stopped) = mpsc::channel::<()>();
        let folder_sandbox = &self.folder_sandbox;
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut last = None;
                while stopped.recv_timeout(folder_sandbox.pull_every())
                    == Err(mpsc::RecvTimeoutError::Timeout)
                {
                    let Ok(connection) = folder_sandbox.connect(last.take()) else { break };
                    let Ok(notices) = mirror.pull(&*connection.sandbox) else { break };
                    notices.into_iter().for_each(|notice| folder_sandbox.notice(notice));
                    last = Some(connection);
                }
            });
            let done = work();
            drop(stop);
            done
        })
    }

    fn logged_in(
        &self,
        inside: &dyn Sandbox,
        request: &ExecRequest,
        sink: &mut dyn ExecSink,
    ) -> Result<ExecOutcome, SandboxError> {
        let login = self.folder_sandbox.logins().log_in(inside, agent_argv(request))?;
        let outcome = inside.exec(request, sink);
        let out = login.log_out(inside);
        let outcome = outcome?;
        out.map(|()| outcome)
    }

    /// Translates workspace paths in arguments to paths inside; returns those of the run's records.
    fn translate(&self, request: &mut ExecRequest, root: &Path) -> Vec<String> {
        let mut named = Vec::new();
        let (Some(here), Some(there)) = (self.folder_sandbox.host().to_str(), root.to_str()) else {
            return named;
        };
        let words = request.argv.iter_mut().chain(request.env.iter_mut().map(|(_, value)| value));
        for word in words {
            if let Some(path) = self.folder_sandbox.in_record(word) {
                *word = format!("{there}/{path}");
                named.push(path);
                continue;
            }
            if let Some(rest) =
                word.strip_prefix(here).filter(|rest| rest.is_empty() || rest.starts_with('/'))
            {
                let path = rest.trim_start_matches('/').to_owned();
                if path.starts_with(".ralph/") && self.folder_sandbox.host().join(&path).is_file() {
                    named.push(path);
                }
                *word = format!("{there}{rest}");
            }
        }
        named
    }
}

impl Sandbox for HostedSandbox {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities { surroundings: HostAccess::Own }
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn host_root(&self) -> Option<&Path> {
        Some(self.folder_sandbox.host())
    }

    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        let own = self.own.borrow_mut().take();
        let connection = self.folder_sandbox.connect(own)?;
        self.folder_sandbox.set_identity(&connection);
        match self.run(&connection, request, sink) {
            Err(error @ (SandboxError::Broken(_) | SandboxError::File { .. })) => {
                self.folder_sandbox.lost(&connection, error)?;
                Ok(ExecOutcome { end: ExecEnd::GuardLost, duration: Duration::ZERO, survivors: 0 })
            }
            other => {
                self.folder_sandbox.held();
                *self.own.borrow_mut() = Some(connection);
                other
            }
        }
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        match files::read(self.folder_sandbox.host(), path)? {
            // Ignored files only exist inside.
            None if self.folder_sandbox.is_mirrored() => {
                let own = self.own.borrow_mut().take();
                let connection = self.folder_sandbox.connect(own)?;
                let found = connection.sandbox.read(path);
                *self.own.borrow_mut() = Some(connection);
                found
            }
            found => Ok(found),
        }
    }

    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        files::write(self.folder_sandbox.host(), path, bytes, mode)
    }

    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        files::remove(self.folder_sandbox.host(), path)
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        files::list(self.folder_sandbox.host(), path)
    }

    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(self.handle()))
    }

    fn exchange(&self) -> Option<SharedDir> {
        self.folder_sandbox.exchange()
    }

    fn host_address(&self, port: u16) -> Result<Option<String>, SandboxError> {
        self.folder_sandbox.host_address(port)
    }

    fn folder_edited(&self) -> Result<(), SandboxError> {
        self.folder_sandbox.edited()
    }

    /// Another folder gets a separate sandbox, fresh from the image, without anything that an agent installed or
    /// changed. It is removed with its last user.
    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        if root == self.root || root == self.folder_sandbox.host() {
            return Ok(Box::new(self.handle()));
        }
        let folder_sandbox = self.folder_sandbox.with_root(root)?;
        Ok(Box::new(Self::open(&Arc::new(folder_sandbox))?))
    }
}

/// The name of a further sandbox of a run at the provider.
fn part_of(run: &RunId, folder: &Path) -> RunId {
    let part = folder
        .extension()
        .and_then(|ext| ext.to_str())
        .filter(|ext| ext.bytes().all(|b| b.is_ascii_alphabetic()));
    RunId::new(format!("{run}-{}", part.unwrap_or("proof")))
}

/// Whether `name` is a sandbox of `run`: its main one, or a further one.
pub fn is_of_run(name: &RunId, run: &str) -> bool {
    let rest = name.as_str().strip_prefix(run);
    rest.is_some_and(|rest| rest.is_empty() || ["-proof", "-critic"].contains(&rest))
}
