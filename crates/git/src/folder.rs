//! Folders that a run is to work in: free, the same, or a repo now.

use crate::error::{Error, Result};
use crate::repo::Repo;
use ralph_loop_domain::vars::Vars;
use std::fs;
use std::path::Path;

/// The repo at `path`, which was made just now.
pub(crate) fn rediscover(vars: &Vars, path: &Path) -> Result<Repo> {
    Repo::discover(vars, path).map_err(|e| Error::refused(e.to_string(), e.hint().unwrap_or_default()))
}

/// Refuses a place where something is already.
pub(crate) fn refuse_used(path: &Path) -> Result<()> {
    let used = match fs::read_dir(path) {
        Ok(mut names) => names.next().is_some(),
        Err(_) => path.symlink_metadata().is_ok(),
    };
    if used {
        return Err(Error::refused(
            format!("`{}` exists and is not ours", path.display()),
            "choose another folder, or move it away",
        ));
    }
    Ok(())
}

/// Whether both names lead to one folder.
pub(crate) fn same_folder(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
