//! Writes a response to the connection, byte by byte if it must fail.

use super::answer::{Body, Ending, ServerResponse};
use super::http::Request;
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a silent answer checks whether its client or server is gone.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum After {
    Open,
    Close,
}

pub(super) struct Line<'a> {
    pub stream: &'a TcpStream,
    pub stop: &'a AtomicBool,
}

impl Line<'_> {
    pub(super) fn send(&mut self, request: Option<&Request>, answer: &ServerResponse) -> io::Result<After> {
        if !self.silence(answer.wait) || answer.ending == Ending::Hangup {
            return Ok(After::Close);
        }
        while answer.held_until.as_ref().is_some_and(|file| !file.exists()) {
            if !self.silence(LOOK) {
                return Ok(After::Close);
            }
        }
        let keeps = request.is_some_and(|r| r.keep_alive) && answer.ending == Ending::Whole;
        let chunks = request.is_some_and(|r| r.knows_chunks);
        match &answer.body {
            Body::Whole(body) => self.whole(answer, body, keeps)?,
            Body::Events(events) => self.events(answer, events, keeps && chunks, chunks)?,
        }
        if let Ending::Stall(time) = answer.ending {
            self.silence(time);
        }
        let open = keeps && (chunks || matches!(answer.body, Body::Whole(_)));
        Ok(if open { After::Open } else { After::Close })
    }

    fn whole(&mut self, answer: &ServerResponse, body: &[u8], keeps: bool) -> io::Result<()> {
        let mut bytes = head(answer, keeps);
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
        // Keeps the announced length, so that the client sees a truncated body.
        let sent = if answer.ending == Ending::Whole { body.len() } else { body.len() / 2 };
        bytes.extend_from_slice(&body[..sent]);
        self.write(&bytes)
    }

    fn events(
        &mut self,
        answer: &ServerResponse,
        events: &[String],
        keeps: bool,
        chunks: bool,
    ) -> io::Result<()> {
        let mut bytes = head(answer, keeps);
        bytes.extend_from_slice(b"cache-control: no-cache\r\n");
        bytes.extend_from_slice(if chunks { b"transfer-encoding: chunked\r\n\r\n" } else { b"\r\n" });
        let count = if answer.ending == Ending::Whole { events.len() } else { events.len().div_ceil(2) };
        let pause = answer.spread / u32::try_from(count.saturating_sub(1).max(1)).unwrap_or(u32::MAX);
        // A stream with one event breaks within that event.
        let breaks_inside = answer.ending != Ending::Whole && events.len() == 1;
        for (index, event) in events[..count].iter().enumerate() {
            if index > 0 && !pause.is_zero() {
                self.write(&bytes)?;
                bytes.clear();
                if !self.silence(pause) {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
            }
            if chunks {
                bytes.extend_from_slice(format!("{:x}\r\n", event.len()).as_bytes());
            }
            let sent = if breaks_inside { event.len() / 2 } else { event.len() };
            bytes.extend_from_slice(&event.as_bytes()[..sent]);
            if chunks && !breaks_inside {
                bytes.extend_from_slice(b"\r\n");
            }
        }
        if chunks && answer.ending == Ending::Whole {
            bytes.extend_from_slice(b"0\r\n\r\n");
        }
        // Without a pause everything is sent in one write: benchmarks measure the client, not our system calls.
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = self.stream;
        stream.write_all(bytes)
    }

    /// Waits; returns false if the client or the server goes away.
    fn silence(&self, time: Duration) -> bool {
        if time.is_zero() {
            return true;
        }
        let end = Instant::now() + time;
        while Instant::now() < end {
            if self.stop.load(Ordering::Relaxed) {
                return false;
            }
            let left = end.saturating_duration_since(Instant::now()).clamp(Duration::from_millis(1), LOOK);
            if self.stream.set_read_timeout(Some(left)).is_err() {
                return false;
            }
            match self.stream.peek(&mut [0]) {
                Ok(0) => return false,
                // The client sent another request: it is still connected, so keep waiting.
                Ok(_) => std::thread::park_timeout(left),
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
                    ) => {}
                Err(_) => return false,
            }
        }
        self.stream.set_read_timeout(None).is_ok()
    }
}

fn head(answer: &ServerResponse, keeps: bool) -> Vec<u8> {
    let mut head = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: {}\r\n",
        answer.status,
        reason(answer.status),
        answer.content_type
    );
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(if keeps { "connection: keep-alive\r\n" } else { "connection: close\r\n" });
    head.into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Status",
    }
}
