//! Takes git's lock files (`<file>.lock`) so that a killed run recognizes its own.
//!
//! The new content is written to a file in the run's folder and *linked* as the lock; renaming the lock moves it into
//! place. So a lock with the same inode as the file in the run's folder was made by this run, and since only one
//! process drives a run, by a dead one. Every other lock belongs to another process: it is waited for, and reported
//! if it stays, unless a killed session has left it ([`crate::locks::left_lock`]).

use crate::error::{Error, Result};
use crate::locks::left_lock::{LeftLocks, WatchedLock};
use crate::objects::oid::ObjectFormat;
use crate::process::running::pause;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(30);
/// Retries for folders that others remove while they are empty.
const TRIES: u32 = 20;

#[derive(Debug, Clone)]
pub(crate) struct LockFiles {
    folder: PathBuf,
    timeout: Duration,
    left: Option<LeftLocks>,
}

/// Whether a file is flushed before it is moved into place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flush {
    /// The user's file must survive a power cut, as git's own would.
    Yes,
    No,
}

impl LockFiles {
    /// Locks whose content waits in `folder`, which must be on the file system of what is locked.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, timeout: TIMEOUT, left: None }
    }

    pub(crate) fn removing_left(mut self, left: LeftLocks) -> Self {
        self.left = Some(left);
        self
    }

    #[cfg(test)]
    fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    pub(crate) fn replace(
        &self,
        target: &Path,
        content: &[u8],
        flush: Flush,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.release(target);
        let staged = self.stage(target, content, flush)?;
        let lock = lock_of(target);
        let done = self.take(&staged, content, target, &lock).and_then(|()| {
            check().and_then(|()| move_into_place(&lock, target)).inspect_err(|_| {
                let _ = fs::remove_file(&lock);
            })
        });
        let _ = fs::remove_file(&staged);
        done
    }

    pub(crate) fn create(
        &self,
        target: &Path,
        content: &[u8],
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let made = self.made(target);
        let _ = fs::remove_file(&made);
        self.release(target);
        let staged = self.stage(target, content, Flush::Yes)?;
        fs::hard_link(&staged, &made).map_err(|e| Error::file("write", &made, e))?;
        let lock = lock_of(target);
        let done = self.take(&staged, content, target, &lock).and_then(|()| {
            check().and_then(|()| move_into_place(&lock, target)).inspect_err(|_| {
                let _ = fs::remove_file(&lock);
                let _ = fs::remove_file(&made);
            })
        });
        let _ = fs::remove_file(&staged);
        done
    }

    /// Whether `target` is the very file that this run made.
    pub(crate) fn is_made(&self, target: &Path) -> bool {
        let id = |path: &Path| fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
        id(target).is_some_and(|there| id(&self.made(target)) == Some(there))
    }

    pub(crate) fn has_made_any(&self) -> bool {
        let names = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        names.into_iter().any(|entry| entry.file_name().as_bytes().starts_with(b"made-"))
    }

    fn made(&self, target: &Path) -> PathBuf {
        self.named("made", target)
    }

    /// Removes the lock on `target` if a killed process of this run made it.
    pub(crate) fn release(&self, target: &Path) {
        let (staged, lock) = (self.staged(target), lock_of(target));
        let Ok(own) = fs::symlink_metadata(&staged) else { return };
        let is_own = fs::symlink_metadata(&lock).is_ok_and(|found| {
            (found.dev(), found.ino()) == (own.dev(), own.ino())
                // File systems without hard links: compare the content.
                || own.nlink() == 1 && same_content(&staged, &lock)
        });
        if is_own {
            let _ = fs::remove_file(&lock);
        }
        let _ = fs::remove_file(&staged);
    }

    fn staged(&self, target: &Path) -> PathBuf {
        self.named("lock", target)
    }

    fn named(&self, kind: &str, target: &Path) -> PathBuf {
        let id = ObjectFormat::Sha1.id_of("path", target.as_os_str().as_bytes()).to_string();
        self.folder.join(format!("{kind}-{}", &id[..16]))
    }

    fn stage(&self, target: &Path, content: &[u8], flush: Flush) -> Result<PathBuf> {
        let staged = self.staged(target);
        let write = || {
            // Always a new file: the previous one may have become the target.
            let mut file = OpenOptions::new().write(true).create_new(true).open(&staged)?;
            file.write_all(content)?;
            if flush == Flush::Yes { file.sync_data() } else { Ok(()) }
        };
        let written = match write() {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(&self.folder).and_then(|()| write())
            }
            other => other,
        };
        written.map_err(|e| Error::file("write", &staged, e))?;
        Ok(staged)
    }

    fn take(&self, staged: &Path, content: &[u8], target: &Path, lock: &Path) -> Result<()> {
        let deadline = Instant::now() + self.timeout;
        let mut tries = 0;
        let mut watched = WatchedLock::default();
        loop {
            let error = match link(staged, content, lock) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::AlreadyExists
                    if self.left.as_ref().is_some_and(|left| left.is_left(lock, &mut watched)) =>
                {
                    let _ = fs::remove_file(lock);
                }
                ErrorKind::AlreadyExists if Instant::now() < deadline => pause(),
                ErrorKind::AlreadyExists => return Err(Error::locked(target, lock)),
                // Git removes empty folders.
                ErrorKind::NotFound if tries < TRIES => {
                    tries += 1;
                    if let Some(folder) = lock.parent() {
                        fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
                    }
                }
                _ => return Err(Error::file("lock", lock, error)),
            }
        }
    }
}

fn link(staged: &Path, content: &[u8], lock: &Path) -> io::Result<()> {
    let error = match fs::hard_link(staged, lock) {
        Err(error) => error,
        done => return done,
    };
    let no_links =
        matches!(error.raw_os_error(), Some(libc_code::EPERM | libc_code::EOPNOTSUPP | libc_code::EMLINK));
    if !no_links {
        return Err(error);
    }
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(lock)?;
    file.write_all(content).inspect_err(|_| {
        let _ = fs::remove_file(lock);
    })
}

mod libc_code {
    pub(super) const EPERM: i32 = nix::errno::Errno::EPERM as i32;
    pub(super) const EOPNOTSUPP: i32 = nix::errno::Errno::EOPNOTSUPP as i32;
    pub(super) const EMLINK: i32 = nix::errno::Errno::EMLINK as i32;
}

fn move_into_place(lock: &Path, target: &Path) -> Result<()> {
    let moved = match fs::rename(lock, target) {
        // Empty folders of deleted refs may be at the ref's path; others can't be removed.
        Err(e) if e.kind() == ErrorKind::IsADirectory => {
            remove_empty_folders(target);
            fs::rename(lock, target)
        }
        other => other,
    };
    moved.map_err(|e| Error::file("move", target, e))
}

fn remove_empty_folders(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty_folders(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

fn same_content(a: &Path, b: &Path) -> bool {
    matches!((fs::read(a), fs::read(b)), (Ok(a), Ok(b)) if a == b)
}

pub(crate) fn lock_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder {
        _folder: tempfile::TempDir,
        locks: LockFiles,
        target: PathBuf,
    }

    fn folder() -> Folder {
        let folder = tempfile::tempdir().unwrap();
        let locks = LockFiles::new(folder.path().join("run")).with_timeout(Duration::ZERO);
        let target = folder.path().join("refs/heads/a/b");
        Folder { _folder: folder, locks, target }
    }

    fn replace(f: &Folder, content: &str) -> Result<()> {
        f.locks.replace(&f.target, content.as_bytes(), Flush::Yes, || Ok(()))
    }

    fn rest(f: &Folder) -> usize {
        fs::read_dir(&f.locks.folder).unwrap().count()
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left() {
        let f = folder();
        for content in ["one", "two", "two"] {
            replace(&f, content).unwrap();
            assert_eq!(fs::read_to_string(&f.target).unwrap(), content);
            assert!(!lock_of(&f.target).exists());
            assert_eq!(rest(&f), 0);
        }
    }

    #[test]
    fn a_lock_of_this_run_is_recognised_wherever_it_was_killed() {
        let f = folder();
        replace(&f, "old").unwrap();
        f.locks.stage(&f.target, b"lost", Flush::No).unwrap();
        replace(&f, "one").unwrap();
        let staged = f.locks.stage(&f.target, b"lost", Flush::No).unwrap();
        fs::hard_link(&staged, lock_of(&f.target)).unwrap();
        replace(&f, "two").unwrap();
        assert_eq!(fs::read_to_string(&f.target).unwrap(), "two");
        // Between rename and cleanup: the staged file is the target now, and must not be written to.
        let staged = f.locks.stage(&f.target, b"three", Flush::No).unwrap();
        fs::hard_link(&staged, lock_of(&f.target)).unwrap();
        fs::rename(lock_of(&f.target), &f.target).unwrap();
        f.locks.release(&f.target);
        assert_eq!(fs::read_to_string(&f.target).unwrap(), "three");
        replace(&f, "four").unwrap();
        assert_eq!(fs::read_to_string(&f.target).unwrap(), "four");
        assert_eq!(rest(&f), 0);
    }

    #[test]
    fn foreign_lock_is_reported_and_stays_even_with_the_same_content() {
        let f = folder();
        replace(&f, "old").unwrap();
        let staged = f.locks.stage(&f.target, b"new", Flush::No).unwrap();
        fs::hard_link(&staged, f.locks.folder.join("so that it has two links")).unwrap();
        fs::write(lock_of(&f.target), "new").unwrap();
        f.locks.release(&f.target);
        let error = replace(&f, "new").unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        assert!(error.to_string().contains("refs/heads/a/b.lock"), "{error}");
        assert_eq!(fs::read_to_string(lock_of(&f.target)).unwrap(), "new");
        assert_eq!(fs::read_to_string(&f.target).unwrap(), "old");
    }

    #[test]
    fn a_lock_that_a_killed_session_left_is_removed() {
        let f = folder();
        replace(&f, "old").unwrap();
        let mark = f.locks.folder.join("mark");
        fs::write(&mark, "").unwrap();
        fs::write(lock_of(&f.target), "half").unwrap();
        let left = LeftLocks::at_once(&f.locks.folder, mark);
        // Waits for other tests' gits that end at this moment.
        let f = Folder { locks: f.locks.clone().with_timeout(TIMEOUT).removing_left(left), ..f };
        replace(&f, "new").unwrap();
        assert_eq!(fs::read_to_string(&f.target).unwrap(), "new");
        assert!(!lock_of(&f.target).exists());
    }

    #[test]
    fn files_of_this_run_are_recognized() {
        let f = folder();
        let other = LockFiles::new(f.locks.folder.with_file_name("other"));
        assert!(!f.locks.has_made_any() && !f.locks.is_made(&f.target));
        f.locks.create(&f.target, b"one", || Ok(())).unwrap();
        assert!(f.locks.is_made(&f.target) && !other.is_made(&f.target));
        // Killed between link and rename, the file is created again.
        let f = folder();
        let staged = f.locks.stage(&f.target, b"one", Flush::No).unwrap();
        fs::hard_link(&staged, f.locks.made(&f.target)).unwrap();
        fs::create_dir_all(f.target.parent().unwrap()).unwrap();
        fs::hard_link(&staged, lock_of(&f.target)).unwrap();
        assert!(!f.locks.is_made(&f.target));
        f.locks.create(&f.target, b"two", || Ok(())).unwrap();
        assert!(f.locks.is_made(&f.target));
        assert_eq!(fs::read_to_string(&f.target).unwrap(), "two");
    }

    #[test]
    fn a_refused_check_leaves_everything_as_it_was() {
        let f = folder();
        replace(&f, "old").unwrap();
        let refused = || Err(Error::refused("no", "no"));
        f.locks.replace(&f.target, b"new", Flush::No, refused).unwrap_err();
        assert_eq!(fs::read_to_string(&f.target).unwrap(), "old");
        assert!(!lock_of(&f.target).exists());
    }

    #[test]
    fn empty_folders_are_replaced_and_full_ones_stay() {
        let f = folder();
        fs::create_dir_all(f.target.join("x/y")).unwrap();
        replace(&f, "one").unwrap();
        fs::remove_file(&f.target).unwrap();
        fs::create_dir_all(f.target.join("x")).unwrap();
        fs::write(f.target.join("x/ref"), "another's").unwrap();
        replace(&f, "two").unwrap_err();
        assert_eq!(fs::read_to_string(f.target.join("x/ref")).unwrap(), "another's");
    }
}
