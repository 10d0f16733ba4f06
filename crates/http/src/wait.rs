//! Interruptible waits with a limit.

use crate::error::TransportError;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::pin::pin;
use std::time::{Duration, Instant};

/// How often a wait polls its watch.
const POLL: Duration = Duration::from_millis(50);

/// Called often during waits; `Break` ends the wait and says why.
pub type Watch<'a, S> = &'a mut dyn FnMut() -> ControlFlow<S>;

pub fn never_stop() -> ControlFlow<Infallible> {
    ControlFlow::Continue(())
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure<S = Infallible> {
    TimedOut,
    Stopped(S),
    Transport(TransportError),
}

impl<S> From<TransportError> for Failure<S> {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}

/// Whether this thread belongs to an async runtime, which a blocking call would stop.
pub fn in_async_runtime() -> bool {
    tokio::runtime::Handle::try_current().is_ok()
}

/// Waits for `work`, polling the watch before and during.
pub(crate) async fn watched<F: Future, S>(
    work: F,
    limit: Duration,
    watch: Watch<'_, S>,
) -> Result<F::Output, Failure<S>> {
    let mut work = pin!(work);
    let end = Instant::now() + limit;
    loop {
        if let ControlFlow::Break(why) = watch() {
            return Err(Failure::Stopped(why));
        }
        let left = end.saturating_duration_since(Instant::now());
        match tokio::time::timeout(POLL.min(left), work.as_mut()).await {
            Ok(output) => return Ok(output),
            Err(_) if left <= POLL => return Err(Failure::TimedOut),
            Err(_) => {}
        }
    }
}
