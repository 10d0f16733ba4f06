//! Writing below a folder: through no link, in place of whatever stands there.

use crate::open;
use crate::{Kind, SafeDir, invalid, kind_of, permissions, relative};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// How a new file is made: it must not be there yet, and a link in its place is none of ours.
pub(crate) const CREATE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::CLOEXEC);
/// How a log is opened.
const APPEND: OFlags =
    OFlags::WRONLY.union(OFlags::APPEND).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);
/// Names that are tried for a file that nobody knows yet.
const NAMES: u32 = 8;
/// Folders below each other that are removed; what is deeper stays and is told.
const DEPTH: u32 = 512;

impl SafeDir {
    /// Puts a file with this content at `path`, in place of whatever file or link stands there, all at once. Folders that
    /// lead there are made. A folder in its place is an error.
    pub fn write(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        self.write_with(path, bytes, 0o666)
    }

    /// The same, where the new file keeps the permissions of the one that stands there.
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

    /// Makes a file that is not there yet; whatever stands in its place, a link that leads nowhere too, is an error of the
    /// kind `AlreadyExists`.
    pub fn write_new(&self, path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
        let (folder, name) = self.make_parent_of(path.as_ref())?;
        let handle = rustix::fs::openat(&folder, &name, CREATE, Mode::from_raw_mode(0o666))?;
        File::from(handle).write_all(bytes)
    }

    /// The same with the permissions that the file gets (less what the process' mask takes away).
    pub fn write_with(&self, path: impl AsRef<Path>, bytes: &[u8], permissions: u32) -> io::Result<()> {
        let (folder, name) = self.make_parent_of(path.as_ref())?;
        let (fresh, mut file) = fresh_file(&folder, permissions)?;
        let done = file.write_all(bytes).and_then(|()| put_in_place(&folder, &fresh, &name));
        without_fresh(&folder, &fresh, done)
    }

    /// Puts a file that has no name yet at `path`, in place of whatever file or link stands there, all at once. It has to be
    /// of the same filesystem.
    #[cfg(target_os = "linux")]
    pub fn put(&self, path: impl AsRef<Path>, file: &File) -> io::Result<()> {
        let (folder, name) = self.make_parent_of(path.as_ref())?;
        let open = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
        let named = |fresh: &Path| {
            rustix::fs::linkat(rustix::fs::CWD, &open, &folder, fresh, AtFlags::SYMLINK_FOLLOW)
        };
        let (fresh, ()) = fresh_name(named)?;
        let done = put_in_place(&folder, &fresh, &name);
        without_fresh(&folder, &fresh, done)
    }

    /// Only Linux has files without names.
    #[cfg(not(target_os = "linux"))]
    pub fn put(&self, _: impl AsRef<Path>, _: &File) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Opens a regular file for appending, made where there is none, with the folders that lead there. Whatever else stands
    /// in its place (a link, a FIFO) is removed first: it is nobody's log.
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
                            // Somebody was faster; look again.
                            Err(Errno::EXIST) => {}
                            Err(error) => return Err(error.into()),
                        }
                    }
                    // A link (ELOOP), a FIFO that nobody reads or a socket (ENXIO).
                    Some(Errno::LOOP | Errno::NXIO | Errno::NODEV) => remove_special(&folder, &name)?,
                    _ => return Err(error),
                },
            }
        }
        Err(invalid("somebody puts something else there again and again"))
    }

    /// Gives a file or link below the folder another name there.
    pub fn rename(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
        let (from_folder, from) = self.parent_of(from.as_ref())?;
        let (to_folder, to) = self.make_parent_of(to.as_ref())?;
        Ok(rustix::fs::renameat(&from_folder, &from, &to_folder, &to)?)
    }

    /// Removes what stands at `path`, with all that is in it where it is a folder. Links are removed, never followed. What is
    /// not there is no error.
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

    /// Makes a symbolic link, in place of whatever file or link has its name. What it says is not looked at: nobody here
    /// follows it.
    pub fn link(&self, path: impl AsRef<Path>, target: &Path) -> io::Result<()> {
        let (folder, name) = self.make_parent_of(path.as_ref())?;
        for _ in 0..NAMES {
            match rustix::fs::symlinkat(target, &folder, &name) {
                Err(Errno::EXIST) => rustix::fs::unlinkat(&folder, &name, AtFlags::empty())?,
                done => return Ok(done?),
            }
        }
        Err(invalid("somebody puts something else there again and again"))
    }

    /// The text of a symbolic link.
    pub fn read_link(&self, path: impl AsRef<Path>) -> io::Result<PathBuf> {
        let (folder, name) = self.parent_of(path.as_ref())?;
        let target = rustix::fs::readlinkat(&folder, &name, Vec::new())?;
        Ok(PathBuf::from(std::ffi::OsStr::from_bytes(target.to_bytes())))
    }
}

/// Replaces a file in a folder that only the caller writes, all at once; `spare` is a name beside it that is the caller's,
/// too, and holds the content before this one afterwards. Nothing is flushed: it is for what can be made again.
///
/// A rename over a file makes some file systems write the new one out first, which takes milliseconds; two names that
/// change places do not.
pub fn replace_with_spare(path: &Path, spare: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(false).open(spare)?;
    file.write_all(bytes)?;
    file.set_len(bytes.len() as u64)?;
    put_in_place(rustix::fs::CWD, spare, path).map(drop)
}

/// How a file came to its name.
enum InPlace {
    /// Nothing was there, or it is gone.
    Renamed,
    /// What was there has the other name now.
    Exchanged,
}

/// Gives the file `from` the name `to`, in place of whatever file or link has it.
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

/// Lets two names, each of a file, a link or a folder, change places in one step: nobody ever finds either missing. False
/// where one of them is gone, or the file system cannot; nothing has changed then.
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

/// Removes what has the fresh name, unless nothing has it any more.
fn without_fresh(folder: &OwnedFd, fresh: &Path, done: io::Result<InPlace>) -> io::Result<()> {
    if !matches!(done, Ok(InPlace::Renamed)) {
        let _ = rustix::fs::unlinkat(folder, fresh, AtFlags::empty());
    }
    done.map(drop)
}

/// A new file under a name that nobody can guess.
fn fresh_file(folder: &OwnedFd, mode: u32) -> io::Result<(PathBuf, File)> {
    let made = fresh_name(|name| rustix::fs::openat(folder, name, CREATE, permissions(mode)));
    made.map(|(name, handle)| (name, File::from(handle)))
}

/// Makes something under a name that nobody can guess.
fn fresh_name<T>(make: impl Fn(&Path) -> rustix::io::Result<T>) -> io::Result<(PathBuf, T)> {
    for _ in 0..NAMES {
        let mut random = [0; 12];
        fill_with_chance(&mut random)?;
        let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = PathBuf::from(format!(".{name}.tmp"));
        match make(&name) {
            Ok(made) => return Ok((name, made)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(invalid("no free name"))
}

/// Bytes that nobody can guess.
#[cfg(target_os = "linux")]
fn fill_with_chance(bytes: &mut [u8]) -> io::Result<()> {
    rustix::rand::getrandom(bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(())
}

/// Bytes that nobody can guess.
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
        Kind::Folder => Err(invalid("a folder is in its place")),
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
    // Whoever made it may have taken the rights to it away.
    let _ = crate::owner::restore_at(folder, name);
    let inside = rustix::fs::openat(folder, name, open::FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    // Read whole before anything is removed: a listing of what changes is not defined.
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
