//! Scripts of sessions, turns and abstract actions.

use super::fault::Fault;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing the model does in a turn. Which tool carries it is decided per request, by what the request offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Makes a file with this content. Claude's own tool refuses a file that exists and was not read: use `Shell` there.
    Write {
        /// Relative to the agent's working directory, or absolute.
        path: String,
        /// Everything that the file holds.
        content: String,
    },
    /// Runs a command.
    Shell {
        /// As one would type it.
        command: String,
    },
    /// Says this, unchanged: the raw answer of an agent that speaks in text.
    Text(String),
    /// Calls exactly this tool, offered or not.
    Tool {
        /// Its name.
        name: String,
        /// Its arguments; a string for a custom (free-form) tool.
        input: Value,
    },
}

impl Action {
    /// Makes a file.
    pub fn write(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self::Write { path: path.into(), content: content.into() }
    }
    /// Runs a command.
    pub fn shell(command: impl Into<String>) -> Self {
        Self::Shell { command: command.into() }
    }
    /// Says this.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
    /// Calls exactly this tool.
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::Tool { name: name.into(), input }
    }
}

/// Tokens of one answer, as [`Usage::input`] without anything cached. Each wire tells them in its own way:
///
/// | | Anthropic | OpenAI | Gemini |
/// |---|---|---|---|
/// | input | `input` | `input + cache_read` | `input + cache_read` |
/// | cached | `cache_read` | `cache_read` (part of input) | `cache_read` (part of prompt) |
/// | written | `cache_write` | not reported | not reported |
/// | output | `output` | `output`, `reasoning` is part of it | `output`, plus `reasoning` |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Read afresh.
    pub input: u64,
    /// Answered.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_write: u64,
    /// Thought before answering.
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 1200, output: 40, cache_read: 800, cache_write: 300, reasoning: 8 }
    }
}

impl Usage {
    /// What a side call (a title, a router) costs.
    pub const SIDE: Self = Self { input: 50, output: 5, cache_read: 0, cache_write: 0, reasoning: 0 };
    /// These many tokens, nothing cached and nothing thought.
    pub fn plain(input: u64, output: u64) -> Self {
        Self { input, output, cache_read: 0, cache_write: 0, reasoning: 0 }
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model was finished, or waits for its tools: which of the two follows from its actions.
    Natural,
    /// The answer hit its length limit.
    MaxTokens,
    /// The model declines.
    Refusal,
}

/// One answer. Several tool actions in it are parallel calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "TurnForm")]
pub struct Turn {
    /// In order.
    pub actions: Vec<Action>,
    /// Else the script's.
    pub usage: Option<Usage>,
    /// Why it ends.
    pub stop: Stop,
    /// Silence before the first byte.
    pub wait_ms: u64,
    /// The answer, where it is streamed, takes this long from its first to its last event.
    pub spread_ms: u64,
}

impl Turn {
    /// A turn of these actions.
    pub fn new(actions: impl IntoIterator<Item = Action>) -> Self {
        Self {
            actions: actions.into_iter().collect(),
            usage: None,
            stop: Stop::Natural,
            wait_ms: 0,
            spread_ms: 0,
        }
    }
    /// With these tokens.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }
    /// Ended by this.
    #[must_use]
    pub fn with_stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }
}

impl From<Action> for Turn {
    fn from(action: Action) -> Self {
        Self::new([action])
    }
}

impl From<Vec<Action>> for Turn {
    fn from(actions: Vec<Action>) -> Self {
        Self::new(actions)
    }
}

impl<const N: usize> From<[Action; N]> for Turn {
    fn from(actions: [Action; N]) -> Self {
        Self::new(actions)
    }
}

/// A turn as a script file writes it: one action, a list of them, or everything by name.
#[derive(Deserialize)]
#[serde(untagged)]
enum TurnForm {
    One(Action),
    Many(Vec<Action>),
    Full(TurnFields),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnFields {
    actions: Vec<Action>,
    usage: Option<Usage>,
    stop: Option<Stop>,
    #[serde(default)]
    wait_ms: u64,
    #[serde(default)]
    spread_ms: u64,
}

impl From<TurnForm> for Turn {
    fn from(form: TurnForm) -> Self {
        match form {
            TurnForm::One(action) => action.into(),
            TurnForm::Many(actions) => actions.into(),
            TurnForm::Full(full) => Self {
                actions: full.actions,
                usage: full.usage,
                stop: full.stop.unwrap_or(Stop::Natural),
                wait_ms: full.wait_ms,
                spread_ms: full.spread_ms,
            },
        }
    }
}

/// What a request without tools is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Toolless {
    /// A side call where the user agent is that of a known agent CLI, else a turn of the script.
    #[default]
    Auto,
    /// Always a turn of the script.
    Script,
    /// Always a side call.
    Side,
}

/// What a scenario answers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The turns of every session. The last one repeats.
    pub turns: Vec<Turn>,
    /// Where sessions differ: the turns of the first, second, … session of a run id. The last one repeats. Wins over `turns`.
    pub sessions: Vec<Vec<Turn>>,
    /// What goes wrong, asked in order; the first that still has something to do is used.
    pub faults: Vec<Fault>,
    /// Tokens of a turn that names none.
    pub usage: Option<Usage>,
    /// After the last turn comes the first again, instead of the last.
    pub cycle: bool,
    /// What a request without tools is.
    pub toolless: Toolless,
}

impl Script {
    /// The same turns in every session.
    pub fn turns<T: Into<Turn>>(turns: impl IntoIterator<Item = T>) -> Self {
        Self { turns: turns.into_iter().map(Into::into).collect(), ..Self::default() }
    }
    /// Turns by session.
    pub fn sessions(sessions: impl IntoIterator<Item = Vec<Turn>>) -> Self {
        Self { sessions: sessions.into_iter().collect(), ..Self::default() }
    }
    /// And this goes wrong.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// The turn of this session, both counted from 0.
    pub(super) fn turn(&self, session: usize, turn: usize) -> Turn {
        let turns = match self.sessions.len() {
            0 => &self.turns,
            count => &self.sessions[session.min(count - 1)],
        };
        let found = match turns.len() {
            0 => None,
            count if self.cycle => turns.get(turn % count),
            count => turns.get(turn.min(count - 1)),
        };
        let mut turn = found.cloned().unwrap_or_else(|| Turn::from(Action::text("The script is empty.")));
        turn.usage = turn.usage.or(self.usage);
        turn
    }
}
