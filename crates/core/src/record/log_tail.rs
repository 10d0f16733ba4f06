//! The end of a log, for prompts, rules and readers.

use ralph_loop_proof::report::assertion::first_assertion;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::{head, tail};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Lines kept of a result's output, and bytes of each.
const LINES_KEPT: usize = 12;
const LINE_MAX: usize = 200;

/// The last `max` bytes of a log.
pub(crate) fn read_tail(path: &Path, max: u64) -> String {
    let Ok(mut file) = ralph_loop_journal::folder::plain::read(path) else { return String::new() };
    let length = file.metadata().map_or(0, |m| m.len());
    if length > max && file.seek(SeekFrom::End(-(max as i64))).is_err() {
        return String::new();
    }
    let mut bytes = Vec::new();
    if file.take(max).read_to_end(&mut bytes).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&bytes);
    tail(&text, max as usize).to_owned()
}

/// The lines of a failed check's output that say why: its first assertion, else its end.
pub(crate) fn useful_lines(output: &str, root: &Path) -> Vec<String> {
    let found = first_assertion(output);
    if found.is_empty() {
        return last_lines(output);
    }
    // Each check has a separate folder, whose path says nothing.
    let root = format!("{}/", root.display());
    found.iter().map(|line| head(&sanitize::line(&line.replace(&root, "")), LINE_MAX).to_owned()).collect()
}

/// The last meaningful lines of an output, bounded and sanitized.
pub(crate) fn last_lines(output: &str) -> Vec<String> {
    // A runner's counters say less than the error above them.
    let counter = |line: &str| {
        let line = line.trim();
        let rest = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "));
        rest.and_then(|rest| rest.split_once(' ')).is_some_and(|(word, number)| {
            let words = ["tests", "suites", "pass", "cancelled", "skipped", "todo", "duration_ms"];
            words.contains(&word) && number.parse::<f64>().is_ok()
        })
    };
    let says = |line: &&str| line.chars().any(char::is_alphanumeric) && !counter(line);
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(says).collect();
    let from = lines.len().saturating_sub(LINES_KEPT);
    lines[from..].iter().map(|line| head(&sanitize::line(line), LINE_MAX).to_owned()).collect()
}
