//! Where the files of a journal are, and how they are opened.

use crate::error::JournalError;
use crate::folder::layout::RunDir;
use crate::journal::seal::{FileSeal, Seal, SealSource};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The paths of a journal's files.
#[derive(Debug, Clone)]
pub struct RunPaths {
    pub dir: RunDir,
    /// The sealed copy, if there is a path for one.
    pub seal: Option<PathBuf>,
    /// Where the run is sealed instead, if not on this machine.
    pub elsewhere: Option<Arc<dyn SealSource>>,
}

impl RunPaths {
    /// The sealed copy of the frozen spec.
    pub fn sealed_spec(&self) -> Option<PathBuf> {
        self.seal.as_ref().map(|path| path.with_extension("spec.json"))
    }
    pub(crate) fn own_seal(&self) -> Option<Box<dyn Seal>> {
        if let Some(elsewhere) = &self.elsewhere {
            return Some(elsewhere.seal());
        }
        self.seal.as_deref().map(|path| Box::new(FileSeal::at(path)) as Box<dyn Seal>)
    }
}

pub(crate) fn open_append(path: &Path) -> Result<File, JournalError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .read(true)
        .open(path)
        .map_err(|e| JournalError::file("open", path, e))
}
