//! What of a user's folder an agent's copy holds: what git tracks or doesn't ignore, ignored folders that tools fill,
//! and what the user adds. No other ignored file, whatever its name.

use crate::agent_copy::copy_files::{LeftOut, is_secret};
use crate::agent_copy::installed::{KnownFolders, is_refillable};
use crate::error::Result;
use crate::process::command::Git;
use crate::repo::Repo;
use crate::snapshot::entry::{on_disk, text};
use ralph_loop_domain::repo::protect::covers;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Levels of repos in repos.
const DEPTH_MAX: usize = 8;

/// How much of the repo's history the agent can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum History {
    #[default]
    Start,
    /// Every object of the user's repo: other branches, the stash, what was never committed.
    Full,
}

/// What the user adds to an agent's copy.
#[derive(Debug, Clone, Default)]
pub struct CopyContents {
    /// Ignored files and folders, as git's glob patterns from the top of the repo.
    pub include: Vec<String>,
    pub history: History,
}

/// The files and folders to copy in addition to those that git tracks, from the ignored ones and the `large`
/// untracked ones. What stays is added to `left`.
pub(crate) fn unrecorded(
    origin: &Repo,
    index: &Path,
    include: &[String],
    large: &[Vec<u8>],
    left: &mut LeftOut,
) -> Result<Vec<Vec<u8>>> {
    let list = |args: &[&OsStr]| -> Result<Vec<Vec<u8>>> {
        let words = ["ls-files", "-o", "-i", "--exclude-standard", "-z"].map(OsStr::new);
        let listed = origin.git().call(words.iter().chain(args)).index(index).run()?.stdout;
        let paths = listed.split(|b| *b == 0).filter(|path| !path.is_empty());
        Ok(paths.filter(|path| !path.starts_with(b".ralph/")).map(<[u8]>::to_vec).collect())
    };
    let mut known = KnownFolders::new(&origin.top, is_refillable);
    let (mut found, mut stay): (Vec<_>, Vec<_>) =
        list(&["--directory".as_ref()])?.into_iter().partition(|path| known.has(path));
    stay.sort();
    if !include.is_empty() {
        let patterns: Vec<String> = include.iter().map(|path| format!(":(top,glob){path}")).collect();
        let words = ["--"].into_iter().chain(patterns.iter().map(String::as_str)).map(OsStr::new);
        found.extend(list(&words.collect::<Vec<_>>())?);
    }
    let (secret, large): (Vec<_>, Vec<_>) =
        large.iter().cloned().partition(|path| is_secret(&origin.top, path));
    found.extend(large);
    // Git lists a folder next to its files if only those are ignored.
    let last = stay.len().saturating_sub(1);
    let is_listed = |at: usize| at < last && stay[at].ends_with(b"/") && stay[at + 1].starts_with(&stay[at]);
    let stay = (0..stay.len()).filter(|at| !is_listed(*at)).map(|at| stay[at].clone());
    let stay = stay.filter(|path| !covers(include, text(path).trim_end_matches('/')));
    left.withheld.extend(stay.chain(secret).map(|path| PathBuf::from(OsStr::from_bytes(&path))));
    Ok(found)
}

/// The files of the repo at `path` inside `top` that its git tracks or doesn't ignore, and those of repos in it.
pub(crate) fn of_nested(origin: &Repo, path: &[u8]) -> Vec<Vec<u8>> {
    let (mut found, mut open) = (BTreeSet::new(), vec![(path.to_vec(), 0)]);
    while let Some((path, depth)) = open.pop() {
        let top = on_disk(&origin.top, &path);
        // A submodule without files has no git folder.
        let git_dir = top.join(".git");
        if depth > DEPTH_MAX || git_dir.symlink_metadata().is_err() {
            continue;
        }
        let args = ["ls-files", "-z", "-c", "-o", "--exclude-standard"];
        let call = Git::in_repo(&origin.vars, git_dir, &top).call(args).env("GIT_NO_LAZY_FETCH", "1");
        let Ok(listed) = call.run() else { continue };
        for inner in listed.stdout.split(|b| *b == 0).filter(|inner| !inner.is_empty()) {
            let inner = inner.strip_suffix(b"/").unwrap_or(inner);
            let below = [path.as_slice(), b"/", inner].concat();
            match on_disk(&origin.top, &below).symlink_metadata() {
                Ok(about) if about.is_dir() => open.push((below, depth + 1)),
                _ => drop(found.insert(below)),
            }
        }
    }
    found.into_iter().collect()
}
