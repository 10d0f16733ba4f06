//! The port to whoever makes sandboxes: containers, microVMs, cloud machines.
//!
//! A provider makes, finds, lists and destroys; what it makes is a [`Sandbox`] with a life of its own. What a provider cannot
//! do it says in its [`Capabilities`], and callers ask first.

use super::sandbox::{Sandbox, SandboxError};
use jiff::Timestamp;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
pub use ralph_loop_task::config::Resources;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Makes sandboxes.
///
/// An implementer guarantees: everything it makes carries the labels of [`SandboxSpec::labels`], and it lists, stops and
/// destroys nothing else; creating again for the same run finds what a crashed process had made instead of making a second
/// one; keys of the provider never enter a sandbox.
pub trait SandboxProvider: Send + Sync {
    /// `docker`, `sbx`, `daytona`, `e2b`, `vercel`.
    fn name(&self) -> &'static str;
    /// What it can do.
    fn capabilities(&self) -> Capabilities;
    /// The sandbox of a run: the one that exists already, started where it was stopped, or a new one.
    fn create(&self, spec: &SandboxSpec) -> Result<Box<dyn ManagedSandbox>, SandboxError>;
    /// A sandbox by its id; `None` where it is gone.
    fn attach(&self, id: &str) -> Result<Option<Box<dyn ManagedSandbox>>, SandboxError>;
    /// All of ours, whoever made them.
    fn list(&self) -> Result<Vec<SandboxInfo>, SandboxError>;
    /// Removes one of ours; no error where it is gone.
    fn destroy(&self, id: &str) -> Result<(), SandboxError>;
    /// What such a machine costs per hour, as far as the provider's list says; `None` where it is free or unknown.
    fn hourly(&self, resources: &Resources) -> Option<Usd>;
}

/// A sandbox with a life of its own.
pub trait ManagedSandbox: Sandbox {
    /// The provider's id, to attach to it again.
    fn id(&self) -> &str;
    /// Starts it where it was stopped; nothing happens where it runs.
    fn start(&self) -> Result<(), SandboxError>;
    /// Stops it; its files stay.
    fn stop(&self) -> Result<(), SandboxError>;
    /// Removes it and its files.
    fn destroy(&self) -> Result<(), SandboxError>;
    /// Where a port inside can be reached from outside.
    fn preview(&self, port: u16) -> Result<Preview, SandboxError>;
    /// Says that it is still needed, where the provider stops what looks idle.
    fn keep_alive(&self) -> Result<(), SandboxError> {
        Ok(())
    }
    /// Makes a folder and those above it.
    fn make_dir(&self, path: &Path) -> Result<(), SandboxError>;
    /// Whether something is there.
    fn exists(&self, path: &Path) -> Result<bool, SandboxError>;
    /// Sets a file's permission bits.
    fn set_mode(&self, path: &Path, mode: u32) -> Result<(), SandboxError>;
}

/// What a sandbox is to be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// The run it is for.
    pub run: RunId,
    /// The image; the provider's own default where absent.
    pub image: Option<String>,
    /// A snapshot to start from, where the provider has such.
    pub snapshot: Option<String>,
    /// Size.
    pub resources: Resources,
    /// Variables of every command. Values may be secrets: they are given to the provider and written nowhere else.
    pub env: BTreeMap<String, String>,
    /// Hosts that may be reached; empty for the provider's own policy.
    pub allowed_hosts: Vec<String>,
    /// Volumes for shared caches: name and place inside.
    pub volumes: Vec<(String, String)>,
    /// Stops by itself after this idle time, where the provider can.
    pub auto_stop: Option<Duration>,
    /// Further labels.
    pub labels: BTreeMap<String, String>,
}

/// The label that marks everything of ours, and the one that names the run.
pub const LABEL_OURS: &str = "ralph";
/// See [`LABEL_OURS`].
pub const LABEL_RUN: &str = "ralph.run";

impl SandboxSpec {
    /// A sandbox with every default.
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
    /// The labels that it carries: ours, the run, and further ones.
    pub fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.insert(LABEL_OURS.into(), "true".into());
        labels.insert(LABEL_RUN.into(), self.run.to_string());
        labels
    }
}

/// What a provider can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Capabilities {
    /// Output comes while a command runs, not only at its end.
    pub streaming: bool,
    /// Standard output and error are told apart.
    pub separate_stderr: bool,
    /// Commands can read standard input.
    pub stdin: bool,
    /// Several commands at once.
    pub parallel: bool,
    /// Stopped and started again with its files.
    pub stop_start: bool,
    /// Ports can be reached from outside.
    pub preview: bool,
    /// Hosts can be allowed and denied.
    pub network_policy: bool,
    /// Starts from snapshots.
    pub snapshots: bool,
    /// Shares volumes between sandboxes.
    pub volumes: bool,
    /// Size can be chosen.
    pub resources: bool,
    /// Files keep permission bits.
    pub file_modes: bool,
}

/// One of our sandboxes, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxInfo {
    /// The provider's id.
    pub id: String,
    /// The provider.
    pub provider: String,
    /// The run it was made for.
    pub run: Option<RunId>,
    /// How it is: `running`, `stopped`, or the provider's own word.
    pub state: String,
    /// When it was made, where the provider tells.
    pub created_at: Option<Timestamp>,
}

/// Where a port inside can be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preview {
    /// The address.
    pub url: String,
    /// Headers that a request must carry (a preview token).
    pub headers: BTreeMap<String, String>,
}
