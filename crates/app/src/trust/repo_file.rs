//! Files that came with a repo or that an agent may have written: possibly links to the user's keys, pipes or
//! endless files. All access goes through [`ralph_loop_safe_fs`], follows no link out of the repo, and is
//! bounded.

use crate::error::AppError;
use ralph_loop_safe_fs::{Entry, Links, SafeDir, open_plain};
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Component, Path, PathBuf};

/// Larger than any task, configuration or model list.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The folder whose `.ralph/` counts: the top of the repo around `folder`, else `folder`.
pub fn top(folder: &Path) -> PathBuf {
    folder.ancestors().find(|p| p.join(".git").exists()).unwrap_or(folder).to_owned()
}

/// Content of a regular file. Links that leave a repo aren't followed.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    bounded(open(path)?)
}

/// Like [`read`], as text; invalid UTF-8 is an `InvalidData` error.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Content of a file that is the user's own, not a repo's; it may be a link.
pub fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    bounded(open_plain(path).map_err(explain)?)
}

/// Opens a file of a run's record. A record inside a repo may come from the repo's author; all others are the
/// user's own, including links on the path.
pub fn open_record(path: &Path) -> io::Result<File> {
    match path.components().any(|part| part.as_os_str() == ".ralph") {
        true => open(path),
        false => open_plain(path).map_err(explain),
    }
}

pub fn read_record(path: &Path) -> io::Result<Vec<u8>> {
    bounded(open_record(path)?)
}

/// Whether [`read`] would read a regular file here.
pub fn is_file(path: &Path) -> bool {
    open(path).is_ok()
}

/// At most `max` entries of a folder; none if it isn't a folder or is a link that leaves the repo.
pub fn entries(folder: &Path, max: usize) -> Vec<Entry> {
    let top = top(folder);
    let below = folder.strip_prefix(&top).ok().filter(|below| !below.as_os_str().is_empty());
    let below = below.unwrap_or(Path::new("."));
    SafeDir::open(&top).and_then(|top| top.entries(below, max)).unwrap_or_default()
}

/// Writes a file atomically and creates its folders, without following links. A link at `path` itself is
/// replaced.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), AppError> {
    let (top, below) = place(path);
    let written = SafeDir::open(top).and_then(|top| top.write(below, bytes));
    written.map_err(|e| cannot("write", path, in_the_way(e)))
}

/// Replaces a file's content. A link to a file of the repo stays a link, and permissions are kept.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), AppError> {
    let failed = |e| cannot("write", path, in_the_way(e));
    let (top, _) = place(path);
    let real = path.canonicalize().map_err(failed)?;
    let top = top.canonicalize().map_err(failed)?;
    let below = real.strip_prefix(&top).map_err(|_| failed(leads_out()))?;
    SafeDir::open(&top).and_then(|dir| dir.replace(below, bytes)).map_err(failed)
}

/// Renames a file below `top` without following links.
pub fn rename(top: &Path, from: &Path, to: &Path) -> io::Result<()> {
    SafeDir::open(top)?.rename(from, to)
}

/// The error for an unreadable file, with a fix if access was refused.
pub fn unreadable(path: &Path, error: &io::Error) -> AppError {
    cannot("read", path, io::Error::new(error.kind(), error.to_string()))
}

/// The fix for a refused file; `None` if the machine is at fault.
pub fn remedy(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::CrossesDevices => Some("put the file itself there, or a link to another file of the repo"),
        ErrorKind::InvalidInput => Some("put a plain file there, or remove it"),
        ErrorKind::NotADirectory => Some("replace the link or file in its path with a real folder"),
        ErrorKind::FileTooLarge => Some("make it smaller, or remove it"),
        ErrorKind::InvalidData => Some("save it as UTF-8"),
        _ => None,
    }
}

fn cannot(verb: &str, path: &Path, error: io::Error) -> AppError {
    let message = match error.kind() {
        ErrorKind::InvalidData => format!("`{}` is not UTF-8 text", path.display()),
        _ => format!("cannot {verb} `{}`: {error}", path.display()),
    };
    match remedy(&error) {
        Some(remedy) => AppError::usage(message).hint(remedy),
        None => AppError::environment(message),
    }
}

/// Opens a regular file for reading. Links that leave a repo aren't followed.
pub fn open(path: &Path) -> io::Result<File> {
    if path.starts_with("/dev/fd") || path == Path::new("/dev/stdin") {
        // A descriptor inherited from the shell: `<(command)`.
        return File::open(path);
    }
    let (top, below) = place(path);
    if !top.join(".git").exists() {
        // Named by the user, so any location is fine.
        return open_plain(path).map_err(explain);
    }
    SafeDir::open(&top)?.open_file(below, Links::Inside).map_err(|error| match explain(error) {
        // A folder link that leaves the repo counts as missing.
        refused if refused.kind() == ErrorKind::CrossesDevices && matches!(path.try_exists(), Ok(false)) => {
            match path.is_symlink() {
                true => refused,
                false => ErrorKind::NotFound.into(),
            }
        }
        other => other,
    })
}

fn bounded(file: File) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::new(ErrorKind::FileTooLarge, "it has more than 32 MiB");
    if file.metadata()?.len() > BYTES_MAX {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX { Err(too_large()) } else { Ok(bytes) }
}

/// The base folder and the path below it: the top of the repo, else the folder itself.
fn place(path: &Path) -> (PathBuf, PathBuf) {
    let path = without_dots(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let folder = path.parent().unwrap_or(&path);
    let mut top = top(folder);
    if top == folder {
        // Outside a repo: the nearest existing folder. The path to it is the user's.
        top = folder.ancestors().find(|at| at.is_dir()).unwrap_or(folder).to_owned();
    }
    let below = path.strip_prefix(&top).map_or_else(|_| path.clone(), Path::to_owned);
    (top, below)
}

/// A path without `.` and `..`; links stay.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

fn leads_out() -> io::Error {
    io::Error::new(ErrorKind::CrossesDevices, "it is a link that leads out of the repo")
}

/// Explains a refusal.
fn explain(error: io::Error) -> io::Error {
    use nix::errno::Errno;
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EXDEV | Errno::ELOOP) => leads_out(),
        // A socket.
        Some(Errno::ENXIO) => io::Error::new(ErrorKind::InvalidInput, "it isn't a regular file"),
        None if error.kind() == ErrorKind::InvalidInput => {
            io::Error::new(ErrorKind::InvalidInput, "it isn't a regular file")
        }
        _ => error,
    }
}

/// Explains a failed write: a folder is at the path, or a file where a folder should be.
fn in_the_way(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::IsADirectory => io::Error::new(ErrorKind::InvalidInput, "a folder has that name"),
        ErrorKind::NotADirectory => {
            io::Error::new(ErrorKind::NotADirectory, "part of its path is a link or a file, not a folder")
        }
        _ => match error.raw_os_error().map(nix::errno::Errno::from_raw) {
            Some(nix::errno::Errno::ELOOP | nix::errno::Errno::EXDEV) => {
                io::Error::new(ErrorKind::NotADirectory, "what leads there is a link, not a folder")
            }
            _ => error,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            let place = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir_all(place.repo(".git")).unwrap();
            std::fs::create_dir(place.repo("docs")).unwrap();
            std::fs::write(place.0.path().join("key"), "private").unwrap();
            place
        }

        fn repo(&self, name: &str) -> PathBuf {
            self.0.path().join("repo").join(name)
        }
    }

    #[test]
    fn links_stay_in_their_repo_and_pipes_are_not_waited_for() {
        let place = Place::new();
        let (repo, folder) = (|name: &str| place.repo(name), place.0.path());
        std::fs::write(repo("docs/task.md"), "the task").unwrap();
        symlink("docs/task.md", repo("PROMPT.md")).unwrap();
        symlink("../key", repo("out.md")).unwrap();
        symlink("..", repo("up")).unwrap();
        nix::unistd::mkfifo(&repo("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(&repo("PROMPT.md")).unwrap(), b"the task");
        assert_eq!(read(&repo("docs/../PROMPT.md")).unwrap(), b"the task");
        let why = |name: &str| read(&repo(name)).unwrap_err().to_string();
        assert!(why("out.md").contains("leads out of the repo"), "{}", why("out.md"));
        assert!(read(&repo("up/key")).is_err());
        assert!(why("pipe").contains("regular file"), "{}", why("pipe"));
        assert!(why("docs").contains("regular file"), "{}", why("docs"));
        assert_eq!(read(&repo("none")).unwrap_err().kind(), ErrorKind::NotFound);
        // A file named by the user outside any repo may be a link.
        symlink("key", folder.join("named")).unwrap();
        assert_eq!(read(&folder.join("named")).unwrap(), b"private");
        assert_eq!(read(&repo("../named")).unwrap(), b"private");
        assert_eq!(read_own(&folder.join("named")).unwrap(), b"private");
        assert!(read_own(&repo("pipe")).is_err());
    }

    #[test]
    fn an_endless_file_is_refused_with_a_fix() {
        let place = Place::new();
        let file = File::create(place.repo("big.json")).unwrap();
        file.set_len(BYTES_MAX + 1).unwrap();
        let error = read(&place.repo("big.json")).unwrap_err();
        let told = unreadable(&place.repo("big.json"), &error);
        assert!(told.message.contains("big.json") && told.message.contains("more than 32 MiB"), "{told:?}");
        assert_eq!(told.hint.as_deref(), Some("make it smaller, or remove it"));
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let place = Place::new();
        let elsewhere = place.0.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        symlink("../elsewhere", place.repo("ralph")).unwrap();
        symlink("../key", place.repo("TASK.md")).unwrap();
        let error = write(&place.repo("ralph/tasks.json"), b"{}").unwrap_err();
        assert!(error.message.contains("ralph/tasks.json"), "{error:?}");
        assert!(error.hint.is_some(), "{error:?}");
        assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
        write(&place.repo("TASK.md"), b"new").unwrap();
        assert_eq!(std::fs::read(place.0.path().join("key")).unwrap(), b"private");
        write(&place.repo("a/b/new.md"), b"new").unwrap();
        assert_eq!(std::fs::read(place.repo("a/b/new.md")).unwrap(), b"new");
        // Outside any repo, in folders that don't exist yet.
        write(&elsewhere.join("x/y.md"), b"new").unwrap();
        assert_eq!(std::fs::read(elsewhere.join("x/y.md")).unwrap(), b"new");
    }

    #[test]
    fn a_replaced_file_keeps_its_permissions_and_the_link_to_it() {
        let place = Place::new();
        std::fs::write(place.repo("docs/task.md"), "old").unwrap();
        std::fs::set_permissions(place.repo("docs/task.md"), std::fs::Permissions::from_mode(0o664)).unwrap();
        symlink("docs/task.md", place.repo("TASK.md")).unwrap();
        symlink("../key", place.repo("out.md")).unwrap();
        replace(&place.repo("TASK.md"), b"new").unwrap();
        assert_eq!(std::fs::read(place.repo("docs/task.md")).unwrap(), b"new");
        assert!(place.repo("TASK.md").is_symlink());
        let mode = std::fs::metadata(place.repo("docs/task.md")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o664);
        assert!(replace(&place.repo("out.md"), b"new").is_err());
        assert_eq!(std::fs::read(place.0.path().join("key")).unwrap(), b"private");
    }
}
