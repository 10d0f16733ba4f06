//! Artifacts: everything that an event may name by its digest. They are written before the event, so an event never
//! names a missing one; one that a crash cut off is written again, because no event named it.

use crate::error::JournalError;
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::redact::{RedactStream, Redactor};
use ralph_loop_protocol::id::{Digest, hex};
use sha2::{Digest as _, Sha256};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much of a log's beginning is kept.
pub const LOG_HEAD: u64 = 16 * 1024 * 1024;
/// How much of a longer log's end is kept.
pub const LOG_TAIL: usize = 256 * 1024;

/// Writes a file of an iteration and returns its digest.
pub fn write(path: &Path, bytes: &[u8]) -> Result<Digest, JournalError> {
    std::fs::write(path, bytes).map_err(|e| JournalError::file("write", path, e))?;
    Ok(Digest::of(bytes))
}

/// Writes a file atomically: readers see the old or the new one.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let fresh = path.with_file_name(name);
    let write = || std::fs::write(&fresh, bytes).and_then(|()| std::fs::rename(&fresh, path));
    match write() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let parent = path.parent().unwrap_or(path);
            std::fs::create_dir_all(parent).map_err(|e| JournalError::file("make the folder", parent, e))?;
            write().map_err(|e| JournalError::file("write", path, e))
        }
        result => result.map_err(|e| {
            let _ = std::fs::remove_file(&fresh);
            JournalError::file("write", path, e)
        }),
    }
}

/// Like [`write_atomic`], and flushed: for what must survive a power cut together with the event that names it.
pub fn write_durable(path: &Path, bytes: &[u8]) -> Result<(), JournalError> {
    write_atomic(path, bytes)?;
    let flush = |path: &Path| File::open(path).and_then(|file| file.sync_all());
    flush(path).map_err(|e| JournalError::file("flush", path, e))?;
    match path.parent() {
        Some(parent) => flush(parent).map_err(|e| JournalError::file("flush", parent, e)),
        None => Ok(()),
    }
}

/// A log of raw output, redacted as it comes in and bounded: the beginning and the end are kept, the middle of a
/// flood is counted and left out.
#[derive(Debug)]
pub struct OutputLog {
    path: PathBuf,
    file: File,
    redactor: Arc<Redactor>,
    /// One per stream: the other stream must not split a secret that spans two reads.
    streams: [RedactStream; 2],
    hasher: Sha256,
    written: u64,
    dropped: u64,
    tail: VecDeque<u8>,
    failed: Option<std::io::Error>,
}

#[derive(Debug, Clone)]
pub struct FinishedLog {
    pub digest: Digest,
    pub bytes: u64,
    /// Bytes of the middle that were left out.
    pub dropped: u64,
}

impl OutputLog {
    /// Starts a log, replacing an unfinished one.
    pub fn create(path: &Path, redactor: Arc<Redactor>) -> Result<Self, JournalError> {
        let file = File::create(path).map_err(|e| JournalError::file("write", path, e))?;
        Ok(Self::of(file, path, redactor))
    }

    /// A log in a new and empty file.
    pub fn of(file: File, path: &Path, redactor: Arc<Redactor>) -> Self {
        Self {
            path: path.to_owned(),
            file,
            redactor,
            streams: [RedactStream::default(), RedactStream::default()],
            hasher: Sha256::new(),
            written: 0,
            dropped: 0,
            tail: VecDeque::new(),
            failed: None,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends output; returns it redacted, for display.
    pub fn push(&mut self, stream: Stream, bytes: &[u8]) -> Vec<u8> {
        let stream = &mut self.streams[usize::from(stream == Stream::Stderr)];
        let clean = stream.push(&self.redactor, bytes);
        self.keep(&clean);
        clean
    }

    /// Ends the log; returns what was still held back of stdout and stderr.
    pub fn finish(mut self) -> Result<(FinishedLog, [Vec<u8>; 2]), JournalError> {
        let last = self.streams.each_mut().map(|stream| stream.finish(&self.redactor));
        last.iter().for_each(|rest| self.keep(rest));
        if !self.tail.is_empty() {
            let left_out = self.dropped.saturating_sub(self.tail.len() as u64);
            let marker = format!("\n[… {left_out} bytes left out …]\n");
            let tail: Vec<u8> = self.tail.drain(..).collect();
            if left_out > 0 {
                self.write(marker.as_bytes());
            }
            self.write(&tail);
            self.dropped = left_out;
        }
        if let Some(error) = self.failed {
            return Err(JournalError::file("write", &self.path, error));
        }
        let digest = Digest::from_hex(hex(&self.hasher.finalize()));
        Ok((FinishedLog { digest, bytes: self.written, dropped: self.dropped }, last))
    }

    fn keep(&mut self, clean: &[u8]) {
        let room = LOG_HEAD.saturating_sub(self.written).min(clean.len() as u64) as usize;
        let (head, rest) = if self.dropped > 0 { (&clean[..0], clean) } else { clean.split_at(room) };
        if !head.is_empty() {
            self.write(head);
        }
        if !rest.is_empty() {
            self.dropped += rest.len() as u64;
            let rest = &rest[rest.len().saturating_sub(LOG_TAIL)..];
            self.tail.extend(rest);
            let over = self.tail.len().saturating_sub(LOG_TAIL);
            self.tail.drain(..over);
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.hasher.update(bytes);
                self.written += bytes.len() as u64;
            }
            Err(error) => self.failed = Some(error),
        }
    }
}
