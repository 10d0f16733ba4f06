//! The commits of a run as one file: what nobody but the run's own clone has.

use crate::error::{Error, Result};
use crate::repo::Repo;
use ralph_domain::id::RunId;

/// Bytes of a bundle.
const MAX: u64 = 512 * 1024 * 1024;

/// The run's start and work with the commits that they name, a line each; nothing where it has no commits yet. As long as it stays
/// the same, a bundle would, too.
pub fn run_refs(repo: &Repo, run: &RunId) -> Result<String> {
    let names = ["start", "work"].map(|name| format!("refs/ralph/{run}/{name}"));
    let format = "--format=%(refname) %(objectname)";
    Ok(repo.git().call(["for-each-ref", format, &names[0], &names[1]]).run()?.text())
}

/// A bundle of what [`run_refs`] said, without what the remote of the clone has.
pub fn run_commits(repo: &Repo, run: &RunId, refs: &str) -> Result<Vec<u8>> {
    let there = refs.lines().filter_map(|line| line.split(' ').next());
    let room = repo.git_dir.join("ralph");
    std::fs::create_dir_all(&room).map_err(|e| Error::file("make the folder", &room, e))?;
    let file = room.join(format!("{run}.bundle"));
    let path = file.display().to_string();
    let head = ["bundle", "create", "-q", &path];
    let tail = ["--not", "--remotes"];
    repo.git().call(head.into_iter().chain(there).chain(tail)).run()?;
    let size = std::fs::metadata(&file).map_err(|e| Error::file("look at", &file, e))?.len();
    if size > MAX {
        return Err(Error::refused(
            format!("the commits of the run have {size} bytes"),
            "keep large files out of the work",
        ));
    }
    let bytes = std::fs::read(&file).map_err(|e| Error::file("read", &file, e))?;
    std::fs::remove_file(&file).map_err(|e| Error::file("remove", &file, e))?;
    Ok(bytes)
}
