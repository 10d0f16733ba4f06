//! Finds the user's hooks that `git commit` would start. This crate starts none: an agent may have written them.

use crate::repo::Repo;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The hooks that print something on a commit.
const OF_A_COMMIT: &[&str] = &["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];

/// Hooks that didn't run on a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserHooks {
    pub names: Vec<String>,
    /// Those that the commits changed, or whose folder they changed: look at them before you run them.
    pub changed: Vec<String>,
}

/// The hooks that `git commit` would have started, if any; `changed` are the files of the commits.
pub fn of_a_commit(repo: &Repo, changed: &[String]) -> Option<UserHooks> {
    let folder = folder(repo);
    let names: Vec<String> = OF_A_COMMIT
        .iter()
        .filter(|name| is_program(&folder.join(name)))
        .map(|name| (*name).to_owned())
        .collect();
    if names.is_empty() {
        return None;
    }
    let own = folder.strip_prefix(&repo.top).ok().filter(|own| !own.starts_with(".git"));
    // `husky` keeps its starter one folder deeper than the hooks.
    let own = own.map(|own| if own.ends_with("_") { own.parent().unwrap_or(own) } else { own });
    let changed =
        own.into_iter().flat_map(|own| changed.iter().filter(move |path| Path::new(path).starts_with(own)));
    Some(UserHooks { names, changed: changed.cloned().collect() })
}

fn folder(repo: &Repo) -> PathBuf {
    let set =
        repo.user_git().call(["config", "--type=path", "--get-all", "core.hooksPath"]).accept(&[1]).run();
    let set = set.map(|set| set.text()).unwrap_or_default();
    // The last line is this crate's, which turns hooks off.
    let own = set.lines().rev().nth(1).map(str::to_owned);
    own.map_or_else(|| repo.common_dir.join("hooks"), |path| repo.top.join(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
