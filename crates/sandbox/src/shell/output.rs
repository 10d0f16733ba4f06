//! What comes out of commands and of our own scripts.

use super::wrap;
use ralph_loop_domain::ports::{ExecSink, StopCause, Stream};
use std::ops::ControlFlow;

/// The longest answer of one of our scripts; also the largest file that is read.
const ANSWER_MAX: usize = 256 * 1024 * 1024;

/// The answer of a script.
#[derive(Default)]
pub(crate) struct KeptOutput {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) too_long: bool,
}

impl ExecSink for KeptOutput {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let place = if stream == Stream::Stdout { &mut self.stdout } else { &mut self.stderr };
        if place.len() + bytes.len() > ANSWER_MAX {
            self.too_long = true;
        } else {
            place.extend_from_slice(bytes);
        }
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if self.too_long { ControlFlow::Break(StopCause::Hopeless) } else { ControlFlow::Continue(()) }
    }
}

/// Passes a command's output on, but holds back its start as long as that may be our own message that the command
/// couldn't start.
pub(crate) struct HeldOutput<'a> {
    sink: &'a mut dyn ExecSink,
    mark: &'a str,
    /// Whether the message may come on standard output, because the engine merges both streams.
    merged: bool,
    pub(crate) held: Vec<u8>,
    begun: bool,
}

impl<'a> HeldOutput<'a> {
    pub(crate) fn new(sink: &'a mut dyn ExecSink, mark: &'a str, merged: bool) -> Self {
        Self { sink, mark, merged, held: Vec::new(), begun: false }
    }

    /// Passes on what is held: it was the command's own.
    pub(crate) fn release(&mut self, stream: Stream) {
        self.begun = true;
        let held = std::mem::take(&mut self.held);
        if !held.is_empty() {
            self.sink.output(stream, &held);
        }
    }
}

impl ExecSink for HeldOutput<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if self.begun || stream == Stream::Stdout && !self.merged {
            return self.sink.output(stream, bytes);
        }
        self.held.extend_from_slice(bytes);
        if !wrap::may_be_refusal(self.mark, &self.held) {
            self.release(stream);
        }
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.sink.poll()
    }
}
