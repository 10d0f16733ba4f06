//! The user's files while a result is laid over them: what would be in the way is known before, and whatever fails, all is as it
//! was.

use crate::command::Git;
use crate::entry::{MODE_GITLINK, on_disk};
use crate::error::{Error, Result};
use crate::repo::Repo;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// More names than any folder has that is replaced by a file.
const NAMES_MAX: usize = 100_000;
/// Deeper than any tree that git could have made.
const DEPTH_MAX: usize = 512;

/// One path of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ChangedPath {
    path: PathBuf,
    /// Whether it is gone afterwards.
    gone: bool,
    /// Whether it is a repo within the tree, whose folder is not touched.
    nested: bool,
}

/// The paths that differ between two trees.
#[derive(Debug)]
pub(crate) struct ChangedPaths(Vec<ChangedPath>);

impl ChangedPaths {
    pub(crate) fn between(git: &Git, from: &str, to: &str) -> Result<Self> {
        let raw = git.call(["diff-tree", "-r", "-z", "--no-renames", "--full-index", from, to]).run()?.stdout;
        let mut fields = raw.split(|b| *b == 0);
        let mut all = Vec::new();
        // `:100644 100755 <old id> <new id> M`, then the path.
        while let (Some(head), Some(path)) = (fields.next().filter(|head| !head.is_empty()), fields.next()) {
            let mode = head.split(|b| *b == b' ').nth(1).and_then(|mode| std::str::from_utf8(mode).ok());
            let mode = mode.and_then(|mode| u32::from_str_radix(mode, 8).ok()).unwrap_or_default();
            all.push(ChangedPath {
                path: PathBuf::from(OsStr::from_bytes(path)),
                gone: mode == 0,
                nested: mode == MODE_GITLINK,
            });
        }
        Ok(Self(all))
    }

    /// All of them but repos within the tree, each ended by a NUL, as git reads lists of paths.
    pub(crate) fn listed(&self) -> Vec<u8> {
        let files = self.0.iter().filter(|change| !change.nested);
        files.flat_map(|change| [change.path.as_os_str().as_bytes(), b"\0"].concat()).collect()
    }

    /// Their names.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(|change| change.path.display().to_string()).collect()
    }

    /// The same without repos within the tree.
    pub(crate) fn file_names(&self) -> Vec<String> {
        let files = self.0.iter().filter(|change| !change.nested);
        files.map(|change| change.path.display().to_string()).collect()
    }

    /// What stands in the user's folder where the result has something else, and the run did not know of: a file takes the place
    /// of a folder that holds more than the run has removed, or a folder that of a file.
    pub(crate) fn in_the_way(&self, top: &Path) -> Vec<PathBuf> {
        let removed: BTreeSet<&Path> =
            self.0.iter().filter(|change| change.gone).map(|change| change.path.as_path()).collect();
        let is_folder = |path: &Path| {
            std::fs::symlink_metadata(on_disk(top, path.as_os_str().as_bytes())).map(|meta| meta.is_dir())
        };
        let mut found = BTreeSet::new();
        for change in self.0.iter().filter(|change| !change.gone && !change.nested) {
            if is_folder(&change.path).unwrap_or(false) {
                unknown_below(top, &change.path, &removed, DEPTH_MAX, &mut found);
            }
            for folder in change.path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
                if is_folder(folder).is_ok_and(|folder| !folder) && !removed.contains(folder) {
                    found.insert(folder.to_owned());
                }
            }
        }
        found.into_iter().collect()
    }
}

/// Adds everything below a folder that the run has not removed. A folder with nothing of the run's in it counts, too: no file can
/// take its place.
fn unknown_below(
    top: &Path,
    folder: &Path,
    removed: &BTreeSet<&Path>,
    depth: usize,
    found: &mut BTreeSet<PathBuf>,
) {
    let listed = SafeDir::open(top).and_then(|dir| dir.entries(folder, NAMES_MAX));
    let (Ok(entries), true) = (listed, depth > 0) else {
        found.insert(folder.to_owned());
        return;
    };
    if entries.is_empty() {
        found.insert(folder.to_owned());
    }
    for entry in entries {
        let path = folder.join(&entry.name);
        match entry.kind {
            Kind::Folder => unknown_below(top, &path, removed, depth - 1, found),
            _ if removed.contains(path.as_path()) => {}
            _ => drop(found.insert(path)),
        }
    }
}

/// What stood at a path.
#[derive(Debug)]
enum Before {
    Nothing,
    Folder,
    File { bytes: Vec<u8>, permissions: u32 },
    Link(PathBuf),
}

/// The user's files and index as they were before a change.
#[derive(Debug)]
pub(crate) struct KeptFiles {
    top: PathBuf,
    files: Vec<(PathBuf, Before)>,
    index: (PathBuf, Option<Vec<u8>>),
}

impl KeptFiles {
    pub(crate) fn keep(repo: &Repo, changes: &ChangedPaths) -> Result<Self> {
        let dir = SafeDir::open(&repo.top).map_err(|e| Error::file("open", &repo.top, e))?;
        let mut files = Vec::new();
        for change in changes.0.iter().filter(|change| !change.nested) {
            let before =
                look(&dir, &change.path).map_err(|e| Error::file("read", &repo.top.join(&change.path), e))?;
            files.push((change.path.clone(), before));
        }
        let index = repo.git_dir.join("index");
        let bytes = match std::fs::read(&index) {
            Ok(bytes) => Some(bytes),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(Error::file("read", &index, e)),
        };
        Ok(Self { top: repo.top.clone(), files, index: (index, bytes) })
    }

    /// Makes everything as it was; an error names what could not be.
    pub(crate) fn put_back(&self) -> Result<()> {
        let dir = SafeDir::open(&self.top).map_err(|e| Error::file("open", &self.top, e))?;
        let mut failed = None;
        let mut note = |path: &Path, done: std::io::Result<()>| {
            if let Err(error) = done {
                failed.get_or_insert_with(|| Error::file("put back", &self.top.join(path), error));
            }
        };
        // First what is new goes, so that folders can stand where it is.
        for (path, before) in &self.files {
            let now = dir.facts(path).map(|facts| facts.kind);
            match (before, now) {
                (Before::Nothing, Ok(kind)) if kind != Kind::Folder => {
                    note(path, dir.remove(path));
                    self.remove_empty_folders_of(path);
                }
                (Before::Folder, Ok(kind)) if kind != Kind::Folder => note(path, dir.remove(path)),
                _ => {}
            }
        }
        for (path, before) in &self.files {
            match before {
                Before::Nothing => {}
                Before::Folder => note(path, dir.create_folder(path).map(drop)),
                Before::Link(target) => note(path, dir.link(path, target)),
                Before::File { bytes, permissions } => {
                    if !is_same(&dir, path, bytes) {
                        note(path, write_back(&dir, &self.top, path, bytes, *permissions));
                    }
                }
            }
        }
        if let (path, Some(bytes)) = &self.index
            && std::fs::read(path).ok().as_ref() != Some(bytes)
        {
            crate::store::write_atomically(path, bytes)?;
        }
        failed.map_or(Ok(()), Err)
    }

    /// Folders that were made for a file that is gone again.
    fn remove_empty_folders_of(&self, path: &Path) {
        let known = |folder: &Path| {
            self.files.iter().any(|(path, before)| {
                !matches!(before, Before::Nothing) && (path == folder || path.starts_with(folder))
            })
        };
        for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
            // Only where it is empty.
            if known(folder) || std::fs::remove_dir(self.top.join(folder)).is_err() {
                return;
            }
        }
    }
}

fn look(dir: &SafeDir, path: &Path) -> std::io::Result<Before> {
    let facts = match dir.facts(path) {
        Ok(facts) => facts,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Before::Nothing);
        }
        Err(e) => return Err(e),
    };
    Ok(match facts.kind {
        Kind::Folder => Before::Folder,
        Kind::Link => Before::Link(dir.read_link(path)?),
        Kind::Special => Before::Nothing,
        Kind::File => {
            let file = dir.open_file(path, Links::Refused)?;
            let permissions = file.metadata()?.permissions().mode() & 0o777;
            Before::File { bytes: dir.read(path, Links::Refused, u64::MAX)?, permissions }
        }
    })
}

fn is_same(dir: &SafeDir, path: &Path, bytes: &[u8]) -> bool {
    let length = dir.facts(path).map(|facts| (facts.kind, facts.length));
    length.is_ok_and(|(kind, length)| kind == Kind::File && length == bytes.len() as u64)
        && dir.read(path, Links::Refused, u64::MAX).is_ok_and(|now| now == bytes)
}

fn write_back(dir: &SafeDir, top: &Path, path: &Path, bytes: &[u8], permissions: u32) -> std::io::Result<()> {
    dir.write_with(path, bytes, permissions)?;
    let permissions = std::fs::Permissions::from_mode(permissions);
    dir.open_file(path, Links::Refused)?.set_permissions(permissions).or_else(|error| {
        // One that nobody may read cannot be opened either; it has the right permissions less the mask's.
        if top.join(path).symlink_metadata().is_ok() { Ok(()) } else { Err(error) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, gone: bool) -> ChangedPath {
        ChangedPath { path: path.into(), gone, nested: false }
    }

    #[test]
    fn whatever_the_run_did_not_know_is_in_the_way() {
        let top = tempfile::tempdir().unwrap();
        for path in ["known/1", "more/1", "more/mine.log", "nested/empty/x", "nested/1"] {
            std::fs::create_dir_all(top.path().join(path).parent().unwrap()).unwrap();
            std::fs::write(top.path().join(path), "x").unwrap();
        }
        std::fs::remove_file(top.path().join("nested/empty/x")).unwrap();
        std::fs::write(top.path().join("plain"), "x").unwrap();
        let changes = ChangedPaths(vec![
            change("known", false),
            change("known/1", true),
            change("more", false),
            change("more/1", true),
            change("nested", false),
            change("nested/1", true),
            change("plain/below", false),
            change("new/file", false),
        ]);
        let found = changes.in_the_way(top.path());
        assert_eq!(found, ["more/mine.log", "nested/empty", "plain"].map(PathBuf::from));
    }

    #[test]
    fn after_a_failure_all_is_as_it_was() {
        let temp = tempfile::tempdir().unwrap();
        let top = temp.path();
        std::fs::create_dir_all(top.join("d")).unwrap();
        for (path, text) in [("a", "mine"), ("d/1", "one"), ("gone", "x")] {
            std::fs::write(top.join(path), text).unwrap();
        }
        std::os::unix::fs::symlink("a", top.join("link")).unwrap();
        let dir = SafeDir::open(top).unwrap();
        let paths = ["a", "d", "d/1", "gone", "link", "new/deep/file"];
        let files = paths.map(|path| (PathBuf::from(path), look(&dir, Path::new(path)).unwrap())).into();
        let kept = KeptFiles { top: top.to_owned(), files, index: (top.join("index"), None) };
        std::fs::write(top.join("a"), "theirs").unwrap();
        std::fs::remove_dir_all(top.join("d")).unwrap();
        std::fs::write(top.join("d"), "file").unwrap();
        std::fs::remove_file(top.join("gone")).unwrap();
        std::fs::remove_file(top.join("link")).unwrap();
        std::fs::create_dir_all(top.join("new/deep")).unwrap();
        std::fs::write(top.join("new/deep/file"), "x").unwrap();
        kept.put_back().unwrap();
        for (path, text) in [("a", "mine"), ("d/1", "one"), ("gone", "x")] {
            assert_eq!(std::fs::read_to_string(top.join(path)).unwrap(), text, "{path}");
        }
        assert_eq!(std::fs::read_link(top.join("link")).unwrap(), Path::new("a"));
        assert!(!top.join("new").exists());
    }
}
