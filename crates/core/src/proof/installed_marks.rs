//! Whether the dependencies in the user's folder are the original ones. A run without a sandbox could change
//! them.

use ralph_loop_domain::repo::installed::InstalledFolder;
use ralph_loop_protocol::id::Digest;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// File limit per folder.
const FILES_MAX: usize = 400_000;
/// Runtime caches in `node_modules`, and compiled Python.
const CACHES: &[&str] = &["__pycache__", ".cache", ".vite", ".vite-temp", ".vitest"];

/// Who can write to the folders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    /// Only the user.
    User,
    /// Sessions of the run as well.
    Sessions,
}

/// Fingerprints of folders by name.
pub(crate) fn marks(folders: &[InstalledFolder], writers: Writers) -> BTreeMap<String, String> {
    folders.iter().map(|folder| (name(folder), mark(&folder.from, writers))).collect()
}

/// The name of a folder's fingerprint, distinct from any program's.
pub(crate) fn name(folder: &InstalledFolder) -> String {
    format!("{}/", folder.at)
}

/// Digest of every file's path, size and times. Hashing the content would take as long as a test run.
fn mark(top: &Path, writers: Writers) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(top.join(&folder)).into_iter().flatten().flatten() {
            let name = entry.file_name();
            // If sessions can write here, compiled files are read from elsewhere.
            let is_cache = CACHES.iter().any(|cache| name == *cache);
            if is_cache && (writers == Writers::User || name == "__pycache__") {
                continue;
            }
            let path = folder.join(name);
            let Ok(facts) = std::fs::symlink_metadata(top.join(&path)) else { continue };
            if facts.is_dir() {
                open.push(path);
                continue;
            }
            // Size and time reveal a change unless they were manipulated.
            let hidden =
                if writers == Writers::Sessions { (facts.ctime(), facts.ctime_nsec()) } else { (0, 0) };
            lines.push(format!(
                "{} {} {} {} {hidden:?}",
                path.display(),
                facts.len(),
                facts.mtime(),
                facts.mtime_nsec()
            ));
        }
        if lines.len() > FILES_MAX {
            break;
        }
    }
    lines.sort_unstable();
    Digest::of(lines.join("\n").as_bytes()).short().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_noticed_and_a_cache_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("x/index.js", "1");
        let marks = || [Writers::User, Writers::Sessions].map(|writers| mark(folder.path(), writers));
        let before = marks();
        write("lib/__pycache__/a.pyc", "1");
        assert_eq!(marks(), before);
        write(".vite/results.json", "1");
        assert_eq!(marks()[0], before[0], "the user runs tests while the run works");
        assert_ne!(marks()[1], before[1], "a session could have written it");
        write("x/index.js", "22");
        assert_ne!(marks()[0], before[0]);
    }
}
