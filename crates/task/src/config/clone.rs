//! How much of a repo a clone brings: the `clone` key.

use serde::{Deserialize, Serialize};

/// How much of a repo `--clone` brings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloneConfig {
    /// Only so many commits of the history; all where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Only these folders, and the files beside and above them; all where empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparse: Vec<String>,
}
