//! Server-sent events, parsed in pieces: any bytes in any chunking, with memory for at most one event.

/// The longest event. Text comes in small pieces; the longest real events carry a whole response.
pub const EVENT_MAX: usize = 8 * 1024 * 1024;

/// How much text outside events is kept.
const STRAY_MAX: usize = 16 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SseEvent {
    /// Its name, may be empty.
    pub name: String,
    /// Its data; lines joined by a line feed.
    pub data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {EVENT_MAX} bytes")]
pub struct TooLong;

#[derive(Debug, Default)]
pub struct SseParser {
    /// The unfinished line.
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_return: bool,
    /// Whether the first line, which may start with a byte order mark, is over.
    begun: bool,
    /// Lines outside events: Gemini puts an error into a stream as bare JSON.
    stray: String,
}

impl SseParser {
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes and passes on the completed events. After an error the stream can't be continued.
    pub fn push(&mut self, bytes: &[u8], mut out: impl FnMut(SseEvent)) -> Result<(), TooLong> {
        let mut rest = bytes;
        if self.after_return && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        if !bytes.is_empty() {
            self.after_return = false;
        }
        while let Some(end) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            self.take(&rest[..end])?;
            let was_return = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if was_return {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
            if let Some(event) = self.end_line() {
                out(event);
            }
        }
        self.take(rest)
    }

    /// The unfinished event at the end of the stream. The standard drops it; providers that forget the last blank
    /// line mean it.
    pub fn finish(&mut self) -> Option<SseEvent> {
        if !self.line.is_empty() {
            let _ = self.end_line();
        }
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }

    /// The kept lines outside events.
    pub fn stray(&self) -> &str {
        &self.stray
    }

    /// Bytes held for the unfinished event.
    pub fn held(&self) -> usize {
        self.line.len() + self.event.data.len() + self.event.name.len()
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        if self.held() + piece.len() > EVENT_MAX {
            return Err(TooLong);
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn end_line(&mut self) -> Option<SseEvent> {
        let line = std::mem::take(&mut self.line);
        let mut line = String::from_utf8_lossy(&line);
        if !self.begun {
            self.begun = true;
            if let Some(rest) = line.strip_prefix('\u{feff}') {
                line = rest.to_owned().into();
            }
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.has_data = true;
                self.event.data.push_str(value);
            }
            "event" => self.event.name = value.to_owned(),
            // Comments, ids and retry times don't matter without reconnection.
            "" | "id" | "retry" => {}
            _ if self.stray.len() + line.len() < STRAY_MAX => {
                self.stray.push_str(&line);
                self.stray.push('\n');
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(chunks: &[&[u8]]) -> Vec<SseEvent> {
        let mut parser = SseParser::new();
        let mut found = Vec::new();
        for chunk in chunks {
            parser.push(chunk, |e| found.push(e)).unwrap();
        }
        found.extend(parser.finish());
        found
    }

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent { name: name.into(), data: data.into() }
    }

    #[test]
    fn events_are_read_with_any_line_end_and_any_cut() {
        let text = b"\xef\xbb\xbfevent: a\r\ndata: 1\r\ndata: 2\r\n\r\n: note\rdata:3\r\rdata: {\"x\":\n\nid: 9\n\ndata: last";
        let want = [event("a", "1\n2"), event("", "3"), event("", "{\"x\":"), event("", "last")];
        assert_eq!(all(&[text]), want);
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(all(&single), want);
    }

    #[test]
    fn lines_of_no_event_are_kept_apart_and_bounded() {
        let mut parser = SseParser::new();
        parser.push(b"data: 1\n\n: note\nid: 3\n{\"error\": {\n  \"code\": 503\n}}", |_| {}).unwrap();
        assert_eq!(parser.finish(), None);
        assert_eq!(parser.stray(), "{\"error\": {\n  \"code\": 503\n}}\n");
        for _ in 0..10_000 {
            parser.push(b"nonsense without end\n", |_| {}).unwrap();
        }
        assert!(parser.stray().len() < STRAY_MAX);
    }

    #[test]
    fn an_event_without_end_is_refused_instead_of_kept() {
        let mut parser = SseParser::new();
        let chunk = vec![b'x'; 1024 * 1024];
        let refused = (0..20).any(|_| parser.push(&chunk, |_| {}).is_err());
        assert!(refused);
        let mut parser = SseParser::new();
        let line = [b"data: ".as_slice(), &chunk, b"\n"].concat();
        assert!(
            (0..20).any(|_| parser.push(&line, |_| {}).is_err()),
            "many lines of one event count together"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_chunking_give_the_same_events(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()], 0..400),
            size in 1usize..50,
        ) {
            let chunks: Vec<&[u8]> = bytes.chunks(size).collect();
            prop_assert_eq!(all(&chunks), all(&[&bytes]));
        }
    }
}
