//! Files that stand elsewhere than tests and that only tests of the start need: what they compare with, and modules of theirs.
//! Whoever changes those changes what the tests say.

use crate::proof::findings::HarnessFindings;
use crate::proof::harness_facts::HarnessFacts;
use crate::proof::places::defines_tests;
use ralph_loop_domain::protect::covers;
use ralph_loop_evidence::harness::{self, Reach};
use ralph_loop_evidence::weakened::{is_source, is_test_path};
use std::collections::BTreeSet;

/// Tests, and other sources, that are looked through, and bytes of each kind.
const FILES_MAX: usize = 2000;
const BYTES_MAX: usize = 16 * 1024 * 1024;

/// Lowers the level for what only tests need. New files are the work, or belong to new tests: a test of the start cannot have
/// stood on them.
pub(super) fn judge(facts: &HarnessFacts<'_>, reach: &[Reach], found: &mut HarnessFindings) {
    let told: BTreeSet<String> = found.changes.iter().map(|change| change.path.clone()).collect();
    let open = |path: &str| {
        (harness::serves_tests(path) || is_plain_data(facts, path))
            && !is_test_path(path)
            && !told.contains(path)
            && !covers(facts.protected, path)
            && !harness::is_keyed(path)
    };
    let changed: Vec<&str> =
        facts.changes.iter().filter(|c| c.status != 'A').map(|c| c.path.as_str()).collect();
    let wanted: Vec<&str> =
        changed.iter().copied().filter(|path| open(path) && !is_tested(facts, path)).collect();
    let packages: Vec<&str> = changed.iter().copied().filter(|path| is_package(path)).collect();
    if wanted.is_empty() && packages.is_empty() {
        return;
    }
    let texts = Texts::read(facts, reach, &changed);
    packages.into_iter().for_each(|path| redirected(facts, &texts, path, found));
    for path in wanted {
        if is_source(path) && harness::names(facts.task, path) {
            // A module may still be the work.
            continue;
        }
        let serves = match harness::serves_tests(path) {
            true => texts.only_for_tests(path),
            false => texts.is_expectation(path),
        };
        match serves {
            false => {}
            true if is_source(path) => found.lower(path, None, "only tests use it, and the run changed it"),
            true => {
                found.tests_touched = true;
                found.lower_test(path, None, "a test reads it, and the run changed it");
            }
        }
    }
}

fn is_package(path: &str) -> bool {
    path == "package.json" || path.ends_with("/package.json")
}

/// Whether a path is data that may be an expectation, though its name does not say so.
fn is_plain_data(facts: &HarnessFacts<'_>, path: &str) -> bool {
    harness::is_data(path) && !is_source(path) && !harness::is_free(path) && !harness::names(facts.task, path)
}

/// Names inside a package that only tests use, and that stand for something else now.
fn redirected(facts: &HarnessFacts<'_>, texts: &Texts, path: &str, found: &mut HarnessFindings) {
    let (Some(old), Some(new)) = ((facts.start)(path), (facts.now)(path)) else { return };
    for name in harness::redirected_imports(&old, &new) {
        let quoted = |text: &str| ['"', '\'', '`'].iter().any(|q| text.contains(&format!("{q}{name}{q}")));
        let by_tests = texts.tests.iter().any(|(_, text)| quoted(text));
        if by_tests && !texts.others.iter().any(|(_, text)| quoted(text)) {
            found.tests_touched = true;
            let key = format!("imports/{name}");
            found.lower_test(path, Some(&key), "only tests use it, and the run changed it");
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
    /// Whether what serves tests by its name is used by tests, and by nothing else. A module that is all that they use is tested.
    fn only_for_tests(&self, path: &str) -> bool {
        let by: Vec<_> = self.tests_with(&|own, text| own != path && harness::is_named_in(text, path));
        let tests_it = is_source(path) && by.iter().all(|(own, text)| !self.exercises(own, text, path));
        !by.is_empty()
            && !tests_it
            && !self.others.iter().any(|(own, text)| own != path && harness::is_used_in(text, path))
    }

    /// Whether data is read by a test that exercises something else, and the product does not read it.
    fn is_expectation(&self, path: &str) -> bool {
        let by = self.tests_with(&|_, text| harness::reads_data(text, path));
        by.iter().any(|(own, text)| self.imports_or_starts(own, text))
            && !self.others.iter().any(|(_, text)| harness::reads_data(text, path))
    }

    fn tests_with(&self, says: &dyn Fn(&str, &str) -> bool) -> Vec<&(String, String)> {
        self.tests.iter().filter(|(own, text)| says(own, text)).collect()
    }

    /// Whether a test uses something of the product beside `path`.
    fn exercises(&self, own: &str, text: &str, path: &str) -> bool {
        let imports = |(other, _): &(String, String)| other != path && harness::is_used_in(text, other);
        self.others.iter().any(imports) || harness::is_of_package_or_starts(own, text)
    }

    /// Whether a test imports something of the product, or needs no import for it. What only reads a file tests that file.
    fn imports_or_starts(&self, own: &str, text: &str) -> bool {
        let imports = |(other, _): &(String, String)| harness::is_used_in(text, other);
        let read = text.replace("open(", "");
        self.others.iter().any(imports) || harness::is_of_package_or_starts(own, &read)
    }

    fn read(facts: &HarnessFacts<'_>, reach: &[Reach], changed: &[&str]) -> Self {
        let changed: BTreeSet<&str> = changed.iter().copied().collect();
        // What the run left alone is as it was, and read from the checkout.
        let read = |path: &str| if changed.contains(path) { (facts.start)(path) } else { (facts.now)(path) };
        // A module that only a pattern finds (`testimonials.py` by `test*.py`) is a test where it defines some.
        let is_test = |path: &String| {
            !path.ends_with(".py")
                || is_test_path(path)
                || read(path).is_some_and(|text| defines_tests(&text))
        };
        let named = |path: &String| {
            let mut places = reach.iter().flat_map(|reach| &reach.tests).filter(|place| place.covers(path));
            places.any(|place| place.pattern.is_none() || is_test(path))
        };
        let serves = |path: &String| named(path) || harness::serves_tests(path);
        let (serving, others): (Vec<&String>, Vec<&String>) =
            facts.sources.iter().partition(|path| serves(path));
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
