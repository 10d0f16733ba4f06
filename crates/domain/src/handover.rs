//! What is due between a run and its code host: pushes, the pull request, checks and reviews. Pure, like the rest of
//! the decision.

pub use crate::state::{Gate, GateFacts, HandoverFacts, PrFacts};
use crate::state::{NeedsHuman, RunState};
use crate::step::{Due, Step};
use jiff::SignedDuration;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::PrOccasion;
use ralph_loop_protocol::outcome::{EndReason, HumanReason};
use ralph_loop_task::config::Publish;
use ralph_loop_task::criterion::Check;
use std::time::Duration;

/// Tries in a row before asking the user.
const TRIES_MAX: u32 = 8;
/// Tries in a row for a run that ends without success.
const FAREWELL_TRIES: u32 = 3;

/// Whether the task requires green checks of its pull request.
pub fn needs_checks(state: &RunState) -> bool {
    state.spec.settings.handover.has_pr()
        && (state.spec.settings.handover.wait_for_checks || state.names_check(&Check::PrChecksPass))
}

/// Whether the task requires an approval of its pull request.
pub fn needs_review(state: &RunState) -> bool {
    state.spec.settings.handover.has_pr() && state.names_check(&Check::PrApproved)
}

/// Whether the work and state of the last iterations must still be pushed. Work continues if that fails: the next
/// iteration tries again.
pub fn push_is_due(state: &RunState) -> bool {
    let facts = &state.handover;
    state.spec.settings.handover.pushes()
        && state.iterations.count > facts.pushed_at
        && facts.blocked.is_none()
        && facts.retry_at.is_none_or(|at| state.now >= at)
}

/// What comes after the proof: hand over, wait for checks and reviews, end.
pub fn after_proof(state: &RunState, summary: impl FnOnce() -> String) -> Step {
    let facts = &state.handover;
    let proven = state.result.proof.as_ref().map(|proof| &proof.commit);
    if state.result.published.is_none() {
        if let Some(why) = &facts.blocked {
            return ask(HumanReason::Publish, format!("the result cannot be handed over: {why}"));
        }
        return match facts.retry_at.filter(|at| *at > state.now) {
            Some(until) => Step::Wait { reason: "the code host does not answer".into(), until: Some(until) },
            None => Step::Publish(Due::HandOver),
        };
    }
    let done = Step::Finish { reason: EndReason::Completed, summary: summary() };
    if facts.merged {
        return done;
    }
    let settings = &state.spec.settings.handover;
    if needs_checks(state) && facts.checked.as_ref() != proven {
        return gate(state, Gate::Checks, settings.ci_timeout);
    }
    if needs_review(state) && facts.approved.is_none() {
        return gate(state, Gate::Review, settings.review_timeout);
    }
    if pr_is_behind(state) {
        return match facts.retry_at.filter(|at| *at > state.now) {
            Some(until) => Step::Wait { reason: "the code host does not answer".into(), until: Some(until) },
            None => Step::Publish(Due::Update),
        };
    }
    done
}

/// Whether the pull request lacks the results of its checks and reviews. A host that no longer accepts them doesn't
/// keep a proven run from ending.
fn pr_is_behind(state: &RunState) -> bool {
    let facts = &state.handover;
    let waited = needs_checks(state) || needs_review(state);
    waited && facts.pr.is_some() && !facts.told && facts.blocked.is_none() && facts.tries < FAREWELL_TRIES
}

fn gate(state: &RunState, gate: Gate, limit: Duration) -> Step {
    let look = match gate {
        Gate::Checks => Step::Publish(Due::Checks),
        Gate::Review => Step::Publish(Due::Review),
    };
    let facts = &state.handover;
    if let Some(why) = &facts.blocked {
        return ask(HumanReason::Publish, format!("can't read the pull request: {why}"));
    }
    if let Some(until) = facts.retry_at.filter(|at| *at > state.now) {
        return Step::Wait { reason: "the code host does not answer".into(), until: Some(until) };
    }
    let Some(facts) = facts.gate.filter(|facts| facts.gate == gate) else { return look };
    let url = state.handover.pr.as_ref().map_or("the pull request", |pr| pr.url.as_str());
    let limit = SignedDuration::try_from(limit).unwrap_or(SignedDuration::MAX);
    if state.now.duration_since(facts.since) >= limit {
        let waited = text::duration(limit.unsigned_abs());
        return match gate {
            Gate::Checks => {
                ask(HumanReason::Checks, format!("the checks of {url} did not finish in {waited}"))
            }
            Gate::Review => ask(HumanReason::Review, format!("no approval for {url} in {waited}")),
        };
    }
    if facts.next > state.now {
        let reason = match gate {
            Gate::Checks => format!("the checks of {url}"),
            Gate::Review => format!("an approval of {url}"),
        };
        return Step::Wait { reason, until: Some(facts.next) };
    }
    look
}

fn ask(reason: HumanReason, message: String) -> Step {
    Step::AskUser(NeedsHuman { reason, message })
}

/// What a run that ends without success must still report to its code host, if anything. Tried only a few times.
pub fn farewell(state: &RunState, reason: EndReason) -> Option<Step> {
    let settings = &state.spec.settings.handover;
    let facts = &state.handover;
    let due = reason != EndReason::Completed
        && !facts.ended
        && !facts.closed
        && facts.blocked.is_none()
        && facts.tries < FAREWELL_TRIES
        && state.work.commit.is_some()
        && match settings.publish {
            Publish::None => false,
            Publish::Push => facts.pushed != state.work.commit,
            Publish::Pr => true,
        };
    if !due {
        return None;
    }
    Some(match facts.retry_at.filter(|at| *at > state.now) {
        Some(until) => Step::Wait { reason: "the code host does not answer".into(), until: Some(until) },
        None => Step::Publish(Due::HandOver),
    })
}

/// Puts changed tests into a draft on the code host, if the run has one, before asking about them. Tried only a few
/// times.
pub fn draft_first(state: &RunState, question: &NeedsHuman) -> Option<Step> {
    let facts = &state.handover;
    let told =
        facts.pr.as_ref().is_some_and(|pr| pr.why == PrOccasion::Asked) && facts.pushed == state.work.commit;
    let due = question.reason == HumanReason::TestsChanged
        && state.spec.settings.handover.has_pr()
        && state.work.commit.is_some()
        && !told
        && !facts.closed
        && facts.blocked.is_none()
        && facts.tries < FAREWELL_TRIES;
    if !due {
        return None;
    }
    Some(match facts.retry_at.filter(|at| *at > state.now) {
        Some(until) => Step::Wait { reason: "the code host does not answer".into(), until: Some(until) },
        None => Step::Publish(Due::Push),
    })
}

/// The poll interval if the code host reports changes itself: reports can get lost.
pub const SLOW_POLL: Duration = Duration::from_secs(600);

/// The time until the next poll of the code host: short at first, then longer.
pub fn next_poll(gate: Gate, looks: u32, first: Option<Duration>) -> Duration {
    let (usual, longest) = match gate {
        Gate::Checks => (Duration::from_secs(10), Duration::from_secs(120)),
        Gate::Review => (Duration::from_secs(30), Duration::from_secs(600)),
    };
    (first.unwrap_or(usual) * (1 << looks.min(8))).min(longest)
}

/// When a failed call to the code host is retried; `None` after too many failures.
pub fn next_try(tries: u32, first: Option<Duration>) -> Option<Duration> {
    let wait = first.unwrap_or(Duration::from_secs(5)) * (1 << tries.min(8));
    (tries + 1 < TRIES_MAX).then(|| wait.min(Duration::from_secs(300)))
}
