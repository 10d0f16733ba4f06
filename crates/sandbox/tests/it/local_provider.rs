//! A provider whose sandboxes are local folders, so that the commands of a lifecycle are real.

use crate::common::PROBE;
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    Capabilities, ExecOutcome, ExecRequest, ExecSink, HostAccess, ManagedSandbox, Preview, Resources,
    Sandbox, SandboxCapabilities, SandboxError, SandboxInfo, SandboxProvider, SandboxSpec, WriteMode,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const STOPPED: &str = "stopped";
const WORK: &str = "work";
/// Its time is when the sandbox was made.
const MADE: &str = "made";

/// Keeps one folder per run in this one.
#[derive(Debug)]
pub(crate) struct LocalProvider(pub PathBuf);

impl LocalProvider {
    fn folder(&self, id: &str) -> Option<PathBuf> {
        let folder = self.0.join(id);
        folder.join(WORK).is_dir().then_some(folder)
    }

    fn open(&self, id: &str, env: &BTreeMap<String, String>) -> Result<LocalManaged, SandboxError> {
        let folder = self.0.join(id);
        let _ = fs::remove_file(folder.join(STOPPED));
        let vars = ralph_loop_testkit::vars().with(env.clone());
        let options = LocalOptions { guard_exe: Some(PROBE.into()), ..LocalOptions::new(id, &vars) };
        let sandbox = LocalSandbox::start(&folder.join(WORK), options)?;
        Ok(LocalManaged { sandbox, id: id.to_owned(), folder })
    }
}

fn info(id: String, folder: &Path) -> SandboxInfo {
    let made = folder.join(MADE).metadata().and_then(|about| about.modified()).unwrap();
    SandboxInfo {
        run: Some(RunId::new(id.clone())),
        id,
        provider: "local".to_owned(),
        state: if folder.join(STOPPED).exists() { "stopped" } else { "running" }.to_owned(),
        created_at: Timestamp::try_from(made).ok(),
    }
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
        let folder = self.0.join(spec.run.as_str());
        fs::create_dir_all(folder.join(WORK)).unwrap();
        if !folder.join(MADE).exists() {
            fs::write(folder.join(MADE), "").unwrap();
        }
        Ok(Box::new(self.open(spec.run.as_str(), &spec.env)?))
    }
    fn attach(&self, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError> {
        match self.folder(id) {
            None => Ok(None),
            Some(_) => Ok(Some(Box::new(self.open(id, &BTreeMap::new())?))),
        }
    }
    fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        let ids = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let ids = ids.map(|entry| entry.file_name().to_string_lossy().into_owned());
        Ok(ids.filter_map(|id| self.folder(&id).map(|folder| info(id, &folder))).collect())
    }
    fn destroy(&self, id: &str) -> Result<(), SandboxError> {
        if let Some(folder) = self.folder(id) {
            fs::remove_dir_all(folder).unwrap();
        }
        Ok(())
    }
    fn hourly(&self, _: &Resources) -> Option<Usd> {
        None
    }
}

/// Between commands nothing runs, so a stopped one only refuses them.
#[derive(Debug)]
struct LocalManaged {
    sandbox: LocalSandbox,
    id: String,
    folder: PathBuf,
}

impl LocalManaged {
    /// The path on this machine, if the sandbox takes it.
    fn checked(&self, path: &Path) -> Result<PathBuf, SandboxError> {
        match self.sandbox.read(path) {
            Err(error @ SandboxError::OutsideWorkspace(_)) => Err(error),
            _ => Ok(self.root().join(path)),
        }
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
        if self.folder.join(STOPPED).exists() {
            return Err(SandboxError::Broken(format!("`{}` is stopped", self.id)));
        }
        self.sandbox.exec(request, sink)
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
}

impl ManagedSandbox for LocalManaged {
    fn id(&self) -> &str {
        &self.id
    }
    fn start(&self) -> Result<(), SandboxError> {
        let _ = fs::remove_file(self.folder.join(STOPPED));
        Ok(())
    }
    fn stop(&self) -> Result<(), SandboxError> {
        fs::write(self.folder.join(STOPPED), "").unwrap();
        Ok(())
    }
    fn destroy(&self) -> Result<(), SandboxError> {
        let _ = fs::remove_dir_all(&self.folder);
        Ok(())
    }
    fn preview(&self, port: u16) -> Result<Preview, SandboxError> {
        Ok(Preview { url: format!("http://127.0.0.1:{port}"), headers: BTreeMap::new() })
    }
    fn make_dir(&self, path: &Path) -> Result<(), SandboxError> {
        fs::create_dir_all(self.checked(path)?).unwrap();
        Ok(())
    }
    fn exists(&self, path: &Path) -> Result<bool, SandboxError> {
        Ok(self.checked(path)?.exists())
    }
    fn set_mode(&self, path: &Path, mode: u32) -> Result<(), SandboxError> {
        fs::set_permissions(self.checked(path)?, fs::Permissions::from_mode(mode)).unwrap();
        Ok(())
    }
}
