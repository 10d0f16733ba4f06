//! Checks paths given to a sandbox.

use ralph_loop_domain::ports::SandboxError;
use std::path::{Component, Path};

/// The absolute path inside, as text; refuses absolute paths, `..`, git's folder and names that aren't text.
pub(crate) fn inside(root: &Path, path: &Path) -> Result<String, SandboxError> {
    let outside = || SandboxError::OutsideWorkspace(path.to_owned());
    let mut whole = root.to_str().ok_or_else(outside)?.trim_end_matches('/').to_owned();
    for component in path.components() {
        match component {
            Component::Normal(name) if !name.eq_ignore_ascii_case(".git") => {
                whole.push('/');
                whole.push_str(name.to_str().ok_or_else(outside)?);
            }
            Component::CurDir => {}
            _ => return Err(outside()),
        }
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_paths_pass() {
        let root = Path::new("/w");
        for bad in ["/etc/passwd", "..", "a/../b", ".git", ".git/config", "sub/.GIT/x"] {
            assert!(matches!(inside(root, Path::new(bad)), Err(SandboxError::OutsideWorkspace(_))), "{bad}");
        }
        assert_eq!(inside(root, Path::new("./a//b")).unwrap(), "/w/a/b");
        assert_eq!(inside(root, Path::new("")).unwrap(), "/w");
    }
}
