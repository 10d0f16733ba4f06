//! Recovery help in the configuration: the doctor, the critic and the roles that agents can take in turn.

use ralph_loop_protocol::id::AgentName;
pub use ralph_loop_protocol::role::Role;
use serde::{Deserialize, Serialize};

/// The doctor: analyzes the record of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct DoctorConfig {
    /// Also analyze the run every so many iterations; 0: only when it is stuck or on request.
    pub every: u32,
    /// What happens to its suggestions.
    pub apply: Apply,
    /// The model profile; default: the first with the tag `doctor`. Without a usable one, or with `none`, rules are
    /// used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// What happens to the doctor's suggestions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Apply {
    /// They wait for the user (`ralph diagnose --apply`).
    #[default]
    Ask,
    /// They are sent to the run's inbox at once.
    Auto,
}

/// The critic: a short review of the last changes when the score is high.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct CriticConfig {
    /// Turns it off.
    pub disabled: bool,
    /// The `loop_score` from which it runs.
    pub score: f64,
    /// The model profile; default: the first with the tag `critic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The reviewing agent, in a separate checkout; default: another one than the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Skip it if less than this share of the money is left.
    pub min_budget_share: f64,
}

impl Default for CriticConfig {
    fn default() -> Self {
        Self { disabled: false, score: 0.5, profile: None, agent: None, min_budget_share: 0.15 }
    }
}

/// A step in the pipeline of roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline, transform = crate::schema_parts::role_aliases))]
pub struct RoleConfig {
    /// The role of this session.
    pub role: Role,
    /// The agent; default: the next available one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The model or profile.
    #[serde(default, alias = "profile", skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}
