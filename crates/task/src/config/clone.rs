//! The `clone` key: how much of a repo a clone brings.

use serde::{Deserialize, Serialize};

/// How much of a repo `--clone` brings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct CloneConfig {
    /// How many commits of the history; default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub depth: Option<u32>,
    /// Only these folders, and the files in the folders above them; default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparse: Vec<String>,
}
