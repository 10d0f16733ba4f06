//! A provider whose sandboxes are in memory, for tests.

use super::{MemorySandbox, files};
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    Capabilities, ExecOutcome, ExecRequest, ExecSink, HostAccess, ManagedSandbox, Preview, Resources,
    Sandbox, SandboxCapabilities, SandboxError, SandboxInfo, SandboxProvider, SandboxSpec, WriteMode,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Machines = BTreeMap<String, MemoryMachine>;

struct MemoryMachine {
    run: RunId,
    sandbox: MemorySandbox,
    running: bool,
    made: Timestamp,
    /// Created folders without a file so far.
    folders: BTreeSet<String>,
}

/// When a sandbox was created: only for display, so a clock is allowed.
#[allow(clippy::disallowed_methods, reason = "the memory of a provider is its own, and so is its clock")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Creates sandboxes in memory; clones share them, as processes share a machine.
#[derive(Clone, Default)]
pub struct MemoryProvider {
    machines: Arc<Mutex<Machines>>,
}

impl MemoryProvider {
    /// A provider without sandboxes.
    pub fn new() -> Self {
        Self::default()
    }

    fn machines(&self) -> MutexGuard<'_, Machines> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn handle(&self, id: &str) -> Option<MemoryManaged> {
        let sandbox = self.machines().get(id)?.sandbox.clone();
        Some(MemoryManaged { id: id.to_owned(), sandbox, provider: self.clone() })
    }
}

impl std::fmt::Debug for MemoryProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryProvider").finish_non_exhaustive()
    }
}

impl SandboxProvider for MemoryProvider {
    fn name(&self) -> &'static str {
        "memory"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { separate_stderr: true, stop_start: true, ..Capabilities::default() }
    }
    fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn ManagedSandbox>, SandboxError> {
        let id = format!("memory-{}", spec.run);
        self.machines()
            .entry(id.clone())
            .or_insert_with(|| MemoryMachine {
                run: spec.run.clone(),
                sandbox: MemorySandbox::default(),
                running: true,
                made: now(),
                folders: BTreeSet::new(),
            })
            .running = true;
        let made = self.handle(&id).ok_or_else(|| SandboxError::Broken(format!("`{id}` is gone")))?;
        Ok(Box::new(made))
    }
    fn attach(&self, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError> {
        Ok(self.handle(id).map(|found| Box::new(found) as Box<dyn ManagedSandbox>))
    }
    fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        let info = |(id, machine): (&String, &MemoryMachine)| SandboxInfo {
            id: id.clone(),
            provider: "memory".to_owned(),
            run: Some(machine.run.clone()),
            state: if machine.running { "running" } else { "stopped" }.to_owned(),
            created_at: Some(machine.made),
        };
        Ok(self.machines().iter().map(info).collect())
    }
    fn destroy(&self, id: &str) -> Result<(), SandboxError> {
        self.machines().remove(id);
        Ok(())
    }
    fn hourly(&self, _: &Resources) -> Option<Usd> {
        None
    }
}

#[derive(Debug)]
pub struct MemoryManaged {
    id: String,
    sandbox: MemorySandbox,
    provider: MemoryProvider,
}

impl MemoryManaged {
    fn running<R>(&self, work: impl FnOnce(&mut MemoryMachine) -> R) -> Result<R, SandboxError> {
        match self.provider.machines().get_mut(&self.id) {
            Some(machine) if machine.running => Ok(work(machine)),
            Some(_) => Err(SandboxError::Broken(format!("`{}` is stopped", self.id))),
            None => Err(SandboxError::Broken(format!("`{}` is gone", self.id))),
        }
    }

    fn set_running(&self, running: bool) -> Result<(), SandboxError> {
        let gone = || SandboxError::Broken(format!("`{}` is gone", self.id));
        self.provider.machines().get_mut(&self.id).ok_or_else(gone)?.running = running;
        Ok(())
    }
}

impl Sandbox for MemoryManaged {
    fn kind(&self) -> &'static str {
        "memory"
    }
    fn capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities { surroundings: HostAccess::Own }
    }
    fn root(&self) -> &Path {
        self.sandbox.root()
    }
    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        self.running(|_| ())?;
        self.sandbox.exec(request, sink)
    }
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        self.running(|_| ())?;
        self.sandbox.read(path)
    }
    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        self.running(|_| ())?;
        self.sandbox.write(path, bytes, mode)
    }
    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        self.running(|_| ())?;
        self.sandbox.remove(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        let folder = files::key(path)?;
        let mut names: BTreeSet<String> = self.sandbox.list(path)?.into_iter().collect();
        let below = if folder.is_empty() { folder } else { format!("{folder}/") };
        self.running(|machine| {
            let made = machine.folders.iter().filter_map(|made| made.strip_prefix(below.as_str()));
            names.extend(made.filter_map(|rest| rest.split('/').next()).map(str::to_owned));
        })?;
        Ok(names.into_iter().collect())
    }
    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.sandbox.new_connection()
    }
    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.sandbox.with_root(root)
    }
}

impl ManagedSandbox for MemoryManaged {
    fn id(&self) -> &str {
        &self.id
    }
    fn start(&self) -> Result<(), SandboxError> {
        self.set_running(true)
    }
    fn stop(&self) -> Result<(), SandboxError> {
        self.set_running(false)
    }
    fn destroy(&self) -> Result<(), SandboxError> {
        self.provider.destroy(&self.id)
    }
    fn preview(&self, port: u16) -> Result<Preview, SandboxError> {
        Err(SandboxError::Broken(format!("nothing in memory listens on port {port}")))
    }
    fn make_dir(&self, path: &Path) -> Result<(), SandboxError> {
        let folder = files::key(path)?;
        self.running(|machine| machine.folders.insert(folder)).map(drop)
    }
    fn exists(&self, path: &Path) -> Result<bool, SandboxError> {
        let name = files::key(path)?;
        let is_file = self.sandbox.files(|files| files.get(&name).is_some() || files.is_folder(&name));
        let below = format!("{name}/");
        self.running(|machine| {
            is_file
                || machine.folders.contains(&name)
                || machine.folders.iter().any(|made| made.starts_with(below.as_str()))
        })
    }
    fn set_mode(&self, path: &Path, _: u32) -> Result<(), SandboxError> {
        let reason = "files in memory have no permission bits".to_owned();
        Err(SandboxError::File { verb: "change the mode of", path: path.to_owned(), reason })
    }
}
