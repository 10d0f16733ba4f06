//! A run's server-sent events, parsed into the items of a local stream.

use super::server::Server;
use ralph_loop_app::AppError;
use ralph_loop_http::{Client, Failure, HeaderName, HeaderValue, Method, Response};
use ralph_loop_journal::journal::tail::JournalLine;
use ralph_loop_journal::live::LiveRecord;
use ralph_loop_journal::live::stream::StreamItem;
use ralph_loop_protocol::id::Seq;
use serde_json::Value;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Timeout for the response head.
const LIMIT: Duration = Duration::from_secs(30);
/// The server sends a keep-alive every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// Size limit of one frame, and of an error response.
const FRAME_MAX: usize = 4 * 1024 * 1024;
const REFUSAL_MAX: usize = 64 * 1024;

/// The position read so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    seq: u64,
    live: u64,
}

/// A connection that reconnects.
#[derive(Debug)]
pub struct ServerStream {
    server: Server,
    client: Client,
    run: String,
    place: Place,
}

impl ServerStream {
    /// Starts at the beginning of a run.
    pub fn new(server: &Server, run: &str) -> Result<Self, AppError> {
        let client = server.client()?;
        Ok(Self { server: server.clone(), client, run: run.to_owned(), place: Place::default() })
    }

    /// Reads until the connection ends or `take` breaks. `take` gets new items at least every `pace`,
    /// possibly none. Returns whether `take` ended it.
    pub fn follow(
        &mut self,
        pace: Duration,
        take: &mut dyn FnMut(Vec<StreamItem>) -> ControlFlow<()>,
    ) -> Result<bool, AppError> {
        let mut query = vec![("from", (self.place.seq + 1).to_string())];
        if self.place.live > 0 {
            query.push(("live", self.place.live.to_string()));
        }
        let accept = (HeaderName::from_static("accept"), HeaderValue::from_static("text/event-stream"));
        let path = ["runs", self.run.as_str(), "sse"];
        let request = self.server.request(Method::GET, &path, &query).header(accept.0, accept.1);
        let mut never = || ControlFlow::<Infallible>::Continue(());
        let mut response =
            self.client.send(&request, LIMIT, &mut never).map_err(|failure| self.server.failed(failure))?;
        if response.status() != 200 {
            return Err(self.server.refused(response.status(), &rest(&mut response)));
        }
        let (mut held, mut heard) = (Frames::default(), Instant::now());
        loop {
            let piece = match response.chunk(pace, &mut never) {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(false),
                Err(Failure::TimedOut) if heard.elapsed() < SILENCE => {
                    if take(Vec::new()).is_break() {
                        return Ok(true);
                    }
                    continue;
                }
                Err(failure) => return Err(self.server.failed(failure)),
            };
            heard = Instant::now();
            let items = held.push(&piece, &mut self.place);
            if take(items).is_break() {
                return Ok(true);
            }
        }
    }
}

fn rest(response: &mut Response<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    let mut never = || ControlFlow::<Infallible>::Continue(());
    while let Ok(Some(piece)) = response.chunk(LIMIT, &mut never) {
        body.extend_from_slice(&piece);
        if body.len() > REFUSAL_MAX {
            break;
        }
    }
    body
}

/// Bytes that aren't complete lines yet.
#[derive(Debug, Default)]
struct Frames {
    held: Vec<u8>,
    /// Skips the rest of an overlong line.
    skips: bool,
}

impl Frames {
    /// Adds bytes and returns the items of complete lines.
    fn push(&mut self, bytes: &[u8], place: &mut Place) -> Vec<StreamItem> {
        let mut items = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.skips {
                self.held.extend_from_slice(part);
            }
            self.skips |= self.held.len() > FRAME_MAX;
            if part.ends_with(b"\n") {
                if !std::mem::take(&mut self.skips) {
                    items.extend(item(&self.held, place));
                }
                self.held.clear();
            }
        }
        if self.skips {
            self.held.clear();
        }
        items
    }
}

/// Parses a line; `None` for other lines and items already seen.
fn item(line: &[u8], place: &mut Place) -> Option<StreamItem> {
    let data = line.strip_prefix(b"data:")?;
    let mut frame: Value = serde_json::from_slice(data).ok()?;
    match frame["type"].as_str()? {
        "event" => {
            let raw = frame["event"].take();
            let text = raw.to_string();
            let event: ralph_loop_protocol::event::Event = serde_json::from_value(raw).ok()?;
            if event.seq.0 <= place.seq {
                return None;
            }
            place.seq = event.seq.0;
            Some(StreamItem::Event(Box::new(JournalLine { text, event })))
        }
        "output" => {
            let fields = frame.as_object_mut()?;
            fields.remove("type");
            let after = fields.remove("after").unwrap_or_else(|| Seq(place.seq).0.into());
            fields.insert("seq".to_owned(), after);
            let record: LiveRecord = serde_json::from_value(frame).ok()?;
            if record.n <= place.live {
                return None;
            }
            place.live = record.n;
            Some(StreamItem::Live(record))
        }
        "missed" => Some(StreamItem::Missed(frame["records"].as_u64()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = r#"data: {"type":"output","n":3,"at":"2026-11-15T14:33:07Z","after":7,"iteration":1,"kind":"text","text":"hi"}"#;

    #[test]
    fn chunked_frames_are_parsed_once() {
        let (mut frames, mut place) = (Frames::default(), Place::default());
        let text = format!(": still here\n\n{OUTPUT}\n\ndata: {{\"type\":\"missed\",\"records\":9}}\n\n");
        let mut items = Vec::new();
        for byte in text.as_bytes() {
            items.extend(frames.push(&[*byte], &mut place));
        }
        assert!(matches!(&items[..], [StreamItem::Live(_), StreamItem::Missed(9)]), "{items:?}");
        assert_eq!(place, Place { seq: 0, live: 3 });
        assert!(frames.push(format!("{OUTPUT}\n").as_bytes(), &mut place).is_empty(), "seen already");
    }

    #[test]
    fn invalid_frames_and_endless_lines_are_skipped() {
        let (mut frames, mut place) = (Frames::default(), Place::default());
        for wrong in
            ["data: {", "data: []", "data: {\"type\":\"event\",\"event\":{}}", "id: 4", "data: \u{1b}"]
        {
            assert!(frames.push(format!("{wrong}\n").as_bytes(), &mut place).is_empty(), "{wrong}");
        }
        frames.push(&vec![b'x'; FRAME_MAX + 10], &mut place);
        assert!(frames.held.len() <= FRAME_MAX, "{}", frames.held.len());
        assert_eq!(frames.push(format!("\n{OUTPUT}\n").as_bytes(), &mut place).len(), 1);
    }
}
