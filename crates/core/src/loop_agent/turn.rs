//! State of one call of `run`, separate from all other calls of the same agent.

use super::jobs::Jobs;
use super::result::LoopResult;
use crate::cancel::CancelToken;
use ralph_loop_protocol::outcome::{EndReason, ErrorCode, RunError};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Length limit of a reported panic message.
const WORDS_MAX: usize = 300;

/// Shared between one call of `run` and its driving thread. Each call has its own, so that a late end of one
/// doesn't end the next.
#[derive(Clone, Default)]
pub(super) struct Turn {
    /// Futures on their way to the awaiting task.
    pub(super) jobs: Arc<Jobs>,
    /// Suspends the run.
    pub(super) cancel: Arc<CancelToken>,
    /// Don't wait for closures of the caller.
    abort: Arc<AtomicBool>,
    /// The first panic message.
    broke: Arc<Mutex<Option<String>>>,
}

impl Turn {
    pub(super) fn abort(&self) {
        self.abort.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.abort.load(Ordering::SeqCst)
    }

    /// The run isn't awaited any more, so suspend it.
    pub(super) fn give_up(&self) {
        self.cancel.set(CancelToken::CALLER);
        self.abort();
        self.jobs.close();
    }

    /// A closure of the caller panicked: suspends the run and reports it in the result.
    pub(super) fn note_panic(&self, panic: &(dyn Any + Send)) {
        let mut broke = self.broke.lock().unwrap_or_else(PoisonError::into_inner);
        broke.get_or_insert_with(|| words_of(panic));
        drop(broke);
        self.cancel.set(CancelToken::CALLER);
        self.abort();
    }

    /// Calls a closure of the caller, unless one panicked before.
    pub(super) fn call(&self, call: impl FnOnce()) {
        if self.broken().is_none()
            && let Err(panic) = catch_unwind(AssertUnwindSafe(call))
        {
            self.note_panic(&*panic);
        }
    }

    fn broken(&self) -> Option<String> {
        self.broke.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The result for the caller: a run suspended by a panic says so, a finished one stays finished.
    pub(super) fn with_panic(&self, mut result: LoopResult) -> LoopResult {
        if let Some(words) = self.broken().filter(|_| result.run.reason == EndReason::Suspended) {
            // The wiring is intact.
            let hint =
                Some("fix it, then call `run()` again, or build an agent with `.resume(run_id)`".to_owned());
            let error = RunError { hint, ..broke(&words, Some(result.run.iterations + 1)) };
            result.run.reason = EndReason::Error;
            result.run.summary.clone_from(&error.message);
            result.run.error = Some(error);
        }
        result
    }
}

/// A panic's message.
pub(super) fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    ralph_loop_protocol::display::text::one_line(&words, WORDS_MAX)
}

/// The error for a panic in the caller's code.
pub(super) fn broke(words: &str, iteration: Option<u32>) -> RunError {
    RunError {
        code: ErrorCode::IterationFailed,
        message: format!("code that the run called broke: {words}"),
        hint: Some("mend it, then build an agent with `.resume(run_id)`: the journal is safe".into()),
        recoverable: true,
        iteration,
    }
}
