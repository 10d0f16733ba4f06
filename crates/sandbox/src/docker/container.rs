//! One of our containers.

use super::body::LABEL_ROOT;
use super::engine::Engine;
use super::exec::ExecTarget;
use crate::shell::Shell as _;
use crate::shell::files::Files;
use ralph_loop_domain::ports::{
    ExecOutcome, ExecRequest, ExecSink, HostAccess, LABEL_OURS, ManagedSandbox, Preview, Sandbox,
    SandboxCapabilities, SandboxError, WriteMode,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

#[derive(Debug, Clone)]
pub struct DockerSandbox {
    engine: Arc<Engine>,
    name: String,
    root: PathBuf,
    busy: Arc<AtomicU32>,
}

impl DockerSandbox {
    /// Reads the engine's description of a container; `None` if it isn't ours.
    pub(super) fn of(engine: &Arc<Engine>, inspected: &Value) -> Option<Self> {
        let labels = &inspected["Config"]["Labels"];
        labels[LABEL_OURS].as_str()?;
        let root = PathBuf::from(labels[LABEL_ROOT].as_str()?);
        let name = inspected["Name"].as_str()?.trim_start_matches('/').to_owned();
        Some(Self { engine: Arc::clone(engine), name, root, busy: Arc::new(AtomicU32::new(0)) })
    }

    pub(super) fn exec_target(&self) -> ExecTarget<'_> {
        ExecTarget { engine: &self.engine, name: &self.name, root: &self.root, busy: &self.busy }
    }

    fn files<R>(&self, work: impl FnOnce(Files<'_>) -> R) -> R {
        let target = self.exec_target();
        work(Files { shell: &target, root: &self.root })
    }
}

/// Removes one of our containers and its volumes, if it exists; refuses any other.
pub(super) fn destroy(engine: &Engine, id: &str) -> Result<(), SandboxError> {
    let name = match engine.inspect(id)? {
        Some(found) if found["Config"]["Labels"][LABEL_OURS].is_null() => {
            return Err(SandboxError::Broken(format!("`{id}` wasn't created by ralph; not changed")));
        }
        Some(found) => found["Name"].as_str().unwrap_or(id).trim_start_matches('/').to_owned(),
        None => id.to_owned(),
    };
    engine.remove(&name)?;
    // An interrupted create may have left volumes without a container.
    for volume in ["home", "work"] {
        engine.remove_volume(&format!("{name}-{volume}"), LABEL_OURS)?;
    }
    Ok(())
}

impl Sandbox for DockerSandbox {
    fn kind(&self) -> &'static str {
        "docker"
    }
    fn capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities { surroundings: HostAccess::Own }
    }
    fn root(&self) -> &Path {
        &self.root
    }
    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        self.exec_target().exec(request, sink)
    }
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        self.files(|files| files.read(path))
    }
    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        self.files(|files| files.write(path, bytes, mode))
    }
    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        self.files(|files| files.remove(path))
    }
    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        self.files(|files| files.list(path))
    }
    /// A container runs any number of commands at once; the connections share their count.
    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(self.clone()))
    }
    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        let failed = |reason: String| SandboxError::File { verb: "open", path: root.to_owned(), reason };
        let text = root.to_str().filter(|text| text.starts_with('/'));
        let text = text.ok_or_else(|| failed("it is not a full path".to_owned()))?;
        let answer = self.exec_target().script("cd \"$1\" && pwd -P", &[text], b"")?;
        let real = String::from_utf8_lossy(&answer.stdout).trim_end_matches('\n').to_owned();
        if answer.code != 0 || real.is_empty() {
            return Err(failed(format!("it is not a folder inside the container: {}", answer.complaint())));
        }
        Ok(Box::new(Self { root: PathBuf::from(real), ..self.clone() }))
    }
}

impl ManagedSandbox for DockerSandbox {
    fn id(&self) -> &str {
        &self.name
    }
    fn start(&self) -> Result<(), SandboxError> {
        self.engine.start(&self.name)
    }
    fn stop(&self) -> Result<(), SandboxError> {
        self.engine.stop(&self.name)
    }
    fn destroy(&self) -> Result<(), SandboxError> {
        destroy(&self.engine, &self.name)
    }
    fn preview(&self, port: u16) -> Result<Preview, SandboxError> {
        let gone = || SandboxError::Broken(format!("`{}` is gone", self.name));
        let found = self.engine.inspect(&self.name)?.ok_or_else(gone)?;
        let settings = &found["NetworkSettings"];
        let published = settings["Ports"][format!("{port}/tcp")][0]["HostPort"].as_str();
        if let Some(published) = published.filter(|port| !port.is_empty()) {
            return Ok(Preview { url: format!("http://127.0.0.1:{published}"), headers: BTreeMap::new() });
        }
        let networks = settings["Networks"].as_object().into_iter().flat_map(|all| all.values());
        let address = networks.filter_map(|network| network["IPAddress"].as_str()).find(|ip| !ip.is_empty());
        match address {
            Some(ip) => Ok(Preview { url: format!("http://{ip}:{port}"), headers: BTreeMap::new() }),
            None => Err(SandboxError::Broken(format!(
                "port {port} of `{}` cannot be reached: the container has no network",
                self.name
            ))),
        }
    }
    fn make_dir(&self, path: &Path) -> Result<(), SandboxError> {
        self.files(|files| files.make_dir(path))
    }
    fn exists(&self, path: &Path) -> Result<bool, SandboxError> {
        self.files(|files| files.exists(path))
    }
    fn set_mode(&self, path: &Path, mode: u32) -> Result<(), SandboxError> {
        self.files(|files| files.set_mode(path, mode))
    }
}
