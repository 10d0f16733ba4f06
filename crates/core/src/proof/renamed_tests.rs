//! Tests that moved with what the task asks to rename: the old file is gone, and a new one says the same with the new name.

use crate::proof::harness_facts::HarnessFacts;
use ralph_loop_evidence::harness;
use ralph_loop_evidence::weakened::is_test_source;
use std::collections::BTreeSet;

/// Tests that are compared with each other, at most.
const TESTS_MAX: usize = 40;

/// The paths of such tests, the old and the new ones.
pub(super) fn renamed_tests(facts: &HarnessFacts<'_>) -> BTreeSet<String> {
    let of = |status: char| {
        let tests = facts.changes.iter().filter(move |c| c.status == status && is_test_source(&c.path));
        tests.map(|c| c.path.as_str()).take(TESTS_MAX)
    };
    let mut found = BTreeSet::new();
    for old in of('D') {
        let Some(before) = (facts.start)(old) else { continue };
        let says_the_same = |path: &&str| {
            let now = (facts.now)(path).unwrap_or_default();
            !found.contains(*path) && harness::is_renamed(facts.task, &before, &now)
        };
        if let Some(new) = of('A').find(says_the_same) {
            found.extend([old.to_owned(), new.to_owned()]);
        }
    }
    found
}
