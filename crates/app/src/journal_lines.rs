//! The journal line by line, as written: events of a newer version keep their words, and nothing is lost between what
//! was there and what comes.

use ralph_domain::event::{Event, EventBody};
use ralph_journal::JournalError;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// A line of the journal.
#[derive(Debug)]
pub struct Line {
    /// As it stands in the file, without the line end.
    pub text: String,
    /// What it says.
    pub event: Event,
}

/// Reads a journal and goes on reading what is appended.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    at: u64,
    seen: u64,
    from: u64,
    /// Whether the end of the run was read.
    pub over: bool,
}

impl Lines {
    /// From the event `from` on.
    pub fn new(journal: &Path, from: u64) -> Self {
        Self { path: journal.to_owned(), at: 0, seen: 0, from, over: false }
    }

    /// Hands over what has come since the last call, complete lines only.
    pub fn poll(&mut self, each: &mut dyn FnMut(Line)) -> Result<(), JournalError> {
        let fail = |e| JournalError::file("read", &self.path, e);
        let length = match std::fs::metadata(&self.path) {
            Ok(meta) => meta.len(),
            // Gone for a moment (an agent's `git clean`); it will be back.
            Err(_) => return Ok(()),
        };
        if length < self.at {
            // A torn tail was cut, or the file was made anew: read again and skip what was seen.
            self.at = 0;
        }
        let mut file = File::open(&self.path).map_err(fail)?;
        file.seek(SeekFrom::Start(self.at)).map_err(fail)?;
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let read = reader.read_until(b'\n', &mut bytes).map_err(fail)?;
            if read == 0 || !bytes.ends_with(b"\n") {
                return Ok(());
            }
            let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            let event = match serde_json::from_str::<Event>(&text) {
                Ok(event) => event,
                // A torn last line is not yet an event.
                Err(_) if reader.fill_buf().map_err(fail)?.is_empty() => return Ok(()),
                Err(error) => {
                    return Err(JournalError::Corrupt {
                        path: self.path.clone(),
                        line: self.seen + 1,
                        reason: error.to_string(),
                    });
                }
            };
            self.at += read as u64;
            self.over |= matches!(event.body, EventBody::Finished { .. });
            if event.seq.0 > self.seen {
                self.seen = event.seq.0;
                if event.seq.0 >= self.from {
                    each(Line { text, event });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn poll(lines: &mut Lines) -> Vec<u64> {
        let mut seqs = Vec::new();
        lines.poll(&mut |line| seqs.push(line.event.seq.0)).unwrap();
        seqs
    }

    #[test]
    fn nothing_is_lost_or_told_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let event = |seq: u64| {
            format!(
                "{{\"seq\":{seq},\"at\":\"2026-11-15T12:00:00Z\",\"kind\":\"notice\",\"message\":\"m\"}}\n"
            )
        };
        let mut lines = Lines::new(&path, 2);
        assert_eq!(poll(&mut lines), [0u64; 0], "there is no journal yet");
        std::fs::write(&path, format!("{}{}{}", event(1), event(2), &event(3)[..20])).unwrap();
        assert_eq!(poll(&mut lines), [2]);
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        write!(file, "{}{}", &event(3)[20..], event(4)).unwrap();
        assert_eq!(poll(&mut lines), [3, 4]);
        // The file is made anew with the same story and one more event.
        std::fs::write(&path, event(1)).unwrap();
        assert_eq!(poll(&mut lines), [0u64; 0]);
        std::fs::write(&path, (1..=5).map(event).collect::<String>()).unwrap();
        assert_eq!(poll(&mut lines), [5]);
    }

    #[test]
    fn an_event_of_a_newer_version_keeps_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let text = r#"{"seq":1,"at":"2026-11-15T12:00:00Z","kind":"teleported","to":"mars"}"#;
        std::fs::write(&path, format!("{text}\n")).unwrap();
        let mut found = Vec::new();
        Lines::new(&path, 0).poll(&mut |line| found.push(line.text)).unwrap();
        assert_eq!(found, [text]);
    }
}
