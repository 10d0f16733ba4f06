//! A run: its ledger (state and journal), its ports, and what only this process knows.

use crate::error::DriveError;
use crate::ledger::Ledger;
use crate::ports::{RunHooks, RunPorts};
use crate::resume::run_writer::RunWriter;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::live::follow::Follower;
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::id::{Seq, TreeId};
use ralph_loop_protocol::lease::DriverLease;
use std::collections::BTreeMap;
use std::ops::Deref;

/// A run that this process drives. [`create`](Self::create) or [`resume`](Self::resume) it, then
/// [`drive`](crate::driver::drive) it, or perform its steps one by one. Between steps it can move to another thread or
/// be dropped.
pub struct Run {
    pub(crate) ledger: Ledger,
    pub(crate) ports: RunPorts,
    pub(crate) session: SessionMemory,
    lease: DriverLease,
}

/// What only this process knows: what it saw before a session, for the checkpoint after it. Another process does
/// without it.
#[derive(Default)]
pub(crate) struct SessionMemory {
    /// The tree at the start of a read-only session.
    pub read_only_from: Option<TreeId>,
    /// Submodule contents before the session.
    pub submodules_before: Option<BTreeMap<String, String>>,
    /// Task version that this process wrote to the task file; another one compares the file with all versions.
    pub spec_version: u32,
}

impl Run {
    /// A run whose record this process writes.
    pub(crate) fn new(writer: RunWriter, mut ports: RunPorts) -> Self {
        let mut ledger = Ledger::new(
            writer.state,
            writer.journal,
            ports.dir.clone(),
            ports.home.clone(),
            ports.clock.clone(),
            ports.redactor.clone(),
            std::mem::take(&mut ports.observers),
            ports.cancel.clone(),
        );
        ledger.cooldowns.clone_from(&ports.cooldowns);
        ledger.custom_checks = std::mem::take(&mut ports.custom_checks);
        ledger.notifiers = std::mem::take(&mut ports.notifiers);
        let session = SessionMemory { spec_version: 1, ..SessionMemory::default() };
        Self { ledger, ports, session, lease: writer.lease }
    }

    pub(crate) fn into_ports(self) -> RunPorts {
        let ledger = self.ledger;
        RunPorts {
            observers: ledger.observer.into_all(),
            custom_checks: ledger.custom_checks,
            notifiers: ledger.notifiers,
            ..self.ports
        }
    }

    /// Adds observers, advisor and checks. New observers first get the events that this process already
    /// journaled.
    pub fn attach(&mut self, hooks: RunHooks) {
        let RunHooks { mut observers, on_stuck, custom_checks } = hooks;
        let events = Follower::new(&self.record_dir.events(), Seq(0)).poll().unwrap_or_default();
        let started = events.iter().rposition(|event| matches!(event.body, EventBody::DriverStarted { .. }));
        // The first process also reports the start of the run.
        let first =
            events.iter().filter(|event| matches!(event.body, EventBody::DriverStarted { .. })).count() <= 1;
        let from = if first { 0 } else { started.unwrap_or(0) };
        for event in &events[from..] {
            observers.iter_mut().for_each(|one| one.event(&self.ledger.state, event));
        }
        self.ledger.observer.add(observers);
        self.ledger.custom_checks.extend(custom_checks);
        if on_stuck.is_some() {
            self.ports.helpers.on_stuck = on_stuck;
        }
    }

    /// This process's lease, as journaled and written to the lock.
    pub fn lease(&self) -> &DriverLease {
        &self.lease
    }

    pub fn state(&self) -> &RunState {
        &self.ledger.state
    }

    /// Journals and folds an event, tells the observers and sends due notifications.
    pub(crate) fn record(&mut self, body: EventBody) -> Result<Event, DriveError> {
        self.ledger.record(body)
    }

    /// Journals a message for the user.
    pub(crate) fn notice(&mut self, message: impl Into<String>) -> Result<(), DriveError> {
        self.ledger.notice(message)
    }

    /// Adds to `errors.log`, which later prompts quote.
    pub(crate) fn error_entry(&mut self, heading: &str, body: &str) {
        self.ledger.error_entry(heading, body);
    }

    /// Writes user-facing logs, the snapshot and cooldowns; nothing depends on them.
    pub(crate) fn flush(&mut self) -> Result<(), DriveError> {
        self.ledger.flush()
    }

    /// Marks a point between two effects, for fault injection.
    pub(crate) fn boundary(&mut self, name: &str) {
        self.ledger.boundary(name);
    }
}

/// Reading needs no other name. What changes the ledger names it, so that ports can be used meanwhile.
impl Deref for Run {
    type Target = Ledger;

    fn deref(&self) -> &Ledger {
        &self.ledger
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_run_and_its_errors_may_move_to_another_thread() {
        fn is_send<T: Send>() {}
        is_send::<super::Run>();
        is_send::<super::RunPorts>();
        is_send::<super::DriveError>();
    }
}
