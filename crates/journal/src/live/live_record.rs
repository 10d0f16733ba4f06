//! A record of a run's live output in `live.jsonl`.

use jiff::Timestamp;
use ralph_loop_protocol::id::Seq;
use ralph_loop_protocol::money::{Tokens, Usd};
use serde::{Deserialize, Serialize};

/// At this size the file is rotated to `live.1.jsonl`, replacing the previous one.
pub const LIVE_MAX: u64 = 1024 * 1024;

/// A piece of a run's live output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveRecord {
    /// Its number, from 1 without gaps over the life of a run.
    pub n: u64,
    pub at: Timestamp,
    /// The last event before it.
    pub seq: Seq,
    /// The current iteration; 0 if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub iteration: u32,
    #[serde(flatten)]
    pub body: LivePayload,
}

/// Live output, already redacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LivePayload {
    /// A piece of the agent's text; pieces of one text are consecutive.
    Text {
        text: String,
    },
    Stderr {
        text: String,
    },
    Activity {
        text: String,
    },
    ToolCall {
        name: String,
        what: String,
    },
    ToolResult {
        ok: bool,
        /// Its first and last lines.
        text: String,
    },
    CheckOutput {
        check: String,
        text: String,
    },
    /// What the session has used so far.
    Tokens {
        #[serde(flatten)]
        tokens: Tokens,
        /// Their cost by the price list, if the model is in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<Usd>,
    },
    /// Output was left out of a flood; the logs have it all.
    LeftOut {
        /// How many bytes of text.
        bytes: u64,
    },
    /// A record of a newer version.
    #[serde(other)]
    Unknown,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}
