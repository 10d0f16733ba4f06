//! One record of what a run shows while it works, as `live.jsonl` holds it.

use jiff::Timestamp;
use ralph_loop_protocol::id::Seq;
use ralph_loop_protocol::money::{Tokens, Usd};
use serde::{Deserialize, Serialize};

/// At this size the file is put away as `live.1.jsonl`, in place of the one before.
pub const LIVE_MAX: u64 = 1024 * 1024;

/// Something a run showed while it worked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveRecord {
    /// Its number, from 1 without gaps over the life of a run.
    pub n: u64,
    /// When it began.
    pub at: Timestamp,
    /// The last event before it.
    pub seq: Seq,
    /// The iteration under way; 0 where there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub iteration: u32,
    /// What it is.
    #[serde(flatten)]
    pub body: LiveBody,
}

/// What was shown. Secrets are taken out before it comes here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LiveBody {
    /// A piece of the agent's text, as it came; pieces of one text follow each other.
    Text {
        /// The piece.
        text: String,
    },
    /// What the agent's process said on stderr.
    Stderr {
        /// The piece.
        text: String,
    },
    /// What the agent does, in one line for people.
    Activity {
        /// The line.
        text: String,
    },
    /// The agent uses a tool.
    ToolCall {
        /// The tool.
        name: String,
        /// On what, in one line.
        what: String,
    },
    /// What came of it.
    ToolResult {
        /// Whether it worked.
        ok: bool,
        /// Its beginning, in one line.
        text: String,
    },
    /// Output of a check.
    CheckOutput {
        /// The check.
        check: String,
        /// The piece.
        text: String,
    },
    /// What the session has used so far.
    Tokens {
        /// Its tokens.
        #[serde(flatten)]
        tokens: Tokens,
        /// Their cost by the price list, if the model is in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<Usd>,
    },
    /// More came than a reader could follow; the logs have it all.
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
