//! What comes of comparing what decides with the start: why it is not done, and what lowers the level.

use ralph_domain::event::FileChange;
use ralph_domain::proof::{HarnessChange, ProofLevel};
use std::collections::BTreeSet;

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct HarnessFindings {
    /// Why it is not done.
    pub failed: Vec<String>,
    /// What lowers the level.
    pub changes: BTreeSet<HarnessChange>,
    /// Whether tests or their configuration changed, so that another number of tests is no wonder.
    pub tests_touched: bool,
    /// New tests beside those of the start: fine, if the checks of the start pass without them, too.
    pub new_tests: BTreeSet<String>,
}

impl HarnessFindings {
    pub(crate) fn lower(&mut self, path: &str, key: Option<&str>, what: impl Into<String>) {
        let (path, key) = (path.to_owned(), key.map(str::to_owned));
        self.changes.insert(HarnessChange { path, key, what: what.into() });
    }

    /// Who decided what a pass means.
    pub(crate) fn level(&self) -> ProofLevel {
        match self.changes.is_empty() {
            true => ProofLevel::Independent,
            false => ProofLevel::OwnTests,
        }
    }
}

impl HarnessFindings {
    /// The changed files that must be as they were for the checks of the start: what lowers the level, and new tests.
    pub(crate) fn put_back(&self, changes: &[FileChange]) -> BTreeSet<String> {
        let lowers: BTreeSet<&str> = self.changes.iter().map(|c| c.path.as_str()).collect();
        let changed = changes.iter().map(|c| &c.path);
        changed.filter(|p| lowers.contains(p.as_str()) || self.new_tests.contains(*p)).cloned().collect()
    }

    /// The checks of the start pass on the work, too: what was changed of them decides nothing.
    pub(crate) fn is_confirmed(&mut self) {
        let told = std::mem::take(&mut self.changes).into_iter();
        let says = |mut change: HarnessChange| {
            change.what = format!("{}; the checks pass as they were at the start, too", change.what);
            change
        };
        self.changes = told.map(says).collect();
    }

    /// The checks of the start do not pass on the work: the run's own tests decide.
    pub(crate) fn is_refuted(&mut self) {
        for path in std::mem::take(&mut self.new_tests) {
            self.lower(
                &path,
                None,
                "a test of the run's own; without it the checks of the start do not pass",
            );
        }
    }
}
