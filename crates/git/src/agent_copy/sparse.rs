//! A sparse checkout in the agent's copy: the copy has the files that the checkout has, and its index keeps the others, so that
//! what is not there is not gone.

use crate::agent_copy::git_dir::setting;
use crate::error::{Error, Result};
use crate::objects::index;
use crate::repo::Repo;
use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::Path;

/// Which folders are checked out.
pub(crate) const PATTERNS: &str = "info/sparse-checkout";
/// More than any index of an honest repo.
const INDEX_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// The settings that make a checkout sparse, as lines of a configuration; none where it is whole.
pub(crate) fn settings(origin: &Repo) -> Result<String> {
    let mut text = String::new();
    for name in ["sparseCheckout", "sparseCheckoutCone"] {
        let key = format!("core.{name}");
        // They may stand in the configuration of one worktree.
        let found = origin.git().call(["config", "--type=bool", "--get", &key]).accept(&[1]).run()?;
        if found.code == 0 {
            text.push_str(&setting("core", name, found.text().trim()));
        }
    }
    Ok(text)
}

/// The files that git knows and does not look for in the folder.
pub(crate) fn left_away(origin: &Repo, private_index: &Path) -> Result<HashSet<Vec<u8>>> {
    let bytes = match ralph_loop_safe_fs::read_plain(private_index, INDEX_MAX) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(HashSet::new()),
        Err(e) => return Err(Error::file("read", private_index, e)),
    };
    let index = index::parse(&bytes, origin.object_format, private_index)?;
    Ok(index.entries.into_iter().filter(|item| item.skipped).map(|item| item.entry.path).collect())
}
