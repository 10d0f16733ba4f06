//! Covers the settings of agent CLIs in the repo in the sessions of those CLIs.
//!
//! A CLI looks for its settings in its folder and those around it, and some of them start programs or send its key
//! elsewhere. In its session each such name is an empty, read-only folder or file, from the top of the workspace to
//! the session's folder: nothing is read there, and nothing can be left there for the next session.

use crate::local::isolation::view::same_path::Workspace;
use ralph_loop_domain::ports::SandboxError;
use ralph_loop_safe_fs::SafeDir;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The names that sessions of one agent program find empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Covers {
    /// Names of folders. Missing ones are covered as well, so that a session can't create them.
    pub folders: &'static [&'static str],
    /// Names of files, covered if they exist.
    pub files: &'static [&'static str],
    /// Exceptions that sessions see, by path below the workspace.
    pub shown: Vec<PathBuf>,
}

/// What to mount over the workspace for one session.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::local::isolation) struct CoverMounts {
    /// Mount points of the empty folder, as commands see them.
    pub(in crate::local::isolation) folders: Vec<PathBuf>,
    /// Mount points of the empty file.
    pub(in crate::local::isolation) files: Vec<PathBuf>,
    /// Folders created as mount points, below the workspace.
    pub(in crate::local::isolation) made: Vec<PathBuf>,
}

/// The mounts for a session in the folder `cwd` of the workspace, which is a local path.
pub(in crate::local::isolation) fn mounts(
    workspace: &Workspace,
    cwd: &Path,
    covers: &Covers,
) -> Result<CoverMounts, SandboxError> {
    let mut found = CoverMounts::default();
    let below = cwd.strip_prefix(&workspace.host).unwrap_or(Path::new(""));
    for folder in folders_to(below) {
        for name in covers.folders.iter().chain(covers.files) {
            let path = folder.join(name);
            if !covers.shown.contains(&path) {
                found.cover(workspace, &path, covers.folders.contains(name))?;
            }
        }
    }
    Ok(found)
}

/// The folders from the top of a workspace to `below`, as paths below the top.
pub fn folders_to(below: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = below.ancestors().map(Path::to_owned).collect();
    folders.reverse();
    folders
}

/// The real path of a name in the repo at `top`, below it; `None` if a link leads out of it, or to nothing. Absolute
/// links aren't followed: `/proc/self/cwd` means another folder for each process.
pub fn place_below(top: &Path, path: &Path) -> Option<PathBuf> {
    const LINKS_MAX: usize = 40;
    let parts = |path: &Path| path.components().rev().map(|part| PathBuf::from(part.as_os_str())).collect();
    let (mut at, mut links) = (PathBuf::new(), 0);
    // The next one is the last of the list.
    let mut left: Vec<PathBuf> = parts(path);
    while let Some(part) = left.pop() {
        match part.components().next()? {
            Component::CurDir => {}
            Component::ParentDir if at.pop() => {}
            Component::Normal(name) => {
                let next = at.join(name);
                if !fs::symlink_metadata(top.join(&next)).ok()?.is_symlink() {
                    at = next;
                    continue;
                }
                links += 1;
                let target: Vec<PathBuf> = parts(&fs::read_link(top.join(&next)).ok()?);
                left.extend((links <= LINKS_MAX).then_some(target)?);
            }
            _ => return None,
        }
    }
    Some(at)
}

impl CoverMounts {
    fn cover(&mut self, workspace: &Workspace, path: &Path, is_folder: bool) -> Result<(), SandboxError> {
        let at = workspace.host.join(path);
        let broken = |why: &str| {
            SandboxError::Broken(format!(
                "`{}` holds settings of the agent's program and cannot be covered: {why}",
                path.display()
            ))
        };
        let kind = match fs::symlink_metadata(&at) {
            Ok(about) => about.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if is_folder {
                    let made = SafeDir::open(&workspace.host).and_then(|top| top.create_folder(path));
                    made.map_err(|error| broken(&error.to_string()))?;
                    self.folders.push(workspace.inside.join(path));
                    self.made.push(path.to_owned());
                }
                return Ok(());
            }
            Err(error) => return Err(broken(&error.to_string())),
        };
        // A mount can't replace a link, so its target is covered.
        let (real, is_folder) = match kind.is_symlink() {
            false => (path.to_owned(), kind.is_dir()),
            true => {
                let real = place_below(&workspace.host, path).ok_or_else(|| {
                    broken("it is a link that leads out of the repo; replace it with the file it points to")
                })?;
                let is_folder = workspace.host.join(&real).is_dir();
                (real, is_folder)
            }
        };
        if real.as_os_str().is_empty() {
            return Err(broken("it is a link to the repo itself"));
        }
        let list = if is_folder { &mut self.folders } else { &mut self.files };
        list.push(workspace.inside.join(real));
        Ok(())
    }
}

/// Removes the folders that were created as mount points, if still empty.
pub(in crate::local::isolation) fn remove_made(root: &Path, made: &[PathBuf]) {
    let Ok(top) = SafeDir::open(root) else { return };
    for path in made.iter().filter(|path| top.entries(path, 1).is_ok_and(|found| found.is_empty())) {
        if let Err(error) = top.remove(path) {
            tracing::debug!(path = %path.display(), %error, "an empty folder stays");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    const COVERS: Covers = Covers { folders: &[".cli"], files: &[".cli.json"], shown: Vec::new() };

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let place = tempfile::tempdir().unwrap();
        let host = place.path().canonicalize().unwrap().join("copy");
        fs::create_dir_all(host.join("a/b")).unwrap();
        (place, Workspace { host, inside: "/home/me/repo".into() })
    }

    fn inside(paths: &[&str]) -> Vec<PathBuf> {
        paths.iter().map(|path| Path::new("/home/me/repo").join(path)).collect()
    }

    #[test]
    fn every_folder_from_the_top_to_the_session_is_covered_and_nothing_else() {
        let (_place, workspace) = workspace();
        for folder in ["", "a", "a/b", "a/b/below", "beside"] {
            fs::create_dir_all(workspace.host.join(folder).join(".cli")).unwrap();
        }
        fs::write(workspace.host.join("a/.cli.json"), "{}").unwrap();
        let found = mounts(&workspace, &workspace.host.join("a/b"), &COVERS).unwrap();
        assert_eq!(found.folders, inside(&[".cli", "a/.cli", "a/b/.cli"]));
        assert_eq!(found.files, inside(&["a/.cli.json"]));
        let shown = Covers { shown: vec!["a/.cli".into()], ..COVERS };
        let found = mounts(&workspace, &workspace.host.join("a"), &shown).unwrap();
        assert_eq!((found.folders, found.files), (inside(&[".cli"]), inside(&["a/.cli.json"])));
    }

    #[test]
    fn a_missing_folder_is_covered_and_leaves_nothing_behind() {
        let (_place, workspace) = workspace();
        let found = mounts(&workspace, &workspace.host, &COVERS).unwrap();
        assert_eq!((&found.folders, &found.made), (&inside(&[".cli"]), &vec![PathBuf::from(".cli")]));
        assert!(found.files.is_empty(), "a missing file is not made");
        remove_made(&workspace.host, &found.made);
        assert!(!workspace.host.join(".cli").exists());
        // Content added since stays.
        fs::create_dir_all(workspace.host.join(".cli/x")).unwrap();
        remove_made(&workspace.host, &found.made);
        assert!(workspace.host.join(".cli/x").exists());
    }

    #[test]
    fn files_instead_of_folders_and_links_in_the_repo_are_covered() {
        let (_place, workspace) = workspace();
        fs::write(workspace.host.join("a/.cli"), "x").unwrap();
        fs::create_dir(workspace.host.join("shared")).unwrap();
        symlink("shared", workspace.host.join(".cli")).unwrap();
        symlink("shared/../a/settings.json", workspace.host.join(".cli.json")).unwrap();
        fs::write(workspace.host.join("a/settings.json"), "{}").unwrap();
        let found = mounts(&workspace, &workspace.host.join("a"), &COVERS).unwrap();
        assert_eq!(found.folders, inside(&["shared"]));
        assert_eq!(found.files, inside(&["a/settings.json", "a/.cli"]));
    }

    #[test]
    fn a_link_that_cannot_be_covered_is_refused() {
        for target in ["/proc/self/cwd/evil.json", "../outside", "/nonexistent", "."] {
            let (place, workspace) = workspace();
            fs::write(place.path().join("outside"), "{}").unwrap();
            symlink(target, workspace.host.join(".cli.json")).unwrap();
            let refused = mounts(&workspace, &workspace.host, &COVERS).unwrap_err();
            assert!(refused.to_string().contains("`.cli.json`"), "{target}: {refused}");
        }
    }
}
