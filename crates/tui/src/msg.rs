//! What can happen to the model, and what it can ask the world for.

use crate::data::{
    AgentState, Baseline, Happened, LintLine, Message, Problem, RepoFacts, RunRow, StartWish, ThreadRow,
    ToneLine,
};
use crate::keys::Chord;
use crate::log::Kind;
use jiff::Timestamp;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::in_session::SessionCost;
use ralph_loop_protocol::race::RaceView;
use ralph_loop_protocol::view::RunView;

/// A piece of what a run shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Live {
    /// A piece of text.
    Piece(Kind, String),
    /// A whole line.
    Line(Kind, String),
    /// What the session has cost so far, where that can be estimated.
    Spent(Option<SessionCost>),
}

/// Something that happened.
#[derive(Debug)]
pub enum Msg {
    /// A key.
    Key(Chord),
    /// Text that was pasted.
    Paste(String),
    /// A click, or the wheel: lines down, negative up.
    Click(u16, u16),
    Wheel(i32),
    /// The terminal has another size.
    Resize(u16, u16),
    /// Time has passed.
    Tick(Timestamp),
    /// The repo was looked at.
    Repo(Box<RepoFacts>),
    /// The runs, of this folder and of all.
    Runs(Vec<RunRow>),
    /// A run as it stands.
    View(Box<RunView>),
    /// The race that the run is one of, as it stands.
    Race(Box<RaceView>),
    /// It cannot be read.
    ViewFailed(Problem),
    /// What a run told, in its order.
    Told(Vec<Happened>, Vec<Live>),
    /// The content of a tab.
    Tab(u8, Vec<ToneLine>),
    /// Something was done, in a sentence.
    Done(String),
    /// Something was not.
    Failed(Problem),
    /// A run has begun.
    Started(String),
    /// It has not: nothing checks the result.
    NothingChecks(Problem),
    /// It has not: the repo asks for what only the user can allow.
    Consent(Box<StartWish>, Vec<String>),
    /// What an agent answers in a thread, as it comes; and its end.
    Answering {
        thread: String,
        piece: String,
    },
    Answered {
        thread: String,
        agent: String,
        answer: Result<String, Problem>,
    },
    /// What a reviewer answered.
    Reviewed(String, Result<String, Problem>),
    /// Names of files of the repo.
    Files(Vec<String>),
    /// Threads of the repo, and one of them.
    Threads(Vec<ThreadRow>),
    Thread(String, Vec<Message>),
    /// What the linter says of the draft.
    Linted(Vec<LintLine>),
    /// How the checks end before any work.
    Baseline(Result<Baseline, Problem>),
    /// The task was written: these files, and what has no equivalent there.
    Wrote(Vec<String>, Vec<String>),
    /// A probe is over.
    Probed(String, AgentState),
    /// The configuration is saved.
    Saved(String),
}

/// Something that the runtime does.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Looks at the repo; with its runs.
    LookAround,
    /// Lists all runs of this machine.
    ListRuns,
    /// Makes the first commit.
    FirstCommit,
    /// Begins to watch a run; whatever was watched before is not any more.
    Watch(String),
    /// Watches none.
    Unwatch,
    /// Sends a control; where `then_resume`, and nobody drives the run, it goes on.
    Send {
        run: String,
        control: Control,
        then_resume: bool,
    },
    /// Goes on with a run.
    Resume(String),
    /// Ends a run, whoever drives it.
    End {
        run: String,
        now: bool,
    },
    /// Loads a tab.
    LoadTab {
        run: String,
        tab: u8,
    },
    /// Shows the diff in the pager.
    ShowDiff(String),
    /// Writes a text to a file that the user named.
    SaveText {
        name: String,
        text: String,
    },
    /// Starts a run, or asks first.
    Start(Box<StartWish>),
    /// Allows what the repo asks for, then the same.
    AllowAndStart(Box<StartWish>),
    /// A command of our own about a run.
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
    /// Stops whatever is asked.
    StopAsking,
    /// Lets agents review the draft.
    Review {
        agents: Vec<String>,
        draft: String,
    },
    /// Adds a message to a thread.
    Remember {
        thread: String,
        message: Message,
    },
    /// Lists threads, or reads one.
    ListThreads,
    LoadThread(String),
    /// Lists files of the repo.
    ListFiles,
    /// Lints the draft.
    Lint(String),
    /// Runs commands in the repo, sandboxed.
    TryChecks(Vec<String>),
    /// Writes the task: in which dialect, and where SPEC.md goes.
    WriteTask {
        draft: String,
        dialect: String,
        spec: Option<String>,
    },
    /// Asks an agent one tiny question.
    Probe {
        agent: String,
        seconds: u64,
    },
    /// Saves the configuration.
    SaveConfig(Box<serde_json::Value>),
    /// Leaves.
    Quit,
}
