//! Settings of tools that no list knows and that the run changed: the checks are run without the change, and it lowers the level
//! where they do not pass then. Nobody is asked: it may as well be settings of the product.

use crate::proof::findings::HarnessFindings;
use crate::proof::harness_facts::{HarnessFacts, check_scripts};
use ralph_loop_domain::protect::covers;
use ralph_loop_evidence::harness;
use std::collections::BTreeSet;

/// Sources that are looked through for the name of a setting, at most.
const SOURCES_MAX: usize = 2000;

/// Lowers the level for settings that nothing of the product reads, and that the task does not speak of.
pub(super) fn judge(facts: &HarnessFacts<'_>, found: &mut HarnessFindings) {
    let told: BTreeSet<String> = found.changes.iter().map(|change| change.path.clone()).collect();
    let there = |path: &str| (facts.start)(path).is_some();
    let by_checks = said_by_checks(facts);
    for change in facts.changes {
        let path = change.path.as_str();
        let open = harness::is_plain_setting(path, &there)
            && !told.contains(path)
            && !found.judged.contains(path)
            && !covers(facts.protected, path)
            && !harness::names(facts.task, path)
            // What a check names itself is what it looks at, or judged with it.
            && !by_checks.iter().any(|text| harness::names(text, path));
        if !open {
            continue;
        }
        let old = if change.status == 'A' { None } else { (facts.start)(path) };
        let new = if change.status == 'D' { None } else { (facts.now)(path) };
        if harness::changes_setting(path, old.as_deref(), new.as_deref()) && !is_read_by_product(facts, path)
        {
            let how = if change.status == 'A' { "added" } else { "changed" };
            found.lower(path, None, format!("a tool of the checks may go by it, and the run {how} it"));
        }
    }
}

/// The commands of the checks, and the scripts that they run.
fn said_by_checks(facts: &HarnessFacts<'_>) -> Vec<String> {
    let commands = facts.verifiers.iter().map(|verifier| verifier.command_argv.join(" "));
    commands.chain(check_scripts(facts).iter().filter_map(|script| (facts.start)(script))).collect()
}

/// Whether a source reads the file under its name: one of the start, or, of what came with the run, one that came with it.
fn is_read_by_product(facts: &HarnessFacts<'_>, path: &str) -> bool {
    let changed = |own: &str| facts.changes.iter().find(|change| change.path == own);
    let is_new = changed(path).is_some_and(|change| change.status == 'A');
    let came = facts.changes.iter().filter(|change| is_new && change.status != 'D').map(|c| &c.path);
    let read = |own: &String| match is_new || changed(own).is_none() {
        true => (facts.now)(own),
        false => (facts.start)(own),
    };
    let all = facts.sources.iter().chain(came).filter(|own| own.as_str() != path).take(SOURCES_MAX);
    all.filter_map(read).any(|text| harness::reads_setting(&text, path))
}
