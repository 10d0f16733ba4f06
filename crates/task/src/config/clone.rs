//! The `clone` and `workspace` keys: what of a repo a clone and the agent's copy hold.

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

/// How much of the repo's history the agent can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum HistoryAccess {
    /// What the start commit reaches.
    #[default]
    Start,
    /// Everything: other branches, the stash, commits without a branch.
    Full,
}

/// What the agent's copy of the repo holds in addition to tracked and unignored files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct WorkspaceConfig {
    /// Ignored files and folders that the copy also gets, as globs from the top of the repo. In a repo's file it needs
    /// the user's approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<String>,
    /// How much of the history the agent can read. `full` only works in the user's config.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = "start")))]
    pub history: Option<HistoryAccess>,
}

impl WorkspaceConfig {
    /// The keys of both; those of `above` count. What to include adds up.
    pub(super) fn overlaid(mut self, above: Self) -> Self {
        for path in above.include {
            if !self.include.contains(&path) {
                self.include.push(path);
            }
        }
        Self { history: above.history.or(self.history), ..self }
    }

    pub(super) fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn fault(&self) -> Option<String> {
        let outside = self.include.iter().find(|path| !super::is_inside(path))?;
        Some(format!("`{outside}` in `include` isn't a path inside the repo"))
    }
}
