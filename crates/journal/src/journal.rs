//! The journal of a run: append-only, one event per line, strictly increasing `seq`.
//!
//! There are two copies. The sealed copy is written and flushed first, the journal in the record second. So the
//! journal is always a prefix of its sealed copy: a shorter one is healed, a different one was edited.

pub(crate) mod flush;
pub mod index;
pub(crate) mod places;
pub mod read;
pub mod repair;
pub mod seal;
pub mod tail;

use crate::error::JournalError;
use crate::folder::stamp::Stamp;
use crate::journal::flush::Flusher;
use crate::journal::places::open_append;
use crate::journal::read::{encode, parse, refuse_newer};
use crate::journal::repair::{catch_up, heal, set_aside};
use crate::journal::seal::{Seal, Settle, is_same, write_all_or_nothing};
use jiff::Timestamp;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::id::Seq;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

pub use crate::error::EVENT_MAX;
pub use crate::journal::places::RunPaths;

/// The only writer of a run's journal.
#[derive(Debug)]
pub struct Journal {
    places: RunPaths,
    file: File,
    seal: Option<Box<dyn Seal>>,
    flusher: Option<Flusher>,
    seq: Seq,
    bytes: u64,
    last_at: Timestamp,
    stamp: Stamp,
    /// An append since the last check found the file changed.
    suspect: bool,
    redactor: Arc<Redactor>,
}

struct JournalEnd {
    seq: Seq,
    last_at: Timestamp,
    bytes: u64,
}

impl Default for JournalEnd {
    fn default() -> Self {
        Self { seq: Seq(0), last_at: Timestamp::UNIX_EPOCH, bytes: 0 }
    }
}

/// What was found when a journal was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenedJournal {
    /// Bytes of a torn last line, set aside.
    pub torn_bytes: u64,
    /// Bytes that the sealed copy had and the journal had lost.
    pub healed_bytes: u64,
}

/// The result of checking the files after a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Integrity {
    Sound,
    Relinked(String),
    Edited(String),
}

impl Journal {
    /// Starts a new journal, sealed in the file that its places name. The spec must exist already.
    pub fn create(places: RunPaths, redactor: Arc<Redactor>) -> Result<Self, JournalError> {
        let seal = places.own_seal();
        Self::create_sealed(places, seal, redactor)
    }

    /// Starts a new journal with this sealed copy, or without one if it can't be created.
    pub fn create_sealed(
        places: RunPaths,
        seal: Option<Box<dyn Seal>>,
        redactor: Arc<Redactor>,
    ) -> Result<Self, JournalError> {
        places.dir.create()?;
        let file = open_append(&places.dir.events())?;
        Self::begin(places, file, seal, redactor, JournalEnd::default())
    }

    /// Opens the journal of an earlier process, sealed in the file that its places name: heals it from there, sets a
    /// torn last line aside, and calls `each` with every event in order.
    pub fn open(
        places: RunPaths,
        redactor: Arc<Redactor>,
        each: &mut dyn FnMut(&Event),
    ) -> Result<(Self, OpenedJournal), JournalError> {
        let seal = places.own_seal();
        Self::open_sealed(places, seal, redactor, each)
    }

    /// Opens the journal of an earlier process with this sealed copy, or without one if it can't be written.
    pub fn open_sealed(
        places: RunPaths,
        seal: Option<Box<dyn Seal>>,
        redactor: Arc<Redactor>,
        each: &mut dyn FnMut(&Event),
    ) -> Result<(Self, OpenedJournal), JournalError> {
        let path = places.dir.events();
        if !path.is_file() && seal.as_ref().is_some_and(|seal| seal.head().is_ok_and(|head| head.is_some())) {
            // The whole record is missing: the sealed copy restores it.
            places.dir.create()?;
            open_append(&path)?;
        }
        if !path.is_file() {
            return Err(JournalError::NoRun(places.dir.path().to_owned()));
        }
        let mut opened = OpenedJournal::default();
        if let Some(seal) = &seal {
            // An unreadable seal is optional, like one that can't be written.
            let head = match seal.head() {
                Err(error) if seal.is_required() => {
                    return Err(JournalError::file("look at", &seal.place(), error));
                }
                head => head.ok().flatten(),
            };
            opened.healed_bytes = head.map_or(Ok(0), |head| heal(&path, &**seal, head))?;
        }
        let mut file = open_append(&path)?;
        let JournalEnd { mut seq, mut last_at, mut bytes } = JournalEnd::default();
        let mut line_number = 0u64;
        let mut marks = String::new();
        let mut reader = BufReader::with_capacity(64 * 1024, &file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read =
                reader.read_until(b'\n', &mut line).map_err(|e| JournalError::file("read", &path, e))?;
            if read == 0 {
                break;
            }
            line_number += 1;
            match parse(&line, seq) {
                Ok(event) => {
                    refuse_newer(&path, &line, &event)?;
                    seq = event.seq;
                    last_at = event.at;
                    if index::is_marked(seq) {
                        marks.push_str(&index::line(seq, bytes));
                    }
                    bytes += read as u64;
                    each(&event);
                }
                // Only the last line can be torn; anything unreadable before it is damage that the user must see.
                Err(reason) => {
                    let more =
                        !reader.fill_buf().map_err(|e| JournalError::file("read", &path, e))?.is_empty();
                    if more {
                        return Err(JournalError::Corrupt { path, line: line_number, reason });
                    }
                    opened.torn_bytes = read as u64;
                }
            }
        }
        drop(reader);
        index::mend(&places.dir, &marks);
        if opened.torn_bytes > 0 {
            set_aside(&path, bytes, seq)?;
            file.set_len(bytes).map_err(|e| JournalError::file("repair", &path, e))?;
            file.seek(SeekFrom::End(0)).map_err(|e| JournalError::file("repair", &path, e))?;
        }
        let seal = match seal.map(|mut seal| (catch_up(&mut *seal, &path, bytes), seal)) {
            Some((Err(error), seal)) if seal.is_required() => {
                return Err(JournalError::file("append to", &seal.place(), error));
            }
            Some((Ok(()), seal)) => Some(seal),
            _ => None,
        };
        let journal = Self::begin(places, file, seal, redactor, JournalEnd { seq, last_at, bytes })?;
        Ok((journal, opened))
    }

    fn begin(
        places: RunPaths,
        file: File,
        seal: Option<Box<dyn Seal>>,
        redactor: Arc<Redactor>,
        head: JournalEnd,
    ) -> Result<Self, JournalError> {
        let JournalEnd { seq, last_at, bytes } = head;
        // A copy that can't be prepared doesn't count.
        let (seal, settle) = match seal.map(|mut seal| (seal.settle(), seal)) {
            Some((Ok(settle), seal)) => (Some(seal), Some(settle)),
            Some((Err(error), seal)) if seal.is_required() => {
                return Err(JournalError::file("append to", &seal.place(), error));
            }
            _ => (None, settle_file(&file).ok()),
        };
        let mut journal = Self {
            stamp: Stamp::default(),
            suspect: false,
            flusher: settle.and_then(Flusher::start),
            places,
            file,
            seal,
            seq,
            bytes,
            last_at,
            redactor,
        };
        journal.restamp()?;
        Ok(journal)
    }

    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// Length of the journal: with a snapshot, where its tail begins.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn places(&self) -> &RunPaths {
        &self.places
    }

    /// Appends an event. Redacts secrets, whatever wrote the event. Times never go backwards, even if the machine's
    /// clock does.
    pub fn append(&mut self, body: EventBody, at: Timestamp) -> Result<Event, JournalError> {
        let durable = body.must_be_durable();
        let mut event = Event { seq: self.seq.next(), at: at.max(self.last_at), body: body.bounded() };
        let mut line = encode(&event);
        if let std::borrow::Cow::Owned(_) = self.redactor.bytes(&line)
            && let Ok(mut value) = serde_json::to_value(&event)
        {
            self.redactor.json(&mut value);
            if let Ok(clean) = serde_json::from_value(value) {
                event = clean;
                line = encode(&event);
            }
        }
        if line.len() > EVENT_MAX {
            // Readers of the journal must not continue as if it hadn't happened.
            return Err(JournalError::TooLarge { kind: event.body.kind(), bytes: line.len() });
        }
        if let Some(seal) = &mut self.seal {
            seal.append(&line, self.bytes).map_err(|e| JournalError::file("append to", &seal.place(), e))?;
        }
        let path = self.places.dir.events();
        // Our own write must not hide another's.
        self.suspect |= std::fs::symlink_metadata(&path).ok().map(|m| Stamp::of(&m)) != Some(self.stamp);
        write_all_or_nothing(&mut self.file, &line, self.bytes)
            .map_err(|e| JournalError::file("append to", &path, e))?;
        if durable {
            self.flush()?;
        }
        index::mark(&self.places.dir, event.seq, self.bytes);
        self.seq = event.seq;
        self.last_at = event.at;
        self.bytes += line.len() as u64;
        self.restamp()?;
        Ok(event)
    }

    /// One copy on the disk is enough: the sealed one, from which the other is healed.
    fn flush(&mut self) -> Result<(), JournalError> {
        match &mut self.flusher {
            Some(flusher) => flusher.request(),
            None => {
                let settle = match &mut self.seal {
                    Some(seal) => seal.settle(),
                    None => settle_file(&self.file),
                };
                settle
                    .and_then(|mut settle| settle())
                    .map_err(|e| JournalError::file("flush", &self.places.dir.events(), e))?;
            }
        }
        Ok(())
    }

    /// Waits until every durable event is on the disk.
    pub fn barrier(&mut self) -> Result<(), JournalError> {
        let Some(flusher) = &mut self.flusher else { return Ok(()) };
        flusher.barrier().map_err(|e| JournalError::file("flush", &self.places.dir.events(), e))
    }

    fn restamp(&mut self) -> Result<(), JournalError> {
        let meta =
            self.file.metadata().map_err(|e| JournalError::file("look at", &self.places.dir.events(), e))?;
        self.stamp = Stamp::of(&meta);
        Ok(())
    }

    /// Checks whether another process touched the journal since the last check. Cheap if not.
    pub fn integrity(&mut self) -> Result<Integrity, JournalError> {
        let path = self.places.dir.events();
        let at_path = std::fs::symlink_metadata(&path).ok().map(|m| Stamp::of(&m));
        if at_path == Some(self.stamp) && !self.suspect {
            return Ok(Integrity::Sound);
        }
        self.suspect = false;
        let own = self.file.metadata().map_err(|e| JournalError::file("look at", &path, e))?;
        let intact = own.size() == self.bytes && self.same_as_seal()?;
        match at_path {
            // Only its times changed (a link was created or removed, or it was touched).
            Some(found) if found.ino == own.ino() && intact => {
                self.restamp()?;
                Ok(Integrity::Sound)
            }
            None if intact => {
                self.places.dir.create()?;
                self.rebuild(&path)?;
                Ok(Integrity::Relinked(format!("`{}`", path.display())))
            }
            found => {
                let aside = path.with_file_name(format!("events.edited-{}.jsonl", self.seq));
                if found.is_some() {
                    // Keeps whatever is there now, even a link or a folder, under another name.
                    std::fs::rename(&path, &aside).map_err(|e| JournalError::file("set aside", &aside, e))?;
                }
                self.rebuild(&path)?;
                Ok(Integrity::Edited(format!(
                    "the journal was edited while the agent worked; the edited file is kept as `{}`",
                    aside.display()
                )))
            }
        }
    }

    fn same_as_seal(&mut self) -> Result<bool, JournalError> {
        // Without a sealed copy, an edit with the same length and inode looks like a touch.
        let Some(seal) = &self.seal else { return Ok(true) };
        let path = self.places.dir.events();
        let ours = from_start(&self.file).map_err(|e| JournalError::file("read", &path, e));
        is_same(&**seal, &mut ours?).map_err(|e| JournalError::file("read", &seal.place(), e))
    }

    /// Rewrites the journal from the sealed copy, or from the inode we hold.
    fn rebuild(&mut self, path: &Path) -> Result<(), JournalError> {
        let mut text = Vec::new();
        let (read, from) = match &self.seal {
            Some(seal) => (seal.read(), seal.place()),
            None => (from_start(&self.file).map(|file| Box::new(file) as _), path.to_owned()),
        };
        read.and_then(|mut read| read.read_to_end(&mut text))
            .map_err(|e| JournalError::file("read", &from, e))?;
        let fresh = path.with_extension("fresh");
        std::fs::write(&fresh, &text).map_err(|e| JournalError::file("write", &fresh, e))?;
        std::fs::rename(&fresh, path).map_err(|e| JournalError::file("write", path, e))?;
        self.file = open_append(path)?;
        self.bytes = text.len() as u64;
        if self.seal.is_none() {
            self.flusher = settle_file(&self.file).ok().and_then(Flusher::start);
        }
        self.restamp()
    }
}

fn settle_file(file: &File) -> std::io::Result<Settle> {
    let file = file.try_clone()?;
    Ok(Box::new(move || file.sync_data()))
}

/// Another handle to the file we hold, at its beginning.
fn from_start(file: &File) -> std::io::Result<File> {
    let mut file = file.try_clone()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}
