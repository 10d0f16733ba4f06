//! What the screens know of the world: plain values that effects bring back.

use jiff::Timestamp;
use ralph_loop_app::AppError;
use ralph_loop_protocol::sanitize;
use ralph_loop_protocol::text::one_line;
use std::path::PathBuf;

/// A screen.
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
    /// Its name for people.
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

/// What went wrong, in three parts: what, why, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What failed, on what.
    pub what: String,
    /// Why, line by line.
    pub why: Vec<String>,
    /// What mends it.
    pub fix: String,
}

impl Problem {
    /// With these words.
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

/// How an agent stands on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentState {
    /// Its program is there, or it needs none.
    Found,
    /// Its program is not there.
    Missing,
    /// It is being asked, since then.
    Probing(Timestamp),
    /// It answered.
    Works(String),
    /// It did not.
    Fails(Problem),
    /// It is left out.
    Off,
}

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFact {
    /// Its name.
    pub name: String,
    /// How it stands.
    pub state: AgentState,
    /// Where it comes from, or how to get it.
    pub detail: String,
}

/// The one next step that is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextStep {
    /// A first commit is missing.
    FirstCommit,
    /// Choose agents and checks.
    Setup,
    /// Say what is to be done.
    Describe,
    /// Start the task that is there.
    Start,
    /// Look at the run that goes on, or needs somebody.
    Watch,
}

/// The repo, as the Welcome screen shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepoFacts {
    /// Its folder, short.
    pub path: String,
    /// The branch, or a word for none.
    pub branch: String,
    /// Files with changes that are not committed; `None` before it was looked.
    pub changed: Option<usize>,
    /// Whether it has a commit.
    pub has_commit: bool,
    /// Whether it has a configuration.
    pub configured: bool,
    /// How agents are kept in here, in words.
    pub isolation: String,
    /// Whether that is a sandbox.
    pub sandboxed: bool,
    /// Who could work.
    pub agents: Vec<AgentFact>,
    /// Task files at its top.
    pub tasks: Vec<String>,
    /// Commands that run its tests, the likeliest first.
    pub tests: Vec<String>,
    /// What the configuration requires to pass.
    pub verifiers: Vec<String>,
    /// The promise that agents end with.
    pub promise: String,
    /// How agents take turns.
    pub selection: String,
    /// Most iterations, minutes and money that runs get here.
    pub limits: (u32, u64, String),
    /// What is wrong with the configuration.
    pub problem: Option<Problem>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub id: String,
    /// Its task in a few words.
    pub title: String,
    /// Its status word.
    pub status: String,
    /// Whether a process drives it.
    pub driven: bool,
    /// `7/30`.
    pub iteration: String,
    /// What it has cost.
    pub cost: String,
    /// When something last happened; output counts.
    pub at: Timestamp,
    /// The folder that it was started from.
    pub folder: PathBuf,
    /// Whether that is this one.
    pub here: bool,
}

/// What a run is started with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StartWish {
    /// A sentence or a whole task; else the file.
    pub text: Option<String>,
    /// The task file.
    pub file: Option<String>,
    /// The new branch; empty for none.
    pub branch: String,
    /// Most iterations; empty for what is configured.
    pub iterations: String,
    /// Most minutes.
    pub minutes: String,
    /// Most money.
    pub cost: String,
    /// Agents, by comma.
    pub agents: String,
    /// A check, as a shell line; empty for what is configured.
    pub verify: String,
    /// In a worktree of its own.
    pub worktree: bool,
    /// What becomes of the result: `none`, `push`, `pr`; empty for what is configured.
    pub publish: String,
    /// A new run also where an unfinished one of the same task lies.
    pub anew: bool,
    /// Who races, by comma, or how many; empty for one run.
    pub race: String,
    /// What the best of several proven results is: `metric`, `diff`, `cost`; empty where the first wins.
    pub best: String,
    /// What the repo asks for was allowed.
    pub allowed: bool,
}

/// A line with how it is to be taken.
#[derive(Debug, Clone, PartialEq)]
pub struct ToneLine {
    /// How.
    pub tone: ralph_loop_protocol::describe::Tone,
    /// The line.
    pub text: String,
}

impl ToneLine {
    /// One line, safe to show.
    pub fn new(tone: ralph_loop_protocol::describe::Tone, text: impl AsRef<str>) -> Self {
        Self { tone, text: sanitize::line(text.as_ref()).into_owned() }
    }
}

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Happened {
    /// When.
    pub at: Timestamp,
    /// In one sentence.
    pub line: ToneLine,
    /// What stands below it.
    pub details: Vec<String>,
}

/// A message of a spec thread.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Message {
    /// `you`, `ralph`, or an agent.
    pub who: String,
    /// What was said.
    pub text: String,
    /// The draft after it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub draft: String,
}

/// A spec thread in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRow {
    /// Its id.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// How many messages it has.
    pub messages: usize,
}

/// A finding of the linter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintLine {
    /// Whether a run is refused for it.
    pub error: bool,
    /// The line of the draft.
    pub line: usize,
    /// What is wrong.
    pub message: String,
    /// What fixes it.
    pub fix: String,
}

/// How the checks end before any work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Baseline {
    /// Each command, whether it passed, and its last lines.
    pub checks: Vec<(String, bool, Vec<String>)>,
}
