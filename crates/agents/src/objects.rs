//! Splits a byte stream into JSON objects as it arrives: one per line, one over many lines, or the elements of one
//! array (`claude --output-format json --verbose`). Skips other text; drops and counts oversized objects without
//! keeping them.

use memchr::{memchr, memchr3};

pub(crate) const OBJECT_MAX: usize = 8 * 1024 * 1024;
/// A larger buffer is freed after use.
const KEEP_CAPACITY: usize = 256 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanState {
    /// Between objects, with only blanks since the line began: an object may start here.
    LineStart,
    /// Between objects, in a line of other text.
    Junk,
    Object,
}

#[derive(Debug)]
pub(crate) struct Objects {
    /// Earlier pieces of the current object.
    buffer: Vec<u8>,
    place: ScanState,
    depth: u32,
    in_string: bool,
    escaped: bool,
    in_array: bool,
    /// Inside an object, right after a line end.
    fresh_line: bool,
    too_long: bool,
    max: usize,
    dropped: u64,
}

impl Objects {
    pub(crate) fn new() -> Self {
        Self::with_max(OBJECT_MAX)
    }
    pub(crate) fn with_max(max: usize) -> Self {
        Self {
            buffer: Vec::new(),
            place: ScanState::LineStart,
            depth: 0,
            in_string: false,
            escaped: false,
            in_array: false,
            fresh_line: false,
            too_long: false,
            max,
            dropped: 0,
        }
    }
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        let mut at = 0;
        while at < bytes.len() {
            at = if self.place == ScanState::Object {
                self.inside(bytes, at, &mut each)
            } else {
                self.outside(bytes, at)
            };
        }
    }

    /// Continues an object until it is complete, broken off, or the bytes end; returns the position.
    fn inside(&mut self, bytes: &[u8], from: usize, each: &mut impl FnMut(&[u8])) -> usize {
        let mut at = from;
        while at < bytes.len() {
            if self.fresh_line {
                self.fresh_line = false;
                if bytes[at] == b'{' && !self.in_array {
                    // Nested JSON is indented, so this is a new object: the previous one was broken off.
                    self.keep(&bytes[from..at]);
                    self.reset(ScanState::LineStart);
                    return at;
                }
            }
            if self.in_string && !self.escaped {
                // Most bytes of a large object are inside strings: skip them in one go.
                let Some(plain) = memchr3(b'"', b'\\', b'\n', &bytes[at..]) else { break };
                at += plain;
            }
            let byte = bytes[at];
            at += 1;
            match (self.in_string, byte) {
                (true, _) if self.escaped => {
                    self.escaped = false;
                    self.fresh_line = byte == b'\n';
                }
                (true, b'\\') => self.escaped = true,
                (_, b'"') => self.in_string = !self.in_string,
                (true, _) => {
                    // A bare line end inside a string isn't JSON.
                    self.keep(&bytes[from..at]);
                    self.reset(ScanState::LineStart);
                    return at;
                }
                (false, b'{' | b'[') => self.depth = self.depth.saturating_add(1),
                (false, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.complete(&bytes[from..at], each);
                        return at;
                    }
                }
                (false, b'\n') => self.fresh_line = true,
                (false, _) => {}
            }
        }
        self.keep(&bytes[from..]);
        bytes.len()
    }

    fn complete(&mut self, last: &[u8], each: &mut impl FnMut(&[u8])) {
        if self.buffer.is_empty() && !self.too_long && last.len() <= self.max {
            // It came in one piece: no copy needed.
            each(last);
        } else {
            self.keep(last);
            if !self.too_long {
                each(&self.buffer);
            }
        }
        self.reset(if self.in_array { ScanState::LineStart } else { ScanState::Junk });
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.too_long {
            return;
        }
        if self.buffer.len() + bytes.len() > self.max {
            self.too_long = true;
            self.dropped += 1;
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Looks for the next object; returns the position. Leaves the object's first byte to [`Self::inside`].
    fn outside(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while at < bytes.len() {
            if self.place == ScanState::Junk {
                let Some(line_end) = memchr(b'\n', &bytes[at..]) else { break };
                self.place = ScanState::LineStart;
                at += line_end + 1;
                continue;
            }
            match bytes[at] {
                b'{' => {
                    self.place = ScanState::Object;
                    return at;
                }
                b'[' if !self.in_array => self.in_array = true,
                b']' if self.in_array => {
                    self.in_array = false;
                    self.place = ScanState::Junk;
                }
                b',' if self.in_array => {}
                b' ' | b'\t' | b'\r' | b'\n' => {}
                _ => {
                    // A log line such as `[INFO] ...` opened no array.
                    self.in_array = false;
                    self.place = ScanState::Junk;
                }
            }
            at += 1;
        }
        bytes.len()
    }

    fn reset(&mut self, place: ScanState) {
        self.place = place;
        self.depth = 0;
        self.in_string = false;
        self.escaped = false;
        self.fresh_line = false;
        self.too_long = false;
        if self.buffer.capacity() > KEEP_CAPACITY {
            self.buffer = Vec::new();
        } else {
            self.buffer.clear();
        }
    }
}

/// The value of a leading `"type"`, as the CLIs write it. Saves parsing events that aren't needed.
pub(crate) fn leading_type(object: &[u8]) -> Option<&str> {
    let rest = object.strip_prefix(b"{\"type\":\"")?;
    let name = &rest[..memchr(b'"', &rest[..rest.len().min(64)])?];
    std::str::from_utf8(name).ok().filter(|name| !name.contains('\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, chunk: usize) -> Vec<String> {
        let mut objects = Objects::with_max(64);
        let mut found = Vec::new();
        for piece in text.as_bytes().chunks(chunk) {
            objects.feed(piece, |bytes| found.push(String::from_utf8_lossy(bytes).into_owned()));
        }
        found
    }

    #[test]
    fn objects_are_found_in_lines_arrays_and_pretty_print() {
        let table: &[(&str, &[&str])] = &[
            ("{\"a\":1}\n{\"b\":\"}\"}\n", &["{\"a\":1}", "{\"b\":\"}\"}"]),
            ("[{\"a\":[1,{}]},{\"b\":2}]\n{\"c\":3}", &["{\"a\":[1,{}]}", "{\"b\":2}", "{\"c\":3}"]),
            ("[\n  {\"a\":1},\n{\"b\":2}\n]", &["{\"a\":1}", "{\"b\":2}"]),
            (
                "{\n  \"a\": {\n    \"b\": \"\\\"{\"\n  }\n}\n",
                &["{\n  \"a\": {\n    \"b\": \"\\\"{\"\n  }\n}"],
            ),
            ("warning: {odd\n{\"a\":1}\n", &["{\"a\":1}"]),
            ("[INFO] hello\n{\"a\":1}\n", &["{\"a\":1}"]),
            ("{ broken off\n{\"a\":1}\n", &["{\"a\":1}"]),
            ("{\"broken\n{\"a\":1}\n", &["{\"a\":1}"]),
            ("plain text\r\n\r\n", &[]),
        ];
        for (text, expected) in table {
            for chunk in [1, 3, 4096] {
                assert_eq!(split(text, chunk), *expected, "{text:?} in pieces of {chunk}");
            }
        }
    }

    #[test]
    fn the_leading_type_is_read_without_parsing() {
        assert_eq!(leading_type(b"{\"type\":\"user\",\"x\":1}"), Some("user"));
        for other in
            ["{}", "{ \"type\":\"user\"}", "{\"type\":1}", "{\"type\":\"us\\u0065r\"}", "{\"type\":\"us"]
        {
            assert_eq!(leading_type(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn too_long_objects_are_dropped_and_counted() {
        let mut objects = Objects::with_max(64);
        let mut found = Vec::new();
        objects.feed(b"{\"a\":\"", |_| {});
        for _ in 0..1000 {
            objects.feed(&[b'x'; 100], |_| {});
            assert!(objects.buffer.capacity() <= 128);
        }
        objects.feed(b"\"}\n{\"b\":1}\n", |bytes| found.push(bytes.to_vec()));
        assert_eq!(found, [b"{\"b\":1}".to_vec()]);
        assert_eq!(objects.dropped(), 1);
    }
}
