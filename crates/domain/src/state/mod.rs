//! The state of a run: the fold of its events. Everything that a reader needs is here or in an artifact named here,
//! and all of it comes from the journal.
//!
//! Others read the [`RunFacts`] of a [`RunState`]; only the fold changes them.
//!
//! The state is bounded: however long a run lasts, it keeps totals, the latest check results and a short window of
//! iterations, so iteration 2,000 is as cheap as iteration 20.

mod compute;
mod controls;
mod done;
mod facts;
mod fold;
mod groups;
mod gutter;
mod handover;
mod notifications;
mod reading;
mod run_facts;

pub use compute::{Compute, SandboxUse};
pub use facts::{
    AgentTotals, ChangeFacts, Current, Finished, Gutter, IterationSummary, NeedsHuman, ProofFacts, Published,
    RoleFindings, SessionFacts, Stage, Totals, WaitFacts,
};
pub use fold::proof_failure;
pub use groups::{
    AgentFacts, BestFiles, HelperTotals, IterationFacts, PeopleFacts, ResultFacts, SpendingFacts, StuckFacts,
    WorkFacts,
};
pub use handover::{Gate, GateFacts, HandoverFacts, PrFacts};
pub use notifications::{NotificationFacts, PendingNotification};
pub use run_facts::RunFacts;

use jiff::Timestamp;
use ralph_loop_protocol::event::Event;
use ralph_loop_task::spec::RunSpec;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// How many finished iterations are kept in short form.
pub const HISTORY: usize = 20;
const LETTERS: usize = 64;
const NUDGES: usize = 16;
const TOUCHED: usize = 500;

/// Default values aren't written to a run's files.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The state of a run. It is read through its [`RunFacts`], and only events change it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunState {
    facts: RunFacts,
}

impl RunState {
    /// The state before the first event.
    pub fn new(spec: RunSpec) -> Self {
        Self { facts: RunFacts::new(spec) }
    }

    pub fn apply(&mut self, event: &Event) {
        self.facts.apply(event);
    }

    /// Advances the time without an event.
    pub fn tick(&mut self, now: Timestamp) {
        self.facts.now = self.facts.now.max(now);
    }

    /// Skips bytes of the inbox: letters that were already processed.
    pub fn pass_over_inbox(&mut self, up_to: u64) {
        self.facts.people.inbox = up_to;
    }
}

impl Deref for RunState {
    type Target = RunFacts;
    fn deref(&self) -> &RunFacts {
        &self.facts
    }
}

impl From<RunFacts> for RunState {
    /// For tests only; a run's state is the fold of its events.
    fn from(facts: RunFacts) -> Self {
        Self { facts }
    }
}
