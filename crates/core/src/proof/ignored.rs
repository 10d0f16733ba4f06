//! Files that a run tells git to ignore though they are in the repo: linters and other tools that go by `.gitignore` leave them out.

use crate::proof::findings::HarnessFindings;
use crate::proof::harness_facts::HarnessFacts;
use ralph_loop_domain::protect::covers;
use std::collections::BTreeSet;

/// Patterns of one file that are looked at, at most.
const PATTERNS_MAX: usize = 200;

/// Lowers the level where a `.gitignore` says now that something is to be ignored which the commit holds.
pub(super) fn judge(facts: &HarnessFacts<'_>, found: &mut HarnessFindings) {
    for change in facts.changes.iter().filter(|change| change.status != 'D') {
        let Some(folder) =
            change.path.strip_suffix(".gitignore").filter(|f| f.is_empty() || f.ends_with('/'))
        else {
            continue;
        };
        let lines = |text: Option<String>| -> BTreeSet<String> {
            let text = text.unwrap_or_default();
            let lines =
                text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
            lines.map(str::to_owned).collect()
        };
        let (old, new) = (lines((facts.start)(&change.path)), lines((facts.now)(&change.path)));
        for line in new.difference(&old).take(PATTERNS_MAX) {
            if let Some(hidden) = hidden_by(facts, folder, line) {
                found.tests_touched = true;
                let what = format!("it hides {hidden} from tools that go by it, added by the run");
                found.lower_test(&change.path, Some(line), what);
            }
        }
    }
}

/// A file of the commit that a line of the `.gitignore` in `folder` is about.
fn hidden_by(facts: &HarnessFacts<'_>, folder: &str, line: &str) -> Option<String> {
    let bare = line.trim_start_matches('/').trim_end_matches('/');
    let anywhere = !line.trim_end_matches('/').contains('/');
    let mut patterns = vec![format!("{folder}{bare}")];
    patterns.extend(anywhere.then(|| format!("{folder}**/{bare}")));
    patterns.extend(anywhere.then(|| format!("{folder}**/{bare}/**")));
    patterns.push(format!("{folder}{bare}/**"));
    let changed = facts.changes.iter().filter(|c| c.status != 'D').map(|c| &c.path);
    let mut all = facts.sources.iter().chain(&facts.tests).chain(changed);
    all.find(|path| covers(&patterns, path)).cloned()
}
