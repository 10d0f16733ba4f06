//! Flushes concurrently: a durable event is on its way to the disk while the engine already records the tree and runs
//! the checks. [`Flusher::barrier`] waits for it; the driver calls that before it spends money again and before it
//! reports an end.

use crate::journal::seal::Settle;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Flushes one copy of the journal from a thread.
#[derive(Debug)]
pub(crate) struct Flusher {
    requests: Sender<()>,
    results: Receiver<io::Result<()>>,
    pending: usize,
}

impl Flusher {
    /// A flusher that waits with `settle`; `None` if no thread can be started, and the caller must flush.
    pub fn start(mut settle: Settle) -> Option<Self> {
        let (requests, todo) = channel::<()>();
        let (done, results) = channel();
        std::thread::Builder::new()
            .name("flush".into())
            .stack_size(64 * 1024)
            .spawn(move || {
                while todo.recv().is_ok() {
                    // The same flush answers requests that came in between.
                    let more = todo.try_iter().count();
                    for result in std::iter::once(settle()).chain((0..more).map(|_| Ok(()))) {
                        if done.send(result).is_err() {
                            return;
                        }
                    }
                }
            })
            .ok()?;
        Some(Self { requests, results, pending: 0 })
    }

    /// Requests a flush of what is written now.
    pub fn request(&mut self) {
        if self.requests.send(()).is_ok() {
            self.pending += 1;
        }
    }

    /// Waits until every requested flush is done.
    pub fn barrier(&mut self) -> io::Result<()> {
        while self.pending > 0 {
            self.pending -= 1;
            match self.results.recv() {
                Ok(result) => result?,
                Err(_) => return Err(io::Error::other("the flushing thread ended")),
            }
        }
        Ok(())
    }
}
