//! Help in the configuration: the doctor, the critic and the roles that agents may take in turn.

use crate::id::AgentName;
use serde::{Deserialize, Serialize};

/// The doctor: reads the record of a run and says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DoctorConfig {
    /// Reads the run every so many iterations, too; 0 only when it circles or when asked.
    pub every: u32,
    /// What happens to its suggestions.
    pub apply: Apply,
    /// The model profile; the first with the tag `doctor` where absent. Without a usable one, or with `none`, rules speak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// What happens to the doctor's suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Apply {
    /// They wait for a person (`ralph diagnose --apply`).
    #[default]
    Ask,
    /// They are sent to the run's inbox at once.
    Auto,
}

/// The critic: one short look at the last changes when the score is high.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CriticConfig {
    /// Switches it off.
    pub disabled: bool,
    /// The `loop_score` from which it looks.
    pub score: f64,
    /// The model profile that looks; the first with the tag `critic` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The agent that looks, in a checkout of its own; another one than the last where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// It is skipped where less than this share of the money is left.
    pub min_budget_share: f64,
}

impl Default for CriticConfig {
    fn default() -> Self {
        Self { disabled: false, score: 0.5, profile: None, agent: None, min_budget_share: 0.15 }
    }
}

/// A place in the pipeline of roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleConfig {
    /// What this session is for.
    pub role: Role,
    /// Who takes it; the next free one where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// With which model or profile.
    #[serde(default, alias = "profile", skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// What a session is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Does the work.
    Builder,
    /// Reads it and says what is wrong; changes nothing.
    Reviewer,
    /// Adds and mends tests.
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
                 what to do; it becomes the builder's next input. Say `no findings` where there is nothing to mend."
            }
            Self::Tester => {
                "You are the tester of this session: look for what is not tested and for tests that cannot fail. Add or \
                 mend tests; do not change the code they test. Your final message lists what fails and why; it becomes \
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
