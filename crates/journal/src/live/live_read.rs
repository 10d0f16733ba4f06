//! Reads `live.jsonl` from another process: by number, across rotation, removal and restart.

use crate::folder::layout::RunDir;
use crate::folder::plain;
use crate::live::live_record::{LIVE_MAX, LiveRecord};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

const CHUNK: u64 = 128 * 1024;
/// Bytes of the rotated file that are read; the engine's is shorter.
const OLD_MAX: u64 = 2 * LIVE_MAX;

/// Reads records in the order of their numbers, each once.
#[derive(Debug)]
pub(crate) struct LiveReader {
    run: RunDir,
    /// The current file, and where its next record begins.
    inode: u64,
    at: u64,
    last: u64,
    /// Whether a gap in the numbers is a loss: not for the first record.
    begun: bool,
}

#[derive(Debug, Default)]
pub(crate) struct LiveRecords {
    pub(crate) records: Vec<LiveRecord>,
    /// Records lost before the first of these.
    pub(crate) missed: u64,
    /// Whether it reached the end that the stream had when this call began.
    pub(crate) to_end: bool,
}

impl LiveReader {
    /// Records after number `after`; `None` for those from now on.
    pub(crate) fn new(run: &RunDir, after: Option<u64>) -> Self {
        let last = after.unwrap_or_else(|| last_number(run));
        let begun = after.is_some_and(|n| n > 0);
        Self { run: run.clone(), inode: 0, at: 0, last, begun }
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Records since the last call, as many as are read at a time. An unreadable file has none.
    pub(crate) fn poll(&mut self) -> LiveRecords {
        let mut read = LiveRecords { to_end: true, ..LiveRecords::default() };
        let Ok(file) = plain::read(&self.run.live()) else { return read };
        let Ok(meta) = file.metadata() else { return read };
        if self.inode != meta.ino() || meta.len() < self.at {
            self.change_file(&file, meta.ino(), &mut read);
        }
        let known = self.begun && self.at > 0;
        self.advance(&file, &mut read);
        // Numbers that don't follow: another file with the same inode, or an overwritten one.
        if known && read.records.first().is_some_and(|r| r.n != self.last + 1) {
            read.records.clear();
            (self.inode, self.at) = (0, 0);
            self.change_file(&file, meta.ino(), &mut read);
            self.advance(&file, &mut read);
        }
        self.hand_out(&mut read);
        read
    }

    /// There is another file: reads the rest of the previous one first, then the new one from its beginning.
    fn change_file(&mut self, new: &File, inode: u64, read: &mut LiveRecords) {
        let restarted = last_record(new).is_some_and(|r| r.n < self.last);
        if restarted {
            // The files were removed, and a new process counts from 1 again.
            (self.last, self.begun) = (0, false);
        } else if let Ok(old) = plain::read(&self.run.live_before()) {
            let same = old.metadata().is_ok_and(|m| m.ino() == self.inode && m.len() >= self.at);
            if !same {
                self.at = 0;
            }
            while self.at < OLD_MAX && !self.chunk(&old, &mut read.records) {}
        }
        (self.inode, self.at) = (inode, 0);
    }

    fn advance(&mut self, file: &File, read: &mut LiveRecords) {
        read.to_end = self.chunk(file, &mut read.records);
    }

    /// Reads one chunk of records; returns whether that was the end of the file.
    fn chunk(&mut self, mut file: &File, records: &mut Vec<LiveRecord>) -> bool {
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(self.at)).and_then(|_| file.take(CHUNK).read_to_end(&mut bytes));
        let Ok(read) = read.map(|n| n as u64) else { return true };
        let mut used = 0;
        for line in bytes.split_inclusive(|b| *b == b'\n').filter(|line| line.ends_with(b"\n")) {
            used += line.len() as u64;
            let newest = records.last().map_or(self.last, |r| r.n);
            // Skips invalid records (a torn line, a foreign one).
            records.extend(serde_json::from_slice::<LiveRecord>(line).ok().filter(|r| r.n > newest));
        }
        if used == 0 && read == CHUNK {
            // No record is this long.
            used = read;
        }
        self.at += used;
        read < CHUNK
    }

    fn hand_out(&mut self, read: &mut LiveRecords) {
        if let Some(first) = read.records.first()
            && self.begun
        {
            read.missed = first.n - self.last - 1;
        }
        if let Some(last) = read.records.last() {
            (self.last, self.begun) = (last.n, true);
        }
    }
}

/// The number of a run's last record; 0 if there is none.
pub fn last_number(run: &RunDir) -> u64 {
    let last = |path: &Path| plain::read(path).ok().and_then(|file| last_record(&file)).map_or(0, |r| r.n);
    match last(&run.live()) {
        0 => last(&run.live_before()),
        n => n,
    }
}

fn last_record(mut file: &File) -> Option<LiveRecord> {
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(64 * 1024))).ok()?;
    let mut bytes = Vec::new();
    file.take(64 * 1024).read_to_end(&mut bytes).ok()?;
    bytes.split(|b| *b == b'\n').rev().find_map(|line| serde_json::from_slice(line).ok())
}

pub(crate) fn ends_whole(file: &File, length: u64) -> bool {
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1).is_ok() && last == *b"\n"
}
