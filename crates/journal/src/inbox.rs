//! The inbox: user controls on their way to a run. Any process may append a line; only the driver reads, and it
//! journals how far it has read, so no control is lost or applied twice.

use crate::error::JournalError;
use crate::folder::layout::RunDir;
use crate::live::wake;
use ralph_loop_protocol::control::{Control, Letter};
use std::fs::OpenOptions;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};

/// The largest control (an edited task): it must fit into an event of the journal.
pub const LETTER_MAX: usize = 192 * 1024;
/// Bytes that are read at a time.
const READ_MAX: usize = 16 * LETTER_MAX;

/// Appends a control to a run's inbox.
pub fn send(run: &RunDir, from: &str, control: Control) -> Result<Letter, JournalError> {
    let mut id = [0u8; 8];
    getrandom::fill(&mut id).map_err(|e| {
        JournalError::file("make an id for", &run.inbox(), std::io::Error::other(e.to_string()))
    })?;
    send_as(run, &ralph_loop_protocol::id::hex(&id), from, control)
}

/// Like [`send`], with a chosen id: sent twice, it is applied once.
pub fn send_as(run: &RunDir, id: &str, from: &str, control: Control) -> Result<Letter, JournalError> {
    let path = run.inbox();
    let letter = Letter { id: id.to_owned(), from: from.to_owned(), control };
    let mut line = serde_json::to_vec(&letter).unwrap_or_default();
    line.push(b'\n');
    if line.len() > LETTER_MAX {
        let reason = format!("it is {} bytes; a control may have {LETTER_MAX}", line.len());
        return Err(JournalError::file("send a control to", &path, std::io::Error::other(reason)));
    }
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .map_err(|e| JournalError::file("write to", &path, e))?;
    file.write_all(&line).map_err(|e| JournalError::file("write to", &path, e))?;
    wake::poke(run);
    Ok(letter)
}

/// A line of the inbox: a letter, or why it isn't one; and the position after it.
pub type InboxLine = (Result<Letter, String>, u64);

/// The inbox from byte `from` on: letters and invalid lines, with the position after each.
pub fn read(run: &RunDir, from: u64) -> Result<Vec<InboxLine>, JournalError> {
    let path = run.inbox();
    let Ok(mut file) = crate::folder::plain::read(&path) else { return Ok(Vec::new()) };
    let length = file.metadata().map_err(|e| JournalError::file("read", &path, e))?.len();
    if length <= from {
        return Ok(Vec::new());
    }
    file.seek(SeekFrom::Start(from)).map_err(|e| JournalError::file("read", &path, e))?;
    let mut text = Vec::new();
    file.take(READ_MAX as u64).read_to_end(&mut text).map_err(|e| JournalError::file("read", &path, e))?;
    let mut at = from;
    let mut letters = Vec::new();
    let too_long = |bytes: usize| format!("a line of {bytes} bytes; a control may have {LETTER_MAX}");
    if text.len() == READ_MAX && !text.contains(&b'\n') {
        // Skipped, so that it doesn't block later letters.
        letters.push((Err(too_long(text.len())), from + text.len() as u64));
    }
    for line in text.split_inclusive(|b| *b == b'\n') {
        if !line.ends_with(b"\n") {
            break;
        }
        at += line.len() as u64;
        if line.len() > LETTER_MAX {
            letters.push((Err(too_long(line.len())), at));
            continue;
        }
        let letter = serde_json::from_slice::<Letter>(line).map_err(|e| {
            format!(
                "not a control ({e}): {}",
                ralph_loop_protocol::display::text::one_line(&String::from_utf8_lossy(line), 120)
            )
        });
        letters.push((letter, at));
    }
    Ok(letters)
}
