//! Forks a run: starts from the files of one of its iterations on a new branch, optionally with other agents,
//! another model or more guardrails. The first run doesn't change.

use super::{Plan, prepare};
use crate::config::{model_access, models};
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::report::Reporter;
use crate::request::{self, Overrides, RunRequest, TaskInput, Workplace};
use crate::task::hidden;
use crate::trust::record_trust;
use ralph_loop_domain::state::RunState;
use ralph_loop_git::Repo;
use ralph_loop_git::UserChanges;
use ralph_loop_journal::folder::layout::{RalphDir, RunDir};
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::folder::{plain, snapshot};
use ralph_loop_journal::live::follow::Follower;
use ralph_loop_protocol::control::{BudgetChange, Control};
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::id::{CommitId, RunId, Seq};
use ralph_loop_task::spec::{ForkedFrom, RunSpec};
use std::path::Path;

/// Limit when a prompt is searched for session notes.
const PROMPT_MAX: u64 = 4 * 1024 * 1024;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ForkRequest {
    /// The iteration to start from; 0 is the start, `None` the last.
    pub at: Option<u32>,
    /// Only these agents, in this order; empty keeps the first run's.
    pub agents: Vec<String>,
    /// Model for every agent that takes one.
    pub model: Option<String>,
    pub guardrails: Vec<String>,
    /// Changed limits; others are kept.
    pub budgets: BudgetChange,
    /// Branch name; `None` is `ralph/RUN`.
    pub branch: Option<String>,
    /// Grants everything the repo requests.
    pub yes: bool,
}

#[derive(Debug, Clone)]
pub(super) struct ForkPoint {
    pub(super) from: ForkedFrom,
    pub(super) commit: CommitId,
    /// The session notes at that point.
    progress: Option<String>,
    /// Controls sent to the new run at its start.
    letters: Vec<Control>,
    /// Changes that were uncommitted when the first run began and are in none of its commits.
    pub(super) unfinished: Option<UserChanges>,
}

impl ForkPoint {
    /// Copies the first run's memory to the new run's folders, and sends the first controls.
    pub(super) fn begin(&self, env: &Environment, spec: &RunSpec, record: &RunDir) -> Result<(), AppError> {
        if let Some(progress) = &self.progress {
            for folder in [spec.home(), &spec.workspace] {
                RalphDir::of(folder).write("progress.md", progress.as_bytes())?;
            }
        }
        for letter in &self.letters {
            ralph_loop_journal::inbox::send(record, &env.actor(), letter.clone())?;
        }
        Ok(())
    }
}

/// Settles and validates a fork of the run `entry`.
pub(crate) fn fork(
    env: &Environment,
    entry: &Registration,
    wanted: &ForkRequest,
    report: &dyn Reporter,
) -> Result<Plan, AppError> {
    let record = entry.run_dir();
    let (state, seq, at) = state_at(&record, &entry.run_id, wanted.at)?;
    let (repo, commit) = files_of(env, entry, &state)?;
    let unfinished = unfinished_of(&repo, entry, &state, &commit)?;
    let allowed = record_trust::read(&env.state_home()?, &entry.run_id).unwrap_or_default();
    let request = request(&repo.top, &state, wanted);
    let mut plan = prepare(&env.granting(allowed), &request, report)?;
    let mut settings = state.spec.settings.clone();
    if !wanted.agents.is_empty() || wanted.model.is_some() {
        settings.agents = std::mem::take(&mut plan.settings.agents);
        settings.models = plan.settings.models.clone();
    }
    settings.budgets = settings.budgets.changed(&wanted.budgets, state.now);
    let prices = models::load(&plan.env, &repo.top)?.prices;
    plan.unpriced =
        model_access::unpriced(&settings, &prices).into_iter().map(|agent| agent.name.clone()).collect();
    // The first run's pull request isn't reused.
    settings.handover.branch = None;
    plan.settings = settings;
    plan.hidden = hidden::kept(&env.state_home()?, &entry.run_id);
    plan.config_digest = None;
    let told = format!(
        "This run continues from iteration {at} of run {}, with the files it left. {} were done by then.",
        entry.run_id,
        count(at as usize, "iteration")
    );
    let guardrails = wanted.guardrails.iter().map(|text| Control::Guardrail { text: text.clone() });
    plan.fork = Some(ForkPoint {
        from: ForkedFrom {
            run: entry.run_id.clone(),
            seq,
            start: start_of(&state),
            snapshot: snapshot_of(&state),
        },
        commit,
        unfinished,
        progress: progress_after(&record, at),
        letters: guardrails.chain([Control::Nudge { text: told }]).collect(),
    });
    Ok(plan)
}

fn request(top: &Path, state: &RunState, wanted: &ForkRequest) -> RunRequest {
    let settings = &state.spec.settings;
    RunRequest {
        task: TaskInput::Value(Box::new(state.spec.task.clone())),
        unfinished: request::Unfinished::StartAnew,
        overrides: Overrides {
            agents: wanted.agents.clone(),
            model: wanted.model.clone(),
            checks: settings.required().cloned().collect(),
            ..Overrides::default()
        },
        place: Workplace::Worktree,
        branch: wanted.branch.clone(),
        isolation: Some(settings.isolation),
        provider: Some(settings.sandbox.provider()),
        publish: Some(settings.handover.publish),
        yes: wanted.yes,
        ..RunRequest::in_folder(top)
    }
}

/// The run's state after an iteration, the event that ended it, and the iteration's number.
fn state_at(record: &RunDir, run: &RunId, at: Option<u32>) -> Result<(RunState, Seq, u32), AppError> {
    let spec = snapshot::read_spec(record)?;
    let events = Follower::new(&record.events(), Seq(0)).poll()?;
    let last = events.iter().filter_map(ended).max().unwrap_or(0);
    let at = at.unwrap_or(last);
    let seq = match at {
        0 => events.iter().find(|e| matches!(e.body, EventBody::Prepared { .. })),
        at => events.iter().find(|event| ended(event) == Some(at)),
    };
    let Some(seq) = seq.map(|event| event.seq) else {
        let what = format!("run {run} has no finished iteration {at}");
        let hint = match last {
            0 => "its first iteration hasn't ended; run `ralph status` to watch it".to_owned(),
            last => format!(
                "it has {}: `--at 0` is its start, `--at {last}` the last one",
                count(last as usize, "iteration")
            ),
        };
        return Err(AppError::usage(what).hint(hint));
    };
    Ok((snapshot::replay_to(record, spec, seq)?, seq, at))
}

fn ended(event: &Event) -> Option<u32> {
    match &event.body {
        EventBody::IterationEnded { iteration, .. } => Some(*iteration),
        _ => None,
    }
}

/// The commit the first run started from, or forked from.
fn start_of(state: &RunState) -> Option<CommitId> {
    let own = || state.baseline.as_ref().map(|baseline| baseline.head.clone());
    state.spec.forked_from.as_ref().and_then(|from| from.start.clone()).or_else(own)
}

/// Like [`start_of`], with the uncommitted changes of that time; `None` if there were none.
fn snapshot_of(state: &RunState) -> Option<CommitId> {
    match &state.spec.forked_from {
        Some(from) => from.snapshot.clone(),
        None => state.baseline.as_ref().filter(|one| !one.dirty.is_empty()).map(|one| one.start.clone()),
    }
}

/// Changes that were uncommitted when the first run began: its sessions saw them, its commits don't contain
/// them.
fn unfinished_of(
    repo: &Repo,
    entry: &Registration,
    state: &RunState,
    commit: &CommitId,
) -> Result<Option<UserChanges>, AppError> {
    let Some(baseline) = state.baseline.as_ref().filter(|one| !one.dirty.is_empty()) else { return Ok(None) };
    let began = (&baseline.head, &baseline.start);
    Ok(UserChanges::find(repo, &entry.run_id, began, commit)?)
}

/// The repo that has those files, and their commit.
fn files_of(env: &Environment, entry: &Registration, state: &RunState) -> Result<(Repo, CommitId), AppError> {
    let start = state.baseline.as_ref().map(|baseline| baseline.head.clone());
    let Some(commit) = state.work.commit.clone().or(start) else {
        return Err(AppError::usage(format!("run {} has recorded no files", entry.run_id))
            .hint("`ralph run` starts one"));
    };
    let places = [state.spec.origin.as_path(), state.spec.home(), entry.workspace.as_path()];
    for place in places {
        let Ok(repo) = Repo::discover(env.vars(), &find::top(place)) else { continue };
        let name = format!("{commit}^{{commit}}");
        let found = repo.git().call(["cat-file", "-e", name.as_str()]).accept(&[1, 128]).run();
        if found.is_ok_and(|found| found.code == 0) {
            return Ok((repo, commit));
        }
    }
    Err(AppError::environment(format!("the commits of run {} are not here any more", entry.run_id))
        .hint("they were cleaned up, or its folder is gone; run `ralph show` to see what it did"))
}

/// Session notes after an iteration, from the next prompt or the run's memory.
fn progress_after(record: &RunDir, at: u32) -> Option<String> {
    const TITLE: &str = "\n# Progress so far\n\n";
    if at == 0 {
        return None;
    }
    let prompt = plain::read_text(&record.iteration(at + 1).join("prompt.md"), PROMPT_MAX);
    let text = match prompt.split_once(TITLE) {
        Some((_, rest)) => rest.split("\n# ").next().unwrap_or_default().to_owned(),
        None => plain::read_text(&record.path().join("progress.md"), PROMPT_MAX),
    };
    (!text.trim().is_empty()).then(|| format!("# Progress\n\n{}\n", text.trim()))
}
