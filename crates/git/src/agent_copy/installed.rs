//! Dependencies that are installed in a user's tree and that git does not hold, found by the rule of
//! [`ralph_loop_domain::installed`].

use crate::error::Result;
use crate::repo::Repo;
use ralph_loop_domain::installed::{ENVIRONMENT, InstalledFolder, usage};
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Folders that are taken.
const FOLDERS_MAX: usize = 50;
/// Names in one of them that may be environments.
const NAMES_MAX: usize = 50;

/// The folders of a repo in which dependencies are installed; those that git is not told to ignore, too.
pub fn installed_folders(repo: &Repo) -> Result<Vec<InstalledFolder>> {
    let args = ["ls-files", "-z", "--others", "--directory"];
    let output = repo.git().call(args).run()?;
    let Ok(top) = SafeDir::open(&repo.top) else { return Ok(Vec::new()) };
    let paths = output.stdout.split(|b| *b == 0).filter_map(|path| path.strip_suffix(b"/"));
    // A name that is no text is none of the known ones, and no command could name it.
    let paths = paths.filter_map(|path| std::str::from_utf8(path).ok());
    let found = paths.filter_map(|path| {
        let usage = usage_of(&top, Path::new(path))?;
        let environments = environments(&top, Path::new(path));
        Some(InstalledFolder { at: path.to_owned(), from: repo.top.join(path), usage, environments })
    });
    Ok(found.take(FOLDERS_MAX).collect())
}

fn usage_of(top: &SafeDir, path: &Path) -> Option<ralph_loop_domain::installed::InstalledUse> {
    let is_file = |folder: &Path, name: &str| top.is_file(folder.join(name), Links::Inside);
    let above = |name: &str| path.ancestors().skip(1).any(|folder| is_file(folder, name));
    usage(path.to_str()?, |name| is_file(path, name), above)
}

/// The virtual environments in a folder: itself, or those that a tool keeps in it.
fn environments(top: &SafeDir, path: &Path) -> Vec<PathBuf> {
    let inner = top.entries(path, NAMES_MAX).unwrap_or_default().into_iter();
    let inner = inner.filter(|entry| entry.kind == Kind::Folder).map(|entry| path.join(entry.name));
    let all = std::iter::once(path.to_owned()).chain(inner);
    all.filter(|folder| top.is_file(folder.join(ENVIRONMENT), Links::Inside))
        .map(|folder| top.path().join(folder))
        .collect()
}

/// Tells files of such folders from others, by the folders that it has looked at.
pub(crate) struct InstalledPaths<'a> {
    top: &'a Path,
    known: HashMap<Vec<u8>, bool>,
}

impl<'a> InstalledPaths<'a> {
    pub(crate) fn new(top: &'a Path) -> Self {
        Self { top, known: HashMap::new() }
    }

    /// Whether a file that git does not know lies in one.
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
