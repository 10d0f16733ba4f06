//! The fold's part about the code host: pushes, the pull request, its checks and reviews.

use super::{NeedsHuman, RunFacts};
use jiff::Timestamp;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::{
    ChecksSeen, ChecksState, HandoverFailed, OverlapFound, OverlapWith, PrOccasion, PrWritten, Pushed,
    ReviewOutcome, ReviewSeen,
};
use ralph_loop_protocol::id::CommitId;
use ralph_loop_protocol::outcome::HumanReason;
use ralph_loop_task::criterion::Check;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const ANSWERED_MAX: usize = 500;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoverFacts {
    pub pushed: Option<CommitId>,
    pub state: Option<CommitId>,
    /// The number of iterations at the last push.
    pub pushed_at: u32,
    pub pr: Option<PrFacts>,
    /// Failed tries in a row.
    pub tries: u32,
    /// When to try again.
    pub retry_at: Option<Timestamp>,
    /// Why retrying is pointless until the user acts.
    pub blocked: Option<String>,
    /// The end without success was handed over, or tried.
    pub ended: bool,
    pub gate: Option<GateFacts>,
    pub checked: Option<CommitId>,
    pub approved: Option<String>,
    /// The pull request has the results of its checks and reviews.
    #[serde(skip_serializing_if = "super::is_default")]
    pub told: bool,
    pub merged: bool,
    pub closed: bool,
    /// Reviews and comments that agents have received.
    pub answered: BTreeSet<u64>,
    /// Other pull requests on the same files, as last reported.
    pub overlap: Vec<OverlapWith>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrFacts {
    pub number: u64,
    pub url: String,
    pub draft: bool,
    pub why: PrOccasion,
    pub met: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateFacts {
    pub gate: Gate,
    pub since: Timestamp,
    pub looks: u32,
    pub next: Timestamp,
    /// How many checks there were, all green, at the last poll.
    #[serde(default, skip_serializing_if = "crate::state::is_default")]
    pub green: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    Checks,
    Review,
}

impl RunFacts {
    /// Whether the task has a criterion with this check.
    pub(crate) fn names_check(&self, check: &Check) -> bool {
        self.spec.task.criteria.iter().any(|criterion| criterion.check == *check)
    }

    /// Whether everything that the end requires of the code host is done.
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
        // Work continues; the next iteration tries again.
        facts.pushed_at = self.iterations.count;
    }

    pub(super) fn checks_seen(&mut self, news: &ChecksSeen, at: Timestamp) {
        self.handover.reached();
        self.handover.look(Gate::Checks, news.next, at);
        if let Some(gate) = &mut self.handover.gate {
            gate.green = (news.state == ChecksState::Passed).then_some(news.seen);
        }
        match news.state {
            // More may come: poll once more.
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
            // No checks don't count as passed.
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
            // A withdrawn approval doesn't count.
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

    /// The criteria that the code host decides are met, or no longer.
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

    /// The result was rejected: the work continues with the feedback.
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

    /// A finished run was resumed: its code host hasn't heard of the new end.
    pub(super) fn reopened(&mut self) {
        self.ended = false;
        self.try_again();
    }

    /// The user resumed: everything may be retried, and waits start over.
    pub(super) fn try_again(&mut self) {
        self.reached();
        self.gate = None;
    }
}
