//! Controls: every user intervention, on any surface, is one of these, appended to the run's inbox and journaled with
//! its sender.

use crate::id::AgentName;
use crate::money::Usd;
use serde::{Deserialize, Serialize};

/// The sender prefix of a [`Control::Cancel`] that ends one run of a race; the reason follows.
pub const RACE_PREFIX: &str = "race: ";

/// A user intervention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "control", rename_all = "snake_case")]
pub enum Control {
    /// Wait after the current session.
    Pause,
    /// Continue the run.
    Resume,
    /// End the current session and start a fresh one.
    Rotate,
    /// End the run after the current session.
    Stop,
    /// End the run now.
    Cancel,
    /// Leave an agent out of the next turn; without a name, the active one.
    Skip {
        /// The agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
    },
    /// Make an agent rest; 0 seconds ends its cooldown.
    Cooldown {
        /// The agent.
        agent: AgentName,
        /// For how long.
        seconds: u64,
    },
    /// The model for the next iteration.
    Model {
        /// The model, or `None` for the configured one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// For one agent only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<AgentName>,
        /// For every following iteration, not only the next one.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        always: bool,
    },
    /// New task text; becomes the next version of the spec.
    Edit {
        /// The complete new text.
        task: String,
    },
    /// New limits for the whole run; missing ones stay. A run that ended on a budget can then resume.
    Budget(BudgetChange),
    /// Push the result, or open a pull request with it. A run that has ended does this now.
    Publish(PublishChange),
    /// Accept what the run asks about (moved refs, changed config).
    Approve,
    /// Have the doctor analyze the run after the current session.
    Diagnose,
    /// A fact for every following prompt.
    Note {
        /// The text.
        text: String,
    },
    /// A permanent rule, kept across runs.
    Guardrail {
        /// The text.
        text: String,
    },
    /// A hint for the next prompt only.
    Nudge {
        /// The text.
        text: String,
    },
}

impl Control {
    /// The name on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Rotate => "rotate",
            Self::Stop => "stop",
            Self::Cancel => "cancel",
            Self::Skip { .. } => "skip",
            Self::Cooldown { .. } => "cooldown",
            Self::Model { .. } => "model",
            Self::Edit { .. } => "edit",
            Self::Budget(_) => "budget",
            Self::Publish(_) => "publish",
            Self::Approve => "approve",
            Self::Diagnose => "diagnose",
            Self::Note { .. } => "note",
            Self::Guardrail { .. } => "guardrail",
            Self::Nudge { .. } => "nudge",
        }
    }
}

/// Where a result goes, decided after the start of its run. What is left out stays as the run has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublishChange {
    /// Open a pull request, in addition to the push.
    pub pr: bool,
    /// The branch on the remote.
    pub branch: String,
    /// The branch that the pull request goes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The title of the pull request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The text of the pull request; the evidence follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Keep the pull request a draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub draft: Option<bool>,
}

/// New limits for the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetChange {
    /// Most iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// Most working time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_seconds: Option<u64>,
    /// Most money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<Usd>,
    /// Most tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

impl BudgetChange {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A control with its sender and a unique id, so that it is never applied twice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Letter {
    /// Unique within the run.
    pub id: String,
    /// The sender and surface, for example `ana via cli`.
    pub from: String,
    /// The intervention.
    #[serde(flatten)]
    pub control: Control,
}
