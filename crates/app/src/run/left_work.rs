//! What earlier runs left in the user's folder that is neither proven nor approved: a new run finds it there like the user's own
//! changes, and must not take it for them.

use crate::error::AppError;
use crate::request::PlaceRequest;
use crate::{find, locks};
use jiff::Timestamp;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::relocate;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_domain::protect::covers;
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::vars::Vars;
use ralph_loop_git::left_record::{self, GoneDriver, LeftRecord};
use ralph_loop_git::{Repo, left_work};
use ralph_loop_journal::layout::StateHome;
use ralph_loop_journal::registry::{self, Registration};
use ralph_loop_journal::snapshot;
use ralph_loop_protocol::event::Verdict;
use ralph_loop_protocol::id::{CommitId, RunId};
use ralph_loop_protocol::level::ProofLevel;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::spec::{LeftWork, RunSpec, Task, WorkspaceKind};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Runs that are looked at, the newest first.
const LOOKED_AT: usize = 40;

/// What earlier runs left, newest first.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// Their work.
    pub(super) work: Vec<LeftWork>,
    /// Those that ended with changes of what they must not touch.
    meddled: Vec<RunId>,
    /// Those that were killed in the user's folder, each with its task: nobody knows who made the last changes there.
    killed: BTreeMap<RunId, Task>,
}

/// Whether something may be written down while earlier runs are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looking {
    /// For a run that begins: what a killed one has left is recorded.
    ToBegin,
    /// For nothing but a look.
    Only,
}

impl Left {
    /// What earlier runs of this repo left, here or in a worktree of it. Runs of the registry only: what a folder brings along says
    /// nothing here.
    pub(super) fn of(
        vars: &Vars,
        home: &StateHome,
        origin: &Repo,
        place: &PlaceRequest,
        looking: Looking,
    ) -> Self {
        // Another repo has nothing of it.
        if !matches!(place, PlaceRequest::InPlace | PlaceRequest::Worktree) {
            return Self::default();
        }
        let mut left = Self::default();
        let refs = refs_of_runs(origin);
        for entry in runs_of_repo(vars, home, origin).iter().take(LOOKED_AT) {
            let Ok(state) = snapshot::load(&entry.run_dir()) else { continue };
            if is_accepted(&state) {
                break;
            }
            let Some(baseline) = state.baseline.as_ref().filter(|_| !is_proven(&state)) else { continue };
            // A run that was killed while it handed its files over has recorded them in the repo, and not yet in its journal.
            let run = &entry.run_id;
            let [work, handed] = ["work", "handed"].map(|name| refs.get(&format!("refs/ralph/{run}/{name}")));
            let known = state.work.commit.as_ref();
            let in_folder = left_in_folder(home, origin, &state, looking);
            if in_folder.as_ref().is_some_and(|left| left.cut) {
                left.killed.insert(run.clone(), state.spec.task.clone());
            }
            let in_folder = in_folder.map(|left| left.commit);
            let ends: BTreeSet<&CommitId> =
                [work, handed, known, in_folder.as_ref()].into_iter().flatten().collect();
            for end in ends {
                if is_merged(origin, &state, end) {
                    continue;
                }
                let (head, start) = (baseline.head.clone(), baseline.start.clone());
                let work = LeftWork { run: run.clone(), head, start, end: end.clone() };
                if has_all(origin, &work) {
                    left.work.push(work);
                }
            }
            // What nobody has judged yet may be anything.
            let unjudged = work.is_some() && work != known;
            let mut judged = state.iterations.history.iter();
            if unjudged || judged.any(|one| one.verdict == Verdict::ProtectedChanged) {
                left.meddled.push(run.clone());
            }
        }
        left
    }

    /// Refuses a run whose task, checks or other protected files are as an unproven run left them.
    pub(super) fn refuse_protected(
        &self,
        origin: &Repo,
        spec: &RunSpec,
        in_place: bool,
    ) -> Result<(), AppError> {
        if self.work.is_empty() {
            return Ok(());
        }
        // The run has no folder of its own yet.
        let patterns = relocate::protected(&RunSpec { workspace: origin.top.clone(), ..spec.clone() });
        let asked = |path: &str| covers(&patterns, path);
        let found = left_work::left_in_checkout(origin, &self.work, !in_place, &asked)?;
        // Marks in a task are the work of sessions, unless that run changed more of it.
        let marks = |path: &str, run: &RunId| {
            spec.task.raw.is_some()
                && path == spec.task.source
                && !self.meddled.contains(run)
                && self.killed.get(run).is_none_or(|task| ralph_loop_core::is_same_task(task, &spec.task))
        };
        let Some((path, run)) = found.into_iter().find(|(path, run)| !marks(path, run)) else {
            return Ok(());
        };
        let before = self.work.iter().find(|work| work.run == run).map_or("HEAD", |work| work.head.short());
        let (cause, right) = match self.killed.contains_key(&run) {
            true => (
                "that run was killed before it recorded which of the last changes are yours",
                "yours or right",
            ),
            false => ("that run is neither proven nor approved", "right"),
        };
        Err(AppError::needs_person(format!("`{path}`, which decides the result, is as run {run} left it"))
            .cause(cause)
            .hint(format!(
                "look at it (`git diff {before} -- {path}`); if it is {right}, commit it as your own (a commit of the run: `git \
                 commit --amend --reset-author`), or take it back: `git checkout {before} -- {path}`"
            )))
    }
}

/// What the agent of a run has left in this folder, where it worked in it without a copy. Of one that was killed it is recorded
/// now: whatever differs from what was there before may be its doing.
fn left_in_folder(home: &StateHome, origin: &Repo, state: &RunState, looking: Looking) -> Option<LeftRecord> {
    let run = &state.spec.run_id;
    let known = left_record::recorded(origin, run).ok().flatten();
    let is_due = is_in_folder(&state.spec)
        && state.spec.origin == origin.top
        && known.as_ref().map_or(state.result.finished.is_none(), |known| known.epoch < state.epoch.0);
    if !is_due {
        return known;
    }
    let free = locks::free_since(home, &origin.top)?;
    record(origin, state, (free.max(state.now), true), looking).or(known)
}

/// Whether the agent of a run works on the user's own files.
fn is_in_folder(spec: &RunSpec) -> bool {
    spec.place == WorkspaceKind::InPlace && !spec.hands_back()
}

/// Records what is in the folder of a run that worked on the user's own files, now that its driver has come to an end: what
/// is changed there from now on is the user's.
pub(crate) fn record_end(vars: &Vars, state: &RunState) {
    if !is_in_folder(&state.spec) || is_proven(state) {
        return;
    }
    let now = SystemClock::default().now();
    // Where this fails, the next run records it.
    if let Some(origin) = repo_of(vars, state) {
        record(&origin, state, (now, false), Looking::ToBegin);
    }
}

/// The repo in the folder of a run. An agent can have set another folder as the place of its files (`core.worktree`).
fn repo_of(vars: &Vars, state: &RunState) -> Option<Repo> {
    Repo::discover(vars, &state.spec.origin).ok().filter(|repo| repo.top == state.spec.origin)
}

/// Records what a run that was killed in the user's folder has left there, before it is ended without being driven.
pub(crate) fn record_killed(vars: &Vars, home: &StateHome, entry: &Registration) {
    if let Ok(state) = snapshot::load(&entry.run_dir())
        && let Some(origin) = repo_of(vars, &state)
    {
        left_in_folder(home, &origin, &state, Looking::ToBegin);
    }
}

fn record(
    origin: &Repo,
    state: &RunState,
    (until, cut): (Timestamp, bool),
    looking: Looking,
) -> Option<LeftRecord> {
    let baseline = state.baseline.as_ref()?;
    let gone = GoneDriver {
        run: &state.spec.run_id,
        epoch: state.epoch.0,
        cut,
        head: &baseline.head,
        start: &baseline.start,
        lived: (state.started_at.as_second(), until.as_second()),
    };
    left_record::record(origin, &gone, looking == Looking::ToBegin).ok()
}

/// The runs of a repo, from this folder, the folder that it was, or another worktree of it; newest first.
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

/// The folders in which a repo is checked out.
fn worktrees(origin: &Repo) -> Vec<PathBuf> {
    if !origin.common_dir.join("worktrees").is_dir() {
        return Vec::new();
    }
    let listed = origin.git().call(["worktree", "list", "--porcelain", "-z"]).run();
    let listed = listed.map(|output| output.text()).unwrap_or_default();
    listed.split('\0').filter_map(|line| line.strip_prefix("worktree ")).map(PathBuf::from).collect()
}

/// What the refs of runs name, by their names.
fn refs_of_runs(origin: &Repo) -> BTreeMap<String, CommitId> {
    let listed =
        origin.git().call(["for-each-ref", "--format=%(refname) %(objectname)", "refs/ralph/"]).run();
    let listed = listed.map(|output| output.text()).unwrap_or_default();
    let pair = |line: &str| line.split_once(' ').map(|(name, id)| (name.to_owned(), CommitId::new(id)));
    listed.lines().filter_map(pair).collect()
}

/// Whether a person took what was there then.
fn is_accepted(state: &RunState) -> bool {
    state.people.tests_approved_by.is_some()
        || state.result.proof.as_ref().is_some_and(|proof| proof.approved_by.is_some())
}

/// Whether the run's own changes were proven by more than tests that it could change.
fn is_proven(state: &RunState) -> bool {
    state.result.finished.as_ref().is_some_and(|end| end.reason == EndReason::Completed)
        && state.result.proof.as_ref().is_some_and(|proof| proof.level != Some(ProofLevel::OwnTests))
}

/// Whether somebody has merged a commit of a run into the branch that is checked out here, which is not the run's own.
fn is_merged(origin: &Repo, state: &RunState, end: &CommitId) -> bool {
    state.spec.branch != origin.branch && left_work::is_merged(origin, end).unwrap_or(false)
}

/// Whether the repo still has the commits; `ralph clean` and `git gc` take them away.
fn has_all(origin: &Repo, work: &LeftWork) -> bool {
    let names =
        [&work.head, &work.start, &work.end].map(|commit| format!("{}^{{commit}}\n", commit.as_str()));
    let found = origin.git().call(["cat-file", "--batch-check=%(objecttype)"]).stdin(names.concat()).run();
    found.is_ok_and(|found| found.text().lines().filter(|line| *line == "commit").count() == names.len())
}
