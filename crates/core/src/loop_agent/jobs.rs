//! Moves futures from the driving thread to the task that awaits the run. The caller's async closures are
//! polled there, so they find their runtime.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A future that owns all it needs.
pub(super) struct Job {
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Its receiver is gone.
    gone: Arc<AtomicBool>,
}

impl Job {
    /// Polls it; returns whether more is to come.
    pub(super) fn is_pending(&mut self, cx: &mut Context<'_>) -> bool {
        !self.gone.load(Ordering::SeqCst) && self.future.as_mut().poll(cx).is_pending()
    }
}

/// A future that the driving thread waits for; dropped where it is polled when the wait ends.
pub(super) struct Spawned<'a> {
    jobs: &'a Jobs,
    gone: Arc<AtomicBool>,
}

impl Drop for Spawned<'_> {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        let waker = self.jobs.queue().waker.clone();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A caller's future; a panic becomes its result.
pub(super) struct Caught<F>(Pin<Box<F>>);

impl<F: Future> Caught<F> {
    pub(super) fn new(future: F) -> Self {
        Self(Box::pin(future))
    }
}

impl<F: Future> Future for Caught<F> {
    type Output = Result<F::Output, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.0.as_mut();
        match catch_unwind(AssertUnwindSafe(|| future.poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

/// Polling interval for cancellation while waiting for a future.
const LOOK: Duration = Duration::from_millis(100);

/// Futures on their way to the task that awaits the run.
#[derive(Default)]
pub(super) struct Jobs {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    new: Vec<Job>,
    /// The awaiting task, once polled.
    waker: Option<Waker>,
    /// Whether the run is awaited.
    open: bool,
}

impl Jobs {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the run as awaited.
    pub(super) fn open(&self) {
        self.queue().open = true;
    }

    /// Marks the run as not awaited: drops waiting futures and notifies their waiters.
    pub(super) fn close(&self) {
        let dropped = {
            let mut queue = self.queue();
            queue.open = false;
            queue.waker = None;
            std::mem::take(&mut queue.new)
        };
        drop(dropped);
    }

    /// New futures since the last call; `waker` is woken for more.
    pub(super) fn take(&self, waker: &Waker) -> Vec<Job> {
        let mut queue = self.queue();
        queue.waker = Some(waker.clone());
        std::mem::take(&mut queue.new)
    }

    /// Runs `future` where the run is awaited; dropped if it isn't awaited, or with the returned guard.
    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> Spawned<'_> {
        let gone = Arc::new(AtomicBool::new(false));
        let mut queue = self.queue();
        if queue.open {
            queue.new.push(Job { future: Box::pin(future), gone: Arc::clone(&gone) });
            let waker = queue.waker.clone();
            drop(queue);
            waker.into_iter().for_each(Waker::wake);
        }
        Spawned { jobs: self, gone }
    }

    /// Runs `future` where the run is awaited and waits for its result. `None` if the run isn't awaited any
    /// more, `ends` returns true, or the future panicked.
    pub(super) fn wait_for<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
        ends: &dyn Fn() -> bool,
    ) -> Option<T> {
        let (tell, told) = mpsc::channel();
        let _waited = self.spawn(async move {
            let _ = tell.send(future.await);
        });
        receive(&told, ends)
    }
}

/// Waits for the next message; `None` if all senders are gone or `ends` returns true.
pub(super) fn receive<T>(from: &Receiver<T>, ends: &dyn Fn() -> bool) -> Option<T> {
    loop {
        match from.recv_timeout(LOOK) {
            Ok(message) => return Some(message),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if ends() => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// One value from a thread to a future.
pub(super) struct Slot<T>(Arc<Mutex<SlotState<T>>>);

struct SlotState<T> {
    value: Option<T>,
    waker: Option<Waker>,
    gone: bool,
}

/// Fills a [`Slot`]; dropping it unused reports that.
pub(super) struct Filler<T>(Slot<T>);

impl<T> Slot<T> {
    /// An empty slot and its filler.
    pub(super) fn new() -> (Self, Filler<T>) {
        let state = SlotState { value: None, waker: None, gone: false };
        let shared = Arc::new(Mutex::new(state));
        (Self(Arc::clone(&shared)), Filler(Self(shared)))
    }

    fn state(&self) -> MutexGuard<'_, SlotState<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Filler<T> {
    pub(super) fn fill(self, value: T) {
        self.0.state().value = Some(value);
    }
}

impl<T> Drop for Filler<T> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.gone = true;
        let waker = state.waker.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<T> Future for Slot<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.state();
        match state.value.take() {
            Some(value) => Poll::Ready(Some(value)),
            None if state.gone => Poll::Ready(None),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Sends a question to a thread and awaits the answer.
pub(super) async fn ask<M, T>(to: &Sender<M>, question: impl FnOnce(Filler<T>) -> M) -> Option<T> {
    let (slot, filler) = Slot::new();
    to.send(question(filler)).ok()?;
    slot.await
}
