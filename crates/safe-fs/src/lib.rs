//! Files below a folder that others can write: an agent, a cloned repo, a fetched state.
//!
//! [`SafeDir`] is a handle of such a folder. Every access uses a path below it, follows no link that leaves it, opens
//! only regular files, and never blocks: a FIFO, a socket or a device instead of a file is refused. The caller limits
//! reads. A file is replaced by writing a new one under an unguessable name, and renaming it.
//!
//! The kernel resolves the paths (`openat2`); without that call, they are walked folder by folder.

mod copy;
mod open;
mod owner;
mod write;

pub use copy::{CopiedFile, Copier};
pub use open::{Links, open_plain, read_plain};
pub use owner::{remove_tree, restore_owner, restore_owner_below};
pub use write::{exchange, replace_with_spare};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, RawMode};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// A folder whose content is not trusted.
#[derive(Debug)]
pub struct SafeDir {
    handle: OwnedFd,
    path: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub name: std::ffi::OsString,
    /// Its kind; links aren't followed.
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    Folder,
    Link,
    Special,
}

/// What is known of a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub kind: Kind,
    /// Its size in bytes.
    pub length: u64,
}

impl SafeDir {
    /// Opens a folder. The path itself is the caller's, so it is followed; only its content isn't trusted.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let handle = rustix::fs::open(path, open::FOLDER, Mode::empty())?;
        Ok(Self { handle, path: path.to_owned() })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn folder(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let handle =
            open::below(&self.handle, &relative(path)?, open::FOLDER, Mode::empty(), Links::Refused)?;
        Ok(Self { handle, path: self.path.join(path) })
    }

    /// A subfolder, created with its parents if missing. A link or file in the way is an error.
    pub fn create_folder(&self, path: impl AsRef<Path>) -> io::Result<Self> {
        let mut at = Self { handle: self.handle.try_clone()?, path: self.path.clone() };
        for part in relative(path.as_ref())?.components() {
            let name = Path::new(part.as_os_str());
            match rustix::fs::mkdirat(&at.handle, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            at = at.folder(name)?;
        }
        Ok(at)
    }

    pub fn open_file(&self, path: impl AsRef<Path>, links: Links) -> io::Result<File> {
        let handle = open::below(&self.handle, &relative(path.as_ref())?, open::READ, Mode::empty(), links)?;
        open::regular(handle)
    }

    /// Whether the path is a regular file that could be opened.
    pub fn is_file(&self, path: impl AsRef<Path>, links: Links) -> bool {
        self.open_file(path, links).is_ok()
    }

    /// The first `max` bytes of a regular file.
    pub fn read(&self, path: impl AsRef<Path>, links: Links, max: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open_file(path, links)?.take(max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The first `max` bytes as text, with invalid UTF-8 replaced.
    pub fn read_text(&self, path: impl AsRef<Path>, links: Links, max: u64) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.read(path, links, max)?).into_owned())
    }

    /// The last `max` bytes of a regular file, and where they begin.
    pub fn read_end(&self, path: impl AsRef<Path>, links: Links, max: u64) -> io::Result<(u64, Vec<u8>)> {
        let mut file = self.open_file(path, links)?;
        let from = file.metadata()?.len().saturating_sub(max);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(max).read_to_end(&mut bytes)?;
        Ok((from, bytes))
    }

    /// The entry at a path; its last component isn't followed.
    pub fn facts(&self, path: impl AsRef<Path>) -> io::Result<Facts> {
        let (folder, name) = self.parent_of(path.as_ref())?;
        let stat = rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = kind_of(FileType::from_raw_mode(stat.st_mode));
        Ok(Facts { kind, length: u64::try_from(stat.st_size).unwrap_or(0) })
    }

    /// The entries of the folder at `path` (`.` for this one), sorted by name, at most `max`.
    pub fn entries(&self, path: impl AsRef<Path>, max: usize) -> io::Result<Vec<Entry>> {
        let path = path.as_ref();
        let at = if path == Path::new(".") { None } else { Some(self.folder(path)?) };
        let handle = at.as_ref().map_or(&self.handle, |at| &at.handle);
        let mut found = Vec::new();
        for entry in Dir::read_from(handle)? {
            let entry = entry?;
            let name = std::ffi::OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let stat = rustix::fs::statat(handle, name, AtFlags::SYMLINK_NOFOLLOW);
                    stat.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
                }
                known => known,
            };
            found.push(Entry { name: name.to_owned(), kind: kind_of(kind) });
            if found.len() >= max {
                break;
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Restores the owner's permissions for the folder at `path`.
    pub fn restore_owner(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let (folder, name) = self.parent_of(path.as_ref())?;
        owner::restore_at(&folder, &name)
    }

    /// The folder that holds `path`, and its last component.
    fn parent_of(&self, path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
        let path = relative(path)?;
        let name = path.file_name().map(PathBuf::from).ok_or_else(|| invalid("a path without a name"))?;
        let folder = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => open::below(&self.handle, parent, open::FOLDER, Mode::empty(), Links::Refused)?,
            None => self.handle.try_clone()?,
        };
        Ok((folder, name))
    }
}

/// Permissions in the system's type, whose width varies.
pub(crate) fn permissions(bits: u32) -> Mode {
    Mode::from_raw_mode((bits & 0o7777) as RawMode)
}

fn kind_of(kind: FileType) -> Kind {
    match kind {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Folder,
        FileType::Symlink => Kind::Link,
        _ => Kind::Special,
    }
}

/// The path, if it is below the folder: relative, without `..`.
fn relative(path: &Path) -> io::Result<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(invalid("the path leaves its folder"));
            }
        }
    }
    if clean.as_os_str().is_empty() { Err(invalid("an empty path")) } else { Ok(clean) }
}

fn invalid(why: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, why)
}
