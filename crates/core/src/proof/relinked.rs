//! Links to folders by which the checks reach what they run: one that leads elsewhere runs something else, though every script is as
//! it was.

use crate::proof::findings::HarnessFindings;
use crate::proof::harness_facts::{HarnessFacts, check_scripts, reach_of};
use ralph_loop_domain::protect::covers;

/// What a check names below a path that itself changed stood behind a link, or does now.
pub(super) fn judge(facts: &HarnessFacts<'_>, found: &mut HarnessFindings) {
    let folder = facts.folder.trim_end_matches('/');
    let mut said: Vec<(String, String)> = Vec::new();
    for (verifier, (name, reach)) in facts
        .verifiers
        .iter()
        .filter(|verifier| !verifier.command_argv.is_empty())
        .zip(reach_of(facts, facts.start))
    {
        said.push((name.clone(), verifier.command_argv.join(" ")));
        let used = reach.definitions.into_values().flat_map(|places| places.into_values());
        said.extend(used.map(|text| (name.clone(), text)));
    }
    let scripts: Vec<String> =
        check_scripts(facts).iter().filter_map(|script| (facts.start)(script)).collect();
    for change in facts.changes.iter().filter(|change| change.status != 'A') {
        let path = change.path.as_str();
        if covers(facts.protected, path) {
            continue;
        }
        let own = path.strip_prefix(folder).map_or(path, |rest| rest.trim_start_matches('/'));
        let below = [format!("{path}/"), format!("{own}/")];
        let names = |text: &str| {
            let mut words = text.split(|c: char| c.is_whitespace() || "\"'`=();|&<>".contains(c));
            words.any(|word| {
                below.iter().any(|start| word.trim_start_matches("./").starts_with(start.as_str()))
            })
        };
        if let Some((name, _)) = said.iter().find(|(_, text)| names(text)) {
            found
                .failed
                .push(format!("{path}, behind which {name} runs something, was changed: bring it back"));
        } else if scripts.iter().any(|text| names(text)) {
            found.lower_test(
                path,
                None,
                "a script of the checks uses what is behind it, and the run changed it",
            );
        }
    }
}
