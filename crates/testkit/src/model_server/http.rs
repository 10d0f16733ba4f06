//! Just enough HTTP/1.1 for model clients: sequential requests on a connection, bodies by length or in chunks.

use std::io::{Read, Write};
use std::net::TcpStream;

/// Maximum length of a request head.
const HEAD_MAX: usize = 256 * 1024;
/// Maximum length of a request body.
const BODY_MAX: usize = 64 * 1024 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub keep_alive: bool,
    /// HTTP/1.0 has no chunked bodies.
    pub knows_chunks: bool,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// The reason why there is no request.
#[derive(Debug)]
pub(crate) enum ReadEnd {
    Closed,
    Bad { status: u16, why: &'static str },
}

pub(crate) struct Reader {
    stream: TcpStream,
    /// Unused bytes, from `start` on.
    buffer: Vec<u8>,
    start: usize,
}

impl Reader {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: Vec::with_capacity(128 * 1024), start: 0 }
    }

    pub(crate) fn next(&mut self) -> Result<Request, ReadEnd> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let head_end = self.fill_until_head_ends()?;
        let head = String::from_utf8_lossy(&self.buffer[..head_end]).into_owned();
        self.start = head_end + 4;
        let mut request = parse_head(&head)?;
        if request.header("expect").is_some_and(|e| e.eq_ignore_ascii_case("100-continue")) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").map_err(|_| ReadEnd::Closed)?;
        }
        if request.header("transfer-encoding").is_some_and(|t| t.to_ascii_lowercase().contains("chunked")) {
            request.body = self.chunked_body()?;
        } else if let Some(length) = request.header("content-length") {
            let length = length.parse().map_err(|_| bad("the content length isn't a number"))?;
            request.body = self.take(length)?;
        }
        Ok(request)
    }

    fn fill_until_head_ends(&mut self) -> Result<usize, ReadEnd> {
        let mut searched = 0;
        loop {
            if let Some(at) = find(&self.buffer[searched..], b"\r\n\r\n") {
                return Ok(searched + at);
            }
            searched = self.buffer.len().saturating_sub(3);
            if self.buffer.len() > HEAD_MAX {
                return Err(ReadEnd::Bad { status: 431, why: "the request head is too long" });
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), ReadEnd> {
        let mut chunk = [0_u8; 64 * 1024];
        match self.stream.read(&mut chunk) {
            Ok(0) | Err(_) => Err(ReadEnd::Closed),
            Ok(n) => {
                self.buffer.extend_from_slice(&chunk[..n]);
                Ok(())
            }
        }
    }

    fn take(&mut self, length: usize) -> Result<Vec<u8>, ReadEnd> {
        if length > BODY_MAX {
            return Err(ReadEnd::Bad { status: 413, why: "the request body is too long" });
        }
        while self.buffer.len() - self.start < length {
            self.fill()?;
        }
        let taken = self.buffer[self.start..self.start + length].to_vec();
        self.start += length;
        Ok(taken)
    }

    fn line(&mut self) -> Result<String, ReadEnd> {
        loop {
            if let Some(at) = find(&self.buffer[self.start..], b"\r\n") {
                let line = String::from_utf8_lossy(&self.buffer[self.start..self.start + at]).into_owned();
                self.start += at + 2;
                return Ok(line);
            }
            if self.buffer.len() - self.start > HEAD_MAX {
                return Err(bad("a chunk has no end"));
            }
            self.fill()?;
        }
    }

    fn chunked_body(&mut self) -> Result<Vec<u8>, ReadEnd> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| bad("a chunk has no size"))?;
            if size == 0 {
                while !self.line()?.is_empty() {}
                return Ok(body);
            }
            if body.len().saturating_add(size) > BODY_MAX {
                return Err(ReadEnd::Bad { status: 413, why: "the request body is too long" });
            }
            body.extend(self.take(size)?);
            self.line()?;
        }
    }
}

fn bad(why: &'static str) -> ReadEnd {
    ReadEnd::Bad { status: 400, why }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|w| w == needle)
}

fn parse_head(head: &str) -> Result<Request, ReadEnd> {
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version)) = (first.next(), first.next(), first.next()) else {
        return Err(bad("this isn't an HTTP request"));
    };
    let mut headers = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header has no colon"))?;
        headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request {
        method: method.to_owned(),
        target: target.to_owned(),
        headers,
        body: Vec::new(),
        keep_alive: false,
        knows_chunks: version == "HTTP/1.1",
    };
    let connection = request.header("connection").unwrap_or_default().to_ascii_lowercase();
    request.keep_alive = request.knows_chunks && !connection.contains("close");
    Ok(request)
}
