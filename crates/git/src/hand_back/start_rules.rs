//! The ignore rules of a run's start. What they hide of the user's folder stays with the user, even if the agent's
//! rules, once handed back, no longer hide it.

use crate::error::{Error, Result};
use crate::objects::files::write_atomically;
use crate::process::command::Git;
use crate::repo::Repo;
use crate::snapshot::entry::{TreeEntry, on_disk};
use std::collections::HashSet;
use std::path::Path;

/// Holds the start's `.gitignore` files and nothing else while git runs.
const RULES: &str = "start-rules";
/// The kind in a mode, and that of a file: a link isn't read as rules.
const KIND: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;

/// Those of `paths` that the ignore rules among the files `start` hide. `folder` is the run's.
pub(crate) fn ignored_at_start<'a>(
    repo: &Repo,
    folder: &Path,
    start: &[TreeEntry],
    paths: impl Iterator<Item = &'a [u8]>,
) -> Result<HashSet<Vec<u8>>> {
    let asked = paths.flat_map(|path| [path, b"\0"].concat()).collect::<Vec<u8>>();
    if asked.is_empty() {
        return Ok(HashSet::new());
    }
    let top = folder.join(RULES);
    let remove = || ralph_loop_safe_fs::remove_tree(&top).map_err(|e| Error::file("remove", &top, e));
    remove()?;
    std::fs::create_dir_all(&top).map_err(|e| Error::file("create", &top, e))?;
    write_rules(repo, start, &top)?;
    let git = Git::in_repo(&repo.vars, &repo.git_dir, &top);
    let ignored =
        git.call(["check-ignore", "-z", "--stdin", "--no-index"]).stdin(asked).accept(&[1]).run()?;
    remove()?;
    Ok(ignored.stdout.split(|b| *b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect())
}

fn write_rules(repo: &Repo, start: &[TreeEntry], top: &Path) -> Result<()> {
    let is_rules = |entry: &&TreeEntry| {
        entry.mode & KIND == REGULAR && entry.path.rsplit(|b| *b == b'/').next() == Some(b".gitignore")
    };
    let files: Vec<&TreeEntry> = start.iter().filter(is_rules).collect();
    if files.is_empty() {
        return Ok(());
    }
    let ids: String = files.iter().map(|entry| format!("{}\n", entry.oid)).collect();
    let answer = repo.git().call(["cat-file", "--batch=%(objectsize)"]).stdin(ids).run()?.stdout;
    let unreadable = || Error::unreadable("the start's ignore rules", "git printed something unexpected");
    let mut rest = answer.as_slice();
    for entry in files {
        let end = rest.iter().position(|b| *b == b'\n').ok_or_else(unreadable)?;
        let size = std::str::from_utf8(&rest[..end]).ok().and_then(|size| size.parse::<usize>().ok());
        let content = size.and_then(|size| rest.get(end + 1..end + 1 + size)).ok_or_else(unreadable)?;
        write_atomically(&on_disk(top, &entry.path), content)?;
        rest = rest.get(end + 2 + content.len()..).unwrap_or_default();
    }
    Ok(())
}
