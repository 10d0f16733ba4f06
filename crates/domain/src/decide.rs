//! The decision: a pure function from the state to the next step.

use crate::handover;
use crate::model::select::{AgentChoice, SelectionInput, choose};
use crate::ports::StopCause;
use crate::recovery;
use crate::state::{Current, NeedsHuman, RunState, Stage};
pub use crate::step::{DoneReason, Due, Help, Left, NextSession, Step};
use crate::text::end_summary;
use jiff::{SignedDuration, Timestamp};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::{EventBody, SessionEnd, Verdict};
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::outcome::{EndReason, HumanReason};
use ralph_loop_task::config::{Completion, OnStuck, RunWhen};
use std::time::Duration;

/// After this many interrupted sessions in a row for one iteration the run ends: something is broken.
pub const INTERRUPTIONS_MAX: u32 = 100;
/// A margin, because the provider's clock and ours may differ.
const RESET_MARGIN: SignedDuration = SignedDuration::from_secs(2);

/// First wait for a limit without an end.
const FIRST_LIMIT_WAIT: Duration = Duration::from_secs(30);
/// `ralph` asks the user after this many sessions in a row without answer and change.
pub const EMPTY_SESSIONS_MAX: u32 = 6;

/// The next step for a state. No clock, no file, no network.
pub fn decide(state: &RunState) -> Step {
    if state.result.finished.is_some() {
        return Step::Done(DoneReason::Ended);
    }
    if state.baseline.is_none() {
        return match &state.people.cancel_by {
            Some(by) => finish(EndReason::Cancelled, end_summary::cancelled(by, "before any work")),
            None => cut_short(state).unwrap_or(Step::Prepare),
        };
    }
    if let Some(by) = &state.people.cancel_by {
        return match state.iterations.current.as_ref().map(|c| c.stage) {
            Some(Stage::Working) => Step::Checkpoint(Left::Interruption),
            Some(Stage::Worked) => Step::Checkpoint(Left::Work),
            _ => finish(
                EndReason::Cancelled,
                end_summary::cancelled(by, &format!("after {}", end_summary::iterations(state))),
            ),
        };
    }
    if state.people.needs_human.is_some() {
        return Step::Done(DoneReason::NeedsUser);
    }
    if let Some(alarm) = state.people.alarm.as_ref().filter(|a| a.reason == HumanReason::Tampered) {
        return Step::AskUser(alarm.clone());
    }
    if let Some(current) = &state.iterations.current {
        return within(state, current);
    }
    match between(state) {
        // The work so far is handed over as a draft before the run ends.
        Step::Finish { reason, summary } => {
            handover::farewell(state, reason).unwrap_or(Step::Finish { reason, summary })
        }
        step => step,
    }
}

fn within(state: &RunState, current: &Current) -> Step {
    match current.stage {
        Stage::Working => Step::Checkpoint(Left::Interruption),
        Stage::Worked if is_void(state, current) => Step::Checkpoint(Left::Void),
        Stage::Worked => Step::Checkpoint(Left::Work),
        Stage::Checkpointed => {
            let checks = due_checks(state, current);
            match checks.is_empty() {
                true => Step::Judge,
                // A check that was ended for lack of time proves nothing; with more time it is repeated.
                false => cut_short(state).unwrap_or(Step::Verify { checks }),
            }
        }
    }
}

fn between(state: &RunState) -> Step {
    if let Some(alarm) = &state.people.alarm {
        return Step::AskUser(alarm.clone());
    }
    if state.handover.closed || state.handover.merged && state.result.proof.as_ref().is_none_or(|p| !p.passed)
    {
        let how =
            if state.handover.closed { "closed without a merge" } else { "merged before it was proven" };
        return finish(EndReason::Stopped, format!("The pull request was {how}."));
    }
    if let Some(proof) = &state.result.proof
        && proof.passed
    {
        return handover::after_proof(state, || end_summary::success(state));
    }
    // What the original checks lacked may be here now, and only they can show a difference.
    if state.baseline_due {
        return cut_short(state).unwrap_or(Step::Prepare);
    }
    if state.result.candidate {
        let next = if state.machine_changed { Step::Prepare } else { Step::Prove };
        return cut_short(state).unwrap_or(next);
    }
    if handover::push_is_due(state) {
        return Step::Publish(Due::Push);
    }
    if let Some(question) = &state.people.question {
        return handover::draft_first(state, question).unwrap_or_else(|| Step::AskUser(question.clone()));
    }
    if let Some(by) = &state.people.stop_by {
        return finish(
            EndReason::Stopped,
            format!("Stopped by {by} after {}.", end_summary::iterations(state)),
        );
    }
    if let Some(step) = silent_agents(state) {
        return step;
    }
    if state.iterations.interruptions >= INTERRUPTIONS_MAX {
        return finish(
            EndReason::Error,
            format!(
                "Iteration {} was interrupted {INTERRUPTIONS_MAX} times in a row.",
                state.iterations.count + 1
            ),
        );
    }
    let budgets = &state.spec.settings.budgets;
    if let Some(kind) = budgets.exhausted(state.spent()) {
        return finish(
            EndReason::of_budget(kind),
            format!(
                "The budget for {} is used up after {}{}.{}",
                kind.as_str(),
                end_summary::iterations(state),
                end_summary::overshoot(state),
                end_summary::obstacle(state)
            ),
        );
    }
    if budgets.deadline.is_some_and(|deadline| state.now >= deadline) {
        return finish(
            EndReason::Timeout,
            format!(
                "The deadline passed after {}.{}",
                end_summary::iterations(state),
                end_summary::obstacle(state)
            ),
        );
    }
    if state.is_already_true() {
        return finish(EndReason::Completed, end_summary::success(state));
    }
    if state.is_idle() {
        return match end_summary::agent_fails(state) {
            Some(reason) => finish(EndReason::Error, reason),
            None => finish(EndReason::NoChange, end_summary::no_change(state)),
        };
    }
    if state.is_unclaimed() {
        return finish(EndReason::NoChange, end_summary::unclaimed(state));
    }
    if !state.people.recheck.is_empty() {
        return Step::Verify { checks: state.people.recheck.iter().cloned().collect() };
    }
    if critic_is_due(state) {
        return Step::Recover(Help::Critic);
    }
    if state.stuck.gutter.is_some() {
        return mitigation(state);
    }
    if state.stuck.doctor_asked || doctor_is_due(state) {
        return Step::Recover(Help::Doctor);
    }
    if let Some(by) = &state.people.paused_by {
        return Step::Wait { reason: format!("paused by {by}"), until: None };
    }
    next_session(state)
}

/// Ends a run whose check or setup was ended because its time is used up.
fn cut_short(state: &RunState) -> Option<Step> {
    let up = state.spending.cut_short && state.time_left().is_zero();
    up.then(|| {
        finish(
            EndReason::Timeout,
            format!("The time is used up after {}, during a check.", end_summary::iterations(state)),
        )
    })
}

/// Repeated silent sessions of any agent can't improve: the user must look.
fn silent_agents(state: &RunState) -> Option<Step> {
    let empty = state.iterations.empty_sessions;
    if empty < EMPTY_SESSIONS_MAX {
        return None;
    }
    let agent = state.agents.last_agent.as_ref().map_or("", AgentName::as_str);
    let message = format!(
        "{empty} sessions in a row answered nothing and changed nothing; `ralph probe {agent}` shows whether the agent works \
         here"
    );
    Some(match state.spec.settings.on_stuck {
        OnStuck::Fail => finish(EndReason::Stuck, format!("{message}.")),
        OnStuck::Pause => Step::AskUser(NeedsHuman { reason: HumanReason::Stuck, message }),
    })
}

fn doctor_is_due(state: &RunState) -> bool {
    let every = state.spec.settings.doctor.every;
    every > 0
        && state.iterations.count > 0
        && state.iterations.count.is_multiple_of(every)
        && state.stuck.diagnosed_at != Some(state.iterations.count)
}

/// A critic runs once each time the run gets stuck, if the last score was high and enough money is left.
fn critic_is_due(state: &RunState) -> bool {
    let settings = &state.spec.settings;
    let critic = &settings.critic;
    let missing = critic.profile.is_none() && recovery::critic(state).is_none();
    if critic.disabled || missing || state.stuck.criticised_at.is_some() {
        return false;
    }
    let high = state.iterations.history.back().is_some_and(|last| last.loop_score >= critic.score);
    let left = settings.budgets.max_cost.saturating_sub(state.spent().cost).dollars();
    let thin = left < settings.budgets.max_cost.dollars() * critic.min_budget_share;
    high && !thin
}

fn mitigation(state: &RunState) -> Step {
    match recovery::next(state) {
        recovery::NextHelp::Try(rung) => Step::Recover(Help::Rung(rung)),
        recovery::NextHelp::End if state.stuck.gutters > 1 => finish(
            EndReason::Stuck,
            format!(
                "Stuck for the {} time in a row; no recovery step helped.",
                end_summary::ordinal(state.stuck.gutters)
            ),
        ),
        recovery::NextHelp::End => finish(EndReason::Stuck, "Stuck, and no recovery step helped.".into()),
    }
}

fn next_session(state: &RunState) -> Step {
    let settings = &state.spec.settings;
    let place = state.role_due();
    let choice = choose(SelectionInput {
        agents: &settings.agents,
        selection: settings.agent_selection,
        last: state.agents.last_agent.as_ref(),
        cooldowns: &state.agents.cooldowns,
        dropped: &state.agents.dropped,
        skip: &state.agents.skip,
        benched: state.stuck.benched.as_ref(),
        first: place.and_then(|role| role.agent.as_ref()),
        now: state.now,
    });
    match choice {
        AgentChoice::Agent { name, skipped } => Step::Work(NextSession {
            iteration: state.iterations.count + 1,
            attempt: state.iterations.attempts + 1,
            model: state.model_for(&name).or_else(|| place.and_then(|role| role.model.clone())),
            role: place.map(|role| role.role),
            agent: name,
            skipped,
        }),
        AgentChoice::AllCooling { .. } if none_ever_answered(state) => no_agent(state),
        AgentChoice::AllCooling { name, until } => {
            // Includes the current wait, which is cut at the limit.
            let now = state.wait.as_ref().map_or(0, |wait| state.now.duration_since(wait.since).as_millis());
            let now = u64::try_from(now).unwrap_or(0);
            let waited = Duration::from_millis(state.spending.totals.waited_ms.saturating_add(now));
            if waited >= settings.budgets.max_limit_wait {
                return finish(
                    EndReason::Timeout,
                    format!("Waited {} for rate limits in all; that is the limit.", text::duration(waited)),
                );
            }
            let why = state.agents.cooldowns.get(&name).map_or("limit", |c| c.reason.as_str());
            Step::Wait {
                reason: format!("every agent is in cooldown; {name} is back first ({why})"),
                until: Some(until),
            }
        }
        AgentChoice::Missing => no_agent(state),
    }
}

/// Whether every agent was tried in vain, and none has answered in the whole run: an outage that begins before the
/// first answer is rather a wrong address, proxy or login.
fn none_ever_answered(state: &RunState) -> bool {
    let agents = &state.agents;
    let mut all = state.spec.settings.agents.iter();
    !agents.answered
        && all.all(|agent| {
            agents.dropped.contains_key(&agent.name) || agents.unreached.contains_key(&agent.name)
        })
}

/// Ends the run with each agent's reason.
fn no_agent(state: &RunState) -> Step {
    let dropped = state.agents.dropped.iter().map(|(name, reason)| format!("{name}: {reason}"));
    let unreached = state.agents.unreached.iter().map(|(name, reason)| {
        let reason = text::one_line(reason, 160);
        format!("{name}: its provider can't be reached ({reason}); check the network and the proxy, then `ralph probe {name}`")
    });
    let why: Vec<String> = dropped.chain(unreached).collect();
    finish(EndReason::Error, format!("No agent can work. {}", why.join("; ")))
}

/// Whether the session that just ended doesn't count as an iteration.
fn is_void(state: &RunState, current: &Current) -> bool {
    let Some(session) = &current.session else { return false };
    if session.end == SessionEnd::Empty {
        let retries = state.spec.settings.agent(&current.agent).map_or(0, |a| a.empty_retries);
        return state.iterations.empty_answers <= retries;
    }
    session.end.is_void() || unknown_model(&session.end).is_some()
}

/// The error of a model that its provider doesn't have: no further session changes that.
fn unknown_model(end: &SessionEnd) -> Option<&str> {
    const SIGNS: &[&str] = &[
        "issue with the selected model",
        "model_not_found",
        "model not found",
        "unknown model",
        "invalid model name",
        "is not a valid model",
        "model does not exist",
    ];
    let SessionEnd::Failed { reason } = end else { return None };
    let folded = reason.to_ascii_lowercase();
    SIGNS.iter().any(|sign| folded.contains(sign)).then_some(reason.as_str())
}

/// The events that follow from a void session.
pub fn consequences(state: &RunState, now: Timestamp) -> Vec<EventBody> {
    let Some(current) = &state.iterations.current else { return Vec::new() };
    let Some(session) = &current.session else { return Vec::new() };
    let agent = current.agent.clone();
    let mut events = Vec::new();
    match &session.end {
        SessionEnd::RateLimited { reset_at, reason } => {
            let (until, source) = match reset_at {
                Some(reset) => ((*reset).max(now) + RESET_MARGIN, "the provider's time"),
                None => (now + signed(unnamed_wait(state, &agent)), "the provider names no time"),
            };
            let reason = format!("{} ({source})", text::one_line(reason, 200));
            events.push(EventBody::CooldownSet { agent, until, reason });
        }
        SessionEnd::Overloaded { reason } | SessionEnd::Unreachable { reason } => {
            let seconds = 15u64 << state.iterations.overloads.saturating_sub(1).min(6);
            let until = now + SignedDuration::from_secs(seconds.min(900) as i64);
            events.push(EventBody::CooldownSet { agent, until, reason: text::one_line(reason, 200) });
        }
        SessionEnd::Auth { reason } | SessionEnd::Billing { reason } => {
            events.push(EventBody::AgentDropped { agent, reason: text::one_line(reason, 200) });
        }
        end => {
            let absent = unknown_model(end).map(|reason| text::one_line(reason, 200));
            events.extend(absent.map(|reason| EventBody::AgentDropped { agent, reason }));
        }
    }
    let reason = match &session.end {
        SessionEnd::Stopped { cause: StopCause::Skipped } => "skipped on request".to_owned(),
        end => end.word().to_owned(),
    };
    events.push(EventBody::IterationVoided { iteration: current.iteration, reason });
    events
}

/// How long an agent rests without a known reset time: the configured time if another one can work, else 30 seconds,
/// 1 minute, 2 minutes and so on, up to that.
fn unnamed_wait(state: &RunState, agent: &AgentName) -> Duration {
    let settings = &state.spec.settings;
    let longest = settings.cooldown_of(agent);
    let is_free = |name: &AgentName| {
        name != agent
            && !state.agents.dropped.contains_key(name)
            && state.agents.cooldowns.get(name).is_none_or(|rest| rest.until <= state.now)
    };
    if settings.agents.iter().any(|other| is_free(&other.name)) {
        return longest;
    }
    let times = state.agents.limited.get(agent).copied().unwrap_or(1).saturating_sub(1);
    longest.min(FIRST_LIMIT_WAIT * (1 << times.min(16)))
}

/// The verifiers that must run now on the recorded tree.
fn due_checks(state: &RunState, current: &Current) -> Vec<String> {
    let settings = &state.spec.settings;
    let promised = current.promises();
    settings
        .verifiers
        .iter()
        .filter(|v| !current.checked.contains(&v.name))
        .filter(|v| {
            let judged = state
                .work
                .checks
                .get(&v.name)
                .is_some_and(|result| Some(&result.tree) == state.work.tree.as_ref());
            let required = settings.required_verifiers.contains(&v.name);
            let needed_for_success =
                required && !judged && (promised || settings.completion != Completion::Promise);
            match v.run_when {
                RunWhen::Always => true,
                RunWhen::OnChange => !judged,
                RunWhen::OnPromise => needed_for_success || (promised && !judged),
            }
        })
        .map(|v| v.name.clone())
        .collect()
}

/// The verdict on the current iteration. A result counts only for its tree.
pub fn judge(state: &RunState) -> Verdict {
    let Some(current) = &state.iterations.current else { return Verdict::SessionFailed };
    let promised = current.promises();
    if !current.protected.is_empty() {
        return Verdict::ProtectedChanged;
    }
    let (proven, claimed) = (state.is_proven(), !current.outdated && state.is_claimed(promised));
    let required = &state.spec.settings.required_verifiers;
    let failing = required.iter().any(|name| state.passes_now(name) == Some(false));
    let disproved = state.is_disproved();
    let session_failed = current.session.as_ref().is_none_or(|s| {
        !matches!(s.end, SessionEnd::Completed | SessionEnd::Stopped { cause: StopCause::Rotated })
    });
    match (claimed, proven) {
        (true, true) if state.has_diff() => Verdict::Candidate,
        (true, true) if !session_failed => Verdict::NoChange,
        _ if session_failed => Verdict::SessionFailed,
        (true, false) if promised => Verdict::FalsePromise,
        _ if failing || disproved => Verdict::ChecksFail,
        _ => Verdict::NotPromised,
    }
}

/// How a run would end now, if nothing were left to hand over.
pub fn ending(state: &RunState) -> Option<(EndReason, String)> {
    match between(state) {
        Step::Finish { reason, summary } => Some((reason, summary)),
        _ => None,
    }
}

fn finish(reason: EndReason, summary: String) -> Step {
    Step::Finish { reason, summary }
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
