//! A provider whose sandboxes are local folders: for tests, and for use without an account.

use super::walk::{self, Last, Missing, file_error};
use super::{LocalOptions, LocalSandbox};
use jiff::Timestamp;
use nix::errno::Errno;
use nix::sys::stat::{FchmodatFlags, Mode, fchmodat};
use ralph_loop_domain::ports::{
    Capabilities, ExecOutcome, ExecRequest, ExecSink, ExecTrace, HostAccess, ManagedSandbox, Preview,
    Resources, Sandbox, SandboxCapabilities, SandboxError, SandboxInfo, SandboxProvider, SandboxSpec,
    SharedDir, WriteMode,
};
use ralph_loop_domain::repo::installed::InstalledFolder;
use ralph_loop_domain::vars::Vars;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that marks our folders; only those are listed and removed. Its time is when the sandbox was created.
const OURS: &str = "ralph.run";
/// A file that marks a stopped sandbox.
const STOPPED: &str = "ralph.stopped";
const WORK: &str = "work";

/// Creates one folder per run below its base folder.
#[derive(Debug)]
pub struct LocalProvider {
    base: PathBuf,
    vars: Vars,
    guard: Option<PathBuf>,
}

impl LocalProvider {
    /// Keeps its sandboxes in `base`, which is created if missing; commands inherit `vars`.
    pub fn new(base: &Path, vars: &Vars) -> Self {
        Self { base: base.to_owned(), vars: vars.clone(), guard: None }
    }

    /// Uses another program as the guard (see [`LocalOptions::guard_exe`]).
    #[must_use]
    pub fn with_guard(mut self, exe: PathBuf) -> Self {
        self.guard = Some(exe);
        self
    }

    /// The folder of one of our ids; `None` for anything else.
    fn folder(&self, id: &str) -> Option<PathBuf> {
        RunId::parse(id).ok()?;
        let folder = self.base.join(id);
        folder.join(OURS).is_file().then_some(folder)
    }

    /// The sandbox of one of our ids, started if it was stopped.
    fn open(&self, id: &str, env: &BTreeMap<String, String>) -> Result<LocalManaged, SandboxError> {
        let folder = self.base.join(id);
        set_stopped(&folder, false)?;
        let options = LocalOptions { guard_exe: self.guard.clone(), ..LocalOptions::new(id, &self.vars) };
        let mut sandbox = LocalSandbox::start(&folder.join(WORK), options)?;
        if let Some(shared) = Arc::get_mut(&mut sandbox.shared) {
            shared.env.retain(|(name, _)| !env.keys().any(|given| name == given.as_str()));
            shared.env.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
        }
        Ok(LocalManaged { sandbox, id: id.to_owned(), folder })
    }
}

fn failed(verb: &'static str, path: &Path, error: &std::io::Error) -> SandboxError {
    SandboxError::File { verb, path: path.to_owned(), reason: error.to_string() }
}

fn set_stopped(folder: &Path, stopped: bool) -> Result<(), SandboxError> {
    let mark = folder.join(STOPPED);
    let done = if stopped { std::fs::write(&mark, "") } else { std::fs::remove_file(&mark) };
    match done {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !stopped => Ok(()),
        done => done.map_err(|error| failed("write", &mark, &error)),
    }
}

/// Creates the marker file; an existing one stays and shows when the sandbox was created.
fn mark_as_ours(folder: &Path, id: &RunId) -> std::io::Result<()> {
    match std::fs::File::create_new(folder.join(OURS)) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
        Ok(mut file) => writeln!(file, "{id}"),
    }
}

fn info(id: String, folder: &Path) -> SandboxInfo {
    let made = folder.join(OURS).metadata().and_then(|about| about.modified()).ok();
    SandboxInfo {
        run: Some(RunId::new(id.clone())),
        id,
        provider: "local".to_owned(),
        state: if folder.join(STOPPED).exists() { "stopped" } else { "running" }.to_owned(),
        created_at: made.and_then(|made| Timestamp::try_from(made).ok()),
    }
}

fn remove_all(folder: &Path) -> Result<(), SandboxError> {
    ralph_loop_safe_fs::remove_tree(folder).map_err(|error| failed("remove", folder, &error))
}

impl SandboxProvider for LocalProvider {
    fn name(&self) -> &'static str {
        "local"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            streaming: true,
            separate_stderr: true,
            stdin: true,
            parallel: true,
            stop_start: true,
            preview: true,
            file_modes: true,
            ..Capabilities::default()
        }
    }

    fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn ManagedSandbox>, SandboxError> {
        let id = RunId::parse(spec.run.as_str()).map_err(SandboxError::Broken)?;
        let folder = self.base.join(id.as_str());
        let made = std::fs::create_dir_all(folder.join(WORK)).and_then(|()| mark_as_ours(&folder, &id));
        made.map_err(|error| failed("make", &folder, &error))?;
        Ok(Box::new(self.open(id.as_str(), &spec.env)?))
    }

    fn attach(&self, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError> {
        match self.folder(id) {
            None => Ok(None),
            // The variables were given to its creator, and aren't stored.
            Some(_) => Ok(Some(Box::new(self.open(id, &BTreeMap::new())?))),
        }
    }

    fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        let entries = match std::fs::read_dir(&self.base) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|error| failed("list", &self.base, &error))?,
        };
        let mut all = Vec::new();
        for entry in entries.flatten() {
            let id = entry.file_name().to_string_lossy().into_owned();
            if let Some(folder) = self.folder(&id) {
                all.push(info(id, &folder));
            }
        }
        all.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(all)
    }

    fn destroy(&self, id: &str) -> Result<(), SandboxError> {
        self.folder(id).map_or(Ok(()), |folder| remove_all(&folder))
    }

    fn hourly(&self, _: &Resources) -> Option<Usd> {
        None
    }
}

/// A local folder as a managed sandbox. Between commands nothing runs, so a stopped one only refuses them.
#[derive(Debug)]
pub struct LocalManaged {
    sandbox: LocalSandbox,
    id: String,
    folder: PathBuf,
}

impl LocalManaged {
    fn running(&self) -> Result<(), SandboxError> {
        if self.folder.join(STOPPED).exists() {
            return Err(SandboxError::Broken(format!("`{}` is stopped", self.id)));
        }
        Ok(())
    }
}

impl Sandbox for LocalManaged {
    fn kind(&self) -> &'static str {
        "local"
    }
    fn capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities { surroundings: HostAccess::Host }
    }
    fn root(&self) -> &Path {
        self.sandbox.root()
    }
    fn host_root(&self) -> Option<&Path> {
        self.sandbox.host_root()
    }
    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        self.running()?;
        self.sandbox.exec(request, sink)
    }
    fn exec_watched(
        &self,
        request: &ExecRequest,
        sink: &mut dyn ExecSink,
    ) -> Result<(ExecOutcome, Option<ExecTrace>), SandboxError> {
        self.running()?;
        self.sandbox.exec_watched(request, sink)
    }
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        self.sandbox.read(path)
    }
    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        self.sandbox.write(path, bytes, mode)
    }
    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        self.sandbox.remove(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        self.sandbox.list(path)
    }
    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.sandbox.new_connection()
    }
    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.sandbox.with_root(root)
    }
    fn with_lent(&self, root: &Path, lent: &[InstalledFolder]) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.sandbox.with_lent(root, lent)
    }
    fn exchange(&self) -> Option<SharedDir> {
        self.sandbox.exchange()
    }
    fn host_address(&self, port: u16) -> Result<Option<String>, SandboxError> {
        self.sandbox.host_address(port)
    }
}

impl ManagedSandbox for LocalManaged {
    fn id(&self) -> &str {
        &self.id
    }
    fn start(&self) -> Result<(), SandboxError> {
        set_stopped(&self.folder, false)
    }
    fn stop(&self) -> Result<(), SandboxError> {
        set_stopped(&self.folder, true)
    }
    fn destroy(&self) -> Result<(), SandboxError> {
        remove_all(&self.folder)
    }
    fn preview(&self, port: u16) -> Result<Preview, SandboxError> {
        let url = self.sandbox.host_address(port)?.unwrap_or_else(|| format!("http://127.0.0.1:{port}"));
        Ok(Preview { url, headers: BTreeMap::new() })
    }
    fn make_dir(&self, path: &Path) -> Result<(), SandboxError> {
        // Creates everything above the file.
        let below = path.join("_");
        walk::find(self.root(), &below, Last::Keep, Missing::Make)?
            .map(drop)
            .ok_or_else(|| file_error("make", path, Errno::ENOTDIR))
    }
    fn exists(&self, path: &Path) -> Result<bool, SandboxError> {
        let place = walk::find(self.root(), path, Last::Follow, Missing::Stop)?;
        Ok(place.is_some_and(|place| place.name.is_none() || place.stat.is_some()))
    }
    fn set_mode(&self, path: &Path, mode: u32) -> Result<(), SandboxError> {
        let missing = || file_error("change the mode of", path, Errno::ENOENT);
        let place = walk::find(self.root(), path, Last::Follow, Missing::Stop)?.ok_or_else(missing)?;
        let name = place.name.as_deref().ok_or_else(missing)?;
        // No special bits: a sandbox doesn't need them.
        let mode = Mode::from_bits_truncate((mode & 0o777) as nix::libc::mode_t);
        fchmodat(&place.folder, name, mode, FchmodatFlags::FollowSymlink)
            .map_err(|errno| file_error("change the mode of", path, errno))
    }
}
