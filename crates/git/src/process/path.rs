//! Finds the engine's tools, never in a folder of a repo, even if `PATH` names one: an agent could put its own `git`
//! there, which would run outside the sandbox.

use ralph_loop_domain::vars::Vars;
use std::path::{Path, PathBuf};

/// Removes the folders inside the repo of `folder` from `PATH`.
pub fn outside_of_repo(vars: &Vars, folder: &Path) -> Vars {
    if vars.has_own_path() {
        return vars.clone();
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = real(folder);
    let home = vars.home().map(real);
    // A home folder may be a repo; everything in it is the user's.
    let repos: Vec<PathBuf> = folder
        .ancestors()
        .filter(|at| at.parent().is_some() && home.as_deref() != Some(at))
        .filter(|at| at.join(".git").symlink_metadata().is_ok())
        .map(Path::to_owned)
        .collect();
    let outside = |at: &PathBuf| {
        let real = real(at);
        !repos.iter().any(|repo| real.starts_with(repo))
    };
    let folders: Vec<PathBuf> = vars.path_folders().into_iter().filter(outside).collect();
    // Entries split from a path list can be joined again.
    std::env::join_paths(folders).map_or_else(|_| vars.clone(), |path| vars.with_own_path(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repo_folders_in_path_are_ignored_even_behind_links() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        let (repo, tools) = (top.join("repo"), top.join("tools"));
        for folder in [repo.join(".git"), repo.join("bin"), repo.join("src"), tools.clone()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        std::os::unix::fs::symlink(repo.join("bin"), top.join("link")).unwrap();
        let path = format!("{0}/repo/bin:{0}/link:relative:{0}/tools:/usr/bin", top.display());
        let vars: Vars = [("PATH", path)].into_iter().collect();
        for folder in [&repo, &repo.join("src")] {
            let own = outside_of_repo(&vars, folder);
            let folders: Vec<PathBuf> = std::env::split_paths(own.own_path()).collect();
            assert_eq!(folders, [tools.clone(), PathBuf::from("/usr/bin")]);
        }
        assert_eq!(std::env::split_paths(outside_of_repo(&vars, &tools).own_path()).count(), 4);
    }
}
