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
                "You are the builder of this session: do the next piece of the task. Begin with the findings below, if \
                 there are any."
            }
            Self::Reviewer => {
                "You are the reviewer of this session: read what has changed and compare it with the task. Change no \
                 file. Your final message is a list of findings, the most serious first, each with its file and line and \
                 what to do; it becomes the builder's next input. Say `no findings` where there is nothing to fix."
            }
            Self::Tester => {
                "You are the tester of this session: look for what is not tested and for tests that cannot fail. Add or \
                 fix tests; do not change the code they test. Your final message lists what fails and why; it becomes \
                 the builder's next input."
            }
            Self::Docs => {
                "You are the documenter of this session: bring the documentation, comments and change log in line with \
                 what the code does now. Do not change behaviour. Your final message lists what you found to be unclear \
                 or wrong in the code itself."
            }
        }
    }
    /// Whether a session in this role is expected to leave the files as they are.
    pub fn only_reads(self) -> bool {
        self == Self::Reviewer
    }
}
