//! The handle on a run: from any task or thread, before, while and after it is driven.

use super::shared::{ACTOR, Shared};
use crate::handle::{AgentState, Iteration, RalphStatus, RunHandle};
use ralph_loop_journal::JournalError;
use ralph_loop_protocol::control::{BudgetChange, Control};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Cost;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Watches and steers the run of a [`LoopAgent`](super::LoopAgent). Everything that it says goes through the run's inbox and is
/// journalled; what is said before the run exists is sent to it first of all. Clones are the same handle.
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
    /// The run, once there is one.
    pub fn run_id(&self) -> Option<RunId> {
        let record = self.shared.record()?;
        RunId::parse(record.path().file_name()?.to_str()?).ok()
    }

    /// The run by its record alone, as other processes see it.
    pub fn record(&self) -> Option<RunHandle> {
        let record = self.shared.record().filter(|record| record.spec().is_file())?;
        Some(RunHandle::new(record, ACTOR))
    }

    /// Whether it is driven now, by this process.
    pub fn is_driven(&self) -> bool {
        self.shared.is_driven()
    }

    /// Waits until nobody of this process drives the run: it is over, suspended in good order, or was never begun. For whoever
    /// has dropped the future of [`LoopAgent::run`](super::LoopAgent::run) and wants to end the process.
    pub async fn rested(&self) {
        let rests = |cx: &mut Context<'_>| match self.shared.undriven_or_wakes(cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        };
        std::future::poll_fn(rests).await;
    }

    /// Ends the run after the session under way.
    pub fn stop(&self) -> Result<(), JournalError> {
        self.shared.say(Control::Stop)
    }

    /// Ends the run now: the session and every check, those of the caller included.
    pub fn force_stop(&self) -> Result<(), JournalError> {
        self.shared.say(Control::Cancel)?;
        self.shared.abort();
        Ok(())
    }

    /// Gives a hint to the next session.
    pub fn nudge(&self, text: impl Into<String>) -> Result<(), JournalError> {
        self.shared.say(Control::Nudge { text: text.into() })
    }

    /// Lets the run wait after the session under way.
    pub fn pause(&self) -> Result<(), JournalError> {
        self.shared.say(Control::Pause)
    }

    /// Lets a paused run go on.
    pub fn resume(&self) -> Result<(), JournalError> {
        self.shared.say(Control::Resume)
    }

    /// Gives the run other limits; what is left out stays. One that a limit ended goes on with the next
    /// [`LoopAgent::run`](super::LoopAgent::run).
    pub fn set_limits(&self, change: BudgetChange) -> Result<(), JournalError> {
        self.shared.say(Control::Budget(change))
    }

    /// Sends any other control.
    pub fn send(&self, control: Control) -> Result<(), JournalError> {
        self.shared.say(control)
    }

    /// Where the run stands.
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
