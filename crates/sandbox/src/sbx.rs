//! MicroVMs of Docker Sandboxes, through its command-line tool.
//!
//! A machine is created once over the workspace's folder, which has the same path inside. Commands and writes go in
//! with `exec`, so that the machine sees them at once. When a run is resumed, the machine is stopped, and the next
//! command starts it, so that it sees edits from outside. The tool has no labels: our machines are recognized by
//! name.

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

/// Prefix of all our machine names; the run id follows.
const OURS: &str = "ralph-run-";

/// Settings of a [`SbxProvider`].
#[derive(Debug, Clone)]
pub struct SbxOptions {
    /// The tool.
    pub tool: Tool,
    /// The local folder that is the workspace. Not needed to list and remove machines.
    pub workspace: Option<PathBuf>,
    /// More local folders that are readable inside, at the same paths.
    pub shown: Vec<PathBuf>,
    /// Scripts that run inside at every create, in order (a git identity, links to where an agent keeps its login).
    /// Running them again must be harmless.
    pub setup: Vec<String>,
    /// Another program as the tool's guard (see [`crate::LocalOptions::guard_exe`]).
    pub guard: Option<PathBuf>,
    /// The environment of the tool.
    pub vars: Vars,
}

impl SbxOptions {
    /// Default options.
    pub fn new(tool: Tool, vars: &Vars) -> Self {
        Self { tool, workspace: None, shown: Vec::new(), setup: Vec::new(), guard: None, vars: vars.clone() }
    }
}

/// Creates microVMs.
#[derive(Debug)]
pub struct SbxProvider {
    options: SbxOptions,
}

impl SbxProvider {
    /// Stores the options; doesn't call the tool yet.
    pub fn new(options: SbxOptions) -> Self {
        Self { options }
    }

    fn host(&self, folder: &Path, run: &str) -> Result<Host, SandboxError> {
        Host::start(&self.options, folder, run)
    }

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
            // The next start must not find a machine with another policy than requested.
            destroy(host, name)?;
        }
        allowed
    }

    /// Nothing starts before the tool has a policy; if the user has chosen none, all network access is blocked.
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

/// Removes one of our machines, if it exists.
fn destroy(host: &Host, name: &str) -> Result<(), SandboxError> {
    if find(host, name)?.is_none() {
        return Ok(());
    }
    if !name.starts_with(OURS) {
        return Err(SandboxError::Broken(format!("`{name}` wasn't created by ralph; not changed")));
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
            // Some versions of the tool merge both streams.
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
            // It shows the folder of another machine's worker, or of another user.
            destroy(&host, &name)?;
            known = None;
        }
        let known = known.is_some();
        if known {
            // The next command starts it again: it then sees edits from outside, and nothing of a crashed process
            // remains.
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
