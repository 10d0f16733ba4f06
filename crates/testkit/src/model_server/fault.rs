//! Faults: what fails, how often, and when.

use serde::{Deserialize, Serialize};

/// A kind of fault. The first group is an HTTP error in the vendor's format; the second breaks an
/// answer that began well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FaultKind {
    /// 429: too many requests or tokens for now.
    RateLimit {
        /// `Retry-After` in seconds.
        #[serde(default = "one")]
        retry_after_s: u64,
    },
    /// 429: the plan's usage limit is reached.
    UsageLimit {
        /// Seconds until it resets.
        #[serde(default = "hour")]
        resets_in_s: u64,
    },
    /// 429: no quota left, waiting does not help.
    Quota,
    /// 401: a wrong key.
    Auth,
    /// 403: a valid key without permission.
    Forbidden,
    /// 400: no credit left (Gemini: an invalid key).
    Credit,
    /// 529: overloaded.
    Overloaded,
    /// 503: unavailable.
    Unavailable,
    /// 500: an internal error.
    ServerError,
    /// 400: the prompt is longer than the context.
    TooLong,
    /// 404: no such model.
    NoModel,
    Http {
        status: u16,
        #[serde(default)]
        headers: Vec<(String, String)>,
        body: String,
    },
    /// An `overloaded` event in a stream that began with 200; unstreamed: [`FaultKind::Overloaded`].
    StreamError,
    /// A rate limit event in a stream that began with 200; unstreamed: [`FaultKind::RateLimit`].
    StreamRateLimit,
    Cut,
    /// The answer starts, then silence until the client disconnects or the time is over; then the connection ends.
    Stall {
        #[serde(default = "ten_minutes")]
        ms: u64,
    },
    /// Silence before the first byte, then the answer as scripted.
    SlowFirst {
        #[serde(default = "thirty_seconds")]
        ms: u64,
    },
    /// Silence until this file exists, then the answer as scripted.
    Held {
        until: std::path::PathBuf,
    },
    Garbled,
    /// The connection ends before the first byte.
    Hangup,
}

fn one() -> u64 {
    1
}
fn hour() -> u64 {
    3600
}
fn ten_minutes() -> u64 {
    600_000
}
fn thirty_seconds() -> u64 {
    30_000
}

/// A fault, how often it occurs, and at which turn. Counted per scenario and run id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    #[serde(flatten)]
    pub kind: FaultKind,
    /// How often it occurs; [`Fault::ALWAYS`] for every time.
    #[serde(default = "always")]
    pub times: i64,
    /// Only at this turn, counted from 0.
    #[serde(default)]
    pub turn: Option<usize>,
}

fn always() -> i64 {
    Fault::ALWAYS
}

impl Fault {
    pub const ALWAYS: i64 = -1;

    pub fn always(kind: FaultKind) -> Self {
        Self { kind, times: Self::ALWAYS, turn: None }
    }
    /// The first `times` requests, then never again.
    pub fn times(kind: FaultKind, times: u32) -> Self {
        Self { kind, times: times.into(), turn: None }
    }
    /// Only at this turn, counted from 0.
    #[must_use]
    pub fn at_turn(mut self, turn: usize) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Whether it occurs again after `hits` times.
    pub(super) fn is_due(&self, turn: usize, hits: i64) -> bool {
        self.turn.is_none_or(|at| at == turn) && (self.times < 0 || hits < self.times)
    }
}

impl FaultKind {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::RateLimit { .. } => "rate_limit",
            Self::UsageLimit { .. } => "usage_limit",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::Forbidden => "forbidden",
            Self::Credit => "credit",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::ServerError => "server_error",
            Self::TooLong => "too_long",
            Self::NoModel => "no_model",
            Self::Http { .. } => "http",
            Self::StreamError => "stream_error",
            Self::StreamRateLimit => "stream_rate_limit",
            Self::Cut => "cut",
            Self::Stall { .. } => "stall",
            Self::SlowFirst { .. } => "slow_first",
            Self::Held { .. } => "held",
            Self::Garbled => "garbled",
            Self::Hangup => "hangup",
        }
    }
    /// Whether the client gets no usable answer, so that its request doesn't start a session.
    pub(super) fn spoils(&self) -> bool {
        !matches!(self, Self::SlowFirst { .. } | Self::Held { .. })
    }
}
