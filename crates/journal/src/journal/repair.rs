//! Repairs a journal: a lost or torn tail, foreign edits.

use crate::error::JournalError;
use crate::journal::places::{RunPaths, open_append};
use crate::journal::seal::Seal;
use ralph_loop_protocol::id::Seq;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

const COPY: usize = 64 * 1024;

/// Completes the journal from its sealed copy, which has `sealed_len` bytes. The journal must be a prefix of it.
pub(crate) fn heal(path: &Path, seal: &dyn Seal, sealed_len: u64) -> Result<u64, JournalError> {
    let place = seal.place();
    let mut ours = BufReader::new(File::open(path).map_err(|e| JournalError::file("read", path, e))?);
    let mut theirs = BufReader::new(seal.read().map_err(|e| JournalError::file("read", &place, e))?);
    let mut at = 0u64;
    loop {
        let a = ours.fill_buf().map_err(|e| JournalError::file("read", path, e))?;
        if a.is_empty() {
            break;
        }
        let b = theirs.fill_buf().map_err(|e| JournalError::file("read", &place, e))?;
        let length = a.len().min(b.len());
        if length == 0 || a[..length] != b[..length] {
            let differs = a.iter().zip(b).take_while(|(x, y)| x == y).count() as u64;
            return Err(JournalError::Tampered { path: path.to_owned(), seal: place, at: at + differs });
        }
        at += length as u64;
        ours.consume(length);
        theirs.consume(length);
    }
    if at < sealed_len {
        let mut rest = Vec::new();
        theirs.read_to_end(&mut rest).map_err(|e| JournalError::file("read", &place, e))?;
        let mut file = open_append(path)?;
        file.write_all(&rest).map_err(|e| JournalError::file("repair", path, e))?;
        file.sync_data().map_err(|e| JournalError::file("repair", path, e))?;
    }
    Ok(sealed_len - at)
}

/// Keeps the bytes of a torn line for inspection.
pub(crate) fn set_aside(path: &Path, from: u64, seq: Seq) -> Result<(), JournalError> {
    let aside = path.with_file_name(format!("events.torn-{seq}"));
    let mut file = File::open(path).map_err(|e| JournalError::file("read", path, e))?;
    file.seek(SeekFrom::Start(from)).map_err(|e| JournalError::file("read", path, e))?;
    let mut torn = Vec::new();
    file.read_to_end(&mut torn).map_err(|e| JournalError::file("read", path, e))?;
    std::fs::write(&aside, torn).map_err(|e| JournalError::file("write", &aside, e))
}

/// Makes the sealed copy end where the journal of `bytes` does; refills a missing one.
pub(crate) fn catch_up(seal: &mut dyn Seal, journal: &Path, bytes: u64) -> std::io::Result<()> {
    match seal.head()? {
        // A torn line was cut from the journal.
        Some(sealed) if sealed > bytes => seal.cut(bytes),
        Some(_) => Ok(()),
        None => {
            let mut file = File::open(journal)?;
            let mut chunk = vec![0; COPY];
            let mut at = 0;
            loop {
                match file.read(&mut chunk)? {
                    0 => return Ok(()),
                    read => seal.append(&chunk[..read], at)?,
                }
                at = file.stream_position()?;
            }
        }
    }
}

/// After the user accepted that the journal was edited: the sealed copy becomes the journal again, the edited one is
/// kept.
pub fn restore_from_seal(places: &RunPaths) -> Result<PathBuf, JournalError> {
    let path = places.dir.events();
    let seal = places.seal.clone().unwrap_or_default();
    let aside = path.with_file_name("events.edited.jsonl");
    std::fs::copy(&path, &aside).map_err(|e| JournalError::file("set aside", &aside, e))?;
    let fresh = path.with_extension("fresh");
    std::fs::copy(&seal, &fresh).map_err(|e| JournalError::file("copy", &seal, e))?;
    std::fs::rename(&fresh, &path).map_err(|e| JournalError::file("write", &path, e))?;
    Ok(aside)
}
