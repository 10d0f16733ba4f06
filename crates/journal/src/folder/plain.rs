//! Opens files that another process may have put there: only regular ones, never through a link, never blocking.

use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

pub fn read(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true), path)
}

/// The content of a regular file that has at most `max` bytes.
pub fn read_bounded(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read(path)?.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is too large to be one"));
    }
    Ok(bytes)
}

/// The content as text; empty if it can't be read.
pub fn read_text(path: &Path, max: u64) -> String {
    String::from_utf8_lossy(&read_bounded(path, max).unwrap_or_default()).into_owned()
}

/// Opens a regular file for reading and appending, creating it if missing.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).append(true).create(true), path)
}

fn regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }
}
