//! What comes of comparing what decides with the start: why it is not done, and what lowers the level.

use crate::proof::put_back::PutBack;
use ralph_loop_domain::proof::{HarnessChange, ProofLevel};
use ralph_loop_evidence::harness;
use ralph_loop_protocol::event::FileChange;
use std::collections::{BTreeMap, BTreeSet};

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
    /// New tests where the start had none: nothing of the start could fail.
    pub first_tests: BTreeSet<String>,
    /// Files of which only the examples in their documentation are tests.
    pub examples: BTreeSet<String>,
    /// Sources that count as a whole, though of their kind only some parts do.
    pub whole: BTreeSet<String>,
    /// Sources that moved with the tests in them: from where, by where they are.
    pub moved: BTreeMap<String, String>,
    /// Files of which each definition that the checks use was compared: other lines of them decide nothing.
    pub judged: BTreeSet<String>,
}

impl HarnessFindings {
    pub(crate) fn lower(&mut self, path: &str, key: Option<&str>, what: impl Into<String>) {
        self.insert(path, key, what.into(), false);
    }

    /// The same of a test, or of what sets tests up.
    pub(crate) fn lower_test(&mut self, path: &str, key: Option<&str>, what: impl Into<String>) {
        self.insert(path, key, what.into(), true);
    }

    fn insert(&mut self, path: &str, key: Option<&str>, what: String, tests: bool) {
        let (path, key) = (path.to_owned(), key.map(str::to_owned));
        self.changes.insert(HarnessChange { path, key, what, tests });
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
    pub(crate) fn put_back(&self, changes: &[FileChange]) -> PutBack {
        let lowers: BTreeSet<&str> = self.changes.iter().map(|c| c.path.as_str()).collect();
        let changed = changes.iter().map(|c| &c.path);
        let mut paths: BTreeSet<String> =
            changed.filter(|p| lowers.contains(p.as_str()) || self.new_tests.contains(*p)).cloned().collect();
        // A new package whose tests are taken out does not run them either.
        let packages = changes.iter().filter(|c| c.status == 'A' && c.path.ends_with("/package.json"));
        let packages: Vec<String> = packages
            .map(|c| c.path.clone())
            .filter(|package| {
                let folder = package.trim_end_matches("package.json");
                paths.iter().any(|path| path.starts_with(folder))
            })
            .collect();
        paths.extend(packages);
        let examples = self.examples.intersection(&paths).cloned().collect();
        let moved = self.moved.iter().filter(|(path, _)| paths.contains(*path));
        let whole = self.whole.intersection(&paths).cloned().collect();
        PutBack {
            examples,
            whole,
            moved: moved.map(|(to, from)| (to.clone(), from.clone())).collect(),
            paths,
        }
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
        for path in self.new_tests.clone() {
            self.lower_test(
                &path,
                None,
                "a test of the run's own; without it the checks of the start do not pass",
            );
        }
    }

    /// Why it is not done where no test may change.
    pub(crate) fn frozen(&self) -> Vec<String> {
        let changed = self.changes.iter().filter(|change| change.tests);
        let changed = changed.map(|c| format!("{}, but tests are frozen: {}", c.line(), c.cure()));
        let new = self.new_tests.iter().chain(&self.first_tests);
        let new =
            new.map(|path| format!("{path}: a test of the run's own, but tests are frozen: take it out"));
        changed.chain(new).collect()
    }

    /// What a person must accept, where the checks of the start do not pass on the work: changes of tests that the task does
    /// not ask for. A check that had no test at the start could not pass without new ones, so those need nobody's word.
    pub(crate) fn to_accept(&self, task: &str, had_tests: bool) -> Vec<HarnessChange> {
        let asked = |change: &&HarnessChange| !harness::asks_to_change(task, &change.path);
        let new = |change: &&HarnessChange| self.new_tests.contains(&change.path);
        let of_start: Vec<HarnessChange> =
            self.changes.iter().filter(|c| c.tests && !new(c)).filter(asked).cloned().collect();
        let new: Vec<HarnessChange> =
            self.changes.iter().filter(|c| c.tests).filter(new).filter(asked).cloned().collect();
        match of_start.is_empty() && !had_tests {
            true => Vec::new(),
            false => [of_start, new].concat(),
        }
    }
}
