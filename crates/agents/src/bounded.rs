//! Bounds what an agent prints: the end of a stream, JSON values with long strings cut.

use ralph_loop_protocol::display::text;
use serde_json::Value;
use std::collections::VecDeque;

pub(crate) const RESPONSE_MAX: usize = 256 * 1024;
pub(crate) const ACTION_INPUT_MAX: usize = 2 * 1024;

#[derive(Debug)]
pub(crate) struct Tail {
    kept: VecDeque<u8>,
    max: usize,
    seen: u64,
}

impl Tail {
    pub(crate) fn new(max: usize) -> Self {
        Self { kept: VecDeque::new(), max, seen: 0 }
    }
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.seen = self.seen.saturating_add(bytes.len() as u64);
        let bytes = &bytes[bytes.len().saturating_sub(self.max)..];
        let over = (self.kept.len() + bytes.len()).saturating_sub(self.max);
        self.kept.drain(..over);
        self.kept.extend(bytes);
    }
    pub(crate) fn truncated(&self) -> bool {
        self.seen > self.kept.len() as u64
    }
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.kept.iter().copied().collect()
    }
    /// The kept bytes as text, without a character that was cut at the front.
    pub(crate) fn text(&self) -> String {
        let mut bytes = self.bytes();
        if self.truncated() {
            let broken = bytes.iter().take(3).take_while(|b| (0x80..0xc0).contains(*b)).count();
            bytes.drain(..broken);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// `value` with long strings cut so that it is at most `max` bytes as JSON.
pub(crate) fn value(value: Value, max: usize) -> Value {
    let mut value = value;
    let mut cap = max / 2;
    loop {
        let size = size_of(&value);
        if size <= max {
            return value;
        }
        if cap < 16 {
            return serde_json::json!({ "cut": true, "bytes": size });
        }
        cut_strings(&mut value, cap);
        cap /= 4;
    }
}

fn cut_strings(value: &mut Value, cap: usize) {
    match value {
        Value::String(text) if text.len() > cap => {
            let kept = text::head(text, cap).to_owned();
            let left = text.len() - kept.len();
            *text = format!("{kept}… [{left} bytes cut]");
        }
        Value::Array(items) => items.iter_mut().for_each(|item| cut_strings(item, cap)),
        Value::Object(map) => map.values_mut().for_each(|item| cut_strings(item, cap)),
        _ => {}
    }
}

fn size_of(value: &Value) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

#[cfg(feature = "models")]
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tail_keeps_the_end_and_never_half_a_character() {
        let mut tail = Tail::new(4);
        tail.push("aéé".as_bytes());
        assert_eq!((tail.text().as_str(), tail.truncated()), ("éé", true));
        tail.push(b"x");
        assert_eq!(tail.text(), "éx");
        tail.push(&[b'y'; 100]);
        assert_eq!(tail.text(), "yyyy");
        let mut whole = Tail::new(4);
        whole.push(b"abcd");
        assert!(!whole.truncated());
    }

    #[test]
    fn long_strings_are_cut_with_a_marker_and_short_ones_stay() {
        let cut = value(json!({"a": "x".repeat(10_000), "b": "short"}), 2048);
        assert_eq!(cut["b"], "short");
        assert!(cut["a"].as_str().unwrap().ends_with("bytes cut]"), "{cut}");
        assert!(cut.to_string().len() <= 2048);
        let small = json!({"a": [1, 2]});
        assert_eq!(value(small.clone(), 2048), small);
        let many = value(json!(vec![1; 10_000]), 2048);
        assert_eq!(many["cut"], true);
    }
}
