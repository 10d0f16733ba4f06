//! Resolves tool paths: relative to the session's folder or absolute below the root, under the rules of [`confine`],
//! even through links within the workspace.

use crate::session::confine::{self, FileOperation};
use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

/// The kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathAccess {
    Read,
    Write,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct PathRules<'a> {
    /// The workspace as commands see it.
    pub(crate) root: &'a Path,
    /// The same folder for this process, if visible.
    pub(crate) host_root: Option<&'a Path>,
    /// The session's folder below it, the base of relative paths.
    pub(crate) cwd: &'a Path,
    /// Protected paths and globs.
    pub(crate) protected: &'a [String],
}

impl PathRules<'_> {
    /// The path of a file, relative to the root; the error says why access is refused.
    pub(crate) fn file(&self, given: &str, access: PathAccess) -> Result<PathBuf, String> {
        let path = self.allowed(&self.below_root(given), access)?;
        // A link inside the workspace may lead to a forbidden path inside. The sandbox refuses one that leads out.
        if let Some(real) = self.real(&path)
            && real != path
        {
            self.allowed(&real.to_string_lossy(), access)?;
        }
        Ok(path)
    }

    /// The path of a folder, relative to the root; default: the session's.
    pub(crate) fn folder(&self, given: Option<&str>) -> Result<PathBuf, String> {
        match given {
            None => Ok(self.cwd.to_owned()),
            Some(given) => confine::folder(&self.below_root(given)).map_err(|refusal| refusal.to_string()),
        }
    }

    fn allowed(&self, path: &str, access: PathAccess) -> Result<PathBuf, String> {
        let (change, protected) = match access {
            // Append-only and protected files may be read.
            PathAccess::Read => (FileOperation::Append, &[][..]),
            PathAccess::Write => (FileOperation::Edit, self.protected),
        };
        confine::file(path, change, protected).map_err(|refusal| refusal.to_string())
    }

    fn below_root<'t>(&self, given: &'t str) -> Cow<'t, str> {
        let path = Path::new(given);
        let inside = match path.is_absolute() {
            true => path.strip_prefix(self.root).ok().map(Path::to_owned),
            false if self.cwd.as_os_str().is_empty() || path.starts_with(".ralph") => None,
            // The run's memory is at the top, even for a session in a subfolder.
            false => {
                let settled = settled(self.cwd, path);
                Some(if settled.starts_with(".ralph") { settled } else { self.cwd.join(path) })
            }
        };
        match inside {
            Some(inside) => Cow::Owned(inside.to_string_lossy().into_owned()),
            None => Cow::Borrowed(given),
        }
    }

    /// The real path, relative to the root, as far as it exists and is visible from here.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        let root = self.host_root?.canonicalize().ok()?;
        let full = root.join(path);
        let existing = full.ancestors().find(|ancestor| ancestor.exists())?;
        let rest = full.strip_prefix(existing).ok()?;
        let real = existing.canonicalize().ok()?.join(rest);
        real.strip_prefix(&root).ok().map(Path::to_owned)
    }
}

/// Resolves a path in a folder of the workspace as text. A path above the workspace keeps its `..`, and is refused
/// for it.
fn settled(folder: &Path, path: &Path) -> PathBuf {
    let mut out = folder.to_owned();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if out.file_name().is_some() => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_places_of_the_workspace_pass() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join(".ralph/runs")).unwrap();
        std::fs::create_dir(root.join("tests")).unwrap();
        std::os::unix::fs::symlink(".ralph/runs", root.join("door")).unwrap();
        std::os::unix::fs::symlink("tests", root.join("other")).unwrap();
        let protected = ["tests/**".to_owned()];
        let path_rules =
            PathRules { root: &root, host_root: Some(&root), cwd: Path::new(""), protected: &protected };
        let absolute = root.join("src/a.rs");
        for good in ["a.txt", "./src/a.rs", absolute.to_str().unwrap(), ".ralph/progress.md", "new/folder/x"]
        {
            assert!(path_rules.file(good, PathAccess::Write).is_ok(), "{good}");
        }
        for (bad, why) in [
            ("/etc/passwd", "leads out of the workspace"),
            ("../x", "leads out of the workspace"),
            ("a/../../x", "leads out of the workspace"),
            (".git/config", "belongs to git"),
            ("sub/.GIT/x", "belongs to git"),
            (".ralph/notes.md", "belongs to the engine"),
            ("door/x", "belongs to the engine"),
            ("", "names no file"),
            (".", "names no file"),
        ] {
            let refused = path_rules.file(bad, PathAccess::Read).unwrap_err();
            assert!(refused.contains(why), "{bad}: {refused}");
        }
        assert!(path_rules.file("tests/a.rs", PathAccess::Read).is_ok());
        for protected in ["tests/a.rs", "other/a.rs"] {
            assert!(
                path_rules.file(protected, PathAccess::Write).unwrap_err().contains("protected"),
                "{protected}"
            );
        }
        let below = PathRules { cwd: Path::new("web"), ..path_rules };
        assert_eq!(below.file("a.txt", PathAccess::Read).unwrap(), Path::new("web/a.txt"));
        assert_eq!(below.folder(None).unwrap(), Path::new("web"));
        assert!(below.file("../a.txt", PathAccess::Read).unwrap_err().contains("leads out of the workspace"));
        let progress = below.file("../.ralph/progress.md", PathAccess::Write).unwrap();
        assert_eq!(progress, Path::new(".ralph/progress.md"));
        assert_eq!(below.file(".ralph/progress.md", PathAccess::Write).unwrap(), progress);
        assert!(below.file("../.ralph/config.json", PathAccess::Write).is_err());
        assert!(below.file("../../.ralph/progress.md", PathAccess::Write).is_err());
    }
}
