//! `events.idx`: where in the journal every 256th event begins, so that a late reader of a long run starts at once.
//!
//! The index is optional. The journal's writer adds a line now and then and rebuilds the file when it opens the
//! journal; a reader checks that the journal really has that event there.

use crate::folder::artifacts::write_atomic;
use crate::folder::layout::RunDir;
use crate::folder::plain;
use ralph_loop_protocol::id::Seq;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

pub const EVERY: u64 = 256;
/// Marks for a hundred million events.
const INDEX_MAX: u64 = 16 * 1024 * 1024;

pub(crate) fn is_marked(seq: Seq) -> bool {
    seq.0 > 1 && seq.0 % EVERY == 1
}

/// Records that the event `seq` begins at byte `at`. Without the mark, readers search for it.
pub(crate) fn mark(run: &RunDir, seq: Seq, at: u64) {
    if is_marked(seq)
        && let Ok(mut file) = plain::append(&run.index())
    {
        let _ = file.write_all(line(seq, at).as_bytes());
    }
}

/// Rewrites the index; `marks` are those of the whole journal.
pub(crate) fn mend(run: &RunDir, marks: &str) {
    let path = run.index();
    let before = plain::read(&path).ok().and_then(|file| {
        let mut text = String::new();
        file.take(INDEX_MAX).read_to_string(&mut text).ok().map(|_| text)
    });
    if before.as_deref().unwrap_or_default() != marks {
        let _ = write_atomic(&path, marks.as_bytes());
    }
}

pub(crate) fn line(seq: Seq, at: u64) -> String {
    format!("{seq} {at}\n")
}

/// A byte of `journal` at which an event begins that isn't after `from`, as near to it as the index knows; 0 without
/// a valid mark.
pub(crate) fn locate(journal: &Path, from: Seq) -> u64 {
    if from.0 <= EVERY {
        return 0;
    }
    let index = journal.with_extension("idx");
    let mut text = String::new();
    let read = plain::read(&index).and_then(|file| file.take(INDEX_MAX).read_to_string(&mut text));
    if read.is_err() {
        return 0;
    }
    let best = text
        .lines()
        .filter_map(|line| {
            let (seq, at) = line.split_once(' ')?;
            Some((seq.parse::<u64>().ok()?, at.parse::<u64>().ok()?))
        })
        .filter(|(seq, _)| *seq <= from.0)
        .max();
    best.filter(|(seq, at)| begins_at(journal, *seq, *at)).map_or(0, |(_, at)| at)
}

/// Whether the journal has the event `seq` at byte `at`. No event holds a bare line end, so one before it is proof.
fn begins_at(journal: &Path, seq: u64, at: u64) -> bool {
    let Some(before) = at.checked_sub(1) else { return false };
    let wanted = format!("\n{{\"seq\":{seq},");
    let mut found = vec![0; wanted.len()];
    plain::read(journal).and_then(|file| file.read_exact_at(&mut found, before)).is_ok()
        && found == wanted.as_bytes()
}
