//! How full a session's context window is: the model's last token count, else the transcript's size.

use memchr::memmem;
use serde::Deserialize;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

/// First piece to search: nearly always enough.
const PIECE: u64 = 192 * 1024;
/// How much is searched for the last count.
const LOOKED_THROUGH: u64 = 2 * 1024 * 1024;
/// Bytes of a transcript to a token, if the model hasn't counted.
const BYTES_PER_TOKEN: u64 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fill {
    pub tokens: u64,
    pub counted: bool,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default, rename = "isSidechain")]
    is_sidechain: bool,
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Message {
    usage: Option<Usage>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Usage {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

/// Reads how full a window is. After a compaction only what follows counts.
pub(crate) fn fill(path: &str) -> Option<Fill> {
    let mut file = ralph_loop_safe_fs::open_plain(path).ok()?;
    let size = file.metadata().ok()?.len();
    for most in [PIECE, LOOKED_THROUGH] {
        let start = size.saturating_sub(most);
        let bytes = read(&mut file, start, size)?;
        if let Some(fill) = last_count(&bytes, start > 0) {
            return Some(fill);
        }
        if start == 0 {
            break;
        }
    }
    Some(Fill { tokens: size / BYTES_PER_TOKEN, counted: false })
}

/// The model's last count, or the size of what follows the last compaction. The first line may be cut off.
fn last_count(bytes: &[u8], cut: bool) -> Option<Fill> {
    let from = if cut { memchr::memchr(b'\n', bytes)? + 1 } else { 0 };
    let mut end = bytes.len();
    while end > from {
        let start = memchr::memrchr(b'\n', &bytes[from..end - 1]).map_or(from, |at| from + at + 1);
        let (line, after) = (&bytes[start..end], (bytes.len() - end) as u64 / BYTES_PER_TOKEN);
        if memmem::find(line, b"\"compact_boundary\"").is_some() {
            return Some(Fill { tokens: after, counted: false });
        }
        if let Some(tokens) = counted(line) {
            return Some(Fill { tokens: tokens + after, counted: true });
        }
        end = start;
    }
    None
}

fn read(file: &mut File, start: u64, end: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(end - start).ok()?);
    file.seek(SeekFrom::Start(start)).ok()?;
    file.take(end - start).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// The model's token count in this line: everything it received, and its answer.
fn counted(line: &[u8]) -> Option<u64> {
    if memmem::find(line, b"\"usage\"").is_none() || memmem::find(line, b"\"assistant\"").is_none() {
        return None;
    }
    let line: Line = serde_json::from_slice(line).ok()?;
    let usage = line.message?.usage.filter(|_| !line.is_sidechain)?;
    let tokens = usage.input_tokens
        + usage.cache_creation_input_tokens
        + usage.cache_read_input_tokens
        + usage.output_tokens;
    (tokens > 0).then_some(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Option<Fill> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        fill(file.path().to_str().unwrap())
    }

    const COUNT: &str = r#"{"type":"assistant","message":{"role":"assistant","usage":{"input_tokens":10,"cache_read_input_tokens":90000,"cache_creation_input_tokens":9000,"output_tokens":990}}}"#;

    #[test]
    fn models_token_count_comes_before_an_estimate() {
        let filler = format!("{{\"type\":\"user\",\"x\":\"{}\"}}\n", "y".repeat(500)).repeat(1000);
        assert_eq!(filled(&format!("{filler}{COUNT}\n")), Some(Fill { tokens: 100_000, counted: true }));
        let more = filled(&format!("{COUNT}\n{filler}")).unwrap();
        assert!(more.counted && more.tokens > 200_000, "{more:?}");
        let side = COUNT.replacen('{', "{\"isSidechain\":true,", 1);
        assert_eq!(filled(&format!("{COUNT}\n{side}\n")).map(|fill| fill.counted), Some(true));
    }

    #[test]
    fn size_is_the_estimate_and_compaction_resets_it() {
        assert_eq!(filled(&"x".repeat(4000)), Some(Fill { tokens: 1000, counted: false }));
        let compacted =
            format!("{COUNT}\n{{\"type\":\"system\",\"subtype\":\"compact_boundary\"}}\n{}", "x".repeat(400));
        assert_eq!(filled(&compacted), Some(Fill { tokens: 100, counted: false }));
        assert_eq!(filled(""), Some(Fill { tokens: 0, counted: false }));
        assert_eq!(fill("/nonexistent/x"), None);
    }
}
