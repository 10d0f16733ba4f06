//! What is due between a run and its code host: pushes, the pull request, checks and reviews that are waited for. Pure, like
//! the rest of the decision.

use crate::config::Publish;
use crate::criterion::Check;
use crate::decide::Step;
use crate::event::{
    ChecksSeen, ChecksState, HandoverFailed, OverlapFound, OverlapWith, PrOccasion, PrWritten, Pushed,
    ReviewOutcome, ReviewSeen,
};
use crate::id::CommitId;
use crate::outcome::{EndReason, HumanReason};
use crate::state::{NeedsHuman, RunState};
use crate::text;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// Tries in a row before a person is asked.
const TRIES_MAX: u32 = 8;
/// Tries in a row for a run that ends without success.
const FAREWELL_TRIES: u32 = 3;
/// Ids of reviews that are remembered.
const ANSWERED_MAX: usize = 500;

/// What is known of the handover.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoverFacts {
    /// The commit that the branch has on the remote.
    pub pushed: Option<CommitId>,
    /// The commit that the state ref has there.
    pub state: Option<CommitId>,
    /// Finished iterations when it was last pushed.
    pub pushed_at: u32,
    /// The pull request.
    pub pr: Option<PrFacts>,
    /// Failed tries in a row.
    pub tries: u32,
    /// When to try again.
    pub retry_at: Option<Timestamp>,
    /// Why trying again is of no use until a person has done something.
    pub blocked: Option<String>,
    /// The end without success was handed over, or that was tried.
    pub ended: bool,
    /// What is waited for.
    pub gate: Option<GateFacts>,
    /// The commit whose checks are green.
    pub checked: Option<CommitId>,
    /// Who approved the pull request, once somebody has.
    pub approved: Option<String>,
    /// Merged by somebody.
    pub merged: bool,
    /// Closed by somebody.
    pub closed: bool,
    /// Reviews and comments that agents were given.
    pub answered: BTreeSet<u64>,
    /// Other pull requests on the same files, as last told.
    pub overlap: Vec<OverlapWith>,
}

/// The pull request of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrFacts {
    /// Its number.
    pub number: u64,
    /// Where people read it.
    pub url: String,
    /// Not yet for review.
    pub draft: bool,
    /// What it says: why it was last written.
    pub why: PrOccasion,
    /// Criteria met by then.
    pub met: usize,
}

/// A wait for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateFacts {
    /// For whom.
    pub gate: Gate,
    /// Since when.
    pub since: Timestamp,
    /// How often was looked.
    pub looks: u32,
    /// When to look again.
    pub next: Timestamp,
}

/// Who is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// The checks of the code host.
    Checks,
    /// A reviewer.
    Review,
}

/// Whether the task asks for green checks of its pull request.
pub fn needs_checks(state: &RunState) -> bool {
    state.spec.settings.handover.has_pr()
        && (state.spec.settings.handover.wait_for_checks || names(state, &Check::PrChecksPass))
}

/// Whether the task asks for an approval of its pull request.
pub fn needs_review(state: &RunState) -> bool {
    state.spec.settings.handover.has_pr() && names(state, &Check::PrApproved)
}

fn names(state: &RunState, check: &Check) -> bool {
    state.spec.task.criteria.iter().any(|criterion| criterion.check == *check)
}

/// Whether the work and the state of the last iterations are still to be pushed. Work goes on where that fails: the next
/// iteration is the next try.
pub fn push_is_due(state: &RunState) -> bool {
    let facts = &state.handover;
    state.spec.settings.handover.pushes()
        && state.iterations > facts.pushed_at
        && facts.blocked.is_none()
        && facts.retry_at.is_none_or(|at| state.now >= at)
}

/// What comes after the proof: hand over, wait for checks and people, end.
pub fn after_proof(state: &RunState, summary: impl FnOnce() -> String) -> Step {
    let facts = &state.handover;
    let proven = state.proof.as_ref().map(|proof| &proof.commit);
    if state.published.is_none() {
        if let Some(why) = &facts.blocked {
            return ask(HumanReason::Publish, format!("the proven result cannot be handed over: {why}"));
        }
        return match facts.retry_at.filter(|at| *at > state.now) {
            Some(until) => Step::Wait { reason: "the code host does not answer".into(), until: Some(until) },
            None => Step::Publish,
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
    done
}

fn gate(state: &RunState, gate: Gate, limit: Duration) -> Step {
    let look = match gate {
        Gate::Checks => Step::LookAtChecks,
        Gate::Review => Step::LookAtReview,
    };
    let facts = &state.handover;
    if let Some(why) = &facts.blocked {
        return ask(HumanReason::Publish, format!("the pull request cannot be looked at: {why}"));
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
            Gate::Review => ask(HumanReason::Review, format!("nobody approved {url} in {waited}")),
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
    Step::AskPerson(NeedsHuman { reason, message })
}

/// What a run that ends without success still has to say on its code host, if anything. Tried a few times only: an end is
/// an end.
pub fn farewell(state: &RunState, reason: EndReason) -> Option<Step> {
    let settings = &state.spec.settings.handover;
    let facts = &state.handover;
    let due = reason != EndReason::Completed
        && !facts.ended
        && !facts.closed
        && facts.blocked.is_none()
        && facts.tries < FAREWELL_TRIES
        && state.work.is_some()
        && match settings.publish {
            Publish::None => false,
            Publish::Push => facts.pushed != state.work,
            Publish::Pr => true,
        };
    if !due {
        return None;
    }
    Some(match facts.retry_at.filter(|at| *at > state.now) {
        Some(until) => Step::Wait { reason: "the code host does not answer".into(), until: Some(until) },
        None => Step::Publish,
    })
}

/// When a look at the code host is repeated: often at first, then less and less.
pub fn next_look(gate: Gate, looks: u32, first: Option<Duration>) -> Duration {
    let (usual, longest) = match gate {
        Gate::Checks => (Duration::from_secs(10), Duration::from_secs(120)),
        Gate::Review => (Duration::from_secs(30), Duration::from_secs(600)),
    };
    (first.unwrap_or(usual) * (1 << looks.min(8))).min(longest)
}

/// When a failed call to the code host is repeated; `None` once it failed too often.
pub fn next_try(tries: u32, first: Option<Duration>) -> Option<Duration> {
    let wait = first.unwrap_or(Duration::from_secs(5)) * (1 << tries.min(8));
    (tries + 1 < TRIES_MAX).then(|| wait.min(Duration::from_secs(300)))
}

impl RunState {
    pub(crate) fn pushed(&mut self, news: &Pushed) {
        let facts = &mut self.handover;
        if news.commit.is_some() {
            facts.pushed.clone_from(&news.commit);
        }
        facts.state = Some(news.state.clone());
        facts.pushed_at = news.iteration;
        facts.reached();
    }

    pub(crate) fn pr_written(&mut self, news: &PrWritten) {
        self.handover.pr = Some(PrFacts {
            number: news.number,
            url: news.url.clone(),
            draft: news.draft,
            why: news.why,
            met: news.met,
        });
        self.handover.ended |= news.why == PrOccasion::Stopped;
        self.handover.reached();
    }

    pub(crate) fn handover_failed(&mut self, news: &HandoverFailed) {
        let facts = &mut self.handover;
        facts.tries += 1;
        facts.retry_at = news.retry_at;
        if news.retry_at.is_none() {
            facts.blocked = Some(match &news.hint {
                Some(hint) => format!("{}; {hint}", news.reason),
                None => news.reason.clone(),
            });
        }
        // Work goes on; the next iteration is the next try.
        facts.pushed_at = self.iterations;
    }

    pub(crate) fn checks_seen(&mut self, news: &ChecksSeen, at: Timestamp) {
        self.handover.reached();
        self.handover.look(Gate::Checks, news.next, at);
        match news.state {
            ChecksState::Passed => self.handover.checked = Some(news.commit.clone()),
            ChecksState::Failed => {
                let failing =
                    news.failing.iter().map(|name| format!("check `{name}` of the pull request failed"));
                self.sent_back(failing.collect(), &news.feedback);
            }
            // None at all is no pass of a criterion; where checks were only to be awaited, there is nothing to await.
            ChecksState::None if news.next.is_none() && !names(self, &Check::PrChecksPass) => {
                self.handover.checked = Some(news.commit.clone());
            }
            ChecksState::None if news.next.is_none() => {
                self.alarm = Some(NeedsHuman {
                    reason: HumanReason::Checks,
                    message: "the pull request has no checks, but a criterion asks for green ones".into(),
                });
            }
            ChecksState::None | ChecksState::Pending => {}
        }
    }

    pub(crate) fn review_seen(&mut self, news: &ReviewSeen, at: Timestamp) {
        let facts = &mut self.handover;
        facts.reached();
        facts.look(Gate::Review, news.next, at);
        facts.answered.extend(&news.answered);
        while facts.answered.len() > ANSWERED_MAX {
            facts.answered.pop_first();
        }
        match news.state {
            ReviewOutcome::Waiting => {}
            ReviewOutcome::Approved => {
                facts.approved = Some(news.by.clone().unwrap_or_else(|| "somebody".into()));
            }
            ReviewOutcome::Merged => facts.merged = true,
            ReviewOutcome::Closed => facts.closed = true,
            ReviewOutcome::ChangesRequested => {
                let by = news.by.as_deref().unwrap_or("a reviewer");
                self.sent_back(vec![format!("{by} asks for changes")], &news.feedback);
            }
        }
    }

    pub(crate) fn overlap_found(&mut self, news: &OverlapFound) {
        self.handover.overlap.clone_from(&news.prs);
        if news.pause && !news.prs.is_empty() {
            let list: Vec<String> =
                news.prs.iter().map(|pr| format!("#{} ({})", pr.number, pr.url)).collect();
            self.alarm = Some(NeedsHuman {
                reason: HumanReason::Overlap,
                message: format!("other pull requests touch the same files: {}", list.join(", ")),
            });
        }
    }

    /// What was handed over is not good enough: the work goes on with what was said of it.
    fn sent_back(&mut self, failed: Vec<String>, feedback: &str) {
        if let Some(tree) = self.tree.clone() {
            self.disproved = Some((tree, failed.clone()));
        }
        self.proof = None;
        self.published = None;
        self.candidate = false;
        self.handover.gate = None;
        self.handover.checked = None;
        self.handover.approved = None;
        self.nudge(format!("The work was handed over, but {}.\n{feedback}", failed.join("; ")));
    }
}

impl HandoverFacts {
    /// The host answered.
    fn reached(&mut self) {
        self.tries = 0;
        self.retry_at = None;
        self.blocked = None;
    }

    fn look(&mut self, gate: Gate, next: Option<Timestamp>, at: Timestamp) {
        let before = self.gate.filter(|facts| facts.gate == gate);
        self.gate = next.map(|next| GateFacts {
            gate,
            since: before.map_or(at, |facts| facts.since),
            looks: before.map_or(0, |facts| facts.looks) + 1,
            next,
        });
    }

    /// A person says to go on: everything may be tried again, and waits start anew.
    pub(crate) fn try_again(&mut self) {
        self.reached();
        self.gate = None;
    }
}
