//! How a run ends, in the words of its result object, its exit code and its typed errors.

use crate::budget::BudgetKind;
use crate::id::RunId;
use crate::level::{ProofLevel, Watching};
use crate::money::{Cost, TokenSum, Usd};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Why a run ended (or, for `NeedsHuman` and `Stuck`, why its process did).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum EndReason {
    /// Proven.
    Completed,
    /// Iterations used up.
    MaxIterations,
    /// Money used up.
    MaxCost,
    /// Tokens used up.
    MaxTokens,
    /// Time used up, or the deadline reached.
    Timeout,
    /// Stuck, and no recovery step helped.
    Stuck,
    /// Two sessions in a row left the tree as it was at the start.
    NoChange,
    /// Waits for a person.
    NeedsHuman,
    /// A person stopped it after a session.
    Stopped,
    /// A person ended it at once, for good.
    Cancelled,
    /// A signal ended the process; the run can be resumed.
    Suspended,
    /// Something it needs is broken.
    Error,
}

impl EndReason {
    /// The word used in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::MaxIterations => "max_iterations",
            Self::MaxCost => "max_cost",
            Self::MaxTokens => "max_tokens",
            Self::Timeout => "timeout",
            Self::Stuck => "stuck",
            Self::NoChange => "no_change",
            Self::NeedsHuman => "needs_human",
            Self::Stopped => "stopped",
            Self::Cancelled => "cancelled",
            Self::Suspended => "suspended",
            Self::Error => "error",
        }
    }
    /// The reason that belongs to a used-up budget.
    pub fn of_budget(kind: BudgetKind) -> Self {
        match kind {
            BudgetKind::Iterations => Self::MaxIterations,
            BudgetKind::Time => Self::Timeout,
            BudgetKind::Cost => Self::MaxCost,
            BudgetKind::Tokens => Self::MaxTokens,
        }
    }
    /// Whether a larger budget lets such a run go on.
    pub fn is_budget(self) -> bool {
        matches!(self, Self::MaxIterations | Self::MaxCost | Self::MaxTokens | Self::Timeout)
    }
    /// The option of `ralph resume` that gives such a run a larger budget.
    pub fn budget_option(self) -> Option<&'static str> {
        Some(match self {
            Self::MaxIterations => "--max-iterations N",
            Self::MaxCost => "--max-cost USD",
            Self::MaxTokens => "--max-tokens N",
            Self::Timeout => "--max-seconds N",
            _ => return None,
        })
    }
    /// The exit code of a run that is over for this reason.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Completed => 0,
            Self::NeedsHuman => 3,
            Self::Cancelled | Self::Suspended => 130,
            Self::Error => 4,
            _ => 1,
        }
    }
}

/// What a person is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum HumanReason {
    /// The run is stuck, and every recovery step was tried.
    Stuck,
    /// Refs moved.
    RefsMoved,
    /// Spec, config or journal were edited.
    Tampered,
    /// An agent asks for a decision, or several say that the task cannot be done.
    AgentAsks,
    /// The result cannot be pushed, or its pull request not be written.
    Publish,
    /// Other pull requests touch the same files.
    Overlap,
    /// The checks of the pull request did not finish in time.
    Checks,
    /// Nobody approved the pull request in time.
    Review,
    /// The final check lacks something that only a person can give it.
    Setup,
    /// Tests of the start were changed, and the work does not pass them as they were.
    TestsChanged,
}

impl HumanReason {
    /// Whether `ralph approve` must come before the run goes on; `resume` alone is enough otherwise.
    pub fn needs_approval(self) -> bool {
        matches!(self, Self::RefsMoved | Self::Tampered | Self::TestsChanged)
    }

    /// Whether a word of a person for the next session (a nudge, a note, a guardrail), then `resume`, is an answer, too: no.
    pub fn can_be_rejected(self) -> bool {
        self == Self::TestsChanged
    }
}

/// Typed error codes, shared with the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum ErrorCode {
    /// The sandbox could not be made.
    SandboxInitFailed,
    /// The clone or worktree could not be made.
    CloneFailed,
    /// A session could not be run.
    IterationFailed,
    /// Iterations used up.
    MaxIterations,
    /// Money used up.
    MaxCost,
    /// Tokens used up.
    MaxTokens,
    /// Time used up.
    Timeout,
    /// Circling.
    Stuck,
    /// A person is needed.
    NeedsHuman,
    /// A managed process failed. No run ends with it: the agent is told and goes on.
    ProcessFailed,
    /// The browser failed. No run ends with it: the agent is told and goes on.
    BrowserFailed,
    /// The result could not be pushed, or its pull request not be written.
    GitPushFailed,
    /// Every agent is refused by its provider.
    AuthFailed,
    /// Wrong use or a bad configuration.
    InvalidInput,
    /// The journal or another file could not be written.
    StorageFailed,
}

impl ErrorCode {
    /// The word used in files: `CLONE_FAILED`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SandboxInitFailed => "SANDBOX_INIT_FAILED",
            Self::CloneFailed => "CLONE_FAILED",
            Self::IterationFailed => "ITERATION_FAILED",
            Self::MaxIterations => "MAX_ITERATIONS",
            Self::MaxCost => "MAX_COST",
            Self::MaxTokens => "MAX_TOKENS",
            Self::Timeout => "TIMEOUT",
            Self::Stuck => "STUCK",
            Self::NeedsHuman => "NEEDS_HUMAN",
            Self::ProcessFailed => "PROCESS_FAILED",
            Self::BrowserFailed => "BROWSER_FAILED",
            Self::GitPushFailed => "GIT_PUSH_FAILED",
            Self::AuthFailed => "AUTH_FAILED",
            Self::InvalidInput => "INVALID_INPUT",
            Self::StorageFailed => "STORAGE_FAILED",
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error as the result object carries it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunError {
    /// Typed code.
    pub code: ErrorCode,
    /// What failed, on what.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// Whether `ralph resume` can continue from here.
    pub recoverable: bool,
    /// The iteration it happened in, to resume from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
}

impl std::fmt::Display for RunError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for RunError {}

/// The end of a run as one JSON object: the last line of `ralph run --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    /// Whether the result is proven.
    pub success: bool,
    /// Why it ended.
    pub reason: EndReason,
    /// The run; absent where none was made.
    pub run_id: Option<RunId>,
    /// Its folder.
    pub run_dir: Option<PathBuf>,
    /// The folder that it works in, whose repo has the branch.
    #[serde(default)]
    pub workspace: Option<PathBuf>,
    /// Finished iterations.
    pub iterations: u32,
    /// Money.
    #[serde(flatten)]
    pub cost: Cost,
    /// An estimate of what the run's sandboxes cost, where that is known; not part of `cost_usd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_usd: Option<Usd>,
    /// Sandboxes of the run that still exist, by their provider's ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandboxes: Vec<String>,
    /// Tokens.
    pub tokens: TokenSum,
    /// What reading from prompt caches saved, where prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_usd: Option<Usd>,
    /// Wall time since the start, waits included.
    pub elapsed_seconds: f64,
    /// In one sentence.
    pub summary: String,
    /// What the result is worth.
    #[serde(default)]
    pub level: Option<ProofLevel>,
    /// What failed without the work and passes with it, one line each.
    #[serde(default)]
    pub difference: Vec<String>,
    /// Whether the checks of the final check were watched.
    #[serde(default)]
    pub watched: Option<Watching>,
    /// The branch with the result, where one holds it.
    pub branch: Option<String>,
    /// The ref with the result: of its branch, or one of the engine's own.
    #[serde(default, rename = "ref")]
    pub work_ref: Option<String>,
    /// The pull request.
    pub pr_url: Option<String>,
    /// Files changed since the start.
    pub files_changed: Vec<String>,
    /// The error, if it ended with one.
    pub error: Option<RunError>,
}

impl RunResult {
    /// A result of a run that never began.
    pub fn refused(error: RunError) -> Self {
        Self {
            success: false,
            reason: EndReason::Error,
            run_id: None,
            run_dir: None,
            workspace: None,
            iterations: 0,
            cost: Cost::default(),
            compute_usd: None,
            sandboxes: Vec::new(),
            tokens: TokenSum::default(),
            saved_usd: None,
            elapsed_seconds: 0.0,
            summary: error.message.clone(),
            level: None,
            difference: Vec::new(),
            watched: None,
            branch: None,
            work_ref: None,
            pr_url: None,
            files_changed: Vec::new(),
            error: Some(error),
        }
    }
}
