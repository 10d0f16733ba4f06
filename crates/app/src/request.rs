//! A requested run, as a plain value that any interface can make, store and pass to another process.

use crate::trust::pinned::Pinned;
use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::display::race::RaceBy;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::config::{
    CloneConfig, Isolation, Mode, NotifyConfig, ProviderName, RequiredProof, SandboxConfig, Share,
    TestsPolicy, VerifierConfig,
};
use ralph_loop_task::dialect::Publish;
use ralph_loop_task::spec::Task;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A requested run. Omitted fields come from the task, the configuration and the environment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunRequest {
    /// The folder of the request; task file paths are relative to it.
    pub folder: PathBuf,
    pub task: TaskInput,
    /// Value for `{{ticket_id}}` in the task.
    pub ticket: Option<String>,
    /// How to treat an unfinished run in the same folder.
    pub unfinished: Unfinished,
    /// Settings that override files.
    pub overrides: Overrides,
    pub place: Workplace,
    /// How much of the repo a clone that the task asks for brings.
    #[serde(skip_serializing_if = "is_whole")]
    pub part: CloneConfig,
    /// The branch that iterations are committed to.
    pub branch: Option<String>,
    /// Sandbox strength on this machine.
    pub isolation: Option<Isolation>,
    /// The sandbox provider.
    pub provider: Option<ProviderName>,
    /// Whether a provider's sandbox outlives the run.
    pub keep_sandbox: bool,
    /// Image and size of that sandbox, overriding files.
    pub sandbox: Option<SandboxConfig>,
    /// The base branch, overriding the task's.
    pub base: Option<String>,
    /// What to do with the proven work.
    pub publish: Option<Publish>,
    /// Notification targets besides the user's configured ones.
    pub notify: Vec<NotifyRequest>,
    /// TrustedSet everything the repo requests, for this run.
    pub yes: bool,
    /// The user's folder, if `folder` is a checkout made for the run.
    pub asked_in: Option<PathBuf>,
    /// The task file that named this checkout's repo, if it is in a repo and so isn't the user's own word.
    pub named_by: Option<String>,
    /// The repo of that task file.
    pub named_in: Option<PathBuf>,
    /// Whether the task may publish what it says: it was brought to the checkout, and pushing there was settled.
    pub publish_settled: bool,
    /// The run's id if already assigned: a queue shows its runs before they start.
    pub run_id: Option<RunId>,
    /// Who requested it, unless from a terminal on this machine.
    pub asked_by: Option<String>,
    /// The task's text as it was approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
    /// Runs several in parallel instead of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub race: Option<RaceRequest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RaceRequest {
    /// Agents or models, or one number of identical runs.
    pub who: Vec<String>,
    /// How the winner is chosen.
    pub by: RaceBy,
    /// Ids of the runs, if already assigned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
}

fn is_whole(part: &CloneConfig) -> bool {
    *part == CloneConfig::default()
}

impl RunRequest {
    /// Runs the task found in `folder`.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..Self::default() }
    }

    /// The named task file.
    pub fn file(&self) -> Option<&Path> {
        match &self.task {
            TaskInput::File(path) => Some(path),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskInput {
    /// The only task file in the folder.
    #[default]
    Found,
    File(PathBuf),
    /// Text in a task format; kept below `.ralph/`.
    Text(String),
    /// An already parsed task.
    Value(Box<Task>),
    /// An issue of the code host, by URL or number.
    Issue(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfinished {
    /// Continue it if task and settings are the same.
    #[default]
    GoOn,
    /// Leave it; start a new run.
    StartAnew,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workplace {
    #[default]
    InPlace,
    Worktree,
    Clone {
        /// A URL or path.
        from: String,
        /// Only the last commits.
        #[serde(default)]
        depth: Option<u32>,
        /// Only these folders, plus the files in and above them.
        #[serde(default)]
        sparse: Vec<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Iteration limit.
    pub max_iterations: Option<u32>,
    /// Working time limit in seconds.
    pub max_seconds: Option<u64>,
    /// Cost limit in USD.
    pub max_cost: Option<f64>,
    /// Token limit.
    pub max_tokens: Option<u64>,
    /// Refuse to start if the cost limit can't be enforced.
    pub strict_budget: bool,
    /// Skip the checks before the first session.
    pub no_baseline: bool,
    /// What the run may do to the original tests.
    pub tests: Option<TestsPolicy>,
    /// What users may do to the run through the dashboard and the API.
    pub mode: Option<Mode>,
    /// The lowest acceptable proof level.
    pub require_proof: Option<RequiredProof>,
    /// Only these agents, in this order.
    pub agents: Vec<String>,
    /// Model for every agent that takes one.
    pub model: Option<String>,
    /// Shell commands that must pass, replacing the configured checks.
    pub verify: Vec<String>,
    /// Additional checks in full: metrics as goals, closures of the calling program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<VerifierConfig>,
    /// Paths that must not change.
    pub protect: Vec<String>,
    /// Additional hosts that commands may reach.
    pub allow_host: Vec<String>,
    /// User variables that commands may see.
    pub pass_env: Vec<String>,
    /// The user's own settings that sandboxed agent CLIs get in addition to their login.
    pub share: Vec<Share>,
}

impl Overrides {
    /// The limits among them.
    pub fn budgets(&self) -> BudgetChange {
        BudgetChange {
            max_iterations: self.max_iterations,
            max_seconds: self.max_seconds,
            max_cost: self.max_cost.map(Usd::from_dollars),
            max_tokens: self.max_tokens,
        }
    }
}

/// Notification targets in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotifyRequest {
    /// None, whatever the configuration says.
    Off,
    /// An additional one.
    Also(Box<NotifyConfig>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_way_to_another_process() {
        let request = RunRequest {
            task: TaskInput::Text("# Do it".into()),
            place: Workplace::Clone { from: "../x".into(), depth: Some(1), sparse: vec!["a".into()] },
            isolation: Some(Isolation::None),
            publish: Some(Publish::Push),
            notify: vec![NotifyRequest::Off],
            overrides: Overrides { max_cost: Some(1.5), ..Overrides::default() },
            ..RunRequest::in_folder("/repo")
        };
        let text = serde_json::to_string(&request).unwrap();
        assert_eq!(serde_json::from_str::<RunRequest>(&text).unwrap(), request);
        let small: RunRequest = serde_json::from_str(r#"{"folder":"/repo"}"#).unwrap();
        assert_eq!(small, RunRequest::in_folder("/repo"));
        let refused = serde_json::from_str::<RunRequest>(r#"{"foldr":"/repo"}"#).unwrap_err().to_string();
        assert!(refused.starts_with("unknown field `foldr`"), "{refused}");
    }
}
