//! Earlier runs in the user's folder that are neither proven nor approved: what they left isn't the user's
//! word.

use crate::error::AppError;
use crate::read::find;
use crate::request::Workplace;
use ralph_loop_core::resume::relocate;
use ralph_loop_domain::repo::protect::covers;
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::vars::Vars;
use ralph_loop_git::{Repo, leftovers_in_checkout};
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::folder::snapshot;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_protocol::proof::level::ProofLevel;
use ralph_loop_task::spec::{RunSpec, Task};
use std::path::PathBuf;

/// Runs examined, newest first.
const RUNS_MAX: usize = 40;

/// Unproven runs of this repo with their tasks, newest first, back to the last approved one. Only the
/// registry counts, because anyone can write files in the folder.
pub(super) fn unproven_runs(
    vars: &Vars,
    home: &StateHome,
    origin: &Repo,
    place: &Workplace,
) -> Vec<(RunId, Task)> {
    // A clone has nothing of them.
    if !matches!(place, Workplace::InPlace | Workplace::Worktree) {
        return Vec::new();
    }
    let runs = runs_of_repo(vars, home, origin);
    let states = runs.iter().take(RUNS_MAX).filter_map(|entry| snapshot::load(&entry.run_dir()).ok());
    let unproven = states
        .take_while(|state| !is_approved(state))
        .filter(|state| !is_proven(state) && !is_merged(origin, state));
    unproven.map(|state| (state.spec.run_id.clone(), state.spec.task.clone())).collect()
}

/// Rejects a run whose task, checks or other protected files were last changed by an unproven run. Ticked
/// task boxes are allowed: sessions set them.
pub(super) fn refuse_protected(
    origin: &Repo,
    spec: &RunSpec,
    unproven: &[(RunId, Task)],
    in_place: bool,
) -> Result<(), AppError> {
    // The run has no workspace yet.
    let patterns = relocate::protected(&RunSpec { workspace: origin.top.clone(), ..spec.clone() });
    let asked = |path: &str| covers(&patterns, path);
    let found = leftovers_in_checkout(origin, &spec.unproven_runs, !in_place, &asked)?;
    let is_ticked = |path: &str, run: &RunId| {
        spec.task.raw.is_some()
            && path == spec.task.source
            && unproven.iter().any(|(id, task)| id == run && ralph_loop_core::is_same_task(task, &spec.task))
    };
    let Some(left) = found.into_iter().find(|left| !is_ticked(&left.path, &left.run)) else { return Ok(()) };
    let (path, run) = (left.path, left.run);
    Err(AppError::needs_person(format!("`{path}`, which decides the result, is as run {run} left it"))
        .cause("that run is neither proven nor approved")
        .hint(format!(
            "look at it (`git diff -- {path}`); if it is right, commit it as your own (a commit of the run: `git commit --amend` \
             with your own message), or take it back: `git checkout refs/ralph/{run}/start^ -- {path}`"
        )))
}

/// Runs of a repo from any of its worktrees, newest first.
fn runs_of_repo(vars: &Vars, home: &StateHome, origin: &Repo) -> Vec<Registration> {
    let same_repo = |folder: &PathBuf| {
        Repo::discover(vars, folder).is_ok_and(|repo| repo.common_dir == origin.common_dir)
    };
    let mut runs: Vec<Registration> = find::runs_of(home, &origin.top)
        .into_iter()
        .filter(|entry| registry::find(home, &entry.run_id).is_some())
        .collect();
    for folder in worktrees(origin) {
        let known = |entry: &Registration| runs.iter().any(|run| run.run_id == entry.run_id);
        let mut from_there = registry::of_folder(home, &folder);
        from_there.retain(|entry| entry.origin == folder && !known(entry));
        if !from_there.is_empty() && same_repo(&folder) {
            runs.extend(from_there);
        }
    }
    runs.sort_by(|a, b| b.run_id.cmp(&a.run_id));
    runs
}

/// All checkouts of a repo.
fn worktrees(origin: &Repo) -> Vec<PathBuf> {
    if !origin.common_dir.join("worktrees").is_dir() {
        return Vec::new();
    }
    let listed = origin.user_git().call(["worktree", "list", "--porcelain", "-z"]).run();
    let listed = listed.map(|output| output.text()).unwrap_or_default();
    listed.split('\0').filter_map(|line| line.strip_prefix("worktree ")).map(PathBuf::from).collect()
}

/// Whether the run's branch is merged into the branch checked out here.
fn is_merged(origin: &Repo, state: &RunState) -> bool {
    let (Some(commit), Some(_)) = (&state.work.commit, &origin.branch) else { return false };
    let has = || origin.git().call(["merge-base", "--is-ancestor", commit.as_str(), "HEAD"]).run().is_ok();
    state.spec.branch != origin.branch && has()
}

fn is_approved(state: &RunState) -> bool {
    state.people.tests_approved_by.is_some()
        || state.result.proof.as_ref().is_some_and(|proof| proof.approved_by.is_some())
}

/// Whether the changes were proven by more than tests the run could change.
fn is_proven(state: &RunState) -> bool {
    state.result.finished.as_ref().is_some_and(|end| end.reason == EndReason::Completed)
        && state.result.proof.as_ref().is_some_and(|proof| proof.level != Some(ProofLevel::OwnTests))
}
