//! How much a proof is worth: who decided what a pass means, and whether anybody watched.

use serde::{Deserialize, Serialize};

/// How much the pass of a final check is worth: who decided what a pass means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum ProofLevel {
    /// What decides was there at the start, and is as it was.
    Independent,
    /// The run wrote or changed tests, their configuration or what runs them: its work passes its own tests.
    OwnTests,
}

impl ProofLevel {
    /// In words, as everywhere: `independent`, `own tests`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Independent => "independent",
            Self::OwnTests => "own tests",
        }
    }

    /// The verdict of a pass, as a headline: the two levels share no word.
    pub fn verdict(level: Option<Self>) -> &'static str {
        match level {
            Some(Self::OwnTests) => "own tests pass",
            _ => "proven",
        }
    }
}

/// Whether the checks were watched: which files their runners opened, and which programs they started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Watching {
    /// Every check that runs a command was watched to its end.
    Watched,
    /// Names and keys of well-known files decided alone.
    #[default]
    NotWatched,
}

impl Watching {
    /// Whether nobody watched.
    pub fn is_not_watched(&self) -> bool {
        *self == Self::NotWatched
    }

    /// `watched`, `not watched`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Watched => "watched",
            Self::NotWatched => "not watched",
        }
    }
}

/// Something that decides the result, or may, and that is not what it was at the start.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "harness_change"))]
pub struct HarnessChange {
    /// The file.
    pub path: String,
    /// The definition in it, where only that one counts: a target, a script, a section.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it is to the checks, and what became of it.
    pub what: String,
    /// Whether it counts as a test or test setup; then the original checks decide, or the user.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tests: bool,
}

impl HarnessChange {
    /// In one line.
    pub fn line(&self) -> String {
        match &self.key {
            Some(key) => format!("`{key}` in {}: {}", self.path, self.what),
            None => format!("{}: {}", self.path, self.what),
        }
    }

    /// Whether there was nothing of it at the start.
    pub fn is_new(&self) -> bool {
        ["added by the run", "of the run's own", "came with the run"]
            .iter()
            .any(|words| self.what.contains(words))
    }

    /// What undoes it, in words.
    pub fn cure(&self) -> &'static str {
        if self.is_new() { "take it out" } else { "bring it back as it was at the start" }
    }
}
