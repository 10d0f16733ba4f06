//! The loop for programs that want it without the tool: built of ports, awaited like any future.
//!
//! [`LoopAgent::builder`] takes a sandbox, a workspace, one or more agents, a task and what makes it done;
//! [`LoopAgent::run`] drives the run until its result is proven, a limit is reached or a person is needed. The run itself
//! blocks on a thread of its own, so any runtime will do, and several agents may run in one process. [`LoopAgent::handle`]
//! steers it, [`LoopAgent::events`] streams what happens.

mod agent;
mod builder;
mod callbacks;
mod check;
mod events;
mod frozen;
mod jobs;
mod options;
mod refused;
mod result;
mod running;
mod shared;
mod source;
mod steering;
mod turn;

pub use builder::LoopAgentBuilder;
pub use check::{CheckContext, CommandOutput};
pub use events::EventStream;
pub use options::{BuildError, Completion, ContextFile, Limits};
pub use result::LoopResult;
pub use running::Running;
pub use source::{Driven, Hooks, RunSource};
pub use steering::AgentHandle;

use crate::handle::RalphStatus;
use crate::help::StuckContext;
use check::{OwnCheck, advice_fn};
use ralph_loop_journal::layout::RunDir;
use ralph_loop_protocol::event::Event;
use ralph_loop_protocol::id::Seq;
use ralph_loop_protocol::outcome::{ErrorCode, RunError};
use shared::Shared;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// One run of the loop, with everything that it needs. Send and Sync; see the [module](self).
pub struct LoopAgent {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for LoopAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoopAgent").field("run", &self.handle().run_id()).finish()
    }
}

impl LoopAgent {
    /// A builder; what must be told and what each default is stands there.
    pub fn builder() -> LoopAgentBuilder {
        LoopAgentBuilder::default()
    }

    /// An agent over a run that somebody else wires.
    pub fn over(source: impl RunSource + 'static, checks: Vec<Completion>) -> Self {
        let checks = checks.into_iter().filter_map(Completion::own_check).collect();
        Self::of(Box::new(source), None, checks)
    }

    fn of(source: Box<dyn RunSource>, record: Option<RunDir>, checks: Vec<OwnCheck>) -> Self {
        Self { shared: Arc::new(Shared::new(source, record, checks)) }
    }

    /// Drives the run to its end, or to where a person is needed. Called again, it goes on with the same run: after it was
    /// suspended, after an error that can be mended, after a limit was raised. Two calls at once take turns.
    ///
    /// Dropping the future suspends the run in good order; see [`Running`].
    pub fn run(&self) -> Running {
        Running::new(Arc::clone(&self.shared))
    }

    /// The same, for whoever kept the iteration of [`LoopResult::resume_from`]: refused where the run goes on from another one.
    /// An earlier one is where a fork begins (`ralph fork RUN --at N`).
    pub fn resume_from(&self, iteration: u32) -> Result<Running, RunError> {
        let next =
            self.handle().record().and_then(|record| record.state().ok()).map(|s| s.iterations.count + 1);
        match next {
            Some(next) if next == iteration => Ok(self.run()),
            next => Err(RunError {
                code: ErrorCode::InvalidInput,
                message: format!(
                    "the run goes on from iteration {}, not from {iteration}",
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

    /// Watches and steers the run, from any task or thread.
    pub fn handle(&self) -> AgentHandle {
        AgentHandle { shared: Arc::clone(&self.shared) }
    }

    /// What happens, from the first event on. Any number of streams may be open; none keeps the run waiting.
    pub fn events(&self) -> EventStream {
        self.events_after(Seq(0))
    }

    /// What happens after an event.
    pub fn events_after(&self, seq: Seq) -> EventStream {
        EventStream::new(Arc::clone(&self.shared), seq)
    }

    /// Calls `call` for every event, on the thread that drives the run.
    #[must_use]
    pub fn on_event(self, call: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.shared.callbacks().event.push(Arc::new(call));
        self
    }

    /// Calls `call` for each piece of text of the agent, as it comes, without secrets.
    #[must_use]
    pub fn on_token(self, call: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.shared.callbacks().token.push(Arc::new(call));
        self
    }

    /// Calls `call` with the status after each iteration, and at the end.
    #[must_use]
    pub fn on_update(self, call: impl Fn(&RalphStatus) + Send + Sync + 'static) -> Self {
        self.shared.callbacks().update.push(Arc::new(call));
        self
    }

    /// Calls `call` where a run ends proven.
    #[must_use]
    pub fn on_complete(self, call: impl Fn(&LoopResult) + Send + Sync + 'static) -> Self {
        self.shared.callbacks().complete.push(Arc::new(call));
        self
    }

    /// Calls `call` where a run ends with an error.
    #[must_use]
    pub fn on_error(self, call: impl Fn(&RunError) + Send + Sync + 'static) -> Self {
        self.shared.callbacks().error.push(Arc::new(call));
        self
    }

    /// Asks `advise` where the run shows signs of being stuck; what it answers is put into the next prompt. It runs where the
    /// run is awaited. The last one that is given counts.
    #[must_use]
    pub fn on_stuck<F, Fut>(self, advise: F) -> Self
    where
        F: Fn(StuckContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Option<String>> + Send + 'static,
    {
        self.shared.advisor().advise = Some(advice_fn(advise));
        self
    }

    /// Longest wait for the advice of [`Self::on_stuck`]; 30 minutes unless told. Then its future is dropped, an event says so,
    /// and the run goes on without.
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
