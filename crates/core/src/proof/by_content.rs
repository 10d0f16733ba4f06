//! Sources that decide by what stands in them, whatever they are called: modules for tests, and product that has a say in how its
//! own tests are run and end.

use crate::proof::harness_facts::{HarnessFacts, check_scripts, compared_scripts};
use crate::proof::places::is_test_module;
use ralph_loop_evidence::harness::{self, Role};
use ralph_loop_evidence::weakened::{is_source, is_test_source};
use ralph_loop_protocol::event::FileChange;

/// Tests of shells that are read.
const TESTS_MAX: usize = 500;

/// What a source is by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    /// A module for tests alone.
    Tests,
    /// Product that hooks into what runs its tests, or rewrites it.
    Steers,
    /// Product that ends its tests, or skips them: fewer of them are no pass for that.
    Ends,
    /// Product that asks whether it is tested. That has honest reasons, too, so nobody is asked about it.
    Asks,
}

impl Content {
    pub(super) fn role(self) -> Role {
        match self {
            Self::Tests => Role::Test,
            Self::Steers | Self::Ends | Self::Asks => Role::Configuration,
        }
    }
}

/// What a changed source decides by its content.
pub(super) fn by_content(facts: &HarnessFacts<'_>, name: &str, change: &FileChange) -> Option<Content> {
    if name.ends_with(".rs") && is_test_module(facts.start, name) {
        return Some(Content::Tests);
    }
    if !is_source(name) || is_test_source(name) || change.status == 'D' {
        return None;
    }
    let new = (facts.now)(&change.path)?;
    let old = || if change.status == 'A' { None } else { (facts.start)(&change.path) };
    // Most have nothing of the kind now, and what they had before is of no interest.
    let hooks = || name.ends_with(".py") && harness::hooks_into_tests(old().as_deref(), &new);
    let rewires =
        || harness::rewires_tests(name, None, &new) && harness::rewires_tests(name, old().as_deref(), &new);
    let ends = || {
        harness::ends_tests(name, None, &new, true)
            && !compared_scripts(facts).contains(&change.path)
            && harness::ends_tests(name, old().as_deref(), &new, is_taken_in(facts, &change.path))
    };
    if hooks() || rewires() {
        return Some(Content::Steers);
    }
    if ends() {
        return Some(Content::Ends);
    }
    let asks =
        harness::asks_for_tests(name, None, &new) && harness::asks_for_tests(name, old().as_deref(), &new);
    asks.then_some(Content::Asks)
}

/// Whether a script of the checks, or a test, reads the file as lines of its own: `. src/lib.sh`, `load ../src/lib`.
fn is_taken_in(facts: &HarnessFacts<'_>, path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let named = |word: &str| {
        let word = word.trim_matches(['"', '\'', ';', ')', '}']).rsplit('/').next().unwrap_or_default();
        word == file || word == stem
    };
    let takes = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.windows(2).any(|pair| matches!(pair[0], "." | "source" | "load" | "Include") && named(pair[1]))
    };
    let of_shells = |test: &&String| [".sh", ".bash", ".bats"].iter().any(|end| test.ends_with(end));
    let tests = facts.tests.iter().filter(of_shells).take(TESTS_MAX).cloned();
    let scripts = check_scripts(facts).into_iter().chain(tests);
    scripts.filter_map(|script| (facts.start)(&script)).any(|text| text.lines().any(takes))
}
