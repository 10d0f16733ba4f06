//! A sandbox is built from what is there: a socket that is to be covered may vanish between the look and the mount, and then
//! bubblewrap gives up before the command has begun. Such a start is made again.

use ralph_domain::ports::{ExecEnd, ExecOutcome, ExecSink, SandboxError, StopCause, Stream};
use std::ops::ControlFlow;

const TRIES: u32 = 12;
/// How bubblewrap says that a mount failed.
const WORDS: &[u8] = b"bwrap: Can't ";
/// What the first process in the sandbox says on standard error before it starts the command. Nothing that a command prints
/// afterwards can make it unsaid.
pub(super) const BEGUN: &[u8] = b"\x01ralph: begun\n";
/// More is no complaint of bubblewrap's.
const MOST: usize = 4096;

/// Runs `start`, again where it failed to begin.
pub(super) fn exec(
    sink: &mut dyn ExecSink,
    mut start: impl FnMut(&mut dyn ExecSink) -> Result<ExecOutcome, SandboxError>,
) -> Result<ExecOutcome, SandboxError> {
    for _ in 1..TRIES {
        let mut first = FirstWords { sink, held: Vec::new(), begun: false };
        let outcome = start(&mut first);
        let failed = !first.begun && first.held.starts_with(WORDS);
        if !(failed && outcome.as_ref().is_ok_and(|outcome| outcome.end == ExecEnd::Exited(1))) {
            first.release();
            return outcome;
        }
    }
    let mut last = FirstWords { sink, held: Vec::new(), begun: false };
    let outcome = start(&mut last);
    last.release();
    outcome
}

/// Holds what comes on standard error back until the command is known to have begun.
struct FirstWords<'a> {
    sink: &'a mut dyn ExecSink,
    held: Vec<u8>,
    begun: bool,
}

impl FirstWords<'_> {
    fn release(&mut self) {
        if !self.held.is_empty() {
            self.sink.output(Stream::Stderr, &std::mem::take(&mut self.held));
        }
    }
}

impl ExecSink for FirstWords<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if self.begun || stream == Stream::Stdout {
            return self.sink.output(stream, bytes);
        }
        self.held.extend_from_slice(bytes);
        if self.held.starts_with(BEGUN) {
            self.begun = true;
            self.held.drain(..BEGUN.len());
            self.release();
        } else if self.held.len() > MOST {
            // Nobody that this module knows of says so much.
            self.begun = true;
            self.release();
        }
    }

    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.sink.poll()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[derive(Default)]
    struct Heard(Vec<u8>);

    impl ExecSink for Heard {
        fn output(&mut self, _: Stream, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
        fn poll(&mut self) -> ControlFlow<StopCause> {
            ControlFlow::Continue(())
        }
    }

    fn tries(words: &[&[u8]], code: i32) -> (u32, String) {
        let (mut count, mut heard) = (0, Heard::default());
        let done = exec(&mut heard, |sink| {
            count += 1;
            for word in words {
                sink.output(Stream::Stderr, word);
            }
            Ok(ExecOutcome { end: ExecEnd::Exited(code), duration: Duration::ZERO, survivors: 0 })
        });
        assert_eq!(done.unwrap().end, ExecEnd::Exited(code));
        (count, String::from_utf8(heard.0).unwrap())
    }

    #[test]
    fn only_a_sandbox_that_was_not_built_is_built_again() {
        let complaint = b"bwrap: Can't mount x\n".as_slice();
        assert_eq!(tries(&[complaint], 1), (TRIES, "bwrap: Can't mount x\n".into()));
        assert_eq!(tries(&[complaint], 2).0, 1);
        // A command that says the same has begun.
        assert_eq!(tries(&[BEGUN, complaint], 1), (1, "bwrap: Can't mount x\n".into()));
        let (front, back) = BEGUN.split_at(4);
        assert_eq!(tries(&[front, back, complaint], 1), (1, "bwrap: Can't mount x\n".into()));
        assert_eq!(tries(&[BEGUN, BEGUN], 0), (1, String::from_utf8(BEGUN.to_vec()).unwrap()));
        assert_eq!(tries(&[b"ralph: no such program\n"], 127).1, "ralph: no such program\n");
    }
}
