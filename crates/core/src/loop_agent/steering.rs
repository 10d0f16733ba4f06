//! The run's handle, usable from any task or thread, before, during and after driving.

use super::shared::{ACTOR, Shared};
use crate::handle::{AgentState, Iteration, RalphStatus, RunHandle};
use ralph_loop_journal::JournalError;
use ralph_loop_protocol::control::{BudgetChange, Control};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Cost;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Watches and steers the run of a [`LoopAgent`](super::LoopAgent). Controls go through the run's inbox and
/// are journaled; those sent before the run exists are delivered first. Clones share one handle.
#[derive(Clone)]
pub struct AgentHandle {
    pub(super) shared: Arc<Shared>,
}

impl std::fmt::Debug for AgentHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentHandle").field("run", &self.run_id()).finish()
    }
}

impl AgentHandle {
    /// The run's id, once it exists.
    pub fn run_id(&self) -> Option<RunId> {
        let record = self.shared.record()?;
        RunId::parse(record.path().file_name()?.to_str()?).ok()
    }

    /// The run as other processes see it, through its record.
    pub fn record(&self) -> Option<RunHandle> {
        let record = self.shared.record().filter(|record| record.spec().is_file())?;
        Some(RunHandle::new(record, ACTOR))
    }

    /// Whether this process is driving it.
    pub fn is_driven(&self) -> bool {
        self.shared.is_driven()
    }

    /// Waits until this process doesn't drive the run: it is over, suspended or never started. Call this
    /// after dropping the future of [`LoopAgent::run`](super::LoopAgent::run), before ending the process.
    pub async fn rested(&self) {
        let rests = |cx: &mut Context<'_>| match self.shared.undriven_or_wakes(cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        };
        std::future::poll_fn(rests).await;
    }

    /// Ends the run after the current session.
    pub fn stop(&self) -> Result<(), JournalError> {
        self.shared.say(Control::Stop)
    }

    /// Ends the run immediately, including sessions and checks.
    pub fn force_stop(&self) -> Result<(), JournalError> {
        self.shared.say(Control::Cancel)?;
        self.shared.abort();
        Ok(())
    }

    /// Sends a hint for the next session.
    pub fn nudge(&self, text: impl Into<String>) -> Result<(), JournalError> {
        self.shared.say(Control::Nudge { text: text.into() })
    }

    /// Pauses the run after the current session.
    pub fn pause(&self) -> Result<(), JournalError> {
        self.shared.say(Control::Pause)
    }

    /// Unpauses the run.
    pub fn resume(&self) -> Result<(), JournalError> {
        self.shared.say(Control::Resume)
    }

    /// Changes limits; omitted ones stay. A run ended by a limit resumes with the next
    /// [`LoopAgent::run`](super::LoopAgent::run).
    pub fn set_limits(&self, change: BudgetChange) -> Result<(), JournalError> {
        self.shared.say(Control::Budget(change))
    }

    /// Sends any control.
    pub fn send(&self, control: Control) -> Result<(), JournalError> {
        self.shared.say(control)
    }

    /// The run's status.
    pub fn status(&self) -> Result<RalphStatus, JournalError> {
        match self.record() {
            Some(record) => record.status(),
            None => Ok(not_begun()),
        }
    }

    /// Every finished iteration, oldest first, with its diff.
    pub fn history(&self) -> Result<Vec<Iteration>, JournalError> {
        self.record().map_or_else(|| Ok(Vec::new()), |record| record.history())
    }
}

fn not_begun() -> RalphStatus {
    RalphStatus {
        id: None,
        state: AgentState::Initializing,
        iteration: 0,
        cost: Cost::default(),
        elapsed: Duration::ZERO,
        last_actions: Vec::new(),
        current_file: None,
        processes: Vec::new(),
        browsers: Vec::new(),
        best: None,
    }
}
