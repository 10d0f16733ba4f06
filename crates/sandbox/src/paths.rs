//! Checks paths given to a sandbox.

use ralph_loop_domain::ports::SandboxError;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path};

/// The components of a relative path; refuses absolute paths, `..` and git's folder.
pub(crate) fn names(path: &Path) -> Result<Vec<OsString>, SandboxError> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) if !is_git(name) => names.push(name.to_owned()),
            Component::CurDir => {}
            _ => return Err(SandboxError::OutsideWorkspace(path.to_owned())),
        }
    }
    Ok(names)
}

/// Case-insensitive, as some file systems are.
pub(crate) fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_pass() {
        for bad in ["/etc/passwd", "..", "a/../b", "a/..", ".git", ".git/config", "sub/.GIT/x"] {
            assert!(matches!(names(Path::new(bad)), Err(SandboxError::OutsideWorkspace(_))), "{bad}");
        }
        for good in ["", ".", "a", "./a/b", ".github/x", ".gitignore", "a//b"] {
            assert!(names(Path::new(good)).is_ok(), "{good}");
        }
    }
}
