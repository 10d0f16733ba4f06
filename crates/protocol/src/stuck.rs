//! What the stuck rules read from an iteration's output, kept in the event that ends it.

pub mod diagnosis;
pub mod signals;

use serde::{Deserialize, Serialize};

/// What the engine read from an iteration's output; part of the event that ends it.
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
    /// Numbers printed by a check that show progress (bounded).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<MeasuredNumber>,
    /// The number that the run should improve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<MeasuredNumber>,
    /// Keys of numbers that differed in a second run on the same files, so they don't count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsteady: Vec<u32>,
    /// Keys of numbers that were the same in a second run on the same files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steady: Vec<u32>,
    /// What a failing check lacks, with the fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// Criteria that are met.
    #[serde(skip_serializing_if = "is_zero")]
    pub met: u32,
    /// Word groups of the final message, hashed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plan: Vec<u32>,
    /// What the patch consisted of; absent without changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchSketch>,
    /// The session repeated itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionLoop>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Evidence {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What a possibly stuck run did last: for the next session and for helpers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct StuckDetails {
    /// The last actions of the session, oldest first, in short form (bounded).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recent_actions: Vec<String>,
    /// The recurring error, in short form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_error: Option<String>,
    /// Files that change again and again (bounded).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cycling_files: Vec<String>,
}

impl StuckDetails {
    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
    /// Text to append to a hint for a session; empty if there is nothing to add.
    pub fn words(&self) -> String {
        let mut text = String::new();
        if let Some(error) = &self.repeated_error {
            text.push_str(&format!("\nThe error that stays: {error}"));
        }
        if !self.cycling_files.is_empty() {
            text.push_str(&format!("\nChanged again and again: {}", self.cycling_files.join(", ")));
        }
        if !self.recent_actions.is_empty() {
            text.push_str(&format!("\nDone last: {}", self.recent_actions.join("; ")));
        }
        text
    }
}

/// A number that a check printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredNumber {
    /// Identifies the number: a hash of the words around it.
    pub key: u32,
    /// Its value, in thousandths.
    pub value: i64,
    /// Whether higher is better.
    pub rises: bool,
    /// Its name, for display.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// The spread of repeated measurements, in thousandths; 0 for a single one.
    #[serde(default, skip_serializing_if = "is_silent")]
    pub noise: i64,
}

fn is_silent(noise: &i64) -> bool {
    *noise == 0
}

/// What a patch consists of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(feature = "schema", schemars(transform = crate::requires::requires_whole_sketch))]
pub struct PatchSketch {
    /// Changed lines that aren't blank, comments, layout, notes or generated.
    pub substance: u64,
    /// A sample of the hashes of added lines.
    pub added: Vec<u32>,
    /// A sample of the hashes of removed lines.
    pub removed: Vec<u32>,
}

/// How a session repeats itself.
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
    /// Alternating calls with the same results.
    Alternating {
        /// How many calls alternate.
        period: u32,
    },
    /// Text without any call.
    Monologue {
        /// Messages in a row.
        messages: u32,
    },
}

impl SessionLoop {
    /// As text for a nudge.
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
