//! Files made ahead. To make a file costs a filesystem many times what it costs to name one, and an iteration leaves a dozen
//! of them: a thread makes some without names while agent and checks work, and each gets its name when it is needed.
//! Nobody sees one before, and a crash leaves nothing behind. The same with the folder of the next iteration, which has to
//! have a name meanwhile: one among what only the driver needs.

use crate::error::JournalError;
use crate::layout::{RalphDir, RunDir};
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

/// Makes the files of a run's record.
#[derive(Debug)]
pub struct FilesAhead {
    /// `None` where they are made only when they are needed.
    ready: Option<Mutex<Receiver<File>>>,
    /// Where the next folder is made.
    next: PathBuf,
}

impl FilesAhead {
    /// For the files of a run's record. Where the filesystem knows no files without names, each is made when it is needed.
    pub fn start(run: &RunDir) -> Self {
        let (folder, next) = (run.path().to_owned(), run.next_iteration());
        let (give, ready) = sync_channel(READY);
        let made_next = next.clone();
        let thread =
            std::thread::Builder::new().name("files".into()).stack_size(64 * 1024).spawn(move || {
                while let Ok(file) = unnamed(&folder) {
                    // It is there already, most times.
                    let _ = std::fs::create_dir(&made_next);
                    if give.send(file).is_err() {
                        return;
                    }
                }
            });
        Self { ready: thread.is_ok().then(|| Mutex::new(ready)), next }
    }

    /// Makes a folder of the record, and those that lead there.
    pub fn folder(&self, path: &Path) -> Result<(), JournalError> {
        if path.is_dir() || std::fs::rename(&self.next, path).is_ok() {
            return Ok(());
        }
        std::fs::create_dir_all(path).map_err(|e| JournalError::file("make the folder", path, e))
    }

    /// Puts a file into a `.ralph/` folder, all at once.
    pub fn show(&self, dir: &RalphDir, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let made = self.take().is_some_and(|mut file| {
            // On another filesystem it cannot get its name there.
            file.write_all(bytes).is_ok() && dir.put(name, &file).is_ok()
        });
        if made { Ok(()) } else { dir.write(name, bytes) }
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
        let files = FilesAhead::start(&RunDir::at(&gone));
        assert!(files.write(&gone.join("a"), b"x").unwrap_err().to_string().contains("gone/a"));
        std::fs::create_dir(&gone).unwrap();
        files.write(&gone.join("a"), b"x").unwrap();
        assert_eq!(std::fs::read(gone.join("a")).unwrap(), b"x");
    }

    #[test]
    fn what_is_there_already_is_written_as_any_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let files = FilesAhead::start(&RunDir::at(folder.path()));
        std::fs::write(folder.path().join("there"), "old").unwrap();
        std::os::unix::fs::symlink("there", folder.path().join("link")).unwrap();
        files.write(&folder.path().join("link"), b"new").unwrap();
        assert_eq!(
            std::fs::read(folder.path().join("there")).unwrap(),
            b"new",
            "as with any file that is there"
        );
    }

    #[test]
    fn folders_are_there_once_they_are_asked_for_and_keep_what_is_in_them() {
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
    fn what_is_shown_in_a_workspace_replaces_what_stands_there_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = tempfile::tempdir().unwrap();
        let dir = RalphDir::of(workspace.path());
        let files = FilesAhead::start(&RunDir::at(folder.path()));
        for n in 0..40 {
            let text = format!("{n}");
            files.show(&dir, "state.json", text.as_bytes()).unwrap();
            assert_eq!(std::fs::read_to_string(dir.join("state.json")).unwrap(), text);
        }
        // A link of somebody else's is replaced, not followed.
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
