//! A run as a future.

use super::jobs::{Job, Slot};
use super::result::LoopResult;
use super::shared::Shared;
use super::turn::{Turn, broke, words_of};
use crate::loop_agent::settings::source::{Driven, RunSource};
use ralph_loop_journal::folder::snapshot;
use ralph_loop_protocol::outcome::{ErrorCode, RunError};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// A run driven on a separate thread while this future is awaited.
///
/// Nothing happens before the first poll. Dropping it suspends the run: the current work ends cleanly,
/// everything it started is gone, and the journal is on disk. A later
/// [`LoopAgent::run`](super::LoopAgent::run) waits for that and resumes.
#[must_use = "a run does nothing unless it is awaited"]
pub struct Running {
    shared: Arc<Shared>,
    turn: Turn,
    /// The result, once a thread drives.
    result: Option<Slot<LoopResult>>,
    /// Futures of the caller that the run waits for.
    jobs: Vec<Job>,
    done: bool,
}

impl Running {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, turn: Turn::default(), result: None, jobs: Vec::new(), done: false }
    }

    fn start(&mut self, source: Box<dyn RunSource>) {
        let (result, filler) = Slot::new();
        self.turn.jobs.open();
        self.result = Some(result);
        let (shared, turn) = (Arc::clone(&self.shared), self.turn.clone());
        // If no thread can be started, the closure is lost; the source must not be.
        let kept = Arc::new(Mutex::new(Some(source)));
        let taken = Arc::clone(&kept);
        let work = move || {
            let Some(source) = take(&taken) else { return };
            let (result, source) = drive(&shared, source, &turn);
            let callbacks = shared.callbacks().clone();
            // Panics in callbacks don't matter any more: the run is over.
            let _ = catch_unwind(AssertUnwindSafe(|| callbacks.ended(&result)));
            // Publish the result before releasing the source, so that the awaiting task sees its own run's end.
            filler.fill(result);
            shared.rest(source);
        };
        if std::thread::Builder::new().name("ralph-run".into()).spawn(work).is_err()
            && let Some(source) = take(&kept)
        {
            self.shared.rest(source);
        }
    }
}

fn take<T>(from: &Mutex<Option<T>>) -> Option<T> {
    from.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Drives a run until it stops. The source survives panics in the caller's closures.
fn drive(
    shared: &Arc<Shared>,
    mut source: Box<dyn RunSource>,
    turn: &Turn,
) -> (LoopResult, Box<dyn RunSource>) {
    let hooks = shared.hooks(turn);
    let driven = catch_unwind(AssertUnwindSafe(|| -> Result<Driven, RunError> {
        let record = source.begin(hooks)?;
        shared.begun(record);
        Ok(source.drive())
    }));
    let state = || shared.record().and_then(|record| snapshot::load(&record).ok());
    let result = match driven {
        Ok(Ok(Driven { result, diff })) => {
            let said =
                state().and_then(|state| state.iterations.history.back().map(|last| last.message.clone()));
            turn.with_panic(LoopResult {
                run: result,
                diff,
                agent_summary: said.filter(|text| !text.is_empty()),
            })
        }
        Ok(Err(error)) => LoopResult::refused(error),
        // A caller's port panicked: its wiring is lost, the record isn't.
        Err(panic) => {
            let state = state();
            let iteration = state.as_ref().map(|state| state.iterations.count + 1);
            let result = LoopResult::refused(broke(&words_of(&*panic), iteration));
            match (state, shared.record()) {
                (Some(state), Some(record)) => result.of_record(&state, record.path()),
                _ => result,
            }
        }
    };
    (result, source)
}

impl Future for Running {
    type Output = LoopResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<LoopResult> {
        let this = &mut *self;
        if this.result.is_none() {
            let Some(source) = this.shared.take_source(&this.turn, cx.waker()) else { return Poll::Pending };
            this.start(source);
        }
        loop {
            let new = this.turn.jobs.take(cx.waker());
            let fresh = !new.is_empty();
            this.jobs.extend(new);
            this.jobs.retain_mut(|job| job.is_pending(cx));
            if !fresh {
                break;
            }
        }
        let Some(result) = &mut this.result else { return Poll::Pending };
        match Pin::new(result).poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(result) => {
                this.done = true;
                this.jobs.clear();
                this.turn.jobs.close();
                Poll::Ready(result.unwrap_or_else(|| LoopResult::refused(no_thread())))
            }
        }
    }
}

fn no_thread() -> RunError {
    RunError {
        code: ErrorCode::SandboxInitFailed,
        message: "the thread that drives the run could not be started".into(),
        hint: Some("let other threads end, then await `run()` again".into()),
        recoverable: true,
        iteration: None,
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.result.is_some() && !self.done {
            self.turn.give_up();
        }
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("driven", &self.result.is_some()).finish_non_exhaustive()
    }
}
