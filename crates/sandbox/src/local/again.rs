//! A sandbox is built from what is there: a socket that is to be covered may vanish between the look and the mount, and then
//! bubblewrap gives up before the command has begun. Such a start is made again.

use ralph_domain::ports::{ExecEnd, ExecOutcome, ExecSink, SandboxError, StopCause, Stream};
use std::ops::ControlFlow;

const TRIES: u32 = 12;
/// How bubblewrap says that a mount failed. (A command that says the very same, nothing else, and exits with 1 is run again: it
/// asked for it.)
const WORDS: &[u8] = b"bwrap: Can't ";
/// More is no complaint of bubblewrap's.
const MOST: usize = 4096;

/// Runs `start`, again where it failed to begin.
pub(super) fn exec(
    sink: &mut dyn ExecSink,
    mut start: impl FnMut(&mut dyn ExecSink) -> Result<ExecOutcome, SandboxError>,
) -> Result<ExecOutcome, SandboxError> {
    for _ in 1..TRIES {
        let mut first = FirstWords { sink, held: Vec::new(), open: false };
        let outcome = start(&mut first);
        let failed = !first.open && first.held.starts_with(WORDS);
        if !(failed && outcome.as_ref().is_ok_and(|outcome| outcome.end == ExecEnd::Exited(1))) {
            first.release();
            return outcome;
        }
    }
    start(sink)
}

/// Holds a command's first words back as long as they may be bubblewrap's.
struct FirstWords<'a> {
    sink: &'a mut dyn ExecSink,
    held: Vec<u8>,
    open: bool,
}

impl FirstWords<'_> {
    fn release(&mut self) {
        self.open = true;
        if !self.held.is_empty() {
            self.sink.output(Stream::Stderr, &std::mem::take(&mut self.held));
        }
    }
}

impl ExecSink for FirstWords<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if !self.open && stream == Stream::Stderr && self.held.len() + bytes.len() <= MOST {
            self.held.extend_from_slice(bytes);
            if self.held.starts_with(WORDS) || WORDS.starts_with(&self.held) {
                return;
            }
            return self.release();
        }
        if !self.open {
            self.release();
        }
        self.sink.output(stream, bytes);
    }

    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.sink.poll()
    }
}
