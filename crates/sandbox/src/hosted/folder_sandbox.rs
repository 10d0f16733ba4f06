//! One folder and the sandbox that works on it: created when needed, recreated when lost.

use super::mirror::FolderMirror;
use super::{HostedOptions, Logins, is_of_run, part_of};
use ralph_loop_domain::ports::{
    Dismissal, ManagedSandbox, Resources, Sandbox, SandboxError, SandboxEvent, SandboxKeeper,
    SandboxProvider, SharedDir,
};
use ralph_loop_protocol::event::{SandboxFate, SandboxGone, SandboxReady};
use ralph_loop_protocol::id::RunId;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Sandboxes lost in a row, without a successful command in between, before giving up.
const LOSSES_MAX: u32 = 5;
/// How often to look for a sandbox that seems lost.
const ATTACH_TRIES: u32 = 40;
const ATTACH_PAUSE_MS: u8 = 250;
/// Most unjournaled messages.
const NEWS_MAX: usize = 100;

pub(super) struct RunSandboxes {
    options: HostedOptions,
    news: Mutex<Vec<SandboxEvent>>,
}

impl RunSandboxes {
    pub(super) fn new(options: HostedOptions) -> Self {
        Self { options, news: Mutex::new(Vec::new()) }
    }

    fn tell(&self, news: SandboxEvent) {
        let mut all = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < NEWS_MAX && !all.contains(&news) {
            all.push(news);
        }
    }

    fn gone(&self, id: &str, fate: SandboxFate) {
        self.tell(SandboxEvent::Gone(SandboxGone { id: id.to_owned(), fate }));
    }
}

pub(super) struct Connection {
    /// Which sandbox, counted from the first one.
    generation: u64,
    pub(super) sandbox: Box<dyn Sandbox>,
}

/// The sandbox of one folder: created when first needed, and recreated when lost.
pub(super) struct FolderSandbox {
    run_sandboxes: Arc<RunSandboxes>,
    host: PathBuf,
    run: RunId,
    kind: &'static str,
    /// For a clean checkout: removed with its last user.
    temporary: bool,
    mirror: Option<FolderMirror>,
    now: Mutex<Now>,
}

struct Now {
    provider: Box<dyn SandboxProvider>,
    sandbox: Option<Box<dyn ManagedSandbox>>,
    generation: u64,
    losses: u32,
    /// Whether git inside still needs the user's identity.
    identity_due: bool,
}

impl FolderSandbox {
    pub(super) fn new(
        run_sandboxes: &Arc<RunSandboxes>,
        folder: &Path,
        run: RunId,
        temporary: bool,
    ) -> Result<Self, SandboxError> {
        let host = folder.canonicalize().map_err(|error| SandboxError::File {
            verb: "open",
            path: folder.to_owned(),
            reason: error.to_string(),
        })?;
        let maker = &run_sandboxes.options.maker;
        let provider = maker.provider(&host)?;
        // A clean checkout is discarded: nothing of it is copied back.
        let back = (!temporary).then(|| Arc::clone(&run_sandboxes.options.ignored));
        let record = run_sandboxes.options.record.as_deref();
        let mirror = (!maker.mounts()).then(|| FolderMirror::new(&host, back, record));
        let kind = provider.name();
        let sized = run_sandboxes.options.spec.resources != Resources::default();
        if sized && !temporary && !provider.capabilities().resources {
            let words =
                format!("the size of the sandbox does not count: this version of {kind} cannot choose one");
            run_sandboxes.tell(SandboxEvent::Notice(words));
        }
        let now = Mutex::new(Now { provider, sandbox: None, generation: 0, losses: 0, identity_due: false });
        Ok(Self { run_sandboxes: Arc::clone(run_sandboxes), host, run, kind, temporary, mirror, now })
    }

    /// A file of the run's record, by its path in a copy of the workspace.
    pub(super) fn in_record(&self, word: &str) -> Option<String> {
        let record = self.run_sandboxes.options.record.as_deref()?;
        let inside = Path::new(word).strip_prefix(record).ok()?.to_str()?;
        let plain = !inside.split('/').any(|part| part == "..") && Path::new(word).is_file();
        let name = record.file_name()?.to_str()?;
        plain.then(|| format!(".ralph/runs/{name}/{inside}"))
    }

    pub(super) fn with_root(&self, folder: &Path) -> Result<Self, SandboxError> {
        let run = part_of(&self.run_sandboxes.options.spec.run, folder);
        let folder_sandbox = Self::new(&self.run_sandboxes, folder, run, true)?;
        {
            // One left by a killed process has another folder of the same name.
            let now = folder_sandbox.now();
            for old in
                now.provider.list()?.into_iter().filter(|old| old.run.as_ref() == Some(&folder_sandbox.run))
            {
                now.provider.destroy(&old.id)?;
            }
        }
        Ok(folder_sandbox)
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn host(&self) -> &Path {
        &self.host
    }

    pub(super) fn kind(&self) -> &'static str {
        self.kind
    }

    pub(super) fn mirror(&self) -> Option<&FolderMirror> {
        self.mirror.as_ref()
    }

    pub(super) fn is_mirrored(&self) -> bool {
        self.mirror.is_some()
    }

    pub(super) fn variables(&self, argv: &[String]) -> Vec<(String, String)> {
        (self.run_sandboxes.options.variables)(argv)
    }

    pub(super) fn logins(&self) -> &Logins {
        &self.run_sandboxes.options.logins
    }

    pub(super) fn pull_every(&self) -> Duration {
        self.run_sandboxes.options.pull_every
    }

    pub(super) fn notice(&self, words: String) {
        self.run_sandboxes.tell(SandboxEvent::Notice(words));
    }

    pub(super) fn tidy(&self) -> Result<(), SandboxError> {
        self.run_sandboxes.options.maker.tidy(&self.host)
    }

    /// A connection to the sandbox, which is created if missing; `own` if it is still valid.
    pub(super) fn connect(&self, own: Option<Connection>) -> Result<Connection, SandboxError> {
        let mut now = self.now();
        if now.sandbox.is_none() {
            let spec = ralph_loop_domain::ports::SandboxSpec {
                run: self.run.clone(),
                ..self.run_sandboxes.options.spec.clone()
            };
            let made = now.provider.create(&spec)?;
            if let Some(mirror) = &self.mirror {
                mirror.forget();
            }
            let hourly = self.run_sandboxes.options.hourly.or_else(|| now.provider.hourly(&spec.resources));
            let (provider, id) = (self.kind.to_owned(), made.id().to_owned());
            self.run_sandboxes.tell(SandboxEvent::Ready(SandboxReady { provider, id, hourly }));
            now.identity_due = true;
            now.sandbox = Some(made);
            now.generation += 1;
        }
        let generation = now.generation;
        match (own, &now.sandbox) {
            (Some(own), _) if own.generation == generation => Ok(own),
            (_, Some(sandbox)) => Ok(Connection { generation, sandbox: sandbox.new_connection()? }),
            (_, None) => Err(SandboxError::Broken("there is no sandbox".to_owned())),
        }
    }

    pub(super) fn exchange(&self) -> Option<SharedDir> {
        self.run_sandboxes.options.maker.exchange(&self.host)
    }

    /// A URL for a port inside, if no token is required: a token must not reach everyone who reads the URL.
    pub(super) fn host_address(&self, port: u16) -> Result<Option<String>, SandboxError> {
        if let Some(address) = self.run_sandboxes.options.maker.host_address(&self.host, port)? {
            return Ok(Some(address));
        }
        let now = self.now();
        match &now.sandbox {
            Some(sandbox) if now.provider.capabilities().preview => {
                let preview = sandbox.preview(port)?;
                Ok(preview.headers.is_empty().then_some(preview.url))
            }
            _ => Ok(None),
        }
    }

    pub(super) fn edited(&self) -> Result<(), SandboxError> {
        self.now().sandbox.as_ref().map_or(Ok(()), |sandbox| sandbox.folder_edited())
    }

    /// Sets git's identity before the first command. Not earlier: a command starts a stopped machine, which must then
    /// find the present files.
    pub(super) fn set_identity(&self, connection: &Connection) {
        if std::mem::take(&mut self.now().identity_due)
            && let Some(identity) = &self.run_sandboxes.options.identity
        {
            // A sandbox without git, or without a home, needs none.
            let _ = super::inside::set_identity(&*connection.sandbox, identity);
        }
    }

    /// After a successful command, earlier losses no longer count.
    pub(super) fn held(&self) {
        self.now().losses = 0;
    }

    /// A command couldn't be finished. If the sandbox is gone or was stopped, the next command uses another one or
    /// restarts it; otherwise this is an error.
    pub(super) fn lost(&self, connection: &Connection, why: SandboxError) -> Result<(), SandboxError> {
        let mut now = self.now();
        if now.generation != connection.generation || now.sandbox.is_none() {
            // Another command noticed it first.
            return Ok(());
        }
        now.losses += 1;
        if now.losses > LOSSES_MAX {
            return Err(why);
        }
        let id = now.sandbox.as_ref().map(|sandbox| sandbox.id().to_owned()).unwrap_or_default();
        match attach(&*now.provider, &id) {
            // The sandbox works; the file is the problem.
            Ok(Some(_)) if matches!(why, SandboxError::File { .. }) => return Err(why),
            Ok(Some(again)) => {
                self.notice(format!("a command in the sandbox {id} was cut off: {why}"));
                now.sandbox = Some(again);
                now.generation += 1;
            }
            Ok(None) => {
                self.run_sandboxes.gone(&id, SandboxFate::Lost);
                now.sandbox = None;
            }
            Err(_) => return Err(why),
        }
        if let Some(mirror) = &self.mirror {
            mirror.forget();
        }
        Ok(())
    }

    /// Removes the sandbox; reports if that fails.
    fn destroy(&self) {
        let mut now = self.now();
        let Some(sandbox) = now.sandbox.take() else { return };
        let id = sandbox.id().to_owned();
        match sandbox.destroy() {
            Ok(()) => self.run_sandboxes.gone(&id, SandboxFate::Destroyed),
            Err(error) => self.notice(format!(
                "the sandbox {id} could not be removed ({error}); `ralph sandbox rm {id}` tries it again"
            )),
        }
    }
}

impl Drop for FolderSandbox {
    fn drop(&mut self) {
        if self.temporary {
            self.destroy();
        }
    }
}

/// Looks for a sandbox that seems lost. One that is being removed gives odd answers for a moment.
fn attach(provider: &dyn SandboxProvider, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError> {
    let mut tries = 0;
    loop {
        match provider.attach(id) {
            Err(_) if tries < ATTACH_TRIES => tries += 1,
            found => return found,
        }
        nix::poll::poll(&mut [], ATTACH_PAUSE_MS).ok();
    }
}

/// Looks after the sandboxes of a run.
pub struct HostedKeeper {
    folder_sandbox: Arc<FolderSandbox>,
}

impl std::fmt::Debug for HostedKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("run", &self.folder_sandbox.run).finish_non_exhaustive()
    }
}

impl HostedKeeper {
    pub(super) fn new(folder_sandbox: Arc<FolderSandbox>) -> Self {
        Self { folder_sandbox }
    }

    /// Removes what a killed process left of this run's clean checkouts.
    fn clear_parts(&self) {
        let now = self.folder_sandbox.now();
        let run = self.folder_sandbox.run.as_str();
        for left in now.provider.list().unwrap_or_default() {
            let ours = left.run.as_ref().is_some_and(|name| name.as_str() != run && is_of_run(name, run));
            if ours && now.provider.destroy(&left.id).is_ok() {
                self.folder_sandbox.run_sandboxes.gone(&left.id, SandboxFate::Destroyed);
            }
        }
    }
}

impl SandboxKeeper for HostedKeeper {
    fn news(&self) -> Vec<SandboxEvent> {
        std::mem::take(
            &mut *self.folder_sandbox.run_sandboxes.news.lock().unwrap_or_else(PoisonError::into_inner),
        )
    }

    fn dismiss(&self, end: Dismissal) {
        let run_sandboxes = &self.folder_sandbox.run_sandboxes;
        self.clear_parts();
        if !run_sandboxes.options.keep && end == Dismissal::Safe {
            return self.folder_sandbox.destroy();
        }
        let now = self.folder_sandbox.now();
        let Some(sandbox) = &now.sandbox else { return };
        if run_sandboxes.options.keep {
            return run_sandboxes.gone(sandbox.id(), SandboxFate::Kept);
        }
        if now.provider.capabilities().stop_start {
            match sandbox.stop() {
                Ok(()) => run_sandboxes.gone(sandbox.id(), SandboxFate::Stopped),
                Err(error) => run_sandboxes.tell(SandboxEvent::Notice(format!(
                    "the sandbox {} could not be stopped: {error}",
                    sandbox.id()
                ))),
            }
        }
    }
}
