//! Builds a run's view from its state and the present moment: one computation for every screen, page and program.

use crate::state::{RunState, Stage};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ralph_loop_protocol::describe::clock_time;
use ralph_loop_protocol::display::text::duration;
use ralph_loop_protocol::display::view::{
    AgentStanding, AgentView, BudgetView, CheckRefusal, CriterionView, CurrentView, FinishedView,
    IterationView, NeedsView, PrView, ProofView, SandboxView, SpentView, WaitView,
};
pub use ralph_loop_protocol::display::view::{CheckView, RunView, SetupView};
use ralph_loop_protocol::event::CheckResult;
use ralph_loop_protocol::event::TestsQuestion;
use ralph_loop_protocol::money::Usd;
use ralph_loop_protocol::money::budget::BudgetKind;
use ralph_loop_protocol::outcome::{EndReason, HumanReason};
use ralph_loop_protocol::status::Status;
use ralph_loop_task::spec::WorkspaceKind;
use std::time::Duration;

/// What a view needs in addition to the state: the time, and whether a process drives the run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ViewContext {
    /// The present time; default: that of the last event.
    pub now: Option<Timestamp>,
    pub driven: bool,
    /// When the active session last printed something.
    pub last_output: Option<Timestamp>,
    pub activity: Option<String>,
    /// The reader's time zone; default: UTC.
    pub zone: Option<TimeZone>,
}

pub fn view(state: &RunState, moment: &ViewContext) -> RunView {
    let now = moment.now.unwrap_or(state.now);
    let spec = &state.spec;
    let orphaned = state.result.finished.is_none() && state.people.needs_human.is_none() && !moment.driven;
    RunView {
        run_id: spec.run_id.clone(),
        title: spec.task.title.clone(),
        status: status(state, moment.driven),
        now: now_line(state, moment, now),
        next: next(state, moment),
        driven: moment.driven,
        orphaned,
        seq: state.seq,
        created_at: spec.created_at,
        last_event_at: state.result.finished.as_ref().map_or(state.now, |end| end.at),
        elapsed_seconds: state.elapsed().as_secs_f64(),
        working_seconds: state.spent().time.as_secs_f64(),
        current: current(state),
        wait: wait(state),
        needs: needs(state),
        criteria: criteria(state),
        checks: checks(state),
        setup_failed: setup_failed(state),
        budgets: budgets(state),
        deadline: spec.settings.budgets.deadline,
        spent: spent(state),
        agents: agents(state, moment, now),
        iterations: state.iterations.count,
        history: history(state),
        loop_score: state.iterations.history.back().map_or(0.0, |h| h.loop_score),
        best: crate::best::best(state),
        branch: branch(state),
        work_ref: work_ref(state),
        pr: pr(state),
        proof: proof(state),
        finished: finished(state),
        workspace: spec.home().to_owned(),
        origin: spec.origin.clone(),
    }
}

/// The displayed status: an unfinished run without a driver and without a question is interrupted, unless it was
/// paused before.
pub fn status(state: &RunState, driven: bool) -> Status {
    let orphaned = state.result.finished.is_none() && state.people.needs_human.is_none() && !driven;
    match state.status() {
        Status::Paused => Status::Paused,
        _ if orphaned => Status::Interrupted,
        other => other,
    }
}

/// The branch with the work, if any. For a pushed clone, the remote name.
pub fn branch(state: &RunState) -> Option<String> {
    let pushed =
        state.handover.pushed.is_some().then(|| state.spec.settings.handover.branch.clone()).flatten();
    let (of_clone, pushed) = match &state.spec.place {
        WorkspaceKind::Clone { .. } => (pushed, None),
        WorkspaceKind::InPlace | WorkspaceKind::Worktree => (None, pushed),
    };
    let is_branch = |name: &String| !name.is_empty() && !name.starts_with("refs/");
    let published = state.result.published.as_ref().map(|p| p.branch.clone()).filter(is_branch);
    of_clone.or(published).or_else(|| state.spec.branch.clone()).or_else(|| match state.work.commit {
        Some(_) => pushed,
        None => state.baseline.as_ref().and_then(|b| b.branch.clone()),
    })
}

/// The ref with the work: its branch's, or one of the engine's.
pub fn work_ref(state: &RunState) -> Option<String> {
    match (&state.spec.branch, &state.work.commit) {
        (Some(branch), _) => Some(format!("refs/heads/{branch}")),
        (None, Some(_)) => Some(format!("refs/ralph/{}/work", state.spec.run_id)),
        (None, None) => None,
    }
}

fn now_line(state: &RunState, moment: &ViewContext, now: Timestamp) -> String {
    if let Some(end) = &state.result.finished {
        return format!("{} ({})", end.summary.trim_end_matches('.'), ago(end.at, now));
    }
    if let Some(need) = &state.people.needs_human {
        return format!("needs you: {}", need.message);
    }
    if !moment.driven {
        return format!("not running; run `ralph resume {}` to continue it", state.spec.run_id);
    }
    if let Some(wait) = &state.wait {
        return match (wait.until, &state.people.paused_by) {
            (Some(until), _) => {
                // The time comes first: it is what you look for, and it is never cut off.
                format!("waiting, continues in {} · {}", left(until, now, moment.zone.as_ref()), wait.reason)
            }
            (None, Some(who)) => format!("paused by {who} {}", ago(wait.since, now)),
            (None, None) => format!("waiting for {}: {}", age(since(wait.since, now)), wait.reason),
        };
    }
    let mut text = work(state, moment, now);
    if let Some(pending) = pending(state) {
        text.push_str(&format!(" · {pending}"));
    }
    text
}

/// A requested action that happens after the session.
pub fn pending(state: &RunState) -> Option<String> {
    state.iterations.current.as_ref()?;
    match (&state.people.stop_by, &state.people.paused_by) {
        (Some(who), _) => Some(format!("ends after this session (asked by {who})")),
        (None, Some(who)) => Some(format!("pauses after this session (asked by {who})")),
        (None, None) => None,
    }
}

fn work(state: &RunState, moment: &ViewContext, now: Timestamp) -> String {
    match &state.iterations.current {
        Some(current) if current.stage == Stage::Working => {
            let mut text =
                format!("{} is working for {}", current.agent, age(since(current.started_at, now)));
            let heard = moment.last_output.filter(|at| *at >= current.started_at);
            text.push_str(&match heard {
                Some(at) => format!(" · last output {}", ago(at, now)),
                None => " · no output yet".to_owned(),
            });
            if let Some(activity) = &moment.activity {
                text.push_str(&format!(" · {activity}"));
            }
            text
        }
        Some(current) => format!("checking what {} did in iteration {}", current.agent, current.iteration),
        None if state.baseline.is_none() => "preparing the workspace".to_owned(),
        None if state.result.proof.as_ref().is_some_and(|p| p.passed) => "handing the result over".to_owned(),
        None if state.result.candidate => "final check of the result".to_owned(),
        None => "the next session is about to start".to_owned(),
    }
}

fn next(state: &RunState, moment: &ViewContext) -> Option<String> {
    let id = &state.spec.run_id;
    if let Some(end) = &state.result.finished {
        return Some(match (end.reason, end.reason.budget_option()) {
            (EndReason::Completed, _) => format!("`ralph show {id}` shows the proof"),
            (_, Some(option)) => {
                format!(
                    "`ralph resume {id} {option}` continues with a larger budget, `ralph run` starts again"
                )
            }
            _ => format!("`ralph show {id}` shows what was tried, `ralph run` starts again"),
        });
    }
    if let Some(need) = &state.people.needs_human {
        return Some(need.answer(id.as_str()));
    }
    // Without a driver, the sentence itself names the command.
    let paused = moment.driven && state.wait.is_some() && state.people.paused_by.is_some();
    paused.then(|| format!("`ralph resume {id}` continues"))
}

fn current(state: &RunState) -> Option<CurrentView> {
    state.iterations.current.as_ref().map(|current| CurrentView {
        iteration: current.iteration,
        attempt: current.attempt,
        agent: current.agent.clone(),
        model: current.model.clone(),
        role: current.role,
        started_at: current.started_at,
    })
}

fn wait(state: &RunState) -> Option<WaitView> {
    state.wait.as_ref().map(|wait| WaitView {
        reason: wait.reason.clone(),
        since: wait.since,
        until: wait.until,
        paused_by: state.people.paused_by.clone(),
    })
}

fn needs(state: &RunState) -> Option<NeedsView> {
    state.people.needs_human.as_ref().map(|need| NeedsView {
        reason: need.reason,
        message: need.message.clone(),
        next: need.answer(state.spec.run_id.as_str()),
        details: match need.reason {
            HumanReason::TestsChanged => {
                state.tests_question().map(TestsQuestion::details).unwrap_or_default()
            }
            _ => Vec::new(),
        },
    })
}

fn criteria(state: &RunState) -> Vec<CriterionView> {
    let criteria = state.spec.task.criteria.iter();
    criteria
        .map(|criterion| CriterionView {
            id: criterion.id.clone(),
            text: criterion.text.clone(),
            milestone: criterion.milestone.clone(),
            check: criterion.check.describe(),
            claimed: state.work.claims.contains(&criterion.id)
                || state.work.claimed_in_words.contains(&criterion.id),
            met: state.work.met.contains(&criterion.id),
            last: state.work.checks.get(&criterion.id).cloned(),
        })
        .collect()
}

fn checks(state: &RunState) -> Vec<CheckView> {
    let settings = &state.spec.settings;
    let is_current = |result: &CheckResult| state.work.tree.as_ref() == Some(&result.tree);
    let view = |verifier: &ralph_loop_task::config::VerifierConfig| {
        let at_start = || state.baseline_checks.iter().flat_map(|checks| &checks.results);
        let last = state.work.checks.get(&verifier.name);
        let last = last.or_else(|| at_start().find(|result| result.name == verifier.name));
        CheckView {
            name: verifier.name.clone(),
            command: verifier.command_line(),
            required: settings.required_verifiers.contains(&verifier.name),
            current_tree: last.is_some_and(is_current),
            refused: refusal(state, verifier),
            last: last.cloned(),
        }
    };
    settings.verifiers.iter().map(view).collect()
}

/// Every final check runs the setup first: one that passed, or reached a check, got past it.
fn setup_failed(state: &RunState) -> Option<SetupView> {
    let passed = state.result.proof.as_ref().is_some_and(|proof| proof.passed);
    let past = passed || !state.result.refused.is_empty();
    let checks = state.baseline_checks.as_ref().filter(|_| !past)?;
    let command = checks.setup_failed.clone()?;
    Some(SetupView { command, last_lines: checks.setup_lines.clone(), log: checks.setup_log.clone() })
}

/// What the final check says about a check that passed in the workspace, if it rejected the present tree.
fn refusal(state: &RunState, verifier: &ralph_loop_task::config::VerifierConfig) -> Option<CheckRefusal> {
    let (tree, failed) = state.result.disproved.as_ref()?;
    if state.work.tree.as_ref() != Some(tree)
        || !state.spec.settings.required_verifiers.contains(&verifier.name)
    {
        return None;
    }
    match state.result.refused.iter().find(|result| result.name == verifier.name) {
        Some(result) => Some(CheckRefusal { result: Some(result.clone()), reasons: Vec::new() }),
        None => Some(CheckRefusal { result: None, reasons: failed.clone() }),
    }
}

fn budgets(state: &RunState) -> Vec<BudgetView> {
    let (budgets, spent) = (&state.spec.settings.budgets, state.spent());
    let numbers = |kind: BudgetKind| match kind {
        BudgetKind::Iterations => (Some(f64::from(spent.iterations)), f64::from(budgets.max_iterations)),
        BudgetKind::Time => (Some(spent.time.as_secs_f64()), budgets.max_wall_time.as_secs_f64()),
        BudgetKind::Cost => (state.cost().known().map(Usd::dollars), budgets.max_cost.dollars()),
        BudgetKind::Tokens => {
            let used = state.tokens().known().map(|tokens| tokens.total() as f64);
            (used, budgets.max_tokens.unwrap_or_default() as f64)
        }
    };
    let view = |(budget, share): (BudgetKind, f64)| {
        let (used, limit) = numbers(budget);
        BudgetView { budget, used, limit, share }
    };
    budgets.shares(spent).into_iter().map(view).collect()
}

fn spent(state: &RunState) -> SpentView {
    let sandboxes = state.spending.compute.sandboxes.iter();
    SpentView {
        cost: state.cost(),
        saved_usd: state.spending.totals.saved,
        compute_usd: state.spending.compute.known_cost(),
        tokens: state.tokens(),
        sessions: state.spending.totals.sessions,
        sandboxes: sandboxes
            .map(|s| SandboxView { provider: s.provider.clone(), id: s.id.clone(), rests: s.rests })
            .collect(),
    }
}

fn agents(state: &RunState, moment: &ViewContext, now: Timestamp) -> Vec<AgentView> {
    let agents = state.spec.settings.agents.iter().map(|agent| &agent.name);
    agents
        .map(|name| {
            let works = moment.driven && state.iterations.current.as_ref().is_some_and(|c| c.agent == *name);
            let rest = state.agents.cooldowns.get(name).filter(|rest| rest.until > now);
            let (standing, until, reason) = match (state.agents.dropped.get(name), rest) {
                (Some(reason), _) => (AgentStanding::Dropped, None, Some(reason.clone())),
                (None, Some(rest)) => (AgentStanding::Resting, Some(rest.until), Some(rest.reason.clone())),
                (None, None) if works => (AgentStanding::Working, None, None),
                (None, None) => (AgentStanding::Free, None, None),
            };
            let used = state.agents.by_agent.get(name).copied().unwrap_or_default();
            AgentView {
                name: name.clone(),
                model: state.model_for(name),
                standing,
                until,
                reason,
                sessions: used.sessions,
                cost: used.cost,
                tokens: used.tokens,
            }
        })
        .collect()
}

fn history(state: &RunState) -> Vec<IterationView> {
    let view = |done: &crate::state::IterationSummary| IterationView {
        iteration: done.iteration,
        agent: done.agent.clone(),
        verdict: done.verdict,
        end: done.end.clone(),
        message: done.message.clone(),
        files: done.files,
        added: done.added,
        removed: done.removed,
        cost: done.cost(),
        duration_ms: done.duration_ms,
        loop_score: done.loop_score,
        tests: done.tests,
        commit: done.commit.clone(),
        ended_at: done.ended_at,
    };
    state.iterations.history.iter().map(view).collect()
}

fn pr(state: &RunState) -> Option<PrView> {
    let known = state.handover.pr.as_ref();
    let known = known.map(|pr| PrView { number: Some(pr.number), url: pr.url.clone(), draft: pr.draft });
    known.or_else(|| {
        let url = state.result.published.as_ref()?.pr_url.clone()?;
        Some(PrView { number: None, url, draft: false })
    })
}

fn proof(state: &RunState) -> Option<ProofView> {
    state.result.proof.as_ref().map(|proof| ProofView {
        commit: proof.commit.clone(),
        over: proof.proof.is_some(),
        passed: proof.passed,
        clean: proof.clean,
        failed: proof.failed.clone(),
        headline: proof.headline(),
        level: proof.level,
        level_reason: proof.level_reason.clone(),
        difference: proof.difference.clone(),
        watched: proof.watched,
        harness: proof.harness.clone(),
    })
}

fn finished(state: &RunState) -> Option<FinishedView> {
    let end = state.result.finished.as_ref()?;
    Some(FinishedView { reason: end.reason, summary: end.summary.clone(), at: end.at })
}

/// `4 s`, `12 min`, `3 h`, `5 days`: an age in one unit.
fn age(length: Duration) -> String {
    match length.as_secs() {
        s @ 0..=59 => format!("{s} s"),
        s @ 60..=3599 => format!("{} min", s / 60),
        s @ 3600..=172_799 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

/// How long ago something was; zero if the clock went back.
fn since(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(at)).unwrap_or_default()
}

fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{} ago", age(since(at, now)))
}

/// `12 min (04:02 UTC)`: time left, with the date if it isn't today.
fn left(until: Timestamp, now: Timestamp, zone: Option<&TimeZone>) -> String {
    let left = Duration::from_secs(since(now, until).as_secs());
    format!("{} ({})", duration(left), clock_time(until, now, zone))
}
