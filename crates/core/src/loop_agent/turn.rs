//! One call of `run`: what it needs that no other call of the same agent may touch.

use super::jobs::Jobs;
use super::result::LoopResult;
use crate::context::CancelFlag;
use ralph_loop_protocol::outcome::{EndReason, ErrorCode, RunError};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Characters of a panic's message that are told.
const WORDS_MAX: usize = 300;

/// What one call of `run` shares with the thread that drives for it. The next call has its own, so that the end of this one,
/// whenever it is noticed, ends nothing of that.
#[derive(Clone, Default)]
pub(super) struct Turn {
    /// Futures on their way to whoever awaits.
    pub(super) jobs: Arc<Jobs>,
    /// Suspends the run.
    pub(super) cancel: Arc<CancelFlag>,
    /// What must end at once: a closure of the caller is not waited for.
    abort: Arc<AtomicBool>,
    /// What the first closure that broke said.
    broke: Arc<Mutex<Option<String>>>,
}

impl Turn {
    /// No closure of the caller is waited for any more.
    pub(super) fn abort(&self) {
        self.abort.store(true, Ordering::SeqCst);
    }

    /// Whether that is so.
    pub(super) fn is_aborted(&self) -> bool {
        self.abort.load(Ordering::SeqCst)
    }

    /// Nobody awaits any more: the run is suspended.
    pub(super) fn give_up(&self) {
        self.cancel.set(CancelFlag::CALLER);
        self.abort();
        self.jobs.close();
    }

    /// A closure of the caller broke: the run is suspended, and its result says so.
    pub(super) fn note_panic(&self, panic: &(dyn Any + Send)) {
        let mut broke = self.broke.lock().unwrap_or_else(PoisonError::into_inner);
        broke.get_or_insert_with(|| words_of(panic));
        drop(broke);
        self.cancel.set(CancelFlag::CALLER);
        self.abort();
    }

    /// Calls a closure of the caller, unless one broke before.
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

    /// The result as the caller hears it: a run that was suspended because a closure broke says why. One that is over stays so.
    pub(super) fn told(&self, mut result: LoopResult) -> LoopResult {
        if let Some(words) = self.broken().filter(|_| result.run.reason == EndReason::Suspended) {
            // What the run was wired with is all there.
            let hint =
                Some("mend it; `run()` goes on, and so does an agent with `.resume(run_id)`".to_owned());
            let error = RunError { hint, ..broke(&words, Some(result.run.iterations + 1)) };
            result.run.reason = EndReason::Error;
            result.run.summary.clone_from(&error.message);
            result.run.error = Some(error);
        }
        result
    }
}

/// What a panic said.
pub(super) fn words_of(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let words = words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    ralph_loop_protocol::text::one_line(&words, WORDS_MAX)
}

/// The error of a run whose caller's code broke.
pub(super) fn broke(words: &str, iteration: Option<u32>) -> RunError {
    RunError {
        code: ErrorCode::IterationFailed,
        message: format!("code that the run called broke: {words}"),
        hint: Some("mend it, then build an agent with `.resume(run_id)`: the journal is safe".into()),
        recoverable: true,
        iteration,
    }
}
