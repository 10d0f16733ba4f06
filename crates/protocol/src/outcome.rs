//! How a run ends: its result object, exit code and typed errors.

use crate::id::RunId;
use crate::money::budget::BudgetKind;
use crate::money::{Cost, TokenSum, Usd};
use crate::proof::level::{ProofLevel, Watching};
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
    /// Two sessions in a row left the original tree unchanged.
    NoChange,
    /// Waits for the user.
    NeedsHuman,
    /// The user stopped it after a session.
    Stopped,
    /// The user ended it at once, permanently.
    Cancelled,
    /// A signal ended the process; the run can be resumed.
    Suspended,
    /// A required part is broken.
    Error,
}

impl EndReason {
    /// The word in files.
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
    /// The reason for a used-up budget.
    pub fn of_budget(kind: BudgetKind) -> Self {
        match kind {
            BudgetKind::Iterations => Self::MaxIterations,
            BudgetKind::Time => Self::Timeout,
            BudgetKind::Cost => Self::MaxCost,
            BudgetKind::Tokens => Self::MaxTokens,
        }
    }
    /// Whether a larger budget lets such a run resume.
    pub fn is_budget(self) -> bool {
        matches!(self, Self::MaxIterations | Self::MaxCost | Self::MaxTokens | Self::Timeout)
    }
    /// The option of `ralph resume` that enlarges its budget.
    pub fn budget_option(self) -> Option<&'static str> {
        Some(match self {
            Self::MaxIterations => "--max-iterations N",
            Self::MaxCost => "--max-cost USD",
            Self::MaxTokens => "--max-tokens N",
            Self::Timeout => "--max-seconds N",
            _ => return None,
        })
    }
    /// The exit code for this reason.
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

/// Why the user is needed.
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
    /// An agent asks for a decision, or several report that the task is impossible.
    AgentAsks,
    /// The result can't be pushed, or its pull request can't be written.
    Publish,
    /// Other pull requests touch the same files.
    Overlap,
    /// The checks of the pull request didn't finish in time.
    Checks,
    /// The pull request wasn't approved in time.
    Review,
    /// The final check lacks something that only the user can provide.
    Setup,
    /// Original tests were changed, and the work doesn't pass the originals.
    TestsChanged,
}

impl HumanReason {
    /// Whether the run needs `ralph approve` to continue; otherwise `resume` is enough.
    pub fn needs_approval(self) -> bool {
        matches!(self, Self::RefsMoved | Self::Tampered | Self::TestsChanged)
    }

    /// Whether you can also answer no: with a message for the next session (a nudge, a note, a guardrail), then
    /// `resume`.
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
    /// The sandbox couldn't be created.
    SandboxInitFailed,
    /// The clone or worktree couldn't be created.
    CloneFailed,
    /// A session couldn't be run.
    IterationFailed,
    /// Iterations used up.
    MaxIterations,
    /// Money used up.
    MaxCost,
    /// Tokens used up.
    MaxTokens,
    /// Time used up.
    Timeout,
    /// Stuck.
    Stuck,
    /// The user is needed.
    NeedsHuman,
    /// A managed process failed. Never ends a run: the agent gets the error and continues.
    ProcessFailed,
    /// The browser failed. Never ends a run: the agent gets the error and continues.
    BrowserFailed,
    /// The result couldn't be pushed, or its pull request couldn't be written.
    GitPushFailed,
    /// Every agent's login was refused.
    AuthFailed,
    /// Wrong usage or an invalid configuration.
    InvalidInput,
    /// The journal or another file couldn't be written.
    StorageFailed,
}

impl ErrorCode {
    /// The word in files: `CLONE_FAILED`.
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

/// An error in the result object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunError {
    /// The typed code.
    pub code: ErrorCode,
    /// What failed, naming the input.
    pub message: String,
    /// What to do next.
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
    /// The run; absent if none was created.
    pub run_id: Option<RunId>,
    /// Its folder.
    pub run_dir: Option<PathBuf>,
    /// The folder that it worked in, whose repo has the branch.
    #[serde(default)]
    pub workspace: Option<PathBuf>,
    /// Finished iterations.
    pub iterations: u32,
    /// Cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// An estimate of the sandboxes' cost, if known; not part of `cost_usd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_usd: Option<Usd>,
    /// Sandboxes of the run that still exist, by their provider's ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandboxes: Vec<String>,
    /// Tokens.
    pub tokens: TokenSum,
    /// Savings by prompt caches, if prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_usd: Option<Usd>,
    /// Wall time since the start, including waits.
    pub elapsed_seconds: f64,
    /// One sentence.
    pub summary: String,
    /// The strength of the result.
    #[serde(default)]
    pub level: Option<ProofLevel>,
    /// What failed without the work and passes with it, one line each.
    #[serde(default)]
    pub difference: Vec<String>,
    /// Whether the final check was watched.
    #[serde(default)]
    pub watched: Option<Watching>,
    /// The branch with the result, if any.
    pub branch: Option<String>,
    /// The ref with the result: its branch's, or one of the engine's.
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
    /// The result of a run that never began.
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
