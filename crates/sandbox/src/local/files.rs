//! The file methods.

use super::walk::{self, Last, Missing, WalkedPath, file_error, kind};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fchmod};
use nix::unistd::{UnlinkatFlags, unlinkat};
use ralph_loop_domain::ports::{SandboxError, WriteMode};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const READ_MAX: u64 = 256 * 1024 * 1024;

pub(crate) fn read(root: &Path, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
    match walk::find(root, path, Last::Follow, Missing::Stop)? {
        None => Ok(None),
        Some(place) => match checked(&place, path, "read")? {
            (_, None) => Ok(None),
            (name, Some(_)) => read_at(&place, name, path).map(Some),
        },
    }
}

pub(crate) fn write(root: &Path, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
    let place = walk::find(root, path, Last::Follow, Missing::Make)?
        .ok_or_else(|| file_error("write", path, Errno::ENOTDIR))?;
    let (name, stat) = checked(&place, path, "write")?;
    match (mode, stat) {
        (WriteMode::Replace, stat) => replace(&place, name, stat, bytes, path),
        // Another name of the same file may be outside or in git's folder: that one must not change.
        (WriteMode::Append, Some(stat)) if stat.st_nlink > 1 => {
            let mut whole = read_at(&place, name, path)?;
            whole.extend_from_slice(bytes);
            replace(&place, name, Some(stat), &whole, path)
        }
        (WriteMode::Append, _) => {
            let flags =
                OFlag::O_WRONLY | OFlag::O_APPEND | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
            openat(&place.folder, name, flags, Mode::from_bits_truncate(0o666))
                .map_err(std::io::Error::from)
                .and_then(|fd| File::from(fd).write_all(bytes))
                .map_err(|error| failed("append to", path, &error))
        }
    }
}

pub(crate) fn remove(root: &Path, path: &Path) -> Result<(), SandboxError> {
    let Some(place) = walk::find(root, path, Last::Keep, Missing::Stop)? else { return Ok(()) };
    let Some(name) = &place.name else { return Err(file_error("remove", path, Errno::EISDIR)) };
    match unlinkat(&place.folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(errno) => Err(file_error("remove", path, errno)),
    }
}

/// A missing folder counts as empty, as for git.
pub(crate) fn list(root: &Path, path: &Path) -> Result<Vec<String>, SandboxError> {
    let Some(place) = walk::find(root, path, Last::Follow, Missing::Stop)? else { return Ok(Vec::new()) };
    if place.name.is_some() && place.stat.is_none() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(&place.real).map_err(|error| failed("list", path, &error))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| failed("list", path, &error))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn failed(verb: &'static str, path: &Path, error: &std::io::Error) -> SandboxError {
    SandboxError::File { verb, path: path.to_owned(), reason: error.to_string() }
}

/// The name if it is a plain file or doesn't exist yet.
fn checked<'a>(
    place: &'a WalkedPath,
    path: &Path,
    verb: &'static str,
) -> Result<(&'a OsStr, Option<FileStat>), SandboxError> {
    let other = |reason: &str| SandboxError::File { verb, path: path.to_owned(), reason: reason.to_owned() };
    let name = place.name.as_deref().ok_or_else(|| other("it is a folder"))?;
    match place.stat.map(|stat| kind(&stat)) {
        None | Some(libc::S_IFREG) => Ok((name, place.stat)),
        Some(libc::S_IFDIR) => Err(other("it is a folder")),
        // A named pipe would block forever, a device may do anything.
        Some(_) => Err(other("it is not a plain file")),
    }
}

fn read_at(place: &WalkedPath, name: &OsStr, path: &Path) -> Result<Vec<u8>, SandboxError> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let mut bytes = Vec::new();
    openat(&place.folder, name, flags, Mode::empty())
        .map_err(std::io::Error::from)
        .and_then(|fd| File::from(fd).take(READ_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| failed("read", path, &error))?;
    if bytes.len() as u64 > READ_MAX {
        return Err(failed("read", path, &std::io::Error::other("it is larger than 256 MiB")));
    }
    Ok(bytes)
}

/// A new file next to the old one, then a rename: a reader sees the old or the new content.
fn replace(
    place: &WalkedPath,
    name: &OsStr,
    old: Option<FileStat>,
    bytes: &[u8],
    path: &Path,
) -> Result<(), SandboxError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let beside = OsString::from(format!(".ralph-{}-{number}.tmp", std::process::id()));
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let written = || -> std::io::Result<()> {
        let fd = openat(&place.folder, beside.as_os_str(), flags, Mode::from_bits_truncate(0o666))?;
        if let Some(old) = old {
            fchmod(&fd, Mode::from_bits_truncate(old.st_mode))?;
        }
        File::from(fd).write_all(bytes)?;
        renameat(&place.folder, beside.as_os_str(), &place.folder, name)?;
        Ok(())
    };
    written().map_err(|error| {
        unlinkat(&place.folder, beside.as_os_str(), UnlinkatFlags::NoRemoveDir).ok();
        failed("write", path, &error)
    })
}
