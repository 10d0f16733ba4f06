//! Creates files ahead of time. Creating a file is much slower than naming one, and an iteration needs a dozen: a
//! thread creates anonymous ones while agent and checks work, and each gets its name when needed. They are invisible
//! until then, and a crash leaves nothing behind. The same applies to the folder of the next iteration, which needs a
//! name meanwhile: one among the driver's private files.

use crate::error::JournalError;
use crate::folder::layout::{RalphDir, RunDir};
use nix::fcntl::AtFlags;
use ralph_loop_protocol::id::Digest;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, sync_channel};

/// As many as an iteration takes between two waits.
const READY: usize = 8;

/// Creates the files of a run's record.
#[derive(Debug)]
pub struct FilesAhead {
    /// `None` if files are only created when needed.
    ready: Option<Mutex<Receiver<File>>>,
    next: PathBuf,
}

impl FilesAhead {
    /// For the files of a run's record. On filesystems without anonymous files, each is created when needed.
    pub fn start(run: &RunDir) -> Self {
        let (folder, next) = (run.path().to_owned(), run.next_iteration());
        let (give, ready) = sync_channel(READY);
        let made_next = next.clone();
        let thread =
            std::thread::Builder::new().name("files".into()).stack_size(64 * 1024).spawn(move || {
                while let Ok(file) = unnamed(&folder) {
                    // It usually exists.
                    let _ = std::fs::create_dir(&made_next);
                    if give.send(file).is_err() {
                        return;
                    }
                }
            });
        Self { ready: thread.is_ok().then(|| Mutex::new(ready)), next }
    }

    /// Creates a folder of the record, and its parents.
    pub fn folder(&self, path: &Path) -> Result<(), JournalError> {
        if path.is_dir() || std::fs::rename(&self.next, path).is_ok() {
            return Ok(());
        }
        std::fs::create_dir_all(path).map_err(|e| JournalError::file("make the folder", path, e))
    }

    /// Writes a file of a `.ralph/` folder atomically.
    pub fn show(&self, dir: &RalphDir, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let made = self.take().is_some_and(|mut file| {
            // On another filesystem it can't be linked there.
            file.write_all(bytes).is_ok() && dir.put(name, &file).is_ok()
        });
        if made { Ok(()) } else { dir.write(name, bytes) }
    }

    /// A new empty file, or the existing one, emptied.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        match self.take() {
            Some(file) if name(&file, path).is_ok() => Ok(file),
            _ => File::create(path),
        }
    }

    /// Writes a file, complete before it gets its name if it is new, and returns its digest.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<Digest, JournalError> {
        let made =
            self.take().is_some_and(|mut file| file.write_all(bytes).is_ok() && name(&file, path).is_ok());
        match made {
            true => Ok(Digest::of(bytes)),
            false => crate::folder::artifacts::write(path, bytes),
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

/// Only Linux has anonymous files.
#[cfg(not(target_os = "linux"))]
fn unnamed(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails if the name exists.
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
    fn files_are_written_completely_with_and_without_preparation() {
        let folder = tempfile::tempdir().unwrap();
        let files = FilesAhead::start(&RunDir::at(folder.path()));
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
        // Like any other file: the user's umask decides who may read it.
        std::fs::write(folder.path().join("plain"), "").unwrap();
        let mode = |name: &str| folder.path().join(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode("0.json"), mode("plain"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 42, "nothing but what has a name");
    }

    #[test]
    fn files_are_created_on_demand_without_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let files = FilesAhead::start(&RunDir::at(&gone));
        assert!(files.write(&gone.join("a"), b"x").unwrap_err().to_string().contains("gone/a"));
        std::fs::create_dir(&gone).unwrap();
        files.write(&gone.join("a"), b"x").unwrap();
        assert_eq!(std::fs::read(gone.join("a")).unwrap(), b"x");
    }

    #[test]
    fn existing_files_are_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let files = FilesAhead::start(&RunDir::at(folder.path()));
        std::fs::write(folder.path().join("there"), "old").unwrap();
        std::os::unix::fs::symlink("there", folder.path().join("link")).unwrap();
        files.write(&folder.path().join("link"), b"new").unwrap();
        assert_eq!(std::fs::read(folder.path().join("there")).unwrap(), b"new", "as with any existing file");
    }

    #[test]
    fn folders_are_created_on_request_and_keep_their_content() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::at(folder.path());
        run.create().unwrap();
        let files = FilesAhead::start(&run);
        for n in 1..40 {
            for _ in 0..2 {
                files.folder(&run.iteration(n)).unwrap();
                files.write(&run.iteration(n).join("kept"), b"x").unwrap();
            }
            assert_eq!(std::fs::read_dir(run.iteration(n)).unwrap().count(), 1);
        }
        assert_eq!(std::fs::read_dir(run.iterations()).unwrap().count(), 39);
        assert!(files.folder(&run.iteration(1).join("kept")).is_err(), "a file is there");
    }

    #[test]
    fn shown_file_replaces_the_old_one_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = tempfile::tempdir().unwrap();
        let dir = RalphDir::of(workspace.path());
        let files = FilesAhead::start(&RunDir::at(folder.path()));
        for n in 0..40 {
            let text = format!("{n}");
            files.show(&dir, "state.json", text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(dir.join("state.json")).unwrap(), text);
        }
        // A foreign link is replaced, not followed.
        let outside = folder.path().join("outside");
        std::fs::write(&outside, "theirs").unwrap();
        std::fs::remove_file(dir.join("state.json")).unwrap();
        std::os::unix::fs::symlink(&outside, dir.join("state.json")).unwrap();
        files.show(&dir, "state.json", b"ours").unwrap();
        assert_eq!(std::fs::read_to_string(&outside).unwrap(), "theirs");
        assert_eq!(std::fs::read_to_string(dir.join("state.json")).unwrap(), "ours");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
