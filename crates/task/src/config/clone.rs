//! How much of a repo a clone brings: the `clone` key.

use serde::{Deserialize, Serialize};

/// How much of a repo `--clone` brings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct CloneConfig {
    /// Only so many commits of the history; all where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub depth: Option<u32>,
    /// Only these folders, and the files beside and above them; all where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparse: Vec<String>,
}
