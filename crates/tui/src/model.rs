//! Everything shown, as one plain value.

use crate::data::{
    AgentState, Baseline, Happened, LintLine, Message, Problem, RepoFacts, RunRow, Screen, ThreadRow,
    ToneLine,
};
use crate::draft::Draft;
use crate::findings::Finding;
use crate::keys::Action;
use crate::log::Transcript;
use crate::msg::Effect;
use crate::widget::editor::Editor;
use crate::widget::form::Form;
use crate::widget::theme::Theme;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ralph_loop_protocol::display::race::RaceView;
use ralph_loop_protocol::display::view::RunView;
use ralph_loop_protocol::money::in_session::SessionCost;
use ratatui::layout::Rect;
use std::collections::{BTreeMap, VecDeque};

/// Kept sentences of a run.
pub const HAPPENED_MAX: usize = 5000;
/// Drafts kept for undo.
pub const UNDO_MAX: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    pub area: Rect,
    pub action: Action,
}

/// The whole model.
#[derive(Debug)]
pub struct Model {
    pub size: (u16, u16),
    pub theme: Theme,
    /// Time of the last tick.
    pub now: Timestamp,
    /// The time zone for displayed times.
    pub zone: TimeZone,
    /// The current screen and its predecessors.
    pub screen: Screen,
    pub before: Vec<Screen>,
    /// The overlay above it.
    pub overlay: Option<Overlay>,
    /// The last success or failure.
    pub notice: Option<Notice>,
    pub repo: RepoFacts,
    /// Whether it has been read.
    pub looked: bool,
    pub runs: Vec<RunRow>,
    pub welcome: Welcome,
    pub setup: Setup,
    pub studio: Studio,
    pub review: Review,
    pub finalize: Finalize,
    pub start: Start,
    pub run: RunScreen,
    /// Click targets of the last frame.
    pub hits: Vec<Hit>,
    /// URL of the server whose runs are shown; `None` for this machine.
    pub server: Option<String>,
    /// Shows only one run: leaving it quits.
    pub attached: bool,
    /// Set when leaving, with lines for the shell.
    pub left: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    /// Key help.
    Help {
        top: usize,
    },
    Palette {
        input: Editor,
        at: usize,
    },
    /// A yes/no question.
    Confirm {
        question: String,
        lines: Vec<String>,
        yes: Vec<Effect>,
        leave: bool,
    },
    Ask {
        title: &'static str,
        hint: &'static str,
        input: Editor,
        purpose: Purpose,
    },
    Runs {
        input: Editor,
        at: usize,
    },
    Threads {
        rows: Vec<ThreadRow>,
        at: usize,
    },
    Agents {
        names: Vec<String>,
        at: usize,
    },
    Trouble(Problem),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Note,
    Nudge,
    Guardrail,
    Search,
    SaveTo,
    Verify,
    Branch,
    PullRequest,
}

/// A message at the bottom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A success.
    Done(String),
    /// In progress.
    Busy(String),
    /// A failure.
    Wrong(Problem),
}

#[derive(Debug, Default)]
pub struct Welcome {
    pub input: Editor,
    /// The selected run; `None` for the next step.
    pub at: Option<usize>,
    /// Action to perform once the repo is read.
    pub waits: Option<Action>,
}

#[derive(Debug, Default)]
pub struct Setup {
    pub at: usize,
    /// Each agent's state.
    pub agents: Vec<(String, AgentState)>,
    pub form: Form,
    /// Probe timeout in seconds.
    pub seconds: u64,
    /// Whether it was filled from the repo.
    pub ready: bool,
}

/// An incoming answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub by: String,
    pub text: String,
    /// Since when it is awaited.
    pub since: Timestamp,
}

#[derive(Debug, Default)]
pub struct Studio {
    /// Its name on disk.
    pub thread: String,
    pub messages: Vec<Message>,
    pub input: Editor,
    pub draft: Draft,
    pub undo: Vec<Draft>,
    /// The draft while the user edits it.
    pub hand: Option<Editor>,
    pub agents: Vec<String>,
    /// The chosen agent; `agents.len()` means none: a plain form.
    pub agent: usize,
    pub answering: Option<Answer>,
    /// Files of the repo, for `@`.
    pub files: Vec<String>,
    /// Lines the transcript is scrolled up.
    pub up: usize,
    pub problem: Option<Problem>,
}

impl Studio {
    /// The chosen agent; `None` for the plain form.
    pub fn asked(&self) -> Option<&str> {
        self.agents.get(self.agent).map(String::as_str)
    }

    /// Changes the draft; can be undone.
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
    /// Reviewers with their state.
    pub reviewers: Vec<(String, Reviewer)>,
    pub findings: Vec<Finding>,
    pub at: usize,
    pub round: u32,
    /// When the round started.
    pub since: Timestamp,
}

/// A reviewer's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reviewer {
    /// Reading the draft.
    Reading,
    /// Number of findings.
    Found(usize),
    Failed(Problem),
}

#[derive(Debug, Default)]
pub struct Finalize {
    pub lint: Option<Vec<LintLine>>,
    /// The checks with their sources, as the linter found them.
    pub checks: Vec<String>,
    pub at: usize,
    pub baseline: BaselineState,
    /// Index into [`DIALECTS`].
    pub dialect: usize,
    /// Index into [`SPECS`].
    pub spec: usize,
}

/// Files that a task can be written to.
pub const DIALECTS: [&str; 4] = ["PROMPT.md", "ralph_task.md", "ralph.json", "ralph/tasks.json"];
/// Locations of SPEC.md.
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
    /// The task's text, if it isn't a file.
    pub text: Option<String>,
    pub file: Option<String>,
    pub busy: bool,
    pub problem: Option<Problem>,
}

pub const TABS: [&str; 7] = ["Timeline", "Agent output", "Verifiers", "Git", "Changelog", "Receipts", "Race"];
/// The race tab; only runs of a race have it.
pub const RACE_TAB: u8 = 6;

#[derive(Debug, Default)]
pub struct RunScreen {
    pub id: String,
    pub view: Option<Box<RunView>>,
    pub race: Option<Box<RaceView>>,
    pub problem: Option<Problem>,
    pub tab: u8,
    pub happened: VecDeque<Happened>,
    /// The latest known cost of the current session.
    pub session_cost: Option<SessionCost>,
    pub output: Transcript,
    /// The chosen row of the timeline or race; lines that other tabs are scrolled down.
    pub top: usize,
    pub search: String,
    /// The iteration that is open in the timeline.
    pub opened: Option<Opened>,
    /// The iteration marked to be compared.
    pub marked: Option<u32>,
    /// The hint in the banner of a question, and whether it is being typed.
    pub hint: Editor,
    pub hinting: bool,
    /// Contents of tabs that load when opened.
    pub tabs: BTreeMap<u8, Vec<ToneLine>>,
    /// Whether the summary opened automatically.
    pub summed_up: bool,
    /// Height of the tab in the last frame.
    pub height: u16,
}

/// Parts of an open iteration, and of a comparison.
pub const PARTS: [&str; 4] = ["Output", "Prompt", "Diff", "Checks"];
pub const COMPARED: [&str; 2] = ["Diff", "Tests"];

/// An open iteration, or the comparison of two.
#[derive(Debug, Default)]
pub struct Opened {
    pub from: Option<u32>,
    pub iteration: u32,
    pub part: u8,
    pub output: Transcript,
    /// Lines of the other parts, by name; `None` until they are read.
    pub lines: Option<BTreeMap<&'static str, Vec<ToneLine>>>,
    /// Lines that they are scrolled down.
    pub top: usize,
}

impl Opened {
    pub fn parts(&self) -> &'static [&'static str] {
        if self.from.is_some() { &COMPARED } else { &PARTS }
    }

    /// The name of the shown part.
    pub fn part(&self) -> &'static str {
        self.parts()[usize::from(self.part) % self.parts().len()]
    }
}

impl RunScreen {
    /// The visible transcript.
    pub fn transcript(&mut self) -> Option<&mut Transcript> {
        match &mut self.opened {
            Some(opened) if self.tab == 0 && opened.part() == "Output" => Some(&mut opened.output),
            _ if self.tab == 1 => Some(&mut self.output),
            _ => None,
        }
    }

    /// The open iteration, if it is visible.
    pub fn inside(&self) -> Option<&Opened> {
        self.opened.as_ref().filter(|_| self.tab == 0)
    }

    /// The iterations of the timeline, as shown: the newest first, the active one as `None`.
    pub fn rows(&self) -> Vec<Option<u32>> {
        let Some(view) = &self.view else { return Vec::new() };
        let now = view.current.iter().map(|_| None);
        now.chain(view.history.iter().rev().map(|it| Some(it.iteration))).collect()
    }

    /// Number of tabs.
    pub fn tabs(&self) -> u8 {
        if self.race.is_some() { RACE_TAB + 1 } else { RACE_TAB }
    }
}

impl Model {
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

    /// Switches the screen; Esc returns.
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
            Screen::Run => self.run.hinting,
            Screen::Review | Screen::Finalize | Screen::Summary => false,
        }
    }
}
