//! Writes below a folder: through no link, replacing existing entries.

use crate::open;
use crate::{Kind, SafeDir, invalid, kind_of, permissions, relative};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Exclusive: an existing name or link fails.
pub(crate) const CREATE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);
const APPEND: OFlags =
    OFlags::WRONLY.union(OFlags::APPEND).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
const NAMES: u32 = 8;
/// Deepest nesting that is removed; deeper folders are an error.
const DEPTH: u32 = 512;

impl SafeDir {
    /// Writes a file at `path` atomically, replacing a file or link there. Creates its folders. A folder in its place
    /// is an error.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        self.write_with(path, bytes, 0o666)
    }

    /// Like [`Self::write`], but keeps the permissions of the existing file.
    pub fn replace(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        let path = path.as_ref();
        let (folder, name) = self.parent_of(path)?;
        let stat = rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(invalid("not a regular file"));
        }
        let (fresh, mut file) = fresh_file(&folder, 0o600)?;
        let done = file
            .write_all(bytes)
            .and_then(|()| Ok(rustix::fs::fchmod(&file, Mode::from_raw_mode(stat.st_mode & 0o777))?))
            .and_then(|()| put_in_place(&folder, &fresh, &name));
        without_fresh(&folder, &fresh, done)
    }

    /// Creates a new file; anything in its place, even a dangling link, is an `AlreadyExists` error.
    pub fn write_new(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.make_parent_of(path.as_ref())?;
        let handle = rustix::fs::openat(&folder, &name, CREATE, Mode::from_raw_mode(0o666))?;
        File::from(handle).write_all(bytes)
    }

    /// Creates a new file with these permissions (less the umask).
    pub fn write_with(&self, path: impl AsRef<Path>, bytes: &[u8], permissions: u32) -> io::Result<()> {
        let (folder, name) = self.make_parent_of(path.as_ref())?;
        let (fresh, mut file) = fresh_file(&folder, permissions)?;
        let done = file.write_all(bytes).and_then(|()| put_in_place(&folder, &fresh, &name));
        without_fresh(&folder, &fresh, done)
    }

    /// Opens a regular file for appending, creating it and its folders if missing. Anything else in its place (a
    /// link, a FIFO) is removed first.
    pub fn open_log(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (folder, name) = self.make_parent_of(path.as_ref())?;
        let mode = Mode::from_raw_mode(0o666);
        for _ in 0..NAMES {
            match open::walk(rustix::fd::AsFd::as_fd(&folder), &name, APPEND, Mode::empty()) {
                Ok(handle) => match open::regular(handle) {
                    Ok(file) => return Ok(file),
                    Err(_) => remove_special(&folder, &name)?,
                },
                Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(Errno::NOENT) => {
                        match rustix::fs::openat(&folder, &name, CREATE | OFlags::APPEND, mode) {
                            Ok(handle) => return open::regular(handle),
                            // Another process was faster; retry.
                            Err(Errno::EXIST) => {}
                            Err(error) => return Err(error.into()),
                        }
                    }
                    // A link (ELOOP), a FIFO without a reader or a socket (ENXIO).
                    Some(Errno::LOOP | Errno::NXIO | Errno::NODEV) => remove_special(&folder, &name)?,
                    _ => return Err(error),
                },
            }
        }
        Err(invalid("another process keeps replacing the file"))
    }

    /// Renames a file or link below the folder.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let (from_folder, from) = self.parent_of(from.as_ref())?;
        let (to_folder, to) = self.make_parent_of(to.as_ref())?;
        Ok(rustix::fs::renameat(&from_folder, &from, &to_folder, &to)?)
    }

    /// Removes `path` with all its content. Links are removed, never followed. A missing path is fine.
    pub fn remove(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let (folder, name) = match self.parent_of(path.as_ref()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        match remove_at(&folder, &name, DEPTH) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn make_parent_of(&self, path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
        let path = relative(path)?;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            self.create_folder(parent)?;
        }
        self.parent_of(&path)
    }

    /// Creates a symbolic link, replacing a file or link of that name. Its target isn't checked: nothing here follows
    /// it.
    pub fn link(&self, path: impl AsRef<Path>, target: &Path) -> io::Result<()> {
        let (folder, name) = self.make_parent_of(path.as_ref())?;
        for _ in 0..NAMES {
            match rustix::fs::symlinkat(target, &folder, &name) {
                Err(Errno::EXIST) => rustix::fs::unlinkat(&folder, &name, AtFlags::empty())?,
                done => return Ok(done?),
            }
        }
        Err(invalid("another process keeps replacing the file"))
    }

    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let (folder, name) = self.parent_of(path.as_ref())?;
        let target = rustix::fs::readlinkat(&folder, &name, Vec::new())?;
        Ok(PathBuf::from(std::ffi::OsStr::from_bytes(target.to_bytes())))
    }
}

/// Replaces a file in a folder that only the caller writes, atomically; `spare` is another name of the caller's,
/// which holds the old content afterwards. Nothing is flushed: it is for data that can be recreated.
///
/// Renaming over a file makes some file systems flush the new one first, which takes milliseconds; exchanging two
/// names doesn't.
pub fn replace_with_spare(path: &Path, spare: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(false).open(spare)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    put_in_place(rustix::fs::CWD, spare, path).map(drop)
}

enum InPlace {
    /// Nothing was there, or it is gone.
    Renamed,
    /// The old file has the other name now.
    Exchanged,
}

/// Renames the file `from` to `to`, replacing a file or link.
fn put_in_place(folder: impl rustix::fd::AsFd + Copy, from: &Path, to: &Path) -> io::Result<InPlace> {
    let stands_there = rustix::fs::statat(folder, to, AtFlags::SYMLINK_NOFOLLOW);
    let is_folder =
        stands_there.as_ref().is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
    if stands_there.is_ok() && !is_folder && exchange_at(folder, from, to)? {
        return Ok(InPlace::Exchanged);
    }
    rustix::fs::renameat(folder, from, folder, to)?;
    Ok(InPlace::Renamed)
}

/// Exchanges two names, of files, links or folders, in one step: neither is ever missing. False if one doesn't exist,
/// or the file system can't; nothing has changed then.
pub fn exchange(one: &Path, other: &Path) -> io::Result<bool> {
    exchange_at(rustix::fs::CWD, one, other)
}

fn exchange_at(folder: impl rustix::fd::AsFd + Copy, one: &Path, other: &Path) -> io::Result<bool> {
    match rustix::fs::renameat_with(folder, one, folder, other, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes the fresh name unless it is gone.
fn without_fresh(folder: &OwnedFd, fresh: &Path, done: io::Result<InPlace>) -> io::Result<()> {
    if !matches!(done, Ok(InPlace::Renamed)) {
        let _ = rustix::fs::unlinkat(folder, fresh, AtFlags::empty());
    }
    done.map(drop)
}

/// A new file under an unguessable name.
fn fresh_file(folder: &OwnedFd, mode: u32) -> io::Result<(PathBuf, File)> {
    for _ in 0..NAMES {
        let mut random = [0; 12];
        fill_with_chance(&mut random)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = PathBuf::from(format!(".{name}.tmp"));
        match rustix::fs::openat(folder, &name, CREATE, permissions(mode)) {
            Ok(handle) => return Ok((name, File::from(handle))),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(invalid("no free name"))
}

/// Fills with unguessable bytes.
#[cfg(target_os = "linux")]
fn fill_with_chance(bytes: &mut [u8]) -> io::Result<()> {
    rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(())
}

/// Fills with unguessable bytes.
#[cfg(not(target_os = "linux"))]
fn fill_with_chance(bytes: &mut [u8]) -> io::Result<()> {
    io::Read::read_exact(&mut File::open("/dev/urandom")?, bytes)
}

/// Removes what is neither a file nor a folder.
fn remove_special(folder: &OwnedFd, name: &Path) -> io::Result<()> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match kind_of(FileType::from_raw_mode(stat.st_mode)) {
        Kind::Link | Kind::Special => Ok(rustix::fs::unlinkat(folder, name, AtFlags::empty())?),
        Kind::File => Ok(()),
        Kind::Folder => Err(invalid("a folder has that name")),
    }
}

fn remove_at(folder: &OwnedFd, name: &Path, depth: u32) -> io::Result<()> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        done => return Ok(done?),
    }
    if depth == 0 {
        return Err(invalid("too many folders below each other"));
    }
    // Its creator may have removed its permissions.
    let _ = crate::owner::restore_at(folder, name);
    let inside = rustix::fs::openat(folder, name, open::FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    // Read completely before anything is removed: listing a changing folder is undefined.
    let names: Vec<PathBuf> = Dir::read_from(&inside)?
        .flatten()
        .map(|entry| PathBuf::from(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes())))
        .filter(|name| name != Path::new(".") && name != Path::new(".."))
        .collect();
    for name in names {
        match remove_at(&inside, &name, depth - 1) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            done => done?,
        }
    }
    Ok(rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)?)
}
