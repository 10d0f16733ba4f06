//! Opening what is below a folder.

use crate::invalid;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

pub(crate) const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Never blocks, and never takes over a terminal.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Refused,
    /// Follow them as long as they stay below the folder. If the kernel can't tell, refuse them.
    Inside,
}

pub(crate) fn below(
    folder: &OwnedFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    links: Links,
) -> io::Result<OwnedFd> {
    match at_once(folder, path, flags, mode, links) {
        Some(done) => Ok(done?),
        None => walk(folder.as_fd(), path, flags, mode),
    }
}

/// In one step, if the kernel can keep such a path below the folder.
#[cfg(target_os = "linux")]
fn at_once(
    folder: &OwnedFd,
    path: &Path,
    flags: OFlags,
    mode: Mode,
    links: Links,
) -> Option<Result<OwnedFd, Errno>> {
    use rustix::fs::ResolveFlags;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Whether the kernel lacks `openat2`, or a filter blocks it.
    static WALKS: AtomicBool = AtomicBool::new(false);

    if WALKS.load(Ordering::Relaxed) {
        return None;
    }
    let resolve = match links {
        Links::Refused => ResolveFlags::NO_SYMLINKS,
        Links::Inside => ResolveFlags::empty(),
    };
    let resolve = resolve | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // Concurrent renames can make the kernel unsure whether a link's `..` stays below.
    for _ in 0..8 {
        match rustix::fs::openat2(folder, path, flags, mode, resolve) {
            Err(Errno::NOSYS | Errno::PERM) => {
                WALKS.store(true, Ordering::Relaxed);
                break;
            }
            Err(Errno::AGAIN) => {}
            done => return Some(done),
        }
    }
    None
}

/// Only Linux can.
#[cfg(not(target_os = "linux"))]
fn at_once(_: &OwnedFd, _: &Path, _: OFlags, _: Mode, _: Links) -> Option<Result<OwnedFd, Errno>> {
    None
}

/// Folder by folder, following no link at all.
pub(crate) fn walk(folder: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let mut parts = path.components().peekable();
    let mut at: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        let name = Path::new(part.as_os_str());
        let from = at.as_ref().map_or(folder, AsFd::as_fd);
        let next = match parts.peek() {
            Some(_) => rustix::fs::openat(from, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()),
            None => rustix::fs::openat(from, name, flags | OFlags::NOFOLLOW, mode),
        };
        at = Some(next?);
    }
    at.ok_or_else(|| invalid("an empty path"))
}

pub(crate) fn regular(handle: OwnedFd) -> io::Result<File> {
    let file = File::from(handle);
    if file.metadata()?.is_file() { Ok(file) } else { Err(invalid("not a regular file")) }
}

/// Opens a regular file at the user's own path: follows links, but refuses a FIFO, a socket or a device, and never
/// blocks.
pub fn open_plain(path: impl AsRef<Path>) -> io::Result<File> {
    regular(rustix::fs::open(path.as_ref(), READ, Mode::empty())?)
}

/// Reads such a file; more than `max` bytes are an error.
pub fn read_plain(path: impl AsRef<Path>, max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(path)?.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()).is_ok_and(|length| length <= max) {
        true => Ok(bytes),
        false => Err(invalid("larger than such a file can be")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// For kernels without `openat2`.
    #[test]
    fn folder_by_folder_no_link_is_followed_either() {
        let base = tempfile::tempdir().unwrap();
        let tree = base.path().join("tree");
        std::fs::create_dir_all(tree.join("a/b")).unwrap();
        std::fs::write(tree.join("a/b/file"), "x").unwrap();
        symlink("b", tree.join("a/inside")).unwrap();
        symlink(base.path(), tree.join("out")).unwrap();
        let folder = rustix::fs::open(&tree, FOLDER, Mode::empty()).unwrap();
        let walk = |path: &str| walk(folder.as_fd(), Path::new(path), READ, Mode::empty());
        assert!(regular(walk("a/b/file").unwrap()).is_ok());
        for (path, why) in [
            ("a/inside/file", Errno::NOTDIR),
            ("out/tree/a/b/file", Errno::NOTDIR),
            ("out", Errno::LOOP),
            ("a/b/none", Errno::NOENT),
            ("a/b/file/below", Errno::NOTDIR),
        ] {
            assert_eq!(Errno::from_io_error(&walk(path).unwrap_err()), Some(why), "{path}");
        }
    }
}
