//! Cuts a byte stream into JSON objects as it arrives: one per line, one spread over many lines, or the elements of one
//! array (`claude --output-format json --verbose`). What is no JSON is skipped; an object over the bound is dropped and
//! counted while it passes, without being kept.

/// An object larger than this is dropped.
pub(crate) const OBJECT_MAX: usize = 8 * 1024 * 1024;
/// A buffer that grew beyond this is given back after use.
const KEEP_CAPACITY: usize = 256 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between objects, nothing but blanks since the line began: an object may start here.
    LineStart,
    /// Between objects, in a line of other text.
    Junk,
    /// Inside an object.
    Object,
}

/// The splitter. Feed it bytes; it calls back with each complete object.
#[derive(Debug)]
pub(crate) struct Objects {
    buffer: Vec<u8>,
    place: Place,
    depth: u32,
    in_string: bool,
    escaped: bool,
    in_array: bool,
    column: usize,
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
            place: Place::LineStart,
            depth: 0,
            in_string: false,
            escaped: false,
            in_array: false,
            column: 0,
            too_long: false,
            max,
            dropped: 0,
        }
    }
    /// Objects that were too long.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        while let Some(&first) = bytes.first() {
            if self.place == Place::Object && self.in_string && !self.escaped && self.column > 0 {
                // Most bytes of a large object are inside strings: take them in one go.
                let plain =
                    bytes.iter().position(|b| matches!(b, b'"' | b'\\' | b'\n')).unwrap_or(bytes.len());
                if plain > 0 {
                    self.keep(&bytes[..plain]);
                    self.column += plain;
                    bytes = &bytes[plain..];
                    continue;
                }
            }
            self.byte(first, &mut each);
            self.column = if first == b'\n' { 0 } else { self.column + 1 };
            bytes = &bytes[1..];
        }
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

    fn byte(&mut self, byte: u8, each: &mut impl FnMut(&[u8])) {
        if self.place != Place::Object {
            return self.outside(byte);
        }
        if self.column == 0 && byte == b'{' && !self.in_array {
            // Nested JSON is indented, so this is a new object: what came before was broken off.
            self.reset(Place::LineStart);
            return self.outside(byte);
        }
        if self.in_string {
            self.keep(&[byte]);
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                // A bare line end inside a string is no JSON.
                b'\n' => self.reset(Place::LineStart),
                _ => {}
            }
            return;
        }
        self.keep(&[byte]);
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    if !self.too_long {
                        each(&self.buffer);
                    }
                    self.reset(if self.in_array { Place::LineStart } else { Place::Junk });
                }
            }
            _ => {}
        }
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b'\n' => self.place = Place::LineStart,
            b'{' if self.place == Place::LineStart => {
                self.place = Place::Object;
                self.depth = 1;
                self.keep(&[byte]);
            }
            b'[' if self.place == Place::LineStart && !self.in_array => self.in_array = true,
            b']' if self.in_array => {
                self.in_array = false;
                self.place = Place::Junk;
            }
            b',' if self.in_array => {}
            b' ' | b'\t' | b'\r' => {}
            _ => {
                // A log line such as `[INFO] ...` opened no array.
                self.in_array = false;
                self.place = Place::Junk;
            }
        }
    }

    fn reset(&mut self, place: Place) {
        self.place = place;
        self.depth = 0;
        self.in_string = false;
        self.escaped = false;
        self.too_long = false;
        if self.buffer.capacity() > KEEP_CAPACITY {
            self.buffer = Vec::new();
        } else {
            self.buffer.clear();
        }
    }
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
    fn what_is_too_long_is_dropped_counted_and_not_kept() {
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
