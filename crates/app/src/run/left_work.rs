//! What earlier runs left in the user's folder that is neither proven nor approved: a new run finds it there like the user's own
//! changes, and must not take it for them.

use crate::request::PlaceRequest;
use ralph_domain::outcome::EndReason;
use ralph_domain::spec::{LeftWork, WorkspaceKind};
use ralph_git::Repo;
use ralph_journal::layout::StateHome;
use ralph_journal::registry::{self, Registration};
use ralph_journal::snapshot;

/// Runs that are looked at, the newest first.
const LOOKED_AT: usize = 16;

/// What earlier runs of this folder left, newest first. A run of the registry only: what a folder brings along says nothing here.
pub(super) fn of(home: &StateHome, origin: &Repo, place: &PlaceRequest) -> Vec<LeftWork> {
    // Another repo has nothing of it.
    if !matches!(place, PlaceRequest::InPlace | PlaceRequest::Worktree) {
        return Vec::new();
    }
    let mut runs: Vec<Registration> =
        registry::all(home).into_iter().filter(|entry| entry.origin == origin.top).collect();
    if runs.is_empty() {
        return Vec::new();
    }
    runs.sort_by(|a, b| b.run_id.cmp(&a.run_id));
    let head = origin.git().call(["rev-parse", "-q", "--verify", "HEAD"]).run().map(|head| head.text());
    let head = head.unwrap_or_default();
    let mut left = Vec::new();
    for entry in runs.iter().take(LOOKED_AT) {
        let Ok(state) = snapshot::load(&entry.run_dir()) else { continue };
        let here = state.spec.place == WorkspaceKind::InPlace;
        if state.result.finished.as_ref().is_some_and(|end| end.reason == EndReason::Completed) {
            // What was left before it was held against its start then.
            if here {
                break;
            }
            continue;
        }
        let (Some(baseline), Some(end)) = (&state.baseline, &state.work.commit) else { continue };
        // The work of a run elsewhere is here only where its branch is checked out.
        if state.people.tests_approved_by.is_some() || !here && end.as_str() != head {
            continue;
        }
        let (head, start) = (baseline.head.clone(), baseline.start.clone());
        left.push(LeftWork { run: entry.run_id.clone(), head, start, end: end.clone() });
    }
    left.retain(|work| has_all(origin, work));
    left
}

/// Whether the repo still has the commits; `ralph clean` and `git gc` take them away.
fn has_all(origin: &Repo, work: &LeftWork) -> bool {
    let names =
        [&work.head, &work.start, &work.end].map(|commit| format!("{}^{{commit}}\n", commit.as_str()));
    let found = origin.git().call(["cat-file", "--batch-check=%(objecttype)"]).stdin(names.concat()).run();
    found.is_ok_and(|found| found.text().lines().filter(|line| *line == "commit").count() == names.len())
}
