//! Files that came with a repo. Whoever wrote it may have put a link to a key of the user's, a pipe or a file without end
//! in their place.

use crate::find;
use ralph_safe_fs::{Links, SafeDir};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// No task, configuration or list of models is larger.
const BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The content of a regular file. In a repo, links that lead out of it are not followed.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let path = std::path::absolute(path)?;
    let top = find::top(path.parent().unwrap_or(&path));
    let file = match path.strip_prefix(&top) {
        Ok(below) if top.join(".git").exists() => {
            SafeDir::open(&top)?.open_file(below, Links::Inside).map_err(|e| explain(e, &path))?
        }
        // Named by the user, wherever it is.
        _ => regular(&path)?,
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > BYTES_MAX {
        true => Err(io::Error::new(ErrorKind::FileTooLarge, "it has more than 32 MiB")),
        false => Ok(bytes),
    }
}

fn regular(path: &Path) -> io::Result<std::fs::File> {
    // A pipe or a device would make the reader wait for ever.
    match std::fs::metadata(path)?.is_file() {
        true => std::fs::File::open(path),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is no plain file")),
    }
}

/// Says what a refusal means.
fn explain(error: io::Error, path: &Path) -> io::Error {
    let is_link = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_symlink());
    match error.kind() {
        ErrorKind::NotFound => error,
        _ if is_link && path.exists() => {
            io::Error::new(error.kind(), "it is a link that leads out of the repo; put the file itself there")
        }
        _ if path.exists() && !path.is_file() => io::Error::new(error.kind(), "it is no plain file"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_stay_in_their_repo_and_pipes_are_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let repo = folder.path().join("repo");
        std::fs::create_dir_all(repo.join(".git")).unwrap();
        std::fs::create_dir(repo.join("docs")).unwrap();
        std::fs::write(folder.path().join("key"), "private").unwrap();
        std::fs::write(repo.join("docs/task.md"), "the task").unwrap();
        symlink("docs/task.md", repo.join("PROMPT.md")).unwrap();
        symlink("../key", repo.join("out.md")).unwrap();
        symlink("..", repo.join("up")).unwrap();
        nix::unistd::mkfifo(&repo.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(&repo.join("PROMPT.md")).unwrap(), b"the task");
        let why = |name: &str| read(&repo.join(name)).unwrap_err().to_string();
        assert!(why("out.md").contains("leads out of the repo"), "{}", why("out.md"));
        assert!(read(&repo.join("up/key")).is_err());
        assert!(why("pipe").contains("no plain file"), "{}", why("pipe"));
        assert_eq!(read(&repo.join("none")).unwrap_err().kind(), ErrorKind::NotFound);
        // A file that the user names, outside of any repo, may be a link.
        symlink("key", folder.path().join("named")).unwrap();
        assert_eq!(read(&folder.path().join("named")).unwrap(), b"private");
    }
}
