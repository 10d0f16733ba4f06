//! Reads a growing journal line by line: every event once, whatever happens to the file.

use crate::error::JournalError;
use crate::journal::index;
use ralph_loop_protocol::event::Event;
use ralph_loop_protocol::id::Seq;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq)]
pub struct JournalLine {
    /// The raw line without its end: an event of a newer version keeps its text.
    pub text: String,
    pub event: Event,
}

/// Reads a journal from some event on, and keeps reading.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    /// Where the next event begins, in the file with this inode.
    at: u64,
    inode: Option<u64>,
    last: Seq,
}

enum LineRead {
    New(Box<JournalLine>),
    Seen,
    /// Not the expected line: the file isn't the one we took it for.
    Foreign(String),
}

impl Tail {
    pub(crate) fn new(path: &Path, from: Seq) -> Self {
        let last = Seq(from.0.saturating_sub(1));
        Self { path: path.to_owned(), at: index::locate(path, from), inode: None, last }
    }

    /// What comes after the present last whole event.
    pub(crate) fn at_end(path: &Path) -> Result<Self, JournalError> {
        let last = last_seq(path).map_err(|e| JournalError::file("read", path, e))?;
        Ok(Self::new(path, Seq(last.0 + 1)))
    }

    pub(crate) fn last(&self) -> Seq {
        self.last
    }

    /// Passes on what came since the last call, at most `most` events, complete lines only.
    pub(crate) fn poll(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(JournalLine),
    ) -> Result<(), JournalError> {
        // Missing for a moment (an agent's `git clean`); it will be back.
        let Ok(meta) = std::fs::metadata(&self.path) else { return Ok(()) };
        let other = self.inode.is_some_and(|inode| inode != meta.ino());
        if other || meta.len() < self.at {
            // A torn tail was cut, or the file was recreated: find the position again and skip returned events.
            self.at = index::locate(&self.path, self.last.next());
        }
        self.inode = Some(meta.ino());
        if meta.len() == self.at {
            return Ok(());
        }
        let trusted = self.at;
        match self.read(most, each)? {
            Some(_) if trusted > 0 => {
                // Overwritten in place: from the beginning, skipping returned events.
                self.at = 0;
                match self.read(most, each)? {
                    Some(reason) => Err(self.corrupt(reason)),
                    None => Ok(()),
                }
            }
            Some(reason) => Err(self.corrupt(reason)),
            None => Ok(()),
        }
    }

    /// Reads on from `at`; fails if the file isn't what it was.
    fn read(
        &mut self,
        most: usize,
        each: &mut dyn FnMut(JournalLine),
    ) -> Result<Option<String>, JournalError> {
        let fail = |e| JournalError::file("read", &self.path, e);
        let mut file = crate::folder::plain::read(&self.path).map_err(fail)?;
        file.seek(SeekFrom::Start(self.at)).map_err(fail)?;
        let mut reader = BufReader::with_capacity(32 * 1024, file);
        let mut bytes = Vec::new();
        let mut given = 0;
        while given < most {
            bytes.clear();
            let read = reader.read_until(b'\n', &mut bytes).map_err(fail)?;
            if read == 0 || !bytes.ends_with(b"\n") {
                return Ok(None);
            }
            match read_line(&bytes, self.last) {
                LineRead::New(line) => {
                    self.last = line.event.seq;
                    given += 1;
                    each(*line);
                }
                LineRead::Seen => {}
                // A torn last line isn't an event yet.
                LineRead::Foreign(_) if reader.fill_buf().map_err(fail)?.is_empty() => return Ok(None),
                LineRead::Foreign(reason) => return Ok(Some(reason)),
            }
            self.at += read as u64;
        }
        Ok(None)
    }

    fn corrupt(&self, reason: String) -> JournalError {
        JournalError::Corrupt { path: self.path.clone(), line: self.last.0 + 1, reason }
    }
}

fn read_line(bytes: &[u8], last: Seq) -> LineRead {
    // Returned events aren't parsed again.
    if seq_of(bytes).is_some_and(|seq| seq <= last) {
        return LineRead::Seen;
    }
    let text = String::from_utf8_lossy(bytes).trim_end().to_owned();
    match serde_json::from_str::<Event>(&text) {
        Ok(event) if event.seq <= last => LineRead::Seen,
        Ok(event) if event.seq == last.next() => LineRead::New(Box::new(JournalLine { text, event })),
        Ok(event) => LineRead::Foreign(format!("its seq is {}, but {} was expected", event.seq, last.next())),
        Err(error) => LineRead::Foreign(error.to_string()),
    }
}

/// The number of an event from the first bytes of its line, as the engine writes them.
fn seq_of(line: &[u8]) -> Option<Seq> {
    let rest = line.strip_prefix(b"{\"seq\":")?;
    let digits = rest.iter().take(20).take_while(|b| b.is_ascii_digit()).count();
    if rest.get(digits) != Some(&b',') || !line.ends_with(b"}\n") {
        return None;
    }
    std::str::from_utf8(&rest[..digits]).ok()?.parse().ok().map(Seq)
}

/// The number of the last whole event of a journal; 0 if there is none.
fn last_seq(path: &Path) -> std::io::Result<Seq> {
    let mut file = match crate::folder::plain::read(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Seq(0)),
        Err(e) => return Err(e),
    };
    let length = file.metadata()?.len();
    let mut window = 8 * 1024;
    loop {
        let from = length.saturating_sub(window);
        file.seek(SeekFrom::Start(from))?;
        let mut text = Vec::new();
        (&file).take(window).read_to_end(&mut text)?;
        // The text before the first line end may be the end of a longer line.
        let begun =
            if from == 0 { 0 } else { text.iter().position(|b| *b == b'\n').map_or(text.len(), |at| at + 1) };
        let mut whole = text[begun..]
            .split_inclusive(|b| *b == b'\n')
            .filter_map(|line| line.ends_with(b"\n").then(|| serde_json::from_slice::<Event>(line).ok())?);
        match whole.next_back() {
            Some(event) => return Ok(event.seq),
            None if from == 0 => return Ok(Seq(0)),
            None => window *= 8,
        }
    }
}
