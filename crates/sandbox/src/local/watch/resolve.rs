//! Resolves names for a watched process: follows links as it would, and recognizes two names of one file.

use nix::unistd::Pid;
use std::collections::{HashMap, VecDeque};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// As many links as the kernel follows.
const LINKS_MAX: u32 = 40;
/// Most workspace files known by inode.
const FILES_MAX: usize = 200_000;

/// The path of `path` for `pid` without links, including the last component if `last` is set. Missing components
/// stay.
pub(super) fn resolved(pid: Pid, path: &Path, last: bool) -> PathBuf {
    let mut open: VecDeque<OsString> = parts(path).collect();
    let mut done = PathBuf::from("/");
    let mut links = 0;
    while let Some(part) = open.pop_front() {
        if part == ".." {
            done.pop();
            continue;
        }
        let next = done.join(&part);
        let follow = links < LINKS_MAX && (last || !open.is_empty());
        let Some(target) = follow.then(|| link_of(pid, &next)).flatten() else {
            done = next;
            continue;
        };
        links += 1;
        if target.is_absolute() {
            done = PathBuf::from("/");
        }
        for part in parts(&target).collect::<Vec<_>>().into_iter().rev() {
            open.push_front(part);
        }
    }
    done
}

fn parts(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(part) => Some(part.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

/// The target of a link for `pid`; `None` if `path` isn't a link.
fn link_of(pid: Pid, path: &Path) -> Option<PathBuf> {
    std::fs::read_link(as_seen_by(pid, path)).ok().filter(|target| {
        // `pipe:[1]`, `socket:[2]`, `file (deleted)` aren't paths.
        target.is_absolute() || !target.to_string_lossy().contains(":[")
    })
}

/// The same path for the watcher. `/proc/self` differs for each process.
fn as_seen_by(pid: Pid, path: &Path) -> PathBuf {
    for own in ["/proc/self", "/proc/thread-self"] {
        if let Ok(rest) = path.strip_prefix(own) {
            // The link itself leads to the process; what is below it is read there.
            return PathBuf::from(format!("/proc/{pid}")).join(rest);
        }
    }
    let below = path.strip_prefix("/").unwrap_or(path);
    PathBuf::from(format!("/proc/{pid}/root")).join(below)
}

/// The files of a workspace by inode.
#[derive(Debug, Default)]
pub(super) struct KnownFiles {
    by_number: HashMap<(u64, u64), PathBuf>,
}

impl KnownFiles {
    /// Collects the files that `pid` sees below `root`, before it does anything; skips folders named in `made`.
    pub(super) fn below(pid: Pid, root: &Path, made: &[&str]) -> Self {
        let mut known = Self::default();
        let top = as_seen_by(pid, root);
        let mut open = vec![top.clone()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && !made.iter().any(|made| entry.file_name() == *made) {
                    open.push(entry.path());
                } else if let Some(meta) = kind.is_file().then(|| entry.metadata().ok()).flatten() {
                    let path = entry.path();
                    let path =
                        path.strip_prefix(&top).map_or_else(|_| path.clone(), |below| root.join(below));
                    known.by_number.insert((meta.dev(), meta.ino()), path);
                }
            }
            if known.by_number.len() > FILES_MAX {
                break;
            }
        }
        known
    }

    /// The known name of the file that `path` is for `pid`, if any.
    pub(super) fn find(&self, pid: Pid, path: &Path) -> Option<&Path> {
        let meta = std::fs::symlink_metadata(as_seen_by(pid, path)).ok()?;
        self.by_number.get(&(meta.dev(), meta.ino())).map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_to_a_file_resolves_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        std::fs::create_dir(top.join("tests")).unwrap();
        std::fs::write(top.join("tests/t.py"), "").unwrap();
        std::os::unix::fs::symlink(".", top.join("here")).unwrap();
        std::os::unix::fs::symlink("tests/t.py", top.join("alias")).unwrap();
        let pid = nix::unistd::getpid();
        let known = KnownFiles::below(pid, &top, &[]);
        std::fs::hard_link(top.join("tests/t.py"), top.join("hard")).unwrap();
        let file = top.join("tests/t.py");
        assert_eq!(resolved(pid, &top.join("here/here/tests/t.py"), true), file);
        assert_eq!(resolved(pid, &top.join("alias"), true), file);
        assert_eq!(resolved(pid, &top.join("alias"), false), top.join("alias"));
        let through_proc = PathBuf::from("/proc/self/root").join(file.strip_prefix("/").unwrap());
        assert_eq!(resolved(pid, &through_proc, true), file);
        let here = nix::unistd::getcwd().unwrap();
        assert_eq!(resolved(pid, Path::new("/proc/self/cwd/x"), true), here.join("x"));
        assert_eq!(known.find(pid, &top.join("hard")), Some(file.as_path()));
        assert_eq!(resolved(pid, &top.join("here/none/x"), true), top.join("none/x"));
    }
}
