//! Where a tool may read and write: below the root, never in git's or the engine's folders, never on protected paths.

use ralph_domain::protect::covers;
use std::path::{Component, Path, PathBuf};

/// The one file of the engine's folder that an agent keeps.
const PROGRESS: &str = ".ralph/progress.md";

/// What a path is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// The rules for paths in one session.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// The workspace as commands see it.
    pub(crate) root: &'a Path,
    /// Folder below it that the session works in; relative paths start here.
    pub(crate) cwd: &'a Path,
    /// Paths and globs to leave alone.
    pub(crate) protected: &'a [String],
}

impl Place<'_> {
    /// The path of a file, relative to the root; `Err` says why a tool keeps away from it.
    pub(crate) fn file(&self, given: &str, access: Access) -> Result<PathBuf, String> {
        let path = self.inside(given)?;
        if path.as_os_str().is_empty() {
            return Err(format!("`{given}` is the workspace itself, not a file"));
        }
        self.allowed(given, &path, access)?;
        // A link inside the workspace may lead to a forbidden place inside the workspace.
        if let Some(real) = self.real(&path)
            && real != path
        {
            self.allowed(given, &real, access)?;
        }
        Ok(path)
    }

    /// The path of a folder, relative to the root; where none is given, the session's own.
    pub(crate) fn folder(&self, given: Option<&str>) -> Result<PathBuf, String> {
        match given {
            None => Ok(self.cwd.to_owned()),
            Some(given) => {
                let path = self.inside(given)?;
                self.allowed(given, &path, Access::Read)?;
                Ok(path)
            }
        }
    }

    fn inside(&self, given: &str) -> Result<PathBuf, String> {
        let outside = || {
            format!("`{given}` is outside the workspace; paths are relative to it and contain no `..`")
        };
        let given = Path::new(given);
        let mut path = match given.is_absolute() {
            true => PathBuf::new(),
            false => self.cwd.to_owned(),
        };
        let relative = match given.is_absolute() {
            true => given.strip_prefix(self.root).map_err(|_| outside())?,
            false => given,
        };
        for component in relative.components() {
            match component {
                Component::Normal(name) => path.push(name),
                Component::CurDir => {}
                _ => return Err(outside()),
            }
        }
        Ok(path)
    }

    fn allowed(&self, given: &str, path: &Path, access: Access) -> Result<(), String> {
        let text = path.to_string_lossy().replace('\\', "/");
        let is = |name: &str| path.components().any(|part| part.as_os_str().eq_ignore_ascii_case(name));
        if is(".git") {
            return Err(format!("`{given}` is git's own; use `exec` with git to look at history"));
        }
        if is(".ralph") && text != PROGRESS {
            return Err(format!("`{given}` belongs to the engine; of `.ralph` only `{PROGRESS}` is yours"));
        }
        if access == Access::Write && covers(self.protected, &text) {
            return Err(format!(
                "`{given}` is protected and must stay as it is; solve the task without changing it"
            ));
        }
        Ok(())
    }

    /// Where the path really leads, relative to the root, as far as it exists and can be seen from here.
    fn real(&self, path: &Path) -> Option<PathBuf> {
        let root = self.root.canonicalize().ok()?;
        let full = root.join(path);
        let existing = full.ancestors().find(|ancestor| ancestor.symlink_metadata().is_ok())?;
        let rest = full.strip_prefix(existing).ok()?;
        let real = existing.canonicalize().ok()?.join(rest);
        // A link that leads out is the sandbox's to refuse.
        real.strip_prefix(&root).ok().map(Path::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_places_of_the_workspace_pass() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join(".ralph/runs")).unwrap();
        std::os::unix::fs::symlink(".ralph/runs", root.join("door")).unwrap();
        std::os::unix::fs::symlink("tests", root.join("other")).unwrap();
        std::fs::create_dir(root.join("tests")).unwrap();
        let protected = ["tests/**".to_owned()];
        let place = Place { root: &root, cwd: Path::new(""), protected: &protected };
        let absolute = root.join("src/a.rs");
        for good in ["a.txt", "./src/a.rs", absolute.to_str().unwrap(), ".ralph/progress.md", "new/folder/x"] {
            assert!(place.file(good, Access::Write).is_ok(), "{good}");
        }
        for bad in
            ["/etc/passwd", "../x", "a/../../x", ".git/config", "sub/.GIT/x", ".ralph/notes.md", "door/x", "", "."]
        {
            assert!(place.file(bad, Access::Read).is_err(), "{bad}");
        }
        assert!(place.file("tests/a.rs", Access::Read).is_ok());
        for protected in ["tests/a.rs", "other/a.rs"] {
            assert!(place.file(protected, Access::Write).unwrap_err().contains("protected"), "{protected}");
        }
        let below = Place { cwd: Path::new("web"), ..place };
        assert_eq!(below.file("a.txt", Access::Read).unwrap(), Path::new("web/a.txt"));
        assert_eq!(below.folder(None).unwrap(), Path::new("web"));
    }
}
