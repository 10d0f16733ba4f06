//! A repo as git on its tree sees it: its refs, objects, index and ignore rules, with the engine's settings
//! instead of the repo's and the user's.
//!
//! Git reads settings from its common folder, so it gets a folder of the engine for that one, with links to what
//! isn't a setting.

use crate::error::{Error, Result};
use crate::process::command::Git;
use crate::process::engine_dir::EngineDir;
use crate::process::settings::Settings;
use ralph_loop_domain::vars::Vars;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// What may be missing, and be made by git.
const LINKS: &[&str] = &["packed-refs", "shallow", "info/exclude", "info/attributes"];
/// What is linked if it exists.
const FOLDERS: &[&str] = &["refs", "reftable", "logs", "worktrees", "modules"];

#[derive(Debug)]
struct View {
    dir: EngineDir,
}

/// Git on the tree `top` of a repo, with only those of its settings that name no program. With `network` it also gets
/// the user's settings for remotes.
pub(crate) fn git(vars: &Vars, (git_dir, common): (&Path, &Path), top: &Path, network: bool) -> Git {
    match view(vars, git_dir, common, network) {
        Ok(view) => {
            let folder = view.dir.path().to_owned();
            Git::viewing(vars, git_dir, top, (&folder, network), view).with_objects(common.join("objects"))
        }
        Err(error) => Git::broken(vars, error.to_string()),
    }
}

fn view(vars: &Vars, git_dir: &Path, common: &Path, network: bool) -> Result<Arc<View>> {
    type Open = (PathBuf, Weak<View>);
    /// Those in use at the same time.
    static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());
    let open = || OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if !network {
        let found = open().iter().find(|(known, _)| known == git_dir).and_then(|(_, view)| view.upgrade());
        if let Some(view) = found.filter(|view| view.dir.path().is_dir()) {
            return Ok(view);
        }
    }
    let made = Arc::new(make(vars, git_dir, common, network)?);
    if !network {
        let mut open = open();
        open.retain(|(known, view)| known != git_dir && view.strong_count() > 0);
        open.push((git_dir.to_owned(), Arc::downgrade(&made)));
    }
    Ok(made)
}

fn make(vars: &Vars, git_dir: &Path, common: &Path, network: bool) -> Result<View> {
    let settings = Settings::now(vars, git_dir, common)?;
    let dir = EngineDir::new(vars)?;
    let mut config = settings.of_tree();
    if network {
        config.push_str(&settings.of_remotes());
    }
    let path = dir.path();
    let made = || -> std::io::Result<()> {
        fs::create_dir_all(path.join("info"))?;
        fs::write(path.join("config"), config)?;
        let there = FOLDERS.iter().filter(|name| common.join(name).is_dir());
        for name in LINKS.iter().chain(there) {
            std::os::unix::fs::symlink(common.join(name), path.join(name))?;
        }
        Ok(())
    };
    made().map_err(|e| Error::file("fill", path, e))?;
    Ok(View { dir })
}
