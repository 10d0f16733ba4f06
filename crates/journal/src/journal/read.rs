//! Events as lines, and reading them without becoming the journal's writer.

use crate::error::JournalError;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::id::Seq;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Reads a journal without becoming its writer: calls `each` for every complete event from byte `from` on, and
/// returns where the next event will begin.
pub fn read_from(path: &Path, from: u64, each: &mut dyn FnMut(Event)) -> Result<u64, JournalError> {
    read_lines(path, from, &mut |_, event| {
        each(event);
        Ok(())
    })
}

/// Like [`read_from`], for building a state: an unknown kind of event is an error, because its effect on the state is
/// unknown.
pub fn read_known(path: &Path, from: u64, each: &mut dyn FnMut(Event)) -> Result<u64, JournalError> {
    read_lines(path, from, &mut |line, event| {
        refuse_newer(path, line, &event)?;
        each(event);
        Ok(())
    })
}

/// Fails on an unknown kind of event. Its seq is its line number.
pub(crate) fn refuse_newer(path: &Path, line: &[u8], event: &Event) -> Result<(), JournalError> {
    if event.body != EventBody::Unknown {
        return Ok(());
    }
    let kind = serde_json::from_slice::<Value>(line).ok().and_then(|v| v["kind"].as_str().map(str::to_owned));
    let found = format!("an event of the kind `{}`", one_line(&kind.unwrap_or_default(), 60));
    Err(JournalError::Newer { path: path.to_owned(), line: event.seq.0, found })
}

/// No valid line of a journal is longer.
const LINE_MAX: u64 = 64 * 1024 * 1024;

type EachLine<'a> = &'a mut dyn FnMut(&[u8], Event) -> Result<(), JournalError>;

fn read_lines(path: &Path, from: u64, each: EachLine<'_>) -> Result<u64, JournalError> {
    let mut file = crate::folder::plain::read(path).map_err(|e| JournalError::file("read", path, e))?;
    file.seek(SeekFrom::Start(from)).map_err(|e| JournalError::file("read", path, e))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let mut at = from;
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut within = (&mut reader).take(LINE_MAX);
        let read = within.read_until(b'\n', &mut line).map_err(|e| JournalError::file("read", path, e))?;
        if read == 0 || !line.ends_with(b"\n") {
            return Ok(at);
        }
        match serde_json::from_slice::<Event>(&line) {
            Ok(event) => each(&line, event)?,
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
