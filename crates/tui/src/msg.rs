//! Messages to the model, and effects it requests.

use crate::data::{
    AgentState, Baseline, Happened, LintLine, Message, Problem, RepoFacts, RunRow, StartWish, ThreadRow,
    ToneLine,
};
use crate::keys::Chord;
use crate::log::Kind;
use jiff::Timestamp;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::display::race::RaceView;
use ralph_loop_protocol::display::view::RunView;
use ralph_loop_protocol::money::in_session::SessionCost;

#[derive(Debug, Clone, PartialEq)]
pub enum Live {
    Piece(Kind, String),
    Line(Kind, String),
    /// A tool's result, and whether it worked.
    Result(bool, String),
    /// Estimated cost of the session so far.
    Spent(Option<SessionCost>),
}

/// What an iteration consists of.
#[derive(Debug, Default, PartialEq)]
pub struct Details {
    /// The earlier iteration it is compared with.
    pub from: Option<u32>,
    pub iteration: u32,
    pub output: Vec<Live>,
    /// The prompt, the diff, the checks.
    pub prompt: Vec<ToneLine>,
    pub diff: Vec<ToneLine>,
    pub checks: Vec<ToneLine>,
}

#[derive(Debug)]
pub enum Msg {
    Key(Chord),
    Paste(String),
    /// Wheel: lines down, negative up.
    Click(u16, u16),
    Wheel(i32),
    Resize(u16, u16),
    Tick(Timestamp),
    Repo(Box<RepoFacts>),
    /// Runs of this folder and of all folders.
    Runs(Vec<RunRow>),
    View(Box<RunView>),
    /// The run's race.
    Race(Box<RaceView>),
    /// The run can't be read.
    ViewFailed(Problem),
    /// A run's events and output, in order.
    Told(Vec<Happened>, Vec<Live>),
    Tab(u8, Vec<ToneLine>),
    /// An iteration of the run, or the comparison of two.
    Details(Box<Details>),
    /// Something succeeded.
    Done(String),
    /// Something failed.
    Failed(Problem),
    /// A run started.
    Started(String),
    /// It didn't start: nothing checks the result.
    NothingChecks(Problem),
    /// It didn't start: the repo requests permissions.
    Consent(Box<StartWish>, Vec<String>),
    /// A piece of an agent's answer, or its end.
    Answering {
        thread: String,
        piece: String,
    },
    Answered {
        thread: String,
        agent: String,
        answer: Result<String, Problem>,
    },
    Reviewed(String, Result<String, Problem>),
    Files(Vec<String>),
    Threads(Vec<ThreadRow>),
    Thread(String, Vec<Message>),
    Linted {
        found: Vec<LintLine>,
        checks: Vec<String>,
    },
    /// How the checks end before any work.
    Baseline(Result<Baseline, Problem>),
    /// The task was written: the files, and what their format can't express.
    Wrote(Vec<String>, Vec<String>),
    Probed(String, AgentState),
    Saved(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Reads the repo and its runs.
    LookAround,
    /// Lists all runs of this machine.
    ListRuns,
    /// Creates the first commit.
    FirstCommit,
    Watch(String),
    Unwatch,
    /// Sends a control; with `then_resume` a stopped run resumes.
    Send {
        run: String,
        control: Control,
        then_resume: bool,
    },
    /// Resumes a run.
    Resume(String),
    End {
        run: String,
        now: bool,
    },
    /// Loads a tab's content.
    LoadTab {
        run: String,
        tab: u8,
    },
    /// Loads an iteration; with `from`, what changed since that one.
    LoadDetails {
        run: String,
        from: Option<u32>,
        iteration: u32,
    },
    ShowDiff(String),
    /// Writes text to a file the user named.
    SaveText {
        name: String,
        text: String,
    },
    Start(Box<StartWish>),
    /// Allows the repo's requests, then starts.
    AllowAndStart(Box<StartWish>),
    /// Runs a `ralph` command about a run.
    Command {
        words: Vec<String>,
        done: String,
    },
    /// Asks an agent about the draft.
    Ask {
        agent: String,
        thread: String,
        messages: Vec<Message>,
        draft: String,
    },
    /// Cancels all questions.
    StopAsking,
    /// Has agents review the draft.
    Review {
        agents: Vec<String>,
        draft: String,
    },
    Remember {
        thread: String,
        message: Message,
    },
    /// Lists threads, or reads one.
    ListThreads,
    LoadThread(String),
    /// Lists files of the repo.
    ListFiles,
    Lint(String),
    /// Runs commands in the repo, sandboxed.
    TryChecks(String),
    /// Writes the task in a format, and SPEC.md to a location.
    WriteTask {
        draft: String,
        dialect: String,
        spec: Option<String>,
    },
    /// Sends an agent a test prompt.
    Probe {
        agent: String,
        seconds: u64,
    },
    SaveConfig(Box<serde_json::Value>),
    Quit,
}
