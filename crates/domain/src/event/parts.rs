//! What events are made of: ends of sessions, changed files, moved refs, check results, verdicts.

use crate::id::{Digest, Seq, TreeId};
use crate::ports::{Occasion, StopCause};
use crate::test_report::TestCounts;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum SessionEnd {
    /// The agent finished of its own accord.
    Completed,
    /// It finished, but said nothing and did nothing.
    Empty,
    /// It ended with an error of its own.
    Failed {
        /// In words.
        reason: String,
    },
    /// It ran past its time.
    TimedOut,
    /// It was silent for too long.
    IdleTimedOut,
    /// A limit of the provider.
    RateLimited {
        /// When it ends, where that was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reset_at: Option<Timestamp>,
        /// In the provider's words.
        reason: String,
    },
    /// The provider is overloaded or out of reach for a while.
    Overloaded {
        /// In words.
        reason: String,
    },
    /// Not logged in, or the key is refused.
    Auth {
        /// In words.
        reason: String,
    },
    /// No credit.
    Billing {
        /// In words.
        reason: String,
    },
    /// The prompt or the session's context grew too long.
    ContextTooLong {
        /// In words.
        reason: String,
    },
    /// The model declined, or every action was denied.
    Refused {
        /// In words.
        reason: String,
    },
    /// The agent's process ended without the end event that its format promises.
    Unfinished {
        /// In words.
        reason: String,
    },
    /// The engine ended it.
    Stopped {
        /// Why.
        cause: StopCause,
    },
    /// The engine or its guard died while the session ran.
    Interrupted,
}

impl SessionEnd {
    /// A short word for lists.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Empty => "empty answer",
            Self::Failed { .. } => "agent failed",
            Self::TimedOut => "timed out",
            Self::IdleTimedOut => "silent too long",
            Self::RateLimited { .. } => "rate limited",
            Self::Overloaded { .. } => "provider overloaded",
            Self::Auth { .. } => "not logged in",
            Self::Billing { .. } => "no credit",
            Self::ContextTooLong { .. } => "context too long",
            Self::Refused { .. } => "refused",
            Self::Unfinished { .. } => "ended without a result",
            Self::Stopped { .. } => "ended by ralph",
            Self::Interrupted => "interrupted",
        }
    }
    /// What the agent or provider said about it.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed { reason }
            | Self::RateLimited { reason, .. }
            | Self::Overloaded { reason }
            | Self::Auth { reason }
            | Self::Billing { reason }
            | Self::ContextTooLong { reason }
            | Self::Refused { reason }
            | Self::Unfinished { reason } => Some(reason),
            _ => None,
        }
    }
    /// Whether such a session is no iteration: nothing was tried that could be judged.
    pub fn is_void(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Overloaded { .. }
                | Self::Auth { .. }
                | Self::Billing { .. }
                | Self::Interrupted
                | Self::Stopped { cause: StopCause::Cancelled | StopCause::Skipped | StopCause::Hopeless }
        )
    }
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Its path.
    pub path: String,
    /// `A`dded, `M`odified, `D`eleted, `T`ype changed.
    pub status: char,
    /// Lines added; absent for binary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Lines removed; absent for binary files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    /// Object id of the content now; absent for deleted files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
}

/// A ref that moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefMove {
    /// Its full name.
    pub name: String,
    /// Where it was; absent for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where it is; absent for a removed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Whether a person must look at it. A remote-tracking ref moved by a fetch is only told.
    pub needs_person: bool,
}

/// The result of one verifier on one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The verifier.
    pub name: String,
    /// The tree that it judged: another tree voids the result.
    pub tree: TreeId,
    /// Whether it passed.
    pub passed: bool,
    /// In words, where it did not: "exit code 1", "no test was executed".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Exit code, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it took.
    pub duration_ms: u64,
    /// Tests that a known runner reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// Its log, relative to the run's folder.
    pub log: String,
    /// Digest of the log.
    pub log_digest: Digest,
}

/// The judgement on an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Promise and checks hold: the final check follows.
    Candidate,
    /// The agent promised, but a check failed.
    FalsePromise,
    /// A check fails.
    ChecksFail,
    /// Checks pass, but nothing was promised.
    NotPromised,
    /// Protected paths were changed.
    ProtectedChanged,
    /// The session itself failed.
    SessionFailed,
}

impl Verdict {
    /// The words used on screens.
    pub fn words(self) -> &'static str {
        match self {
            Self::Candidate => "checks pass, the final check follows",
            Self::FalsePromise => "promised, but checks fail",
            Self::ChecksFail => "checks fail",
            Self::NotPromised => "checks pass, not yet claimed as done",
            Self::ProtectedChanged => "protected paths changed",
            Self::SessionFailed => "session failed",
        }
    }
}

/// A rung of the mitigation ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// The next session is shown the evidence.
    Nudge,
    /// A fresh session with a changed prompt: what was tried and failed.
    Rotate,
    /// Another agent or model takes over.
    Fallback,
    /// The doctor reads the run.
    Doctor,
    /// A person.
    Pause,
}

pub(super) fn is_zero(n: &u64) -> bool {
    *n == 0
}
pub(super) fn is_zero_usize(n: &usize) -> bool {
    *n == 0
}
pub(super) fn is_zero_u32(n: &u32) -> bool {
    *n == 0
}

/// A message to people that was sent, or could not be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notified {
    /// The event it tells of.
    pub of: Seq,
    /// What it is about.
    pub occasion: Occasion,
    /// Who sent it: the notifier's name.
    pub by: String,
    /// Whether it got through.
    pub ok: bool,
    /// Why not, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
