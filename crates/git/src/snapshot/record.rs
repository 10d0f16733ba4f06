//! What a run must remember beyond its process: where it left its refs, and which full tree belongs to a commit.

use crate::error::{Error, Result};
use crate::objects::files;
use ralph_loop_domain::ports::Baseline;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

/// Copy of `info/exclude` in the run's folder, written when the run begins.
pub(crate) const EXCLUDE_AT_START: &str = "exclude-at-start";
const MOVES: &str = "moves.jsonl";

/// Only this many full trees are remembered; others can nearly always be derived.
const TREES_MAX: usize = 200;

/// Where a ref was left, and where it was before. Written *before* the ref moves, so after a crash the ref is at one
/// of the two; anything else was another process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RefPosition {
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
}

impl RefPosition {
    pub(crate) fn at(id: Option<String>) -> Self {
        Self { from: id.clone(), to: id }
    }
    /// Adopts the actual position if it is one of the two.
    pub(crate) fn settle(&mut self, actual: Option<&str>) {
        if actual == self.from.as_deref() || actual == self.to.as_deref() {
            *self = Self::at(actual.map(str::to_owned));
        }
    }
}

/// The run's memory: `record.json`, and later moves in `moves.jsonl`. Appending a line is cheap; replacing a file
/// makes some file systems flush it at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct RefRecord {
    pub(crate) baseline: Baseline,
    pub(crate) work: RefPosition,
    #[serde(default)]
    pub(crate) branch: Option<RefPosition>,
    /// Commit and full tree, if it isn't the commit's own tree.
    #[serde(default)]
    pub(crate) trees: Vec<(String, String)>,
    /// Counts the rewrites of `record.json`: lines of an older generation no longer count.
    #[serde(default)]
    generation: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct MoveLine {
    generation: u64,
    #[serde(flatten)]
    step: PlannedMove,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "ref", rename_all = "snake_case")]
pub(crate) enum PlannedMove {
    /// The work ref, with the full tree if it differs from the commit's.
    Work {
        place: RefPosition,
        full: Option<String>,
    },
    Branch {
        place: RefPosition,
    },
}

impl RefRecord {
    pub(crate) fn new(baseline: Baseline, work: Option<String>, branch: Option<RefPosition>) -> Self {
        Self { baseline, work: RefPosition::at(work), branch, trees: Vec::new(), generation: 0 }
    }

    pub(crate) fn load(folder: &Path) -> Result<Option<Self>> {
        let Some(mut record) = files::load::<Self>(&folder.join("record.json"))? else { return Ok(None) };
        let lines = fs::read_to_string(folder.join(MOVES)).unwrap_or_default();
        // A torn last line was never followed by its move.
        for line in lines.lines().filter_map(|line| serde_json::from_str::<MoveLine>(line).ok()) {
            if line.generation == record.generation {
                record.apply(line.step);
            }
        }
        Ok(Some(record))
    }

    pub(crate) fn save(&mut self, folder: &Path) -> Result<()> {
        self.generation += 1;
        files::save(&folder.join("record.json"), self)?;
        let _ = fs::remove_file(folder.join(MOVES));
        Ok(())
    }

    /// Records a move on the disk before it is made.
    pub(crate) fn note(&mut self, folder: &Path, step: PlannedMove) -> Result<()> {
        let path = folder.join(MOVES);
        let line = MoveLine { generation: self.generation, step };
        let append = || {
            let mut text = serde_json::to_vec(&line)?;
            // A line break on both sides: a torn line before it must not swallow this one.
            text.insert(0, b'\n');
            text.push(b'\n');
            OpenOptions::new().append(true).create(true).open(&path)?.write_all(&text)
        };
        append().map_err(|e: std::io::Error| Error::file("append to", &path, e))?;
        self.apply(line.step);
        Ok(())
    }

    fn apply(&mut self, step: PlannedMove) {
        match step {
            PlannedMove::Work { place, full } => {
                if let (Some(commit), Some(full)) = (&place.to, full) {
                    self.trees.push((commit.clone(), full));
                    let excess = self.trees.len().saturating_sub(TREES_MAX);
                    self.trees.drain(..excess);
                }
                self.work = place;
            }
            PlannedMove::Branch { place } => self.branch = Some(place),
        }
    }

    pub(crate) fn full_tree(&self, commit: &str) -> Option<&str> {
        self.trees.iter().rev().find(|(id, _)| id == commit).map(|(_, tree)| tree.as_str())
    }
}
