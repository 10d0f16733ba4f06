//! Help in the configuration: the doctor, the critic and the roles that agents may take in turn.

use ralph_loop_protocol::id::AgentName;
pub use ralph_loop_protocol::role::Role;
use serde::{Deserialize, Serialize};

/// The doctor: reads the record of a run and says what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Apply {
    /// They wait for a person (`ralph diagnose --apply`).
    #[default]
    Ask,
    /// They are sent to the run's inbox at once.
    Auto,
}

/// The critic: one short look at the last changes when the score is high.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline, transform = crate::schema_parts::role_aliases))]
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
