//! Small files that must be complete or missing: the run's records of the repo.

use crate::error::{Error, Result};
use ralph_loop_safe_fs::SafeDir;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
    let written =
        SafeDir::open(folder).and_then(|dir| dir.write(path.file_name().unwrap_or_default(), bytes));
    written.map_err(|error| Error::file("write", path, error))
}

/// More than `HEAD`, a ref or a `.git` file holds.
pub(crate) const REF_MAX: u64 = 64 * 1024;
/// More than any packed refs file.
pub(crate) const PACKED_REFS_MAX: u64 = 1024 * 1024 * 1024;
/// More than any configuration or ignore file.
pub(crate) const CONFIG_MAX: u64 = 64 * 1024 * 1024;

/// Reads a file of a git folder. An agent may have replaced it by a pipe or an endless file: only plain files are
/// read, without blocking.
pub(crate) fn read(path: &Path, max: u64) -> std::io::Result<Vec<u8>> {
    ralph_loop_safe_fs::read_plain(path, max)
}

pub(crate) fn read_text(path: &Path, max: u64) -> std::io::Result<String> {
    Ok(String::from_utf8_lossy(&read(path, max)?).into_owned())
}

pub(crate) fn save<T: Serialize>(path: &Path, value: &T) -> Result<()> {
    let bytes = serde_json::to_vec(value).map_err(|e| Error::file("write", path, e.into()))?;
    write_atomically(path, &bytes)
}

pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::file("read", path, e)),
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|e| Error::unreadable(format!("`{}`", path.display()), e.to_string()))
}
