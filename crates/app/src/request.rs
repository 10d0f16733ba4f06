//! What somebody wants run: a plain value that any face can make, keep and hand to another process.

use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use ralph_loop_protocol::race::RaceBy;
use ralph_loop_task::config::{
    Isolation, Mode, NotifyConfig, ProviderName, RequiredProof, SandboxConfig, Share, TestsPolicy,
    VerifierConfig,
};
use ralph_loop_task::dialect::Publish;
use ralph_loop_task::spec::Task;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One run that is wanted. What is left out comes from the task, the configuration and the environment.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunRequest {
    /// The folder that it is asked for in: paths of task files are relative to it.
    pub folder: PathBuf,
    /// What is to be done.
    pub task: TaskInput,
    /// The ticket that `{{ticket_id}}` in a task stands for.
    pub ticket: Option<String>,
    /// What becomes of an unfinished run in the same folder.
    pub unfinished: Unfinished,
    /// Settings over those of files.
    pub overrides: Overrides,
    /// Where the agent works.
    pub place: PlaceRequest,
    /// The branch that each iteration is committed on.
    pub branch: Option<String>,
    /// How strongly the agent is sandboxed on this machine.
    pub isolation: Option<Isolation>,
    /// Who makes the sandbox.
    pub provider: Option<ProviderName>,
    /// Whether the sandbox of a provider stays when the run ends.
    pub keep_sandbox: bool,
    /// The image and the size of that sandbox, over what files say.
    pub sandbox: Option<SandboxConfig>,
    /// The branch that the work starts from, over what the task says.
    pub base: Option<String>,
    /// What becomes of the proven work.
    pub publish: Option<Publish>,
    /// Who is told, beside those of the user's own configuration.
    pub notify: Vec<NotifyRequest>,
    /// The user allows this run whatever the repo asks for.
    pub yes: bool,
    /// The folder that the user was in, where `folder` is a checkout that was made for the run.
    pub asked_in: Option<PathBuf>,
    /// The task file that named the repo of that checkout, where it lies in a repo and so is not the user's own word.
    pub named_by: Option<String>,
    /// The repo that this task file lies in.
    pub named_in: Option<PathBuf>,
    /// The id of the new run, where whoever asks for it has given it one already: a queue shows its runs before they begin.
    pub run_id: Option<RunId>,
    /// Who asked for it, by another way than a terminal of this machine.
    pub asked_by: Option<String>,
    /// Several runs of it side by side, instead of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub race: Option<RaceRequest>,
}

/// Several runs of one task side by side.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RaceRequest {
    /// Agents or models, or one number: so many of the same.
    pub who: Vec<String>,
    /// Who wins.
    pub by: RaceBy,
    /// The ids of the runs, where whoever asks for them has given them already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<RunId>,
}

impl RunRequest {
    /// A run of the task that lies in `folder`.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), ..Self::default() }
    }

    /// The task file that is named, where one is.
    pub fn file(&self) -> Option<&Path> {
        match &self.task {
            TaskInput::File(path) => Some(path),
            _ => None,
        }
    }
}

/// Where a task comes from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskInput {
    /// The only task file of the folder.
    #[default]
    Found,
    /// This file.
    File(PathBuf),
    /// A text as a task file would have it; it is kept below `.ralph/`.
    Text(String),
    /// A task that was read already.
    Value(Box<Task>),
    /// An issue of the code host, by address or number.
    Issue(String),
}

/// What becomes of an unfinished run in the same folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfinished {
    /// It goes on where it has the same task and settings.
    #[default]
    GoOn,
    /// It stays as it is: a new one starts.
    StartAnew,
}

/// Where the agent works.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceRequest {
    /// In the user's own folder.
    #[default]
    InPlace,
    /// In a git worktree of its own.
    Worktree,
    /// In a fresh clone.
    Clone {
        /// An address or a path.
        from: String,
        /// Only the last commits.
        #[serde(default)]
        depth: Option<u32>,
        /// Only these folders, and the files beside and above them.
        #[serde(default)]
        sparse: Vec<String>,
    },
}

/// Settings that lie over those of files.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Most iterations.
    pub max_iterations: Option<u32>,
    /// Most working time in seconds.
    pub max_seconds: Option<u64>,
    /// Most money in USD.
    pub max_cost: Option<f64>,
    /// Most tokens in all.
    pub max_tokens: Option<u64>,
    /// Refuse to start where the money cap cannot hold.
    pub strict_budget: bool,
    /// Do not run the checks before the first session.
    pub no_baseline: bool,
    /// What the run may do to the tests of the start.
    pub tests: Option<TestsPolicy>,
    /// What people may do to the run over the page and the API.
    pub mode: Option<Mode>,
    /// The least that the proof must be worth.
    pub require_proof: Option<RequiredProof>,
    /// Only these agents, in this order.
    pub agents: Vec<String>,
    /// The model for every agent that takes one.
    pub model: Option<String>,
    /// Checks that must pass, as shell commands, instead of the configured ones.
    pub verify: Vec<String>,
    /// Further checks that must pass, in full: numbers as goals, closures of the calling program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<VerifierConfig>,
    /// Paths that must not change.
    pub protect: Vec<String>,
    /// Hosts that commands may reach, beside the usual ones.
    pub allow_host: Vec<String>,
    /// Variables of the user that commands may see.
    pub pass_env: Vec<String>,
    /// What of the user's own settings sandboxed agent CLIs get beside their login.
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

/// Who is told of a run, as a request says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotifyRequest {
    /// Nobody, whatever the configuration says.
    Nobody,
    /// One more.
    Also(Box<NotifyConfig>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_way_to_another_process() {
        let request = RunRequest {
            task: TaskInput::Text("# Do it".into()),
            place: PlaceRequest::Clone { from: "../x".into(), depth: Some(1), sparse: vec!["a".into()] },
            isolation: Some(Isolation::None),
            publish: Some(Publish::Push),
            notify: vec![NotifyRequest::Nobody],
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
