//! Copies what git doesn't keep but an agent needs to build and test: ignored folders (`node_modules`, `target`,
//! `.venv`), files too large for a snapshot, files of nested repos. Bounded.

use crate::error::{Error, Result};
use crate::objects::index::CopyStat;
use crate::snapshot::entry::on_disk;
use ralph_loop_domain::secret_name::{FileSecrecy, file_secrecy, is_secret_folder};
use ralph_loop_safe_fs::{Copier, SafeDir};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

const FILES_MAX: usize = 200_000;
/// On file systems that share blocks between copies these bytes cost nothing, but none says so beforehand.
const BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
const KEY_WITHIN: u64 = 64 * 1024;

/// What was not copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Ignored files and folders, and untracked files that look like secrets.
    pub withheld: Vec<PathBuf>,
    pub too_much: Vec<PathBuf>,
}

#[derive(Debug)]
struct CopyItem {
    path: PathBuf,
    files: Vec<PathBuf>,
    bytes: u64,
    cut: bool,
}

pub(crate) fn copy(paths: &[Vec<u8>], from: &Path, to: &Path) -> Result<LeftOut> {
    let mut left = LeftOut::default();
    let mut items: Vec<CopyItem> = outermost(paths)
        .into_iter()
        .map(|path| {
            let mut item = CopyItem { path: path.clone(), files: Vec::new(), bytes: 0, cut: false };
            measure(from, &path, &mut item);
            item
        })
        .collect();
    items.sort_by(|a, b| (a.bytes, &a.path).cmp(&(b.bytes, &b.path)));
    let (mut files, mut bytes) = (0, 0);
    let mut wanted = Vec::new();
    for item in items {
        if item.cut || files + item.files.len() > FILES_MAX || bytes + item.bytes > BYTES_MAX {
            left.too_much.push(item.path);
            continue;
        }
        files += item.files.len();
        bytes += item.bytes;
        wanted.extend(item.files);
    }
    left.too_much.extend(copy_files(&wanted, from, to)?.lost);
    Ok(left)
}

/// The paths that aren't inside another of them: git lists a folder and its contents.
fn outermost(paths: &[Vec<u8>]) -> Vec<PathBuf> {
    let plain = |path: &Vec<u8>| PathBuf::from(OsStr::from_bytes(path.strip_suffix(b"/").unwrap_or(path)));
    let all: BTreeSet<PathBuf> = paths.iter().map(plain).collect();
    let inside = |path: &&PathBuf| path.ancestors().skip(1).any(|folder| all.contains(folder));
    all.iter().filter(|path| !inside(path)).cloned().collect()
}

/// Collects the files below `path` until there are too many.
fn measure(top: &Path, path: &Path, item: &mut CopyItem) {
    let full = top.join(path);
    let Ok(meta) = fs::symlink_metadata(&full) else { return };
    if item.cut || path.file_name().is_some_and(|name| name == ".git") {
        return;
    }
    if meta.is_dir() {
        for entry in fs::read_dir(&full).into_iter().flatten().flatten() {
            measure(top, &path.join(entry.file_name()), item);
        }
    } else if meta.is_symlink() || meta.is_file() {
        item.files.push(path.to_owned());
        item.bytes += meta.len();
        item.cut = item.files.len() > FILES_MAX || item.bytes > BYTES_MAX;
    }
}

/// Whether an untracked file that git doesn't ignore looks like a secret: its owner has probably forgotten to.
pub(crate) fn is_secret(top: &Path, path: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(path));
    looks_secret(&top.join(path), path) || path.ancestors().skip(1).any(is_secret_folder)
}

fn looks_secret(full: &Path, path: &Path) -> bool {
    let holds_key = || {
        let mut text = Vec::new();
        // A link may lead to a pipe; a plain open would block.
        let file = ralph_loop_safe_fs::open_plain(full).ok();
        let read = file.and_then(|file| file.take(KEY_WITHIN).read_to_end(&mut text).ok());
        read.is_none() || text.windows(11).any(|w| w == b"PRIVATE KEY")
    };
    match file_secrecy(path) {
        FileSecrecy::Open => false,
        FileSecrecy::MayHoldKey => holds_key(),
        FileSecrecy::Secret => true,
    }
}

pub(crate) type CopyStats = HashMap<Vec<u8>, CopyStat>;

#[derive(Debug, Default)]
pub(crate) struct CopiedFiles {
    pub(crate) stats: CopyStats,
    pub(crate) lost: Vec<PathBuf>,
}

/// Copies files with their times, so that builds don't see them as changed.
pub(crate) fn copy_files(paths: &[PathBuf], from: &Path, to: &Path) -> Result<CopiedFiles> {
    // Sorted, so that each folder is opened once.
    let mut sorted: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    sorted.sort_by(|a, b| folder_of(a).cmp(folder_of(b)));
    let workers = std::thread::available_parallelism().map_or(2, usize::from).min(8);
    let share = sorted.len().div_ceil(workers).max(1);
    let ends: Vec<Result<CopiedFiles>> = std::thread::scope(|scope| {
        let running: Vec<_> =
            sorted.chunks(share).map(|chunk| scope.spawn(|| copy_chunk(chunk, from, to))).collect();
        running
            .into_iter()
            .map(|worker| {
                worker.join().unwrap_or_else(|_| Err(Error::unreadable("the files", "a copier ended")))
            })
            .collect()
    });
    let mut all = CopiedFiles::default();
    for end in ends {
        let CopiedFiles { stats, lost } = end?;
        all.stats.extend(stats);
        all.lost.extend(lost);
    }
    Ok(all)
}

fn folder_of(path: &Path) -> &[u8] {
    let bytes = path.as_os_str().as_bytes();
    bytes.iter().rposition(|byte| *byte == b'/').map_or(&[], |at| &bytes[..at])
}

fn copy_chunk(paths: &[&Path], from: &Path, to: &Path) -> Result<CopiedFiles> {
    let top = |path: &Path| SafeDir::open(path).map_err(|e| Error::file("open", path, e));
    let (from, to) = (top(from)?, top(to)?);
    let mut done = CopiedFiles::default();
    let mut copier = Copier::default();
    let mut folders: Option<(&[u8], Option<SafeDir>, SafeDir)> = None;
    for path in paths {
        let folder = folder_of(path);
        if folders.as_ref().is_none_or(|(open, ..)| *open != folder) {
            let folder_path = Path::new(OsStr::from_bytes(folder));
            let made = make_folder(&to, folder_path)
                .map_err(|e| Error::file("create", &to.path().join(folder_path), e))?;
            folders = Some((folder, open_folder(&from, folder_path).ok(), made));
        }
        let (Some((_, Some(source), target)), Some(name)) = (&folders, path.file_name()) else {
            done.lost.push(path.to_path_buf());
            continue;
        };
        match copier.copy(name, source, target) {
            Ok(Some(file)) => {
                done.stats.insert(path.as_os_str().as_bytes().to_vec(), CopyStat::from(&file));
            }
            Ok(None) => {}
            // On a full disk, half a tree is worse than none.
            Err(e) if e.kind() == std::io::ErrorKind::StorageFull => {
                return Err(Error::file("copy", path, e));
            }
            Err(_) => done.lost.push(path.to_path_buf()),
        }
    }
    Ok(done)
}

fn open_folder(top: &SafeDir, path: &Path) -> std::io::Result<SafeDir> {
    if path.as_os_str().is_empty() { SafeDir::open(top.path()) } else { top.folder(path) }
}

fn make_folder(top: &SafeDir, path: &Path) -> std::io::Result<SafeDir> {
    // Most files are below a folder that an earlier file has created.
    match open_folder(top, path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => top.create_folder(path),
        done => done,
    }
}

pub(crate) fn exists(top: &Path, path: &[u8]) -> bool {
    fs::symlink_metadata(on_disk(top, path)).is_ok_and(|meta| !meta.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, FileTimes};

    #[test]
    fn folders_are_copied_with_their_times_and_without_git() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("node_modules/a/.git")).unwrap();
        fs::create_dir(&to).unwrap();
        for name in ["node_modules/a/index.js", "node_modules/a/.git/config", "other"] {
            fs::write(from.join(name), "1").unwrap();
        }
        let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
        File::open(from.join("node_modules/a/index.js"))
            .unwrap()
            .set_times(FileTimes::new().set_modified(old))
            .unwrap();
        let left = copy(&[b"node_modules/".to_vec()], &from, &to).unwrap();
        assert_eq!(left, LeftOut::default());
        assert_eq!(fs::metadata(to.join("node_modules/a/index.js")).unwrap().modified().unwrap(), old);
        assert!(!to.join("node_modules/a/.git").exists() && !to.join("other").exists());
    }
}
