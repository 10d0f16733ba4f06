//! A sparse checkout in the agent's copy: the copy has only the files of the checkout, and its index keeps the
//! others, so that missing files don't count as deleted.

use crate::agent_copy::git_dir::setting;
use crate::error::{Error, Result};
use crate::objects::index;
use crate::repo::Repo;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;

pub(crate) const PATTERNS: &str = "info/sparse-checkout";
const INDEX_MAX: u64 = 4 * 1024 * 1024 * 1024;

pub(crate) fn settings(origin: &Repo) -> Result<String> {
    // They may be in the worktree's configuration. The last of several counts, there and in the copy.
    let wanted = "^core\\.sparsecheckout(cone)?$";
    let found =
        origin.git().call(["config", "--type=bool", "--get-regexp", wanted]).accept(&[1]).run()?.text();
    let settings = found.lines().filter_map(|line| line.strip_prefix("core.")?.split_once(' '));
    Ok(settings.map(|(name, value)| setting("core", name, value.trim())).collect())
}

/// The files that git knows and doesn't expect in the folder.
pub(crate) fn left_away(origin: &Repo, private_index: &Path) -> Result<HashSet<Vec<u8>>> {
    let bytes = match ralph_loop_safe_fs::read_plain(private_index, INDEX_MAX) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(e) => return Err(Error::file("read", private_index, e)),
    };
    let index = index::parse(&bytes, origin.object_format, private_index)?;
    Ok(index.entries.into_iter().filter(|item| item.skipped).map(|item| item.entry.path).collect())
}
