//! Scripts of sessions, turns and abstract actions.

use super::fault::Fault;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One action of the model in a turn. The tools of each request decide which tool performs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Creates a file with this content. Claude's own tool refuses an existing file that it hasn't read: use `Shell` there.
    Write {
        /// Relative to the agent's working directory, or absolute.
        path: String,
        content: String,
    },
    Shell {
        command: String,
    },
    Text(String),
    /// Calls exactly this tool, offered or not.
    Tool {
        name: String,
        /// Its arguments; a string for a custom (free-form) tool.
        input: Value,
    },
}

impl Action {
    pub fn write(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self::Write { path: path.into(), content: content.into() }
    }
    pub fn shell(command: impl Into<String>) -> Self {
        Self::Shell { command: command.into() }
    }
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
    pub fn tool(name: impl Into<String>, input: Value) -> Self {
        Self::Tool { name: name.into(), input }
    }
}

/// Tokens of one answer; [`Usage::input`] excludes cached tokens. Each wire reports them differently:
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
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 1200, output: 40, cache_read: 800, cache_write: 300, reasoning: 8 }
    }
}

impl Usage {
    /// The usage of a side call (a title, a router).
    pub const SIDE: Self = Self { input: 50, output: 5, cache_read: 0, cache_write: 0, reasoning: 0 };
    /// This many tokens, without cache and reasoning.
    pub fn plain(input: u64, output: u64) -> Self {
        Self { input, output, cache_read: 0, cache_write: 0, reasoning: 0 }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model finished, or waits for its tools, depending on its actions.
    Natural,
    MaxTokens,
    Refusal,
}

/// One answer. Several tool actions in it are parallel calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "TurnForm")]
pub struct Turn {
    /// The actions in order.
    pub actions: Vec<Action>,
    /// Its usage; by default the script's.
    pub usage: Option<Usage>,
    pub stop: Stop,
    /// Silence before the first byte.
    pub wait_ms: u64,
    /// The duration of a streamed answer, from its first to its last event.
    pub spread_ms: u64,
}

impl Turn {
    pub fn new(actions: impl IntoIterator<Item = Action>) -> Self {
        Self {
            actions: actions.into_iter().collect(),
            usage: None,
            stop: Stop::Natural,
            wait_ms: 0,
            spread_ms: 0,
        }
    }
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }
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

/// A turn in a script file: one action, a list of actions, or all named fields.
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

/// How to treat a request without tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Toolless {
    /// A side call if the user agent is a known agent CLI, otherwise a turn of the script.
    #[default]
    Auto,
    Script,
    Side,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    pub turns: Vec<Turn>,
    /// The turns of the first, second, … session of a run id, if sessions differ. The last one repeats. Overrides `turns`.
    pub sessions: Vec<Vec<Turn>>,
    /// Faults in order; the first one that still applies is used.
    pub faults: Vec<Fault>,
    pub usage: Option<Usage>,
    /// Starts over after the last turn instead of repeating it.
    pub cycle: bool,
    /// How to treat a request without tools.
    pub toolless: Toolless,
}

impl Script {
    /// The same turns in every session.
    pub fn turns<T: Into<Turn>>(turns: impl IntoIterator<Item = T>) -> Self {
        Self { turns: turns.into_iter().map(Into::into).collect(), ..Self::default() }
    }
    pub fn sessions(sessions: impl IntoIterator<Item = Vec<Turn>>) -> Self {
        Self { sessions: sessions.into_iter().collect(), ..Self::default() }
    }
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
