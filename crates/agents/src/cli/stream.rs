//! What JSON-printing CLIs share: stdout is a stream of objects, the end of stderr is kept, and its lines are passed
//! to CLIs that report waits there.

use super::parser::{Parsed, Parser, ParserSink, ProcessClose, STDERR_MAX};
use crate::bounded::{self, RESPONSE_MAX, Tail};
use crate::objects::Objects;
use memchr::memchr;
use ralph_loop_domain::ports::Stream;

/// A longer line of stderr is cut.
const LINE_MAX: usize = 4 * 1024;

/// A CLI's events.
pub(crate) trait Events {
    /// A whole object of stdout.
    fn event(&mut self, object: &[u8], notes: &mut ParserSink<'_>);
    /// A line of stderr.
    fn complaint(&mut self, _line: &str, _notes: &mut ParserSink<'_>) {}
    /// Whether a provider's refusal was the last event, so that silence is a wait for it.
    fn waiting(&self) -> bool {
        false
    }
    /// Whether the last event was a retry notice of the CLI, which isn't a sign of life of the agent.
    fn retrying(&self) -> bool {
        self.waiting()
    }
    /// The process has ended. `stderr` is the end of its stderr.
    fn finish(self, stderr: &str, close: &ProcessClose<'_>) -> Parsed;
}

/// Splits the streams into events and lines for one CLI.
pub(crate) struct JsonParser<E> {
    events: E,
    objects: Objects,
    stderr: Tail,
    line: Vec<u8>,
}

impl<E: Events> JsonParser<E> {
    pub(crate) fn new(events: E) -> Self {
        Self { events, objects: Objects::new(), stderr: Tail::new(STDERR_MAX), line: Vec::new() }
    }

    fn complain(&mut self, mut bytes: &[u8], notes: &mut ParserSink<'_>) {
        self.stderr.push(bytes);
        while let Some(end) = memchr(b'\n', bytes) {
            self.lengthen(&bytes[..end]);
            self.events.complaint(&String::from_utf8_lossy(&self.line), notes);
            self.line.clear();
            bytes = &bytes[end + 1..];
        }
        self.lengthen(bytes);
    }

    fn lengthen(&mut self, bytes: &[u8]) {
        let room = LINE_MAX.saturating_sub(self.line.len());
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

impl<E: Events> Parser for JsonParser<E> {
    fn feed(&mut self, stream: Stream, bytes: &[u8], notes: &mut ParserSink<'_>) {
        match stream {
            Stream::Stdout => self.objects.feed(bytes, |object| self.events.event(object, notes)),
            Stream::Stderr => self.complain(bytes, notes),
        }
    }

    fn waiting(&self) -> bool {
        self.events.waiting()
    }

    fn retrying(&self) -> bool {
        self.events.retrying()
    }

    fn finish(self: Box<Self>, close: &ProcessClose<'_>) -> Parsed {
        let mut parsed = self.events.finish(&self.stderr.text(), close);
        if let Some(map) = parsed.response.as_object_mut().filter(|_| self.objects.dropped() > 0) {
            map.insert("dropped_lines".into(), self.objects.dropped().into());
        }
        parsed.response = bounded::value(parsed.response, RESPONSE_MAX);
        parsed
    }
}
