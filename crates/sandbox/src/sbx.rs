//! MicroVMs of Docker Sandboxes, through its command-line tool.
//!
//! A machine is made once over the workspace's folder, which stands at the same path inside; commands go in with `exec`, and
//! so do writes, so that the machine sees them at once. When a run is resumed the machine is stopped and started by the next
//! command, so that edits from outside are seen. The tool has no labels: ours are known by their names.

mod sandbox;
mod tool;

pub use sandbox::SbxSandbox;
pub use tool::Tool;

use jiff::Timestamp;
use ralph_loop_domain::ports::{
    Capabilities, ManagedSandbox, Resources, SandboxError, SandboxInfo, SandboxProvider, SandboxSpec,
};
use ralph_loop_domain::vars::Vars;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tool::{Host, Machine};

/// What every name of ours starts with; the run follows.
const OURS: &str = "ralph-run-";

/// How a [`SbxProvider`] makes its machines.
#[derive(Debug, Clone)]
pub struct SbxOptions {
    /// The tool.
    pub tool: Tool,
    /// The folder of this machine that is the workspace. Machines can be listed and removed without one.
    pub workspace: Option<PathBuf>,
    /// More folders of this machine that can be read inside, at their own paths.
    pub shown: Vec<PathBuf>,
    /// Scripts that run inside at every create, in order (a git identity, links to where an agent keeps its sign-in). They
    /// must do no harm when they run again.
    pub setup: Vec<String>,
    /// Another program as the guard of the tool (see [`crate::LocalOptions::guard_exe`]).
    pub guard: Option<PathBuf>,
    /// What the tool inherits.
    pub vars: Vars,
}

impl SbxOptions {
    /// Every default.
    pub fn new(tool: Tool, vars: &Vars) -> Self {
        Self { tool, workspace: None, shown: Vec::new(), setup: Vec::new(), guard: None, vars: vars.clone() }
    }
}

/// Makes microVMs.
#[derive(Debug)]
pub struct SbxProvider {
    options: SbxOptions,
}

impl SbxProvider {
    /// With these options; nothing is asked of the tool yet.
    pub fn new(options: SbxOptions) -> Self {
        Self { options }
    }

    fn host(&self, folder: &Path, run: &str) -> Result<Host, SandboxError> {
        Host::start(&self.options, folder, run)
    }

    /// The tool, for calls that need no workspace.
    fn anywhere(&self) -> Result<Host, SandboxError> {
        self.host(Path::new("/"), "sandboxes")
    }

    fn make(&self, host: &Host, name: &str, spec: &SandboxSpec, root: &str) -> Result<(), SandboxError> {
        let mut words: Vec<String> = ["create", "--name", name, "-q"].map(String::from).to_vec();
        let mut option = |flag: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
        };
        option("-t", spec.image.clone());
        let sbx = matches!(self.options.tool, Tool::Sbx(_));
        if sbx {
            self.ready(host)?;
            option("--cpus", spec.resources.vcpu.map(|cpus| cpus.ceil().max(1.0).to_string()));
            option("-m", spec.resources.memory_gib.map(|gib| format!("{}m", (gib * 1024.0).ceil())));
        }
        words.extend(["shell".to_owned(), root.to_owned()]);
        words.extend(self.options.shown.iter().map(|folder| format!("{}:ro", folder.display())));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        host.must(&words)?;
        let allowed = self.allow(host, name, &spec.allowed_hosts);
        if allowed.is_err() {
            // A machine with another policy than the one that was asked for must not be found by the next start.
            destroy(host, name)?;
        }
        allowed
    }

    /// Nothing starts before the tool has a policy; where nobody has chosen one, nothing is reachable.
    fn ready(&self, host: &Host) -> Result<(), SandboxError> {
        if host.call(&["policy", "ls", "--json"], b"")?.code != 0 {
            host.must(&["policy", "init", "deny-all"])?;
        }
        Ok(())
    }

    fn allow(&self, host: &Host, name: &str, hosts: &[String]) -> Result<(), SandboxError> {
        if hosts.is_empty() {
            return Ok(());
        }
        if let Some(bad) =
            hosts.iter().find(|host| host.is_empty() || host.contains([',', ' ']) || host.starts_with('-'))
        {
            return Err(SandboxError::Broken(format!("`{bad}` is not a host that could be allowed")));
        }
        if matches!(self.options.tool, Tool::Sbx(_)) {
            return host.must(&["policy", "allow", "network", "--sandbox", name, &hosts.join(",")]).map(drop);
        }
        let mut words = vec!["network", "proxy", name, "--policy", "deny"];
        for allowed in hosts {
            words.extend(["--allow-host", allowed]);
        }
        host.must(&words).map(drop)
    }

    fn sandbox(&self, host: Host, name: &str, root: &Path, spec: Option<&SandboxSpec>) -> SbxSandbox {
        let env = spec.map(|spec| spec.env.clone()).unwrap_or_default().into_iter().collect();
        SbxSandbox { host: Arc::new(host), name: name.to_owned(), root: root.to_owned(), env }
    }
}

fn find(host: &Host, name: &str) -> Result<Option<Machine>, SandboxError> {
    Ok(host.list()?.into_iter().find(|machine| machine.name == name))
}

/// Removes a machine of ours; nothing happens where it is gone.
fn destroy(host: &Host, name: &str) -> Result<(), SandboxError> {
    if find(host, name)?.is_none() {
        return Ok(());
    }
    if !name.starts_with(OURS) {
        return Err(SandboxError::Broken(format!("`{name}` was not made by ralph; it stays as it is")));
    }
    match host.tool {
        Tool::Sbx(_) => host.must(&["rm", "-f", name]).map(drop),
        Tool::DockerSandbox(_) => host.must(&["rm", name]).map(drop),
    }
}

impl SandboxProvider for SbxProvider {
    fn name(&self) -> &'static str {
        "sbx"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            streaming: true,
            // Some versions of the tool bring both on one stream.
            separate_stderr: false,
            stdin: true,
            parallel: true,
            stop_start: true,
            preview: matches!(self.options.tool, Tool::Sbx(_)),
            network_policy: true,
            snapshots: false,
            volumes: false,
            resources: matches!(self.options.tool, Tool::Sbx(_)),
            file_modes: true,
        }
    }

    fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn ManagedSandbox>, SandboxError> {
        let run = RunId::parse(spec.run.as_str()).map_err(SandboxError::Broken)?;
        let folder = self.options.workspace.as_deref();
        let folder =
            folder.ok_or_else(|| SandboxError::Broken("a microVM needs a folder to work on".to_owned()))?;
        let name = format!("{OURS}{run}");
        let host = self.host(folder, run.as_str())?;
        let root = ralph_loop_domain::ports::Sandbox::root(&host.local).to_owned();
        let text = root.to_str().ok_or_else(|| SandboxError::OutsideWorkspace(root.clone()))?;
        let mut known = find(&host, &name)?;
        let elsewhere = |folder: &PathBuf| folder.canonicalize().ok() != root.canonicalize().ok();
        if known.as_ref().and_then(|machine| machine.workspace.as_ref()).is_some_and(elsewhere) {
            // It shows commands the folder of another machine's worker, or of another user of this one.
            destroy(&host, &name)?;
            known = None;
        }
        let known = known.is_some();
        if known {
            // Started again by the next command, it sees what was edited outside; and nothing of a crashed process is left.
            host.must(&["stop", &name])?;
        } else {
            self.make(&host, &name, spec, text)?;
        }
        let sandbox = self.sandbox(host, &name, &root, Some(spec));
        if !known {
            sandbox.start()?;
        }
        for script in &self.options.setup {
            sandbox.set_up(script)?;
        }
        Ok(Box::new(sandbox))
    }

    fn attach(&self, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError> {
        let Some(run) = id.strip_prefix(OURS) else { return Ok(None) };
        let Some(machine) = find(&self.anywhere()?, id)? else { return Ok(None) };
        let folder = machine.workspace.or_else(|| self.options.workspace.clone());
        let folder =
            folder.ok_or_else(|| SandboxError::Broken(format!("where `{id}` works is not known")))?;
        let host = self.host(&folder, run)?;
        let root = ralph_loop_domain::ports::Sandbox::root(&host.local).to_owned();
        Ok(Some(Box::new(self.sandbox(host, id, &root, None))))
    }

    fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        let all = self.anywhere()?.list()?;
        let info = |machine: Machine| {
            let run = RunId::parse(machine.name.strip_prefix(OURS)?).ok()?;
            Some(SandboxInfo {
                id: machine.name,
                provider: "sbx".to_owned(),
                run: Some(run),
                state: machine.status,
                created_at: machine.created_at.and_then(|at| at.parse::<Timestamp>().ok()),
            })
        };
        Ok(all.into_iter().filter_map(info).collect())
    }

    fn destroy(&self, id: &str) -> Result<(), SandboxError> {
        destroy(&self.anywhere()?, id)
    }

    fn hourly(&self, _: &Resources) -> Option<Usd> {
        None
    }
}
