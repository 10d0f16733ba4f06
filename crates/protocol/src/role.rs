//! The roles that agents can take in turn.

use serde::{Deserialize, Serialize};

/// The purpose of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Role {
    /// Does the work.
    Builder,
    /// Reviews the work without changing it.
    Reviewer,
    /// Adds and fixes tests.
    Tester,
    /// Keeps the documentation up to date.
    #[serde(alias = "doc", alias = "documenter")]
    Docs,
}

impl Role {
    /// The word in files and on screens.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builder => "builder",
            Self::Reviewer => "reviewer",
            Self::Tester => "tester",
            Self::Docs => "docs",
        }
    }
    /// The role's instruction for the session.
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
    /// Whether a session in this role should leave the files unchanged.
    pub fn only_reads(self) -> bool {
        self == Self::Reviewer
    }
}
