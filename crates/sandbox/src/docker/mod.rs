//! Containers of Docker or podman, through the engine's API.
//!
//! The client is small and ours: a full client would more than double this crate's dependencies. A container has no
//! privileges, no capabilities, a read-only root and, by default, no network. Its workspace is a volume or a local
//! folder at the same path. Everything carries our label, and nothing without it is ever listed, stopped or removed.

mod body;
mod container;
mod engine;
mod exec;
mod frames;
mod http;
mod options;
mod tar;
mod tls;

pub use container::DockerSandbox;
pub use http::Address;
pub use options::{DOCKERFILE, DockerOptions, Network, ProxySocket};

use crate::shell::Shell as _;
use crate::shell::tree::ProcessScope;
use engine::Engine;
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    Capabilities, LABEL_OURS, LABEL_RUN, ManagedSandbox, Resources, SandboxError, SandboxInfo,
    SandboxProvider, SandboxSpec,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Debug)]
pub struct DockerProvider {
    engine: Arc<Engine>,
    options: DockerOptions,
}

impl DockerProvider {
    /// Stores the options; doesn't call the engine yet.
    pub fn new(mut options: DockerOptions) -> Self {
        if let Some(real) = options.workspace.as_deref().and_then(|folder| folder.canonicalize().ok()) {
            options.workspace = Some(real);
        }
        Self { engine: Arc::new(Engine::new(options.address.clone())), options }
    }

    pub fn ping(&self) -> Result<(), SandboxError> {
        self.engine.ping()
    }

    pub fn address(&self) -> &Address {
        self.engine.address()
    }

    /// Ensures that the image exists: builds the default one, pulls any other.
    pub fn prepare_image(&self, image: Option<&str>) -> Result<(), SandboxError> {
        let name = image.unwrap_or(&self.options.image);
        if self.engine.has_image(name)? {
            return Ok(());
        }
        if name != self.options.image || self.options.dockerfile.is_empty() {
            return self.engine.pull(name);
        }
        let file = self.options.dockerfile.as_bytes();
        let archive = tar::archive("Dockerfile", file)
            .map_err(|error| SandboxError::Broken(format!("the Dockerfile could not be packed: {error}")))?;
        self.engine.build(name, &archive)
    }

    /// The container of this name, if it is ours.
    fn find(&self, id: &str) -> Result<Option<(DockerSandbox, bool)>, SandboxError> {
        let Some(found) = self.engine.inspect(id)? else { return Ok(None) };
        let running = found["State"]["Running"].as_bool().unwrap_or(false);
        Ok(DockerSandbox::of(&self.engine, &found).map(|sandbox| (sandbox, running)))
    }

    fn make(&self, name: &str, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let body = body::create(name, spec, &self.options)?;
        self.prepare_image(spec.image.as_deref())?;
        let own = body::own_volumes(name, &self.options);
        for (volume, _) in &own {
            self.engine.make_volume(volume, &json!(spec.all_labels()))?;
        }
        for (volume, _) in &spec.volumes {
            self.engine.make_volume(volume, &json!({"ralph.shared": "true"}))?;
        }
        if self.engine.create(name, &body)?.is_none() {
            // Another process was quicker; the caller finds its container.
            return Ok(());
        }
        let owned = self.give_volumes(name, spec);
        if owned.is_err() {
            // The next start must not find a half-made sandbox.
            container::destroy(&self.engine, name)?;
        }
        owned
    }

    /// A container without network access would later fail in many confusing ways.
    fn await_forwarder(&self, sandbox: &DockerSandbox) -> Result<(), SandboxError> {
        const LISTENS: &str = r#"i=0; while [ $i -lt 100 ]; do grep -qi "0100007F:$1 " /proc/net/tcp && exit 0; i=$((i+1)); sleep 0.1; done; exit 1"#;
        let Some(proxy) = &self.options.proxy else { return Ok(()) };
        let answer = sandbox.exec_target().script(LISTENS, &[&format!("{:04X}", proxy.port)], b"")?;
        if answer.code == 0 {
            return Ok(());
        }
        Err(SandboxError::Broken(
            "the container's network proxy doesn't start; install `socat` in its image".to_owned(),
        ))
    }

    /// A fresh volume belongs to root, and nothing inside may change that: a short-lived container of the same image
    /// gives it to the user of commands.
    fn give_volumes(&self, name: &str, spec: &SandboxSpec) -> Result<(), SandboxError> {
        let helper = format!("{name}-init");
        self.engine.remove(&helper)?;
        self.engine.create(&helper, &body::give_volumes(name, spec, &self.options))?;
        let ended = self.engine.start(&helper).and_then(|()| self.engine.wait(&helper));
        self.engine.remove(&helper)?;
        match ended? {
            0 => Ok(()),
            code => Err(SandboxError::Broken(format!(
                "the volumes of `{name}` could not be set up (code {code})"
            ))),
        }
    }
}

fn name_of(run: &RunId) -> String {
    format!("ralph-{run}")
}

impl SandboxProvider for DockerProvider {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            streaming: true,
            separate_stderr: true,
            stdin: true,
            parallel: true,
            stop_start: true,
            preview: self.options.network != Network::None,
            network_policy: self.options.proxy.is_some(),
            snapshots: false,
            volumes: true,
            resources: true,
            file_modes: true,
        }
    }

    fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn ManagedSandbox>, SandboxError> {
        let run = RunId::parse(spec.run.as_str()).map_err(SandboxError::Broken)?;
        let name = name_of(&run);
        let mut known = self.engine.inspect(&name)?;
        if let Some(found) = &known
            && DockerSandbox::of(&self.engine, found).is_some()
            && !body::works_on(&found["Config"]["Labels"], &self.options)
        {
            container::destroy(&self.engine, &name)?;
            known = None;
        }
        if known.is_none() {
            self.make(&name, spec)?;
        }
        let Some((sandbox, was_running)) = self.find(&name)? else {
            let what = format!("a container `{name}` exists that ralph did not make; rename or remove it");
            return Err(SandboxError::Broken(what));
        };
        sandbox.start()?;
        if !was_running {
            self.await_forwarder(&sandbox)?;
        }
        if was_running {
            // A crashed process may have left commands running.
            sandbox.exec_target().kill(ProcessScope::All)?;
        }
        Ok(Box::new(sandbox))
    }

    fn attach(&self, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError> {
        match self.find(id)? {
            None => Ok(None),
            Some((sandbox, _)) => {
                sandbox.start()?;
                // While a container is being removed, its processes are dead before the engine says so.
                match sandbox.exec_target().script("exit 0", &[], b"")?.code {
                    0 => Ok(Some(Box::new(sandbox))),
                    code => Err(SandboxError::Broken(format!("nothing runs in `{id}` (code {code})"))),
                }
            }
        }
    }

    fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError> {
        let all = self.engine.containers(LABEL_OURS)?;
        let mut infos: Vec<SandboxInfo> = all.iter().filter_map(info).collect();
        infos.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(infos)
    }

    fn destroy(&self, id: &str) -> Result<(), SandboxError> {
        container::destroy(&self.engine, id)
    }

    fn hourly(&self, _: &Resources) -> Option<Usd> {
        None
    }
}

fn info(container: &Value) -> Option<SandboxInfo> {
    let labels = &container["Labels"];
    labels[LABEL_OURS].as_str()?;
    let state = match container["State"].as_str().unwrap_or("unknown") {
        "exited" | "created" | "stopped" => "stopped",
        other => other,
    };
    Some(SandboxInfo {
        id: container["Names"][0].as_str()?.trim_start_matches('/').to_owned(),
        provider: "docker".to_owned(),
        run: labels[LABEL_RUN].as_str().and_then(|run| RunId::parse(run).ok()),
        state: state.to_owned(),
        created_at: container["Created"].as_i64().and_then(|at| Timestamp::from_second(at).ok()),
    })
}
