//! Changes that make tests say less.

use crate::text::count;
use serde::{Deserialize, Serialize};

/// One change that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The file.
    pub path: String,
    /// What happened.
    pub kind: WeakKind,
    /// The line: of the new file, or of the old one where lines were removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The line itself, short.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
}

/// What happened to tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum WeakKind {
    /// A whole file of tests is gone.
    FileRemoved,
    /// A test is gone.
    TestRemoved,
    /// A test is skipped, ignored, or expected to fail; or all others are.
    Skipped,
    /// An assertion is gone.
    AssertionRemoved,
    /// An assertion says something else than before.
    AssertionChanged,
    /// An assertion that always holds.
    AlwaysTrue,
    /// A recorded expectation is another.
    SnapshotChanged,
    /// What decides which tests run, or how, is another.
    ConfigChanged,
    /// A failure of tests no longer ends in a failure.
    Swallowed,
}

impl WeakKind {
    /// As text.
    pub fn words(self) -> &'static str {
        match self {
            Self::FileRemoved => "a file of tests was removed",
            Self::TestRemoved => "a test was removed",
            Self::Skipped => "a test is skipped or expected to fail",
            Self::AssertionRemoved => "an assertion was removed",
            Self::AssertionChanged => "an assertion was changed",
            Self::AlwaysTrue => "an assertion that always holds",
            Self::SnapshotChanged => "a recorded expectation was changed",
            Self::ConfigChanged => "what runs as a test was changed",
            Self::Swallowed => "a failure is swallowed",
        }
    }
}

/// The one line of a summary: `2 changes to tests need a look`.
pub fn summary(findings: &[Finding]) -> String {
    summary_of(findings.len())
}

/// The same from their number.
pub fn summary_of(number: usize) -> String {
    let verb = if number == 1 { "needs" } else { "need" };
    format!("{} to tests {verb} a look", count(number, "change"))
}
