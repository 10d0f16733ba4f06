//! The sealed copy of a journal: the port for its storage, and the file implementation.
//!
//! No agent can write there. Every line goes to it first, so the journal is always a prefix of it: a shorter one is
//! healed from it, a different one was edited.

use ralph_loop_protocol::lease::Epoch;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

/// Waits until what was sealed before the call survives a power cut. Called from a separate thread.
pub type Settle = Box<dyn FnMut() -> io::Result<()> + Send>;

/// The sealed copy of one journal: bytes that only grow, except for a torn end.
///
/// Implementations guarantee: [`Seal::read`] returns what [`Seal::append`] has taken, byte for byte, in this process
/// and in later ones; no other process writes to it while the run's lock is held.
pub trait Seal: Send + std::fmt::Debug {
    fn place(&self) -> PathBuf;
    /// How many bytes are sealed; `None` if there is no sealed copy yet.
    fn head(&self) -> io::Result<Option<u64>>;
    fn read(&self) -> io::Result<Box<dyn Read + '_>>;
    /// Adds `bytes` after the first `at`: all of them, or none and an error. Creates a missing copy.
    fn append(&mut self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Keeps only the first `length` bytes: the end was torn.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// How to wait for what is sealed. Creates a missing copy.
    fn settle(&mut self) -> io::Result<Settle>;
    /// Whether every event must be sealed. Other seals are skipped if they fail.
    fn is_required(&self) -> bool {
        false
    }
}

/// Remote storage that seals a run, for the run's holder. It is required: what it refuses doesn't happen.
pub trait SealSource: Send + Sync + std::fmt::Debug {
    fn seal(&self) -> Box<dyn Seal>;
    fn keep_spec(&self, text: &[u8]) -> io::Result<()>;
    fn spec(&self) -> io::Result<Option<Vec<u8>>>;
    /// The lease's epoch; every later lease has a larger one.
    fn epoch(&self) -> Epoch;
    /// Whether the run is still held, as far as this process knows without asking.
    fn is_held(&self) -> bool;
}

#[derive(Debug)]
pub struct FileSeal {
    path: PathBuf,
    file: Option<File>,
}

impl FileSeal {
    /// The copy at `path`; its folders are created with the first line.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None }
    }

    fn file(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                if let Some(folder) = self.path.parent() {
                    std::fs::create_dir_all(folder)?;
                }
                OpenOptions::new().create(true).append(true).read(true).open(&self.path)?
            }
        };
        Ok(self.file.insert(file))
    }
}

impl Seal for FileSeal {
    fn place(&self) -> PathBuf {
        self.path.clone()
    }

    fn head(&self) -> io::Result<Option<u64>> {
        match std::fs::metadata(&self.path) {
            Ok(about) => Ok(about.is_file().then_some(about.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(File::open(&self.path)?))
    }

    fn append(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        write_all_or_nothing(self.file()?, bytes, at)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file()?.set_len(length)
    }

    fn settle(&mut self) -> io::Result<Settle> {
        let file = self.file()?.try_clone()?;
        Ok(Box::new(move || file.sync_data()))
    }
}

/// A full disk must not leave half a line behind: a partial write is undone.
pub(crate) fn write_all_or_nothing(file: &mut File, line: &[u8], before: u64) -> io::Result<()> {
    file.write_all(line).inspect_err(|_| {
        let _ = file.set_len(before);
    })
}

/// Whether everything sealed equals `ours`.
pub(crate) fn is_same(seal: &dyn Seal, ours: &mut dyn Read) -> io::Result<bool> {
    let (mut sealed, mut here) = (Vec::new(), Vec::new());
    seal.read()?.read_to_end(&mut sealed)?;
    ours.read_to_end(&mut here)?;
    Ok(sealed == here)
}
