//! Plain values that effects bring back for the screens.

use jiff::Timestamp;
use ralph_loop_app::AppError;
use ralph_loop_app::task::lint::probe::ProbeEnd;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::status::Status;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    Welcome,
    Setup,
    Studio,
    Review,
    Finalize,
    Start,
    Run,
    Summary,
}

impl Screen {
    pub fn title(self) -> &'static str {
        match self {
            Self::Welcome => "Welcome",
            Self::Setup => "Setup",
            Self::Studio => "Spec Studio",
            Self::Review => "Review round",
            Self::Finalize => "Finalize",
            Self::Start => "Start",
            Self::Run => "Run",
            Self::Summary => "Summary",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub what: String,
    /// The cause, line by line.
    pub why: Vec<String>,
    pub fix: String,
}

impl Problem {
    pub fn new(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), why: Vec::new(), fix: fix.into() }
    }
}

impl From<AppError> for Problem {
    fn from(error: AppError) -> Self {
        let why = error.cause.as_deref().map(sanitize::block).unwrap_or_default();
        Self {
            what: one_line(&error.message, 600),
            why: why.lines().take(12).map(|line| one_line(line, 300)).collect(),
            fix: one_line(error.next(), 600),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentState {
    Found,
    Missing,
    /// Being probed since then.
    Probing(Timestamp),
    Works(String),
    Fails(Problem),
    /// Turned off.
    Off,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFact {
    pub name: String,
    pub state: AgentState,
    /// Where it comes from, or how to install it.
    pub detail: String,
}

/// The single suggested next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// The repo has no commit.
    FirstCommit,
    /// Choose agents and checks.
    Setup,
    /// Describe the task.
    Describe,
    /// Start the existing task.
    Start,
    /// Watch the run that is active or needs the user.
    Watch,
    /// Take the proven result of the latest run.
    Take,
}

/// The repo as shown on the Welcome screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepoFacts {
    pub path: String,
    /// The branch, or a word for a detached `HEAD`.
    pub branch: String,
    /// Number of uncommitted files; `None` before it is known.
    pub changed: Option<usize>,
    pub has_commit: bool,
    pub configured: bool,
    /// Isolation as text.
    pub isolation: String,
    pub sandboxed: bool,
    /// Available agents.
    pub agents: Vec<AgentFact>,
    /// Task files at its top.
    pub tasks: Vec<String>,
    /// Test commands, most likely first.
    pub tests: Vec<String>,
    /// Configured required checks.
    pub verifiers: Vec<String>,
    /// The configured completion promise.
    pub promise: String,
    /// How agents take turns.
    pub selection: String,
    /// Limits: iterations, minutes, cost.
    pub limits: (u32, u64, String),
    /// A configuration problem.
    pub problem: Option<Problem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub id: String,
    /// Short title of its task.
    pub title: String,
    pub status: String,
    /// Whether a process drives it.
    pub driven: bool,
    /// `7/30`.
    pub iteration: String,
    pub cost: String,
    /// When something last happened, including output.
    pub at: Timestamp,
    /// The folder it was started from.
    pub folder: PathBuf,
    /// Whether that is this folder.
    pub here: bool,
    /// Whether it is done and its work waits to be taken.
    pub waits: bool,
}

impl RunRow {
    /// Its group in a list: needs you, active, finished.
    pub fn group(&self) -> usize {
        match Status::ALL.into_iter().find(|status| status.as_str() == self.status) {
            Some(Status::NeedsYou) => 0,
            Some(status) if !status.is_over() => 1,
            _ => 2,
        }
    }

    /// The name of its folder.
    pub fn repo(&self) -> String {
        self.folder.file_name().map(|name| one_line(&name.to_string_lossy(), 60)).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartWish {
    /// A sentence or a whole task; `None` to use `file`.
    pub text: Option<String>,
    pub file: Option<String>,
    /// The new branch; empty for none.
    pub branch: String,
    /// Iteration limit; empty for the configured one.
    pub iterations: String,
    /// Time limit in minutes.
    pub minutes: String,
    /// Cost limit.
    pub cost: String,
    /// Agents, comma-separated.
    pub agents: String,
    /// A check as a shell command; empty for the configured ones.
    pub verify: String,
    /// Use a separate worktree.
    pub worktree: bool,
    /// What to do with the result: `none`, `push`, `pr`; empty for the configured choice.
    pub publish: String,
    /// Start a new run even if one of the same task is unfinished.
    pub start_new: bool,
    /// Contenders, comma-separated, or a number; empty for a single run.
    pub race: String,
    /// How to pick among proven results: `metric`, `diff`, `cost`; empty if the first wins.
    pub best: String,
    /// The user allowed the repo's requests.
    pub allowed: bool,
}

/// A line with its tone.
#[derive(Debug, Clone, PartialEq)]
pub struct ToneLine {
    /// Its color role.
    pub tone: ralph_loop_protocol::describe::Tone,
    /// Sanitized.
    pub text: String,
}

impl ToneLine {
    /// Sanitizes a line.
    pub fn new(tone: ralph_loop_protocol::describe::Tone, text: impl AsRef<str>) -> Self {
        Self { tone, text: sanitize::line(text.as_ref()).into_owned() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    pub at: Timestamp,
    pub line: ToneLine,
    /// Lines below it.
    pub details: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    /// `you`, `ralph`, or an agent.
    pub who: String,
    pub text: String,
    /// The draft after it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub draft: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRow {
    /// Its id.
    pub id: String,
    pub title: String,
    /// Number of messages.
    pub messages: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintLine {
    /// Whether it blocks a run.
    pub error: bool,
    /// Line in the draft.
    pub line: usize,
    /// The problem.
    pub message: String,
    pub fix: String,
}

/// How the checks end before any work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Baseline {
    /// The draft they belong to.
    pub draft: String,
    /// Command with its source, end, last lines.
    pub checks: Vec<(String, ProbeEnd, Vec<String>)>,
    /// The linter's findings, with those of the checks.
    pub lint: Vec<LintLine>,
}
