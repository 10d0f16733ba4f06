//! Traces: what the rules need of one iteration, bounded, so that a run of any length costs the same.

use crate::stuck::lines::paths;
use ralph_loop_protocol::event::{FileChange, SessionEnd};
use ralph_loop_protocol::id::{AgentName, Digest, TreeId};
use ralph_loop_protocol::proof::test_counts::TestCounts;
pub use ralph_loop_protocol::stuck::Evidence;
use serde::{Deserialize, Serialize};

/// How many changed files of an iteration are kept.
pub const FILES_MAX: usize = 50;

/// How a session ended, as far as the rules care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    #[default]
    Answered,
    /// Without an answer.
    Empty,
    Refused,
    Failed,
    Stopped,
}

impl Ending {
    /// For a session that did, or didn't, change files.
    pub fn of(end: &SessionEnd, message: &str, changed: bool) -> Self {
        match end {
            SessionEnd::Completed if message.trim().is_empty() && !changed => Self::Empty,
            SessionEnd::Completed => Self::Answered,
            SessionEnd::Empty => Self::Empty,
            SessionEnd::Refused { .. } => Self::Refused,
            SessionEnd::Stopped { .. } | SessionEnd::Interrupted => Self::Stopped,
            _ => Self::Failed,
        }
    }
}

/// What the rules need of one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    pub iteration: u32,
    pub tree: TreeId,
    /// The signature of its failure, if any.
    pub failure: Option<Digest>,
    /// Lines added plus removed, and files changed.
    pub lines: u64,
    pub changed: bool,
    /// Path and content id of changed files (bounded).
    pub files: Vec<(String, String)>,
    /// Changed lines of each of `files`.
    #[serde(default)]
    pub sizes: Vec<u64>,
    #[serde(default)]
    pub agent: Option<AgentName>,
    #[serde(default)]
    pub ending: Ending,
    /// Tests that ran on this tree, summed over the verifiers that report them.
    #[serde(default)]
    pub tests: Option<TestCounts>,
    #[serde(default)]
    pub evidence: Evidence,
}

impl Trace {
    /// A trace with only its number and tree.
    pub fn new(iteration: u32, tree: TreeId) -> Self {
        Self {
            iteration,
            tree,
            failure: None,
            lines: 0,
            changed: false,
            files: Vec::new(),
            sizes: Vec::new(),
            agent: None,
            ending: Ending::Answered,
            tests: None,
            evidence: Evidence::default(),
        }
    }

    /// The part of a file list that the rules use.
    pub fn files_of(changes: &[FileChange]) -> Vec<(String, String)> {
        changes
            .iter()
            .take(FILES_MAX)
            .map(|f| (f.path.clone(), f.blob.clone().unwrap_or_else(|| "-".into())))
            .collect()
    }

    /// Changed lines of the same files.
    pub fn sizes_of(changes: &[FileChange]) -> Vec<u64> {
        let lines = |f: &FileChange| f.added.unwrap_or(1) + f.removed.unwrap_or(0);
        changes.iter().take(FILES_MAX).map(lines).collect()
    }

    /// Changed files that show work on the task: no notes, no generated files.
    pub fn work_files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(path, _)| path.as_str()).filter(|path| paths::is_work(path))
    }

    /// Whether it changed code: not only blanks, comments, notes or generated files.
    pub fn has_substance(&self) -> bool {
        self.changed
            && match &self.evidence.patch {
                Some(patch) => patch.substance > 0,
                None => self.files.is_empty() || self.work_files().next().is_some(),
            }
    }

    /// Whether it showed the same failure as another.
    pub fn same_failure(&self, other: &Self) -> bool {
        self.failure.is_some() && self.failure == other.failure
    }

    /// Share of its changed work lines that is in `files`.
    pub(super) fn share_in(&self, files: &[&str]) -> f64 {
        let (mut all, mut inside) = (0u64, 0u64);
        for (at, (path, _)) in self.files.iter().enumerate().filter(|(_, (p, _))| paths::is_work(p)) {
            let size = self.sizes.get(at).copied().unwrap_or(1).max(1);
            all += size;
            if files.contains(&path.as_str()) {
                inside += size;
            }
        }
        if all == 0 { 0.0 } else { inside as f64 / all as f64 }
    }
}

/// Work files that every one of `traces` changed.
pub(super) fn common_files(traces: &[Trace]) -> Vec<&str> {
    let Some((newest, before)) = traces.split_last() else { return Vec::new() };
    newest.work_files().filter(|path| before.iter().all(|t| t.work_files().any(|p| p == *path))).collect()
}
