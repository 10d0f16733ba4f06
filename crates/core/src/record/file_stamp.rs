//! Detects writes to a file without reading it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// How a file looked when last read; unchanged means no writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    ino: u64,
    size: u64,
    ctime: (i64, i64),
}

impl FileStamp {
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let meta = std::fs::symlink_metadata(path).ok()?;
        Some(Self { ino: meta.ino(), size: meta.size(), ctime: (meta.ctime(), meta.ctime_nsec()) })
    }
}
