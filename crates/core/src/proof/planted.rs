//! What came while the checks ran, and decides what they say: product code that one command runs could lay it where the next one
//! finds it before the runner, a library or a test. What the checks of the start laid there, too, is nobody's trick.

use crate::proof::findings::HarnessFindings;
use crate::proof::harness_facts::HarnessFacts;
use crate::proof::places::Places;
use ralph_loop_domain::ports::TraceKind;
use ralph_loop_evidence::harness;
use ralph_loop_evidence::weakened::is_test_source;
use std::collections::BTreeSet;

/// Files that are told.
const TOLD_MAX: usize = 20;
/// Packages that are made anew from the product's own sources, by their nature.
const GENERATED: &[&str] = &["node_modules/@prisma/client"];

/// Lowers the level for what came in the place of something that decides.
pub(super) fn judge(facts: &HarnessFacts<'_>, places: &Places<'_>, found: &mut HarnessFindings) {
    let [before, now] = facts.traces;
    let at_start: BTreeSet<(TraceKind, &str)> =
        before.steps.iter().map(|step| (step.kind, step.path.as_str())).collect();
    let is_committed = |path: &str| facts.changes.iter().any(|change| change.path == path);
    let mut told = BTreeSet::new();
    for step in &now.steps {
        let path = step.path.as_str();
        if at_start.contains(&(step.kind, path)) || is_committed(path) {
            continue;
        }
        let what = match step.kind {
            TraceKind::Ran | TraceKind::Read => continue,
            TraceKind::Wrote if places.takes_runners_place(path) || places.is_open_check(path) => {
                "it came while the checks ran, where what runs them looks first"
            }
            TraceKind::Wrote => continue,
            TraceKind::Planted => match planted(places, path) {
                Some(what) => what,
                None => continue,
            },
        };
        if told.len() < TOLD_MAX && told.insert(path.to_owned()) {
            found.lower(path, None, what);
        }
    }
}

/// What is told of something that code of the repo wrote among installed things.
fn planted(places: &Places<'_>, path: &str) -> Option<&'static str> {
    if path.starts_with("~/") {
        return Some("code of the repo wrote it into the home of the checks while they ran");
    }
    if let Some(source) = harness::compiled_from(path) {
        let decides = is_test_source(&source) || places.takes_runners_place(&source);
        return decides.then_some("code of the repo wrote it in the place of a compiled test or runner");
    }
    let generated = GENERATED.iter().any(|package| path.ends_with(package));
    (!generated).then_some("code of the repo changed what is installed while the checks ran")
}
