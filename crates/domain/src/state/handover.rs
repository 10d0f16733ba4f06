//! What the fold knows of the way to the code host: pushes, the pull request, its checks and reviews.

use super::{NeedsHuman, RunFacts};
use jiff::Timestamp;
use ralph_loop_protocol::event::{
    ChecksSeen, ChecksState, HandoverFailed, OverlapFound, OverlapWith, PrOccasion, PrWritten, Pushed,
    ReviewOutcome, ReviewSeen,
};
use ralph_loop_protocol::id::CommitId;
use ralph_loop_protocol::outcome::HumanReason;
use ralph_loop_protocol::text;
use ralph_loop_task::criterion::Check;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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
    /// The pull request says what its checks and reviewers made of it.
    #[serde(skip_serializing_if = "super::is_default")]
    pub told: bool,
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
    /// How many checks there were, all green, at the last look.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub green: Option<usize>,
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

impl RunFacts {
    /// Whether a criterion of the task is checked so.
    pub(crate) fn names_check(&self, check: &Check) -> bool {
        self.spec.task.criteria.iter().any(|criterion| criterion.check == *check)
    }

    /// Whether everything that the end waits for on the code host is there.
    fn gates_are_open(&self) -> bool {
        let proven = self.result.proof.as_ref().map(|proof| &proof.commit);
        let checks = self.spec.settings.handover.wait_for_checks || self.names_check(&Check::PrChecksPass);
        let review = self.names_check(&Check::PrApproved);
        (!checks || self.handover.checked.as_ref() == proven) && (!review || self.handover.approved.is_some())
    }

    pub(super) fn pushed(&mut self, news: &Pushed) {
        let facts = &mut self.handover;
        if news.commit.is_some() {
            facts.pushed.clone_from(&news.commit);
        }
        facts.state = Some(news.state.clone());
        facts.pushed_at = news.iteration;
        facts.reached();
    }

    pub(super) fn pr_written(&mut self, news: &PrWritten) {
        self.handover.pr = Some(PrFacts {
            number: news.number,
            url: news.url.clone(),
            draft: news.draft,
            why: news.why,
            met: news.met,
        });
        self.handover.told = news.why == PrOccasion::Proven && self.gates_are_open();
        self.handover.ended |= news.why == PrOccasion::Stopped;
        self.handover.reached();
    }

    pub(super) fn handover_failed(&mut self, news: &HandoverFailed) {
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
        facts.pushed_at = self.iterations.count;
    }

    pub(super) fn checks_seen(&mut self, news: &ChecksSeen, at: Timestamp) {
        self.handover.reached();
        self.handover.look(Gate::Checks, news.next, at);
        if let Some(gate) = &mut self.handover.gate {
            gate.green = (news.state == ChecksState::Passed).then_some(news.seen);
        }
        match news.state {
            // Others may still be to come: it is looked at once more.
            ChecksState::Passed if news.next.is_some() => {}
            ChecksState::Passed => {
                self.handover.checked = Some(news.commit.clone());
                self.met_by_host(&Check::PrChecksPass, true);
            }
            ChecksState::Failed => {
                let failing =
                    news.failing.iter().map(|name| format!("check `{name}` of the pull request failed"));
                self.sent_back(failing.collect(), &news.feedback);
            }
            // None at all is no pass.
            ChecksState::None if news.next.is_none() => {
                let waited = text::duration(self.spec.settings.handover.ci_appear);
                let what = match news.seen {
                    0 => "no check of the pull request appeared".to_owned(),
                    seen => format!(
                        "nothing was checked on the pull request: {} skipped or neutral, and no other appeared",
                        match seen {
                            1 => "its one check was".to_owned(),
                            seen => format!("all its {seen} checks were"),
                        }
                    ),
                };
                self.people.alarm = Some(NeedsHuman {
                    reason: HumanReason::Checks,
                    message: format!("{what} within {waited} (`ci_appear_minutes`)"),
                });
            }
            ChecksState::None | ChecksState::Pending => {}
        }
    }

    pub(super) fn review_seen(&mut self, news: &ReviewSeen, at: Timestamp) {
        let facts = &mut self.handover;
        facts.reached();
        facts.look(Gate::Review, news.next, at);
        facts.answered.extend(&news.answered);
        while facts.answered.len() > ANSWERED_MAX {
            facts.answered.pop_first();
        }
        match news.state {
            // An approval that was taken back is none.
            ReviewOutcome::Waiting => {
                facts.approved = None;
                self.met_by_host(&Check::PrApproved, false);
            }
            ReviewOutcome::Approved => {
                facts.approved = Some(news.by.clone().unwrap_or_else(|| "a user".into()));
                self.met_by_host(&Check::PrApproved, true);
            }
            ReviewOutcome::Merged => facts.merged = true,
            ReviewOutcome::Closed => facts.closed = true,
            ReviewOutcome::ChangesRequested => {
                let by = news.by.as_deref().unwrap_or("a reviewer");
                self.sent_back(vec![format!("{by} asks for changes")], &news.feedback);
            }
        }
    }

    pub(super) fn overlap_found(&mut self, news: &OverlapFound) {
        self.handover.overlap.clone_from(&news.prs);
        if news.pause && !news.prs.is_empty() {
            let list: Vec<String> =
                news.prs.iter().map(|pr| format!("#{} ({})", pr.number, pr.url)).collect();
            self.people.alarm = Some(NeedsHuman {
                reason: HumanReason::Overlap,
                message: format!("other pull requests touch the same files: {}", list.join(", ")),
            });
        }
    }

    /// The criteria that the code host decides are met, or are not any more.
    fn met_by_host(&mut self, check: &Check, met: bool) {
        let ids = self.spec.task.criteria.iter().filter(|c| c.check == *check).map(|c| c.id.clone());
        for id in ids.collect::<Vec<_>>() {
            if met {
                self.work.met.insert(id);
            } else {
                self.work.met.remove(&id);
            }
        }
    }

    /// What was handed over is not good enough: the work goes on with what was said of it.
    fn sent_back(&mut self, failed: Vec<String>, feedback: &str) {
        if let Some(tree) = self.work.tree.clone() {
            self.result.disproved = Some((tree, failed.clone()));
            self.result.refused = Vec::new();
        }
        if let Some(newest) = self.stuck.traces.back_mut() {
            newest.failure = Some(super::proof_failure(&failed));
        }
        self.result.proof = None;
        self.result.published = None;
        self.result.candidate = false;
        self.handover.gate = None;
        self.handover.checked = None;
        self.handover.approved = None;
        self.handover.told = false;
        self.met_by_host(&Check::PrChecksPass, false);
        self.met_by_host(&Check::PrApproved, false);
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
            green: None,
        });
    }

    /// A run that had ended goes on: its code host has not heard of the new end.
    pub(super) fn reopened(&mut self) {
        self.ended = false;
        self.try_again();
    }

    /// A person says to go on: everything may be tried again, and waits start anew.
    pub(super) fn try_again(&mut self) {
        self.reached();
        self.gate = None;
    }
}
