//! What a run must remember beyond its process: where it left its refs, and which full tree stands behind a commit.

use crate::error::Result;
use crate::store;
use ralph_domain::ports::Baseline;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Full trees of more commits than this are forgotten; they can be derived nearly always.
const TREES_MAX: usize = 200;

/// Where a ref was left, and where it stood before. It is written *before* the ref moves, so after a crash the ref is at
/// one of the two; anything else was somebody else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

impl Place {
    pub(crate) fn at(id: Option<String>) -> Self {
        Self { from: id.clone(), to: id }
    }
    /// Takes what is found for what we left, if it can be.
    pub(crate) fn settle(&mut self, actual: Option<&str>) {
        if actual == self.from.as_deref() || actual == self.to.as_deref() {
            *self = Self::at(actual.map(str::to_owned));
        }
    }
}

/// The run's memory, `record.json`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) baseline: Baseline,
    pub(crate) work: Place,
    /// The branch that the run commits on.
    #[serde(default)]
    pub(crate) branch: Option<Place>,
    /// Commit and full tree, where it is not the commit's own tree.
    #[serde(default)]
    pub(crate) trees: Vec<(String, String)>,
}

impl Record {
    pub(crate) fn path(folder: &Path) -> PathBuf {
        folder.join("record.json")
    }
    pub(crate) fn load(folder: &Path) -> Result<Option<Self>> {
        store::load(&Self::path(folder))
    }
    pub(crate) fn save(&self, folder: &Path) -> Result<()> {
        store::save(&Self::path(folder), self)
    }
    pub(crate) fn remember_tree(&mut self, commit: &str, full: &str) {
        self.trees.push((commit.to_owned(), full.to_owned()));
        let excess = self.trees.len().saturating_sub(TREES_MAX);
        self.trees.drain(..excess);
    }
    pub(crate) fn full_tree(&self, commit: &str) -> Option<&str> {
        self.trees.iter().rev().find(|(id, _)| id == commit).map(|(_, tree)| tree.as_str())
    }
}
