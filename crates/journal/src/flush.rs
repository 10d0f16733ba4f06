//! Flushing beside the work: a durable event is on its way to the disk while the engine already records the tree and runs
//! the checks. [`Flusher::barrier`] waits until it has arrived; the driver calls it before money is spent again and
//! before it reports an end.

use crate::seal::Settle;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Flushes one copy of the journal from a thread of its own.
#[derive(Debug)]
pub(crate) struct Flusher {
    requests: Sender<()>,
    results: Receiver<io::Result<()>>,
    pending: usize,
}

impl Flusher {
    /// A flusher that waits with `settle`; `None` where no thread can be started, and the caller flushes itself.
    pub fn start(mut settle: Settle) -> Option<Self> {
        let (requests, todo) = channel::<()>();
        let (done, results) = channel();
        std::thread::Builder::new()
            .name("flush".into())
            .stack_size(64 * 1024)
            .spawn(move || {
                while todo.recv().is_ok() {
                    // Requests that came meanwhile are answered by the same flush.
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

    /// Asks for a flush of what is written now.
    pub fn request(&mut self) {
        if self.requests.send(()).is_ok() {
            self.pending += 1;
        }
    }

    /// Waits until everything that was asked for is on the disk.
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
