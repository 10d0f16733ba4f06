//! Finds dependencies installed in a user's tree that git doesn't hold, by the rule of
//! [`ralph_loop_domain::repo::installed`].

use crate::error::Result;
use crate::repo::Repo;
use ralph_loop_domain::repo::installed::{ENVIRONMENT, InstalledFolder, usage};
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const FOLDERS_MAX: usize = 50;
const NAMES_MAX: usize = 50;

/// The folders of a repo in which dependencies are installed, ignored or not.
pub fn installed_folders(repo: &Repo) -> Result<Vec<InstalledFolder>> {
    let args = ["ls-files", "-z", "--others", "--directory"];
    let output = repo.git().call(args).run()?;
    let Ok(top) = SafeDir::open(&repo.top) else { return Ok(Vec::new()) };
    let paths = output.stdout.split(|b| *b == 0).filter_map(|path| path.strip_suffix(b"/"));
    let paths = paths.filter_map(|path| std::str::from_utf8(path).ok());
    let found = paths.filter_map(|path| {
        let usage = usage_of(&top, Path::new(path))?;
        let environments = environments(&top, Path::new(path));
        Some(InstalledFolder { at: path.to_owned(), from: repo.top.join(path), usage, environments })
    });
    Ok(found.take(FOLDERS_MAX).collect())
}

fn usage_of(top: &SafeDir, path: &Path) -> Option<ralph_loop_domain::repo::installed::InstalledUse> {
    let is_file = |folder: &Path, name: &str| top.is_file(folder.join(name), Links::Inside);
    let above = |name: &str| path.ancestors().skip(1).any(|folder| is_file(folder, name));
    usage(path.to_str()?, |name| is_file(path, name), above)
}

/// The virtual environments in a folder: the folder itself, or those that a tool keeps in it.
fn environments(top: &SafeDir, path: &Path) -> Vec<PathBuf> {
    let inner = top.entries(path, NAMES_MAX).unwrap_or_default().into_iter();
    let inner = inner.filter(|entry| entry.kind == Kind::Folder).map(|entry| path.join(entry.name));
    let all = std::iter::once(path.to_owned()).chain(inner);
    all.filter(|folder| top.is_file(folder.join(ENVIRONMENT), Links::Inside))
        .map(|folder| top.path().join(folder))
        .collect()
}

/// Recognizes files of such folders; remembers the folders it has checked.
pub(crate) struct InstalledPaths<'a> {
    top: &'a Path,
    known: HashMap<Vec<u8>, bool>,
}

impl<'a> InstalledPaths<'a> {
    pub(crate) fn new(top: &'a Path) -> Self {
        Self { top, known: HashMap::new() }
    }

    pub(crate) fn has(&mut self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let (top, known) = (self.top, &mut self.known);
        slashes.into_iter().any(|at| {
            let folder = &path[..at];
            if let Some(known) = known.get(folder) {
                return *known;
            }
            let below = Path::new(OsStr::from_bytes(folder));
            let is = SafeDir::open(top).is_ok_and(|top| usage_of(&top, below).is_some());
            known.insert(folder.to_owned(), is);
            is
        })
    }
}
