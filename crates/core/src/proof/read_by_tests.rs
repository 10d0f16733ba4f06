//! Files that stand elsewhere than tests and that only tests of the start need: what they compare with, and modules of theirs.
//! Whoever changes those changes what the tests say.

use crate::proof::findings::HarnessFindings;
use crate::proof::harness_facts::HarnessFacts;
use ralph_domain::protect::covers;
use ralph_evidence::harness::{self, Reach};
use ralph_evidence::weakened::{is_source, is_test_path};
use std::collections::BTreeSet;

/// Tests, and other sources, that are looked through, and bytes of each kind.
const FILES_MAX: usize = 2000;
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Lowers the level for what only tests need. New files are the work, or belong to new tests: a test of the start cannot have
/// stood on them.
pub(super) fn judge(facts: &HarnessFacts<'_>, reach: &[Reach], found: &mut HarnessFindings) {
    let told: BTreeSet<String> = found.changes.iter().map(|change| change.path.clone()).collect();
    let open = |path: &str| {
        harness::serves_tests(path)
            && !is_test_path(path)
            && !told.contains(path)
            && !covers(facts.protected, path)
            && !harness::is_keyed(path)
    };
    let changed: Vec<&str> =
        facts.changes.iter().filter(|c| c.status != 'A').map(|c| c.path.as_str()).collect();
    let wanted: Vec<&str> =
        changed.iter().copied().filter(|path| open(path) && !is_tested(facts, path)).collect();
    if wanted.is_empty() {
        return;
    }
    let texts = Texts::read(facts, reach, &changed);
    for path in wanted {
        let by_tests = texts.tests.iter().any(|(own, text)| own != path && harness::is_named_in(text, path));
        let by_others =
            || texts.others.iter().any(|(own, text)| own != path && harness::is_used_in(text, path));
        if !by_tests || by_others() {
            continue;
        }
        match is_source(path) {
            // A module may still be the work.
            true if harness::names(facts.task, path) => {}
            true => found.lower(path, None, "only tests use it, and the run changed it"),
            false => {
                found.tests_touched = true;
                found.lower_test(path, None, "a test reads it, and the run changed it");
            }
        }
    }
}

/// Whether a source has a test of its own name: then it is what is tested.
fn is_tested(facts: &HarnessFacts<'_>, path: &str) -> bool {
    let stem = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.split('.').next().unwrap_or(name).to_ascii_lowercase()
    };
    let own = stem(path);
    let names =
        [format!("test_{own}"), format!("{own}_test"), format!("{own}_spec"), format!("{own}test"), own];
    is_source(path) && facts.tests.iter().any(|test| names.contains(&stem(test)))
}

/// The sources of the start, as far as they are read.
struct Texts {
    /// Tests, and what serves them.
    tests: Vec<(String, String)>,
    others: Vec<(String, String)>,
}

impl Texts {
    fn read(facts: &HarnessFacts<'_>, reach: &[Reach], changed: &[&str]) -> Self {
        let changed: BTreeSet<&str> = changed.iter().copied().collect();
        let named =
            |path: &String| reach.iter().flat_map(|reach| &reach.tests).any(|place| place.covers(path));
        let serves = |path: &String| named(path) || harness::serves_tests(path);
        let (serving, others): (Vec<&String>, Vec<&String>) =
            facts.sources.iter().partition(|path| serves(path));
        // What the run left alone is as it was, and read from the checkout.
        let read = |path: &str| if changed.contains(path) { (facts.start)(path) } else { (facts.now)(path) };
        let all = |paths: &mut dyn Iterator<Item = &String>| {
            let (mut texts, mut bytes) = (Vec::new(), 0);
            for path in paths.take(FILES_MAX) {
                let Some(text) = read(path) else { continue };
                bytes += text.len();
                if bytes > BYTES_MAX {
                    break;
                }
                texts.push((path.clone(), text));
            }
            texts
        };
        let tests = all(&mut facts.tests.iter().chain(serving));
        Self { tests, others: all(&mut others.into_iter()) }
    }
}
