//! Events as lines, and reading them without becoming the journal's writer.

use crate::error::JournalError;
use ralph_domain::event::Event;
use ralph_domain::id::Seq;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;

/// Reads a journal without becoming its writer: calls `each` for every complete event from byte `from` on, and returns
/// where the next event will begin.
pub fn read_from(path: &Path, from: u64, each: &mut dyn FnMut(Event)) -> Result<u64, JournalError> {
    let mut file = File::open(path).map_err(|e| JournalError::file("read", path, e))?;
    file.seek(SeekFrom::Start(from)).map_err(|e| JournalError::file("read", path, e))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut at = from;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(|e| JournalError::file("read", path, e))?;
        if read == 0 || !line.ends_with(b"\n") {
            return Ok(at);
        }
        match serde_json::from_slice::<Event>(&line) {
            Ok(event) => each(event),
            Err(_) if reader.fill_buf().map_err(|e| JournalError::file("read", path, e))?.is_empty() => {
                return Ok(at);
            }
            Err(error) => {
                return Err(JournalError::Corrupt {
                    path: path.to_owned(),
                    line: 0,
                    reason: error.to_string(),
                });
            }
        }
        at += read as u64;
    }
}

pub(crate) fn encode(event: &Event) -> Vec<u8> {
    let mut line = serde_json::to_vec(event).unwrap_or_default();
    line.push(b'\n');
    line
}

pub(crate) fn parse(line: &[u8], before: Seq) -> Result<Event, String> {
    if !line.ends_with(b"\n") {
        return Err("the line is cut off".into());
    }
    let event: Event = serde_json::from_slice(line).map_err(|e| e.to_string())?;
    if event.seq != before.next() {
        return Err(format!("its seq is {}, but {} was expected", event.seq, before.next()));
    }
    Ok(event)
}
