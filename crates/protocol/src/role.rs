//! The roles that agents may take in turn.

use serde::{Deserialize, Serialize};

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Role {
    /// Does the work.
    Builder,
    /// Reads it and says what is wrong; changes nothing.
    Reviewer,
    /// Adds and fixes tests.
    Tester,
    /// Keeps the documentation true.
    #[serde(alias = "doc", alias = "documenter")]
    Docs,
}

impl Role {
    /// The word used in files and on screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builder => "builder",
            Self::Reviewer => "reviewer",
            Self::Tester => "tester",
            Self::Docs => "docs",
        }
    }
    /// What a session in this role is told.
    pub fn instruction(self) -> &'static str {
        match self {
            Self::Builder => {
                "You are the builder: do the next piece of the task. Start with the findings below, if any."
            }
            Self::Reviewer => {
                "You are the reviewer: compare the changes with the task. Change no file. End with a list of findings for \
                 the builder, the most serious first, each with file, line and what to do; without findings, say `no \
                 findings`."
            }
            Self::Tester => {
                "You are the tester: find untested code and tests that can't fail. Add or fix tests; don't change the \
                 code they test. End with a list for the builder of what fails and why."
            }
            Self::Docs => {
                "You are the documenter: update documentation, comments and changelog to match the code. Don't change \
                 behavior. End with a list of what is unclear or wrong in the code."
            }
        }
    }
    /// Whether a session in this role is expected to leave the files as they are.
    pub fn only_reads(self) -> bool {
        self == Self::Reviewer
    }
}
