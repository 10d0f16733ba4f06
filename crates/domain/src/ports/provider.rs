//! The port for sandbox providers: containers, microVMs, cloud machines.
//!
//! A provider creates, finds, lists and destroys sandboxes, each a [`Sandbox`] that outlives the process. Callers
//! check its [`Capabilities`] first.

use super::sandbox::{Sandbox, SandboxError};
use jiff::Timestamp;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
pub use ralph_loop_task::config::Resources;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Creates sandboxes.
///
/// Implementations guarantee: every sandbox carries the labels of [`SandboxSpec::labels`], and only such sandboxes
/// are listed, stopped and destroyed; creating again for the same run finds what a crashed process had created; the
/// provider's keys never enter a sandbox.
pub trait SandboxProvider: Send + Sync {
    /// `docker`, `sbx`, `daytona`, `e2b`, `vercel`.
    fn name(&self) -> &'static str;
    fn capabilities(&self) -> Capabilities;
    /// The sandbox of a run: the existing one, started if it was stopped, or a new one.
    fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn ManagedSandbox>, SandboxError>;
    /// A sandbox by its id; `None` if it is gone.
    fn attach(&self, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError>;
    fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError>;
    /// Removes one of ours, if it exists.
    fn destroy(&self, id: &str) -> Result<(), SandboxError>;
    /// The list price per hour; `None` if free or unknown.
    fn hourly(&self, resources: &Resources) -> Option<Usd>;
}

pub trait ManagedSandbox: Sandbox {
    /// The provider's id, to attach to it again.
    fn id(&self) -> &str;
    /// Starts it if it was stopped.
    fn start(&self) -> Result<(), SandboxError>;
    /// Stops it; its files stay.
    fn stop(&self) -> Result<(), SandboxError>;
    fn destroy(&self) -> Result<(), SandboxError>;
    fn preview(&self, port: u16) -> Result<Preview, SandboxError>;
    /// Keeps it alive, if the provider stops idle sandboxes.
    fn keep_alive(&self) -> Result<(), SandboxError> {
        Ok(())
    }
    fn make_dir(&self, path: &Path) -> Result<(), SandboxError>;
    fn exists(&self, path: &Path) -> Result<bool, SandboxError>;
    fn set_mode(&self, path: &Path, mode: u32) -> Result<(), SandboxError>;
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxSpec {
    pub run: RunId,
    /// The image; default: the provider's.
    pub image: Option<String>,
    /// A snapshot to start from, if the provider supports it.
    pub snapshot: Option<String>,
    pub resources: Resources,
    /// Variables of every command. Values may be secrets: they are passed to the provider and stored nowhere else.
    pub env: BTreeMap<String, String>,
    /// Reachable hosts; empty for the provider's policy.
    pub allowed_hosts: Vec<String>,
    /// Volumes for shared caches: name and path inside.
    pub volumes: Vec<(String, String)>,
    /// Stop after this idle time, if the provider supports it.
    pub auto_stop: Option<Duration>,
    pub labels: BTreeMap<String, String>,
}

/// The label of everything that belongs to `ralph`.
pub const LABEL_OURS: &str = "ralph";
pub const LABEL_RUN: &str = "ralph.run";

impl SandboxSpec {
    pub fn of_run(run: RunId) -> Self {
        Self {
            run,
            image: None,
            snapshot: None,
            resources: Resources::default(),
            env: BTreeMap::new(),
            allowed_hosts: Vec::new(),
            volumes: Vec::new(),
            auto_stop: None,
            labels: BTreeMap::new(),
        }
    }
    /// All its labels: ours, the run's, and more.
    pub fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.insert(LABEL_OURS.into(), "true".into());
        labels.insert(LABEL_RUN.into(), self.run.to_string());
        labels
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Capabilities {
    pub streaming: bool,
    pub separate_stderr: bool,
    pub stdin: bool,
    pub parallel: bool,
    pub stop_start: bool,
    pub preview: bool,
    pub network_policy: bool,
    pub snapshots: bool,
    pub volumes: bool,
    pub resources: bool,
    pub file_modes: bool,
}

/// One of our sandboxes in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxInfo {
    pub id: String,
    pub provider: String,
    pub run: Option<RunId>,
    /// Its state: `running`, `stopped`, or the provider's word.
    pub state: String,
    /// When it was created, if known.
    pub created_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    pub url: String,
    /// Headers that a request must carry (a preview token).
    pub headers: BTreeMap<String, String>,
}
