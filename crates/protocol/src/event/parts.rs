//! Parts of events: changed files, moved refs, check results, verdicts.

use crate::id::{Digest, Seq, TreeId};
use crate::notification::Occasion;
use crate::proof::test_counts::TestCounts;
use serde::{Deserialize, Serialize};

/// How many names of failing tests are shown.
const NAMES_SHOWN: usize = 6;

/// A commit of some of a session's files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommitPart {
    /// Its message.
    pub message: String,
    /// The files and folders in it.
    pub paths: Vec<String>,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefMove {
    /// Its full name.
    pub name: String,
    /// Where it was; absent for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Where it is; absent for a removed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Whether it needs approval. A remote-tracking ref moved by a fetch is only reported.
    pub needs_person: bool,
}

/// The result of one verifier on one tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckResult {
    /// The verifier.
    pub name: String,
    /// The judged tree: another tree voids the result.
    pub tree: TreeId,
    /// Whether it passed.
    pub passed: bool,
    /// The reason if it failed: "exit code 1", "no test was executed".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Exit code, if the process exited.
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
    /// Names of failing tests, if the runner is known and names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    /// Its last output lines, if it didn't pass.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
}

impl CheckResult {
    /// `failing: test_a, test_b and 3 more`; `None` without names.
    pub fn failing_words(&self, most: usize) -> Option<String> {
        let shown: Vec<&str> = self.failing.iter().take(most.max(1)).map(String::as_str).collect();
        let more = match self.failing.len() - shown.len() {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        (!shown.is_empty()).then(|| format!("failing: {}{more}", shown.join(", ")))
    }

    /// The evidence of a failed check: its failing tests, and its last output lines.
    pub fn evidence(&self, lines: usize) -> Vec<String> {
        let last = &self.last_lines[self.last_lines.len().saturating_sub(lines)..];
        self.failing_words(NAMES_SHOWN).into_iter().chain(last.iter().cloned()).collect()
    }
}

/// The verdict on an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Verdict {
    /// Promise and checks hold: the final check follows.
    Candidate,
    /// The agent promised, but a check failed.
    FalsePromise,
    /// A check fails.
    ChecksFail,
    /// No required check fails, but nothing was promised.
    NotPromised,
    /// The checks pass and nothing was changed.
    NoChange,
    /// Protected paths were changed.
    ProtectedChanged,
    /// The session itself failed.
    SessionFailed,
}

impl Verdict {
    /// What begins the reasons of a final check among those that fail.
    pub const FINAL_CHECK: &str = "final check: ";

    /// The text for display.
    pub fn words(self) -> &'static str {
        match self {
            Self::Candidate => "required checks pass, the final check follows",
            Self::FalsePromise => "promised, but checks fail",
            Self::ChecksFail => "checks fail",
            Self::NotPromised => "not yet claimed as done",
            Self::NoChange => "nothing was changed",
            Self::ProtectedChanged => "protected paths changed",
            Self::SessionFailed => "session failed",
        }
    }

    /// The text with names: `promised, but checks fail (tests, lint)`.
    pub fn words_with(self, failing: &[String]) -> String {
        match (self, failing) {
            (Self::FalsePromise | Self::ChecksFail, [_, ..]) => {
                let in_final = failing.iter().all(|name| name.starts_with(Self::FINAL_CHECK));
                let words = match in_final {
                    true => self.words().replace("checks fail", "the final check fails"),
                    false => self.words().to_owned(),
                };
                let names: Vec<String> = failing
                    .iter()
                    .take(NAMES_SHOWN)
                    .map(|name| if in_final { &name[Self::FINAL_CHECK.len()..] } else { name })
                    .map(|name| crate::display::text::one_line(name, 120))
                    .collect();
                let more = if failing.len() > names.len() { ", …" } else { "" };
                format!("{words} ({}{more})", names.join(", "))
            }
            (Self::FalsePromise, []) => "promised, but not every criterion is met".to_owned(),
            _ => self.words().to_owned(),
        }
    }
}

/// One recovery step for a stuck run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Rung {
    /// The next session gets the evidence as a hint.
    Nudge,
    /// A fresh session with a changed prompt: what was tried and failed.
    Rotate,
    /// Another agent or model takes over.
    Fallback,
    /// The doctor analyzes the run.
    Doctor,
    /// The user decides.
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

/// A notification was sent, or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notified {
    /// The event it is about.
    pub of: Seq,
    /// Its occasion.
    pub occasion: Occasion,
    /// The notifier's name.
    pub by: String,
    /// Whether it was delivered.
    pub ok: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}
