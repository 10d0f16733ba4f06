//! Folders of the engine for git: outside every tree, for this user only, and gone with their last use.

use crate::error::{Error, Result};
use ralph_loop_domain::vars::Vars;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Once;

const NAME: &str = "ralph-git-";

/// Removed when dropped. The next process removes what a killed one has left.
#[derive(Debug)]
pub(crate) struct EngineDir(PathBuf);

impl EngineDir {
    pub(crate) fn new(vars: &Vars) -> Result<Self> {
        static SWEPT: Once = Once::new();
        let base = vars.temp_dir();
        SWEPT.call_once(|| remove_left(&base));
        let path = nix::unistd::mkdtemp(&base.join(format!("{NAME}{}-XXXXXX", std::process::id())))
            .map_err(|e| Error::file("create a folder in", &base, e.into()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

/// Removes what killed processes have left. Other users' folders stay.
fn remove_left(base: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid =
            name.to_str().and_then(|name| name.strip_prefix(NAME)).and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()) {
            let _ = ralph_loop_safe_fs::remove_tree(entry.path());
        }
    }
}

impl Drop for EngineDir {
    fn drop(&mut self) {
        let _ = ralph_loop_safe_fs::remove_tree(&self.0);
    }
}
