//! Opening files that somebody else may have put there: regular ones only, never through a link, never waiting.

use nix::libc;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a regular file for reading.
pub(crate) fn read(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true), path)
}

/// Opens a regular file for appending (and reading what stands there), made if there is none.
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
