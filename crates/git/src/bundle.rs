//! The commits of a run as one file: what nobody but the run's own clone has.

use crate::error::{Error, Result};
use crate::repo::Repo;
use ralph_domain::id::RunId;

/// Bytes of a bundle.
const MAX: u64 = 512 * 1024 * 1024;

/// A bundle of the run's start and work, without what the remote of the clone has. `None` where the run has no commits yet.
pub fn run_commits(repo: &Repo, run: &RunId) -> Result<Option<Vec<u8>>> {
    let names = ["start", "work"].map(|name| format!("refs/ralph/{run}/{name}"));
    let known =
        repo.git().call(["for-each-ref", "--format=%(refname)", &format!("refs/ralph/{run}/")]).run()?.text();
    let there: Vec<&String> = names.iter().filter(|name| known.lines().any(|line| line == *name)).collect();
    if there.is_empty() {
        return Ok(None);
    }
    let room = repo.git_dir.join("ralph");
    std::fs::create_dir_all(&room).map_err(|e| Error::file("make the folder", &room, e))?;
    let file = room.join(format!("{run}.bundle"));
    let path = file.display().to_string();
    let head = ["bundle", "create", "-q", &path];
    let tail = ["--not", "--remotes"];
    repo.git().call(head.into_iter().chain(there.iter().map(|name| name.as_str())).chain(tail)).run()?;
    let size = std::fs::metadata(&file).map_err(|e| Error::file("look at", &file, e))?.len();
    if size > MAX {
        return Err(Error::refused(
            format!("the commits of the run have {size} bytes"),
            "keep large files out of the work",
        ));
    }
    let bytes = std::fs::read(&file).map_err(|e| Error::file("read", &file, e))?;
    std::fs::remove_file(&file).map_err(|e| Error::file("remove", &file, e))?;
    Ok(Some(bytes))
}
