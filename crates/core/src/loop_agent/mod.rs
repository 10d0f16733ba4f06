//! The loop for other programs: built from ports, awaited like any future.
//!
//! [`LoopAgent::builder`] takes a sandbox, a workspace, agents, a task and its success conditions.
//! [`LoopAgent::run`] drives the run until it is proven, reaches a limit or needs the user. The run blocks a
//! separate thread, so any runtime works, and one process can run several. [`LoopAgent::handle`] steers it,
//! [`LoopAgent::events`] streams events.
#![warn(missing_docs)]

mod agent;
mod callbacks;
mod check;
mod events;
mod jobs;
mod result;
mod running;
mod settings;
mod shared;
mod steering;
mod turn;

pub use check::{CheckContext, CommandOutput};
pub use events::EventStream;
pub use result::LoopResult;
pub use running::Running;
pub use settings::builder::LoopAgentBuilder;
pub use settings::options::{BuildError, Completion, ContextFile, Limits};
pub use settings::source::{Driven, Hooks, RunSource};
pub use steering::AgentHandle;

use crate::handle::RalphStatus;
use crate::help::StuckContext;
use check::{OwnCheck, advice_fn};
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_protocol::event::Event;
use ralph_loop_protocol::id::Seq;
use ralph_loop_protocol::outcome::{ErrorCode, RunError};
use shared::Shared;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// One run of the loop with everything it needs. `Send` and `Sync`; see the [module](self).
pub struct LoopAgent {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for LoopAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopAgent").field("run", &self.handle().run_id()).finish()
    }
}

impl LoopAgent {
    /// A builder; it documents required parts and defaults.
    pub fn builder() -> LoopAgentBuilder {
        LoopAgentBuilder::default()
    }

    /// An agent over a run wired elsewhere.
    pub fn over(source: impl RunSource + 'static, checks: Vec<Completion>) -> Self {
        let checks = checks.into_iter().filter_map(Completion::own_check).collect();
        Self::of(Box::new(source), None, checks)
    }

    fn of(source: Box<dyn RunSource>, record: Option<RunDir>, checks: Vec<OwnCheck>) -> Self {
        Self { shared: Arc::new(Shared::new(source, record, checks)) }
    }

    /// Drives the run until it ends or needs the user. Calling it again resumes the same run after a
    /// suspension, a fixable error or a raised limit. Concurrent calls take turns.
    ///
    /// Dropping the future suspends the run cleanly; see [`Running`].
    pub fn run(&self) -> Running {
        Running::new(Arc::clone(&self.shared))
    }

    /// Like [`Self::run`], but fails unless the run resumes from this iteration (see
    /// [`LoopResult::resume_from`]). To start from an earlier one, fork it (`ralph fork RUN --at N`).
    pub fn resume_from(&self, iteration: u32) -> Result<Running, RunError> {
        let next =
            self.handle().record().and_then(|record| record.state().ok()).map(|s| s.iterations.count + 1);
        match next {
            Some(next) if next == iteration => Ok(self.run()),
            next => Err(RunError {
                code: ErrorCode::InvalidInput,
                message: format!(
                    "the run continues from iteration {}, not from {iteration}",
                    next.map_or_else(|| "1".to_owned(), |next| next.to_string())
                ),
                hint: Some(
                    "call `run()` to continue; run `ralph fork RUN --at N` to start from an earlier iteration"
                        .into(),
                ),
                recoverable: false,
                iteration: next,
            }),
        }
    }

    /// Watches and steers the run from any task or thread.
    pub fn handle(&self) -> AgentHandle {
        AgentHandle { shared: Arc::clone(&self.shared) }
    }

    /// Events from the first one on. Any number of streams may be open; none delays the run.
    pub fn events(&self) -> EventStream {
        self.events_after(Seq(0))
    }

    /// Events after `seq`.
    pub fn events_after(&self, seq: Seq) -> EventStream {
        EventStream::new(Arc::clone(&self.shared), seq)
    }

    /// Calls `call` for every event, on the driving thread.
    #[must_use]
    pub fn on_event(self, call: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.shared.callbacks().event.push(Arc::new(call));
        self
    }

    /// Calls `call` for each piece of agent text, redacted.
    #[must_use]
    pub fn on_token(self, call: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.shared.callbacks().token.push(Arc::new(call));
        self
    }

    /// Calls `call` with the status after each iteration and at the end.
    #[must_use]
    pub fn on_update(self, call: impl Fn(&RalphStatus) + Send + Sync + 'static) -> Self {
        self.shared.callbacks().update.push(Arc::new(call));
        self
    }

    /// Calls `call` when a run ends proven.
    #[must_use]
    pub fn on_complete(self, call: impl Fn(&LoopResult) + Send + Sync + 'static) -> Self {
        self.shared.callbacks().complete.push(Arc::new(call));
        self
    }

    /// Calls `call` when a run ends with an error.
    #[must_use]
    pub fn on_error(self, call: impl Fn(&RunError) + Send + Sync + 'static) -> Self {
        self.shared.callbacks().error.push(Arc::new(call));
        self
    }

    /// Asks `advise` when the run shows signs of being stuck and adds the answer to the next prompt. It runs
    /// where the run is awaited. The last advisor set is used.
    #[must_use]
    pub fn on_stuck<F, Fut>(self, advise: F) -> Self
    where
        F: Fn(StuckContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<String>> + Send + 'static,
    {
        self.shared.advisor().advise = Some(advice_fn(advise));
        self
    }

    /// Timeout for [`Self::on_stuck`]; 30 minutes by default. After that its future is dropped, an event
    /// reports it, and the run continues.
    #[must_use]
    pub fn on_stuck_timeout(self, timeout: Duration) -> Self {
        self.shared.advisor().timeout = timeout;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_its_handle_and_its_stream_go_anywhere() {
        fn shared<T: Send + Sync + 'static>() {}
        fn sent<T: Send + 'static>() {}
        shared::<LoopAgent>();
        shared::<AgentHandle>();
        sent::<Running>();
        sent::<EventStream>();
        sent::<LoopAgentBuilder>();
    }
}
