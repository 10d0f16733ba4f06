//! Files made ahead. To make a file costs a filesystem many times what it costs to name one, and an iteration leaves a dozen
//! of them: a thread makes some without names while agent and checks work, and each gets its name when it is needed.
//! Nobody sees one before, and a crash leaves nothing behind.

use crate::error::JournalError;
use nix::fcntl::AtFlags;
use ralph_domain::id::Digest;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};

/// As many as an iteration takes between two waits.
const READY: usize = 8;

/// Makes the files of a run's record.
#[derive(Debug)]
pub struct FilesAhead {
    /// `None` where they are made only when they are needed.
    ready: Option<Mutex<Receiver<File>>>,
}

impl FilesAhead {
    /// For the files below `folder`. Where the filesystem knows no files without names, each is made when it is needed.
    pub fn start(folder: &Path) -> Self {
        let folder = folder.to_owned();
        let (give, ready) = sync_channel(READY);
        let thread =
            std::thread::Builder::new().name("files".into()).stack_size(64 * 1024).spawn(move || {
                while let Ok(file) = unnamed(&folder) {
                    if give.send(file).is_err() {
                        return;
                    }
                }
            });
        Self { ready: thread.is_ok().then(|| Mutex::new(ready)) }
    }

    /// A new and empty file of that name, or the one that is there, emptied.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        match self.take() {
            Some(file) if name(&file, path).is_ok() => Ok(file),
            _ => File::create(path),
        }
    }

    /// Writes a file, whole before it has its name where it is new, and returns its digest.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<Digest, JournalError> {
        let made =
            self.take().is_some_and(|mut file| file.write_all(bytes).is_ok() && name(&file, path).is_ok());
        match made {
            true => Ok(Digest::of(bytes)),
            false => crate::artifacts::write(path, bytes),
        }
    }

    fn take(&self) -> Option<File> {
        self.ready.as_ref()?.lock().ok()?.try_recv().ok()
    }
}

#[cfg(target_os = "linux")]
fn unnamed(folder: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = File::options();
    options.read(true).write(true).custom_flags(nix::libc::O_TMPFILE).open(folder)
}

/// Only Linux has files without names.
#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails where a file of that name is there already.
fn name(file: &File, path: &Path) -> nix::Result<()> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    nix::unistd::linkat(
        nix::fcntl::AT_FDCWD,
        open.as_str(),
        nix::fcntl::AT_FDCWD,
        path,
        AtFlags::AT_SYMLINK_FOLLOW,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_written_is_there_whole_whether_it_was_made_ahead_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let files = FilesAhead::start(folder.path());
        // More than are ever ready, and each twice.
        for round in 0..2 {
            for n in 0..40 {
                let path = folder.path().join(format!("{n}.json"));
                let text = format!("{round} {n}");
                assert_eq!(files.write(&path, text.as_bytes()).unwrap(), Digest::of(text.as_bytes()));
                assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            }
        }
        let log = folder.path().join("log");
        files.create(&log).unwrap().write_all(b"long text").unwrap();
        files.create(&log).unwrap().write_all(b"short").unwrap();
        assert_eq!(std::fs::read_to_string(&log).unwrap(), "short");
        // As any other file: everybody may read what the user's mask leaves open.
        std::fs::write(folder.path().join("plain"), "").unwrap();
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode("0.json"), mode("plain"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 42, "nothing but what has a name");
    }

    #[test]
    fn without_a_folder_files_are_made_when_they_are_needed_and_errors_name_them() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let files = FilesAhead::start(&gone);
        assert!(files.write(&gone.join("a"), b"x").unwrap_err().to_string().contains("gone/a"));
        std::fs::create_dir(&gone).unwrap();
        files.write(&gone.join("a"), b"x").unwrap();
        assert_eq!(std::fs::read(gone.join("a")).unwrap(), b"x");
    }

    #[test]
    fn what_is_there_already_is_written_as_any_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let files = FilesAhead::start(folder.path());
        std::fs::write(folder.path().join("there"), "old").unwrap();
        std::os::unix::fs::symlink("there", folder.path().join("link")).unwrap();
        files.write(&folder.path().join("link"), b"new").unwrap();
        assert_eq!(
            std::fs::read(folder.path().join("there")).unwrap(),
            b"new",
            "as with any file that is there"
        );
    }
}
