//! Finds dependencies installed in a user's tree that git doesn't hold, by the rule of
//! [`ralph_loop_domain::repo::installed`].

use crate::error::Result;
use crate::repo::Repo;
use ralph_loop_domain::repo::installed::{CACHE_TAG, ENVIRONMENT, InstalledFolder, is_output, usage};
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

fn is_installed(top: &SafeDir, folder: &Path) -> bool {
    usage_of(top, folder).is_some()
}

/// Whether tools fill the folder and can fill it again: dependencies, build output, caches.
pub(crate) fn is_refillable(top: &SafeDir, folder: &Path) -> bool {
    folder.to_str().is_some_and(is_output)
        || top.is_file(folder.join(CACHE_TAG), Links::Refused)
        || is_installed(top, folder)
}

/// Recognizes files of such folders; remembers the folders it has checked.
pub(crate) struct KnownFolders<'a> {
    top: &'a Path,
    rule: fn(&SafeDir, &Path) -> bool,
    known: HashMap<Vec<u8>, bool>,
}

impl<'a> KnownFolders<'a> {
    pub(crate) fn new(top: &'a Path, rule: fn(&SafeDir, &Path) -> bool) -> Self {
        Self { top, rule, known: HashMap::new() }
    }

    pub(crate) fn of_installed(top: &'a Path) -> Self {
        Self::new(top, is_installed)
    }

    pub(crate) fn has(&mut self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let (top, rule, known) = (self.top, self.rule, &mut self.known);
        slashes.into_iter().any(|at| {
            let folder = &path[..at];
            if let Some(known) = known.get(folder) {
                return *known;
            }
            let below = Path::new(OsStr::from_bytes(folder));
            let is = SafeDir::open(top).is_ok_and(|top| rule(&top, below));
            known.insert(folder.to_owned(), is);
            is
        })
    }
}
