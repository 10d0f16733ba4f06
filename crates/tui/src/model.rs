//! Everything that is shown, as one plain value.

use crate::data::{
    AgentState, Baseline, Happened, LintLine, Message, Problem, RepoFacts, RunRow, Screen, ThreadRow,
    ToneLine,
};
use crate::draft::Draft;
use crate::editor::Editor;
use crate::findings::Finding;
use crate::form::Form;
use crate::keys::Action;
use crate::log::Log;
use crate::msg::Effect;
use crate::theme::Theme;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ralph_loop_protocol::in_session::SessionCost;
use ralph_loop_protocol::race::RaceView;
use ralph_loop_protocol::view::RunView;
use ratatui::layout::Rect;
use std::collections::{BTreeMap, VecDeque};

/// Sentences of a run that are kept.
pub const HAPPENED_MAX: usize = 5000;
/// Drafts that can be gone back to.
pub const UNDO_MAX: usize = 50;

/// A place that a click acts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// Where.
    pub area: Rect,
    /// What it does.
    pub action: Action,
}

/// Everything.
#[derive(Debug)]
pub struct Model {
    /// Columns and lines.
    pub size: (u16, u16),
    /// How things look.
    pub theme: Theme,
    /// The time, as of the last tick.
    pub now: Timestamp,
    /// In which people here read it.
    pub zone: TimeZone,
    /// The screen, and those before it.
    pub screen: Screen,
    pub before: Vec<Screen>,
    /// What lies over it.
    pub overlay: Option<Overlay>,
    /// The last thing that was done, or went wrong.
    pub notice: Option<Notice>,
    /// The repo.
    pub repo: RepoFacts,
    /// Whether it has been looked at.
    pub looked: bool,
    /// Runs, newest first.
    pub runs: Vec<RunRow>,
    pub welcome: Welcome,
    pub setup: Setup,
    pub studio: Studio,
    pub review: Review,
    pub finalize: Finalize,
    pub start: Start,
    pub run: RunScreen,
    /// Places that a click acts on, as of the last frame.
    pub hits: Vec<Hit>,
    /// The address of the server whose runs are shown; none for those of this machine.
    pub server: Option<String>,
    /// Only one run is watched: leaving it leaves.
    pub attached: bool,
    /// It is over, after these words for whoever comes back to the shell.
    pub left: Option<Vec<String>>,
}

/// What lies over a screen.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    /// The keys.
    Help { top: usize },
    /// All commands.
    Palette { input: Editor, at: usize },
    /// A yes or a no.
    Confirm { question: String, lines: Vec<String>, yes: Vec<Effect>, leave: bool },
    /// One line.
    Ask { title: &'static str, hint: &'static str, input: Editor, purpose: Purpose },
    /// All runs.
    Runs { at: usize },
    /// All threads.
    Threads { rows: Vec<ThreadRow>, at: usize },
    /// An agent to cool down.
    Agents { names: Vec<String>, at: usize },
    /// What went wrong.
    Trouble(Problem),
}

/// What a line is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Note,
    Nudge,
    Guardrail,
    Search,
    SaveTo,
    Verify,
}

/// A sentence at the bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Something was done.
    Done(String),
    /// Something goes on.
    Busy(String),
    /// Something went wrong.
    Wrong(Problem),
}

#[derive(Debug, Default)]
pub struct Welcome {
    /// The sentence.
    pub input: Editor,
    /// The chosen run; none while the next step is.
    pub at: Option<usize>,
    /// What is done once the repo has been looked at.
    pub waits: Option<Action>,
}

#[derive(Debug, Default)]
pub struct Setup {
    /// Agents first, then the fields.
    pub at: usize,
    /// How each agent stands.
    pub agents: Vec<(String, AgentState)>,
    pub form: Form,
    /// Longest wait for an answer, in seconds.
    pub seconds: u64,
    /// Whether it was filled from the repo.
    pub ready: bool,
}

/// An answer while it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Who answers.
    pub by: String,
    /// What has come of it.
    pub text: String,
    /// Since when it is waited for.
    pub since: Timestamp,
}

#[derive(Debug, Default)]
pub struct Studio {
    /// Its name on disk.
    pub thread: String,
    pub messages: Vec<Message>,
    pub input: Editor,
    pub draft: Draft,
    /// Drafts before, the latest last.
    pub undo: Vec<Draft>,
    /// The draft, while hands are at it.
    pub hand: Option<Editor>,
    /// Who may be asked.
    pub agents: Vec<String>,
    /// The one that is; `agents.len()` is nobody: a plain form.
    pub agent: usize,
    /// The answer that is coming.
    pub answering: Option<Answer>,
    /// Files of the repo, for `@`.
    pub files: Vec<String>,
    /// Lines that the transcript is scrolled up.
    pub up: usize,
    /// The problem with the last answer.
    pub problem: Option<Problem>,
}

impl Studio {
    /// Who is asked; none where it is a plain form.
    pub fn asked(&self) -> Option<&str> {
        self.agents.get(self.agent).map(String::as_str)
    }

    /// Another draft; the one before can be gone back to.
    pub fn change(&mut self, draft: Draft) {
        if draft != self.draft {
            self.undo.push(std::mem::replace(&mut self.draft, draft));
            let extra = self.undo.len().saturating_sub(UNDO_MAX);
            self.undo.drain(..extra);
        }
    }
}

#[derive(Debug, Default)]
pub struct Review {
    /// Who is asked, and what came of it.
    pub reviewers: Vec<(String, Reviewer)>,
    pub findings: Vec<Finding>,
    pub at: usize,
    pub round: u32,
    /// When the round began.
    pub since: Timestamp,
}

/// How a reviewer stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewer {
    /// Reads it.
    Reading,
    /// Found so many things.
    Found(usize),
    /// Did not answer.
    Failed(Problem),
}

#[derive(Debug, Default)]
pub struct Finalize {
    pub lint: Option<Vec<LintLine>>,
    pub at: usize,
    pub baseline: BaselineState,
    /// Index into [`DIALECTS`].
    pub dialect: usize,
    /// Index into [`SPECS`].
    pub spec: usize,
}

/// Files that a task can be written to.
pub const DIALECTS: [&str; 4] = ["PROMPT.md", "ralph_task.md", "ralph.json", "ralph/tasks.json"];
/// Where SPEC.md goes.
pub const SPECS: [&str; 3] = ["no", "SPEC.md", ".ralph/spec/SPEC.md"];

/// The checks before any work.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum BaselineState {
    #[default]
    NotYet,
    Running(Timestamp),
    Over(Baseline),
    Failed(Problem),
}

#[derive(Debug, Default)]
pub struct Start {
    pub form: Form,
    /// The text of the task, where it is no file.
    pub text: Option<String>,
    /// The file of the task.
    pub file: Option<String>,
    /// It is being started.
    pub busy: bool,
    pub problem: Option<Problem>,
}

/// The tabs of a run.
pub const TABS: [&str; 7] = ["Timeline", "Agent output", "Verifiers", "Git", "Changelog", "Receipts", "Race"];
/// The tab of a run that races; others do not have it.
pub const RACE_TAB: u8 = 6;

#[derive(Debug, Default)]
pub struct RunScreen {
    pub id: String,
    pub view: Option<Box<RunView>>,
    /// The race that it is one of.
    pub race: Option<Box<RaceView>>,
    pub problem: Option<Problem>,
    pub tab: u8,
    pub happened: VecDeque<Happened>,
    /// What the latest session had cost when it was last heard of.
    pub session_cost: Option<SessionCost>,
    pub log: Log,
    /// The last line that is shown; none follows what comes.
    pub last: Option<usize>,
    /// Lines that other tabs are scrolled down.
    pub top: usize,
    pub search: String,
    /// Contents of tabs that are loaded when they are looked at.
    pub tabs: BTreeMap<u8, Vec<ToneLine>>,
    /// Whether the summary was shown by itself.
    pub summed_up: bool,
    /// Lines of the place that the tab had in the last frame.
    pub height: u16,
}

impl RunScreen {
    /// How many tabs it has.
    pub fn tabs(&self) -> u8 {
        if self.race.is_some() { RACE_TAB + 1 } else { RACE_TAB }
    }
}

impl Model {
    /// Before anything is known.
    pub fn new(theme: Theme, size: (u16, u16), now: Timestamp, zone: TimeZone) -> Self {
        Self {
            size,
            theme,
            now,
            zone,
            screen: Screen::Welcome,
            before: Vec::new(),
            overlay: None,
            notice: None,
            repo: RepoFacts::default(),
            looked: false,
            runs: Vec::new(),
            welcome: Welcome::default(),
            setup: Setup { seconds: 60, ..Setup::default() },
            studio: Studio::default(),
            review: Review::default(),
            finalize: Finalize::default(),
            start: Start::default(),
            run: RunScreen::default(),
            hits: Vec::new(),
            server: None,
            attached: false,
            left: None,
        }
    }

    /// Another screen; Esc comes back to this one.
    pub fn go(&mut self, screen: Screen) {
        if self.screen != screen {
            self.before.retain(|one| *one != screen);
            self.before.push(self.screen);
            self.screen = screen;
        }
    }

    /// Whether plain characters are typed into a text.
    pub fn typing(&self) -> bool {
        match self.screen {
            Screen::Welcome => true,
            Screen::Studio => true,
            Screen::Start => true,
            Screen::Setup => self.setup.at >= self.setup.agents.len(),
            Screen::Review | Screen::Finalize | Screen::Run | Screen::Summary => false,
        }
    }
}
