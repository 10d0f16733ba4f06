//! Recovery steps: what to try when a run is stuck, in which order, and when to ask the user.
//!
//! A *gutter* (a stuck phase) begins with the first score that is high enough and ends with real progress. Within
//! one, every rung is tried once and gets a few iterations to work. After the last rung `ralph` asks the user, or the run
//! ends: if the policy says so, or after too many stuck phases in a row.

use crate::state::{IterationSummary, RunState};
use crate::stuck::Signals;
use jiff::{SignedDuration, Timestamp};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::{EventBody, Rung, Verdict};
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::stuck::StuckDetails;
use ralph_loop_task::config::{AgentConfig, AgentKind, OnStuck};

/// What to do next for a stuck run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHelp {
    Try(Rung),
    /// Every rung was tried: the run ends.
    End,
}

/// Failed sessions in a row after which an agent rests.
pub const BREAKER: u32 = 3;
/// Its first rest, in seconds; each further failure doubles it.
const BREAKER_REST: i64 = 60;
/// Its longest rest, in seconds.
const BREAKER_REST_MAX: i64 = 1800;
/// Characters of what a session said that are shown.
const TRIED_MAX: usize = 120;
/// An agent that hasn't worked in this many iterations counts as untried.
const FRESH_EYES: usize = 4;

/// The next rung for the present stuck phase.
pub fn next(state: &RunState) -> NextHelp {
    let settings = &state.spec.settings;
    let untried = [Rung::Nudge, Rung::Rotate, Rung::Fallback, Rung::Doctor]
        .into_iter()
        .find(|rung| !state.stuck.climbed.contains(rung) && is_possible(state, *rung));
    match untried {
        Some(rung) => NextHelp::Try(rung),
        None if settings.on_stuck == OnStuck::Fail => NextHelp::End,
        None if state.stuck.gutters >= settings.budgets.max_consecutive_gutter => NextHelp::End,
        None => NextHelp::Try(Rung::Pause),
    }
}

fn is_possible(state: &RunState, rung: Rung) -> bool {
    match rung {
        Rung::Fallback => fallback(state).is_some(),
        Rung::Nudge | Rung::Rotate | Rung::Doctor | Rung::Pause => true,
    }
}

/// Iterations that a rung gets before the next one is tried.
fn iterations_allowed(rung: Rung) -> u32 {
    match rung {
        Rung::Nudge | Rung::Rotate => 1,
        Rung::Fallback | Rung::Doctor => 2,
        Rung::Pause => 0,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fallback {
    /// The same agent with another model or profile.
    Model { agent: AgentName, model: String },
    /// Another agent; this one is benched.
    Agent { benched: AgentName, instead: AgentName },
}

/// The remaining fallback, if any.
pub fn fallback(state: &RunState) -> Option<Fallback> {
    let settings = &state.spec.settings;
    let last = state.agents.last_agent.as_ref()?;
    let config = settings.agent(last)?;
    if let Some(model) = fallback_model(config, state)
        && state.model_for(last).as_deref() != Some(model.as_str())
    {
        return Some(Fallback::Model { agent: last.clone(), model });
    }
    let worked: Vec<&AgentName> =
        state.iterations.history.iter().rev().take(FRESH_EYES).map(|summary| &summary.agent).collect();
    let instead = settings.agents.iter().map(|a| &a.name).find(|name| {
        *name != last
            && !worked.contains(name)
            && !state.agents.dropped.contains_key(*name)
            && state.agents.cooldowns.get(*name).is_none_or(|rest| rest.until <= state.now)
    })?;
    Some(Fallback::Agent { benched: last.clone(), instead: instead.clone() })
}

/// An agent with a fresh view of the last session: the configured one, else another available one.
pub fn critic(state: &RunState) -> Option<&AgentName> {
    let settings = &state.spec.settings;
    if let Some(name) = &settings.critic.agent {
        return Some(name);
    }
    settings.agents.iter().filter(|a| a.kind != AgentKind::Scripted).map(|a| &a.name).find(|name| {
        Some(*name) != state.agents.last_agent.as_ref()
            && !state.agents.dropped.contains_key(*name)
            && state.agents.cooldowns.get(*name).is_none_or(|rest| rest.until <= state.now)
    })
}

fn fallback_model(config: &AgentConfig, state: &RunState) -> Option<String> {
    let own = config.fallback_profile.clone();
    let shared = || state.spec.settings.models.fallback.clone().filter(|_| config.kind.calls_model());
    let model = own.or_else(shared)?;
    (config.profile.as_ref() != Some(&model) && config.model.as_ref() != Some(&model)).then_some(model)
}

/// The events for an iteration's signals: the run may be stuck, or is. Candidates are left to their final check.
pub fn notice(
    state: &RunState,
    iteration: u32,
    verdict: Verdict,
    signals: &Signals,
    context: StuckDetails,
) -> Vec<EventBody> {
    if verdict == Verdict::Candidate {
        return Vec::new();
    }
    notice_signals(state, iteration, signals, context)
}

/// The same for any verdict: the final check has failed.
pub fn notice_signals(
    state: &RunState,
    iteration: u32,
    signals: &Signals,
    context: StuckDetails,
) -> Vec<EventBody> {
    let settings = &state.spec.settings;
    if settings.stuck_detection.disabled {
        return Vec::new();
    }
    let evidence = signals.evidence.clone();
    let loop_score = signals.loop_score;
    let rested = state.stuck.rung.map_or(0, iterations_allowed);
    if loop_score >= settings.gutter_score {
        let due = state.stuck.rung.is_none() || iteration >= state.stuck.rung_at + rested;
        let tried = last_words(state).map(|(before, said)| {
            format!("iteration {}: {}", before.iteration, text::one_line(said, TRIED_MAX))
        });
        let mut tried: Vec<String> = tried.collect();
        tried.reverse();
        return if due {
            vec![EventBody::Gutter { iteration, loop_score, evidence, tried }]
        } else {
            Vec::new()
        };
    }
    let fresh: Vec<_> =
        signals.kinds().into_iter().filter(|kind| !state.stuck.noticed.contains(kind)).collect();
    if fresh.is_empty() {
        return Vec::new();
    }
    vec![EventBody::Stuck { iteration, kinds: fresh, loop_score, evidence, context }]
}

/// The rest of an agent whose sessions keep failing, if another one can work. Afterwards it gets one try; if that
/// fails, it rests twice as long.
pub fn breaker(state: &RunState, agent: &AgentName, now: Timestamp) -> Option<EventBody> {
    let failures = *state.agents.failing.get(agent)?;
    let another = state.spec.settings.agents.iter().any(|other| {
        other.name != *agent
            && !state.agents.dropped.contains_key(&other.name)
            && state.agents.failing.get(&other.name).is_none_or(|n| *n < BREAKER)
    });
    if failures < BREAKER || !another {
        return None;
    }
    let seconds = (BREAKER_REST << (failures - BREAKER).min(6)).min(BREAKER_REST_MAX);
    let times = text::count(failures as usize, "session");
    Some(EventBody::CooldownSet {
        agent: agent.clone(),
        until: now + SignedDuration::from_secs(seconds),
        reason: format!("{times} in a row failed"),
    })
}

/// What the last three sessions said, the newest first.
fn last_words(state: &RunState) -> impl Iterator<Item = (&IterationSummary, &str)> {
    let last = state.iterations.history.iter().rev().take(3);
    last.filter(|before| !before.message.is_empty()).map(|before| (before, before.message.as_str()))
}

/// What a rung tells the next session.
pub fn words(state: &RunState, rung: Rung) -> String {
    let evidence = state.stuck.gutter.as_ref().map(|g| g.evidence.join("; ")).unwrap_or_default();
    let tried: Vec<String> = last_words(state)
        .map(|(before, said)| format!("- iteration {} ({}): {said}", before.iteration, before.agent))
        .collect();
    match rung {
        Rung::Nudge => format!(
            "The last iterations lead nowhere: {evidence}. Before you change anything, find out why: read the whole output \
             of the failing check and the code it names, and say what is different from what you expected."
        ),
        Rung::Rotate => {
            let mut text = format!(
                "The loop is stuck: {evidence}. Do not repeat what was tried. Start from the failing check, not from \
                 earlier notes, and take another approach."
            );
            if !tried.is_empty() {
                text.push_str(&format!("\nThis was tried and failed:\n{}", tried.join("\n")));
            }
            text
        }
        Rung::Fallback => match fallback(state) {
            Some(Fallback::Model { agent, model }) => {
                format!("{agent} gets nowhere; {model} takes over. The loop is stuck: {evidence}.")
            }
            Some(Fallback::Agent { benched, instead }) => format!(
                "{benched} gets nowhere; {instead} takes over. The loop is stuck: {evidence}. Look at it with fresh \
                 eyes and do not trust what earlier sessions concluded."
            ),
            None => format!("The loop is stuck: {evidence}."),
        },
        Rung::Doctor | Rung::Pause => evidence,
    }
}
