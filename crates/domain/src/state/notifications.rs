//! The fold's part about notifications: occasions, and which were reported.

use super::{Gate, RunFacts};
use crate::state::ProofFacts;
use jiff::Timestamp;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::{Event, EventBody, ReviewOutcome};
use ralph_loop_protocol::id::Seq;
use ralph_loop_protocol::notification::Occasion;
use ralph_loop_protocol::outcome::EndReason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Most occasions kept, so that a run without notifications doesn't grow.
const OPEN: usize = 8;
const DETAIL: usize = 600;

/// Occasions that people may want to be notified of.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NotificationFacts {
    pub open: Vec<PendingNotification>,
    /// The end of the last wait for a limit: continuing it after a restart isn't a new occasion.
    pub waited_until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingNotification {
    pub of: Seq,
    pub at: Timestamp,
    pub occasion: Occasion,
    pub detail: String,
    /// Notifiers that have sent it, or failed to.
    pub told: BTreeSet<String>,
}

impl RunFacts {
    pub(super) fn note_occasion(&mut self, event: &Event) {
        match &event.body {
            EventBody::RunCreated { title, .. } => self.arose(event, Occasion::Start, title),
            EventBody::NeedsHuman { message, .. } => self.arose(event, Occasion::NeedsHuman, message),
            EventBody::Gutter { evidence, .. } => self.arose(event, Occasion::Gutter, &evidence.join("; ")),
            EventBody::WaitStarted { reason, until: Some(until) } => {
                // Other waits (for checks, for a review) don't end with an agent's rest.
                let for_limit = self.agents.cooldowns.values().any(|rest| rest.until == *until);
                if for_limit && self.telling.waited_until != Some(*until) {
                    self.telling.waited_until = Some(*until);
                    self.arose(event, Occasion::LimitWait, reason);
                }
            }
            EventBody::Finished { reason, summary } => {
                let done = *reason == EndReason::Completed;
                let occasion = if done { Occasion::Success } else { Occasion::Failure };
                self.arose(event, occasion, summary);
            }
            // Only the first poll of a pending review.
            EventBody::ReviewSeen(news) if news.state == ReviewOutcome::Waiting => {
                let first = self.handover.gate.is_none_or(|gate| gate.gate != Gate::Review);
                if let Some(pr) = self.handover.pr.as_ref().filter(|_| first) {
                    let headline = self.result.proof.as_ref().map(ProofFacts::headline).unwrap_or_default();
                    let detail = format!("approve the pull request: {} ({headline})", pr.url);
                    self.arose(event, Occasion::NeedsHuman, &detail);
                }
            }
            EventBody::Notified(told) => {
                let open = self.telling.open.iter_mut().find(|open| open.of == told.of);
                if let Some(open) = open {
                    open.told.insert(told.by.clone());
                }
            }
            // Notifications were sent before the work continued.
            EventBody::IterationStarted { .. } => self.telling.open.clear(),
            _ => {}
        }
    }

    /// Records an occasion of `event`.
    pub(super) fn arose(&mut self, event: &Event, occasion: Occasion, detail: &str) {
        if self.telling.open.len() >= OPEN {
            self.telling.open.remove(0);
        }
        self.telling.open.push(PendingNotification {
            of: event.seq,
            at: event.at,
            occasion,
            detail: one_line(detail, DETAIL),
            told: BTreeSet::new(),
        });
    }
}
