//! What the stuck rules read from an iteration's outputs, kept in the event that ends it.

use serde::{Deserialize, Serialize};

/// What the engine read from an iteration's outputs; the event that ends it carries this.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "schema", schemars(rename = "stuck_evidence"))]
pub struct Evidence {
    /// Names of failing tests, in order (bounded).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// Problems that a compiler or linter counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<u64>,
    /// How far a measured number is from its limit, in thousandths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<u64>,
    /// Criteria that are met.
    #[serde(skip_serializing_if = "is_zero")]
    pub met: u32,
    /// Word groups of the final message, hashed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<u32>,
    /// What the patch was made of; absent where nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchSketch>,
    /// The session circled within itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionLoop>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Evidence {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a patch is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "schema", schemars(transform = crate::requires::requires_whole_sketch))]
pub struct PatchSketch {
    /// Lines added or removed that are neither blank, comment, mere layout, notes nor generated.
    pub substance: u64,
    /// A sample of the hashes of added lines.
    pub added: Vec<u32>,
    /// A sample of the hashes of removed lines.
    pub removed: Vec<u32>,
}

/// How a session circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum SessionLoop {
    /// The same call with the same result.
    Repeated {
        /// How often in a row.
        times: u32,
    },
    /// The same call fails in the same way.
    Failing {
        /// How often in a row.
        times: u32,
    },
    /// Calls that take turns, with the same results.
    Alternating {
        /// How many calls take turns.
        period: u32,
    },
    /// Words without any call.
    Monologue {
        /// Messages in a row.
        messages: u32,
    },
}

impl SessionLoop {
    /// In words that fit a nudge.
    pub fn words(self) -> String {
        match self {
            Self::Repeated { times } => format!("the same call gave the same result {times} times in a row"),
            Self::Failing { times } => format!("the same call failed in the same way {times} times in a row"),
            Self::Alternating { period } => {
                format!("the same {period} calls took turns, each with the same result")
            }
            Self::Monologue { messages } => format!("{messages} messages in a row without any action"),
        }
    }
}
