//! Bundles the commits of a run that only its clone has.

use crate::error::{Error, Result};
use crate::objects::refs::Refs;
use crate::repo::Repo;
use ralph_loop_protocol::id::RunId;

const MAX: u64 = 512 * 1024 * 1024;

/// The last commit of the run's work, if any. The bundle only changes when it does.
pub fn run_work(repo: &Repo, run: &RunId) -> Result<Option<String>> {
    own_ref(repo, run, "work")
}

fn own_ref(repo: &Repo, run: &RunId, name: &str) -> Result<Option<String>> {
    Refs::new(repo, &repo.git_dir.join("ralph")).read(&format!("refs/ralph/{run}/{name}"))
}

/// A bundle of the run's start and work, without what the clone's remote has. If that is all of the work, the start
/// stays in: git refuses an empty bundle.
pub fn run_commits(repo: &Repo, run: &RunId) -> Result<Vec<u8>> {
    let mut names = vec![format!("refs/ralph/{run}/work")];
    if own_ref(repo, run, "start")?.is_some() {
        names.push(format!("refs/ralph/{run}/start"));
    }
    let room = repo.git_dir.join("ralph");
    std::fs::create_dir_all(&room).map_err(|e| Error::file("make the folder", &room, e))?;
    let file = room.join(format!("{run}.bundle"));
    let path = file.display().to_string();
    let head = ["bundle", "create", "-q", &path];
    let names = names.iter().map(String::as_str);
    repo.git().call(head.into_iter().chain(names).chain(["--not", "--remotes"])).run()?;
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
