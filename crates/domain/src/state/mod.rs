//! The state of a run: the fold of its events. Whatever a reader wants to know is here or in an artifact named here;
//! nothing in it comes from anywhere but the journal.
//!
//! Everybody reads the [`RunFacts`] of a [`RunState`]; only the fold changes them.
//!
//! The state is bounded: however long a run lasts, it remembers totals, the latest check results and a short window of
//! iterations. That is what keeps iteration 2,000 as cheap as iteration 20.

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
pub use notifications::{NotificationFacts, OpenOccasion};
pub use run_facts::RunFacts;

use jiff::Timestamp;
use ralph_loop_protocol::event::Event;
use ralph_loop_task::spec::RunSpec;
use serde::{Deserialize, Serialize};
use std::ops::Deref;

/// Finished iterations that are remembered in short form.
pub const HISTORY: usize = 20;
const LETTERS: usize = 64;
const NUDGES: usize = 16;
const TOUCHED: usize = 500;

/// Whether a value is the usual one, so that files of a run need not name it.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The state of a run. It is read like the [`RunFacts`] it holds, and changes by events alone.
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

    /// Folds one event in.
    pub fn apply(&mut self, event: &Event) {
        self.facts.apply(event);
    }

    /// Time goes on without an event.
    pub fn tick(&mut self, now: Timestamp) {
        self.facts.now = self.facts.now.max(now);
    }

    /// Bytes of the inbox that hold nothing new: letters that were taken already.
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
    /// A state made by hand, as tests need one; that of a run is the fold of its events.
    fn from(facts: RunFacts) -> Self {
        Self { facts }
    }
}
