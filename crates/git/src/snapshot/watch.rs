//! Detects without a process whether anything that git would add has changed: one `stat` per known file and folder.
//!
//! A stat can't show a change within the same clock tick as the snapshot. Such *fresh* files and folders also keep a
//! hash of their content, which is compared until the file system's clock has moved on. That clock is read from a
//! file of ours, so that network file systems are judged by their own time.

use crate::error::{Error, Result};
use crate::objects::index::Stat;
use crate::objects::oid::{ObjectFormat, Oid};
use crate::repo::Repo;
use nix::fcntl::AtFlags;
use nix::sys::stat::{FileStat, fstatat};
use ralph_loop_safe_fs::{Kind, SafeDir};
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions};
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Larger fresh files aren't hashed; the next check goes through git instead.
const FRESH_MAX: u64 = 4 * 1024 * 1024;

/// The file that shows the clock of the repo's file system: in the run's folder, if that is on the same one.
pub(crate) fn clock_of(repo: &Repo, folder: &Path) -> PathBuf {
    let disk = |path: &Path| fs::metadata(path).ok().map(|meta| meta.dev());
    let same = disk(folder).is_some() && disk(folder) == disk(&repo.top);
    let place = if same { folder.to_owned() } else { repo.git_dir.join("ralph") };
    place.join("clock")
}

pub(crate) type FileTime = (u32, u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatTrust {
    Settled,
    /// Changed in the snapshot's own tick: compare this hash as well.
    Fresh(Oid),
    /// The same, but not hashed.
    Unknown,
}

#[derive(Debug, Clone)]
pub(crate) struct WatchedFile {
    pub(crate) path: CString,
    pub(crate) stat: Stat,
    pub(crate) trust: StatTrust,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchedDir {
    pub(crate) stat: Stat,
    pub(crate) trust: StatTrust,
    /// Hash of its names: replacing a file by one of the same name only changes the stat.
    pub(crate) names: Oid,
}

#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Known files that changed, with their present stat and full size; `None` if deleted.
    pub(crate) files: HashMap<Vec<u8>, Option<(Stat, u64)>>,
    pub(crate) dirs: HashMap<Vec<u8>, Option<Stat>>,
    /// An ignore rule outside the known files, or a nested repo, changed.
    pub(crate) other: bool,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.dirs.is_empty() && !self.other
    }
    pub(crate) fn touches_rules(&self) -> bool {
        self.other || self.files.keys().any(|path| path.ends_with(b".gitignore"))
    }
}

#[derive(Debug)]
pub(crate) struct WatchedFiles {
    root: File,
    pub(crate) top: PathBuf,
    clock: File,
    pub(crate) files: Vec<WatchedFile>,
    /// Relative to the top folder, which is the empty path.
    pub(crate) dirs: BTreeMap<Vec<u8>, WatchedDir>,
    /// Files that configure git without being files of the tree.
    pub(crate) others: BTreeMap<PathBuf, Option<Stat>>,
}

impl WatchedFiles {
    pub(crate) fn open(top: &Path, clock: &Path) -> Result<Self> {
        let root = File::open(top).map_err(|e| Error::file("open", top, e))?;
        if let Some(folder) = clock.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
        }
        let clock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(clock)
            .map_err(|e| Error::file("open", clock, e))?;
        Ok(Self {
            root,
            top: top.to_owned(),
            clock,
            files: Vec::new(),
            dirs: BTreeMap::new(),
            others: BTreeMap::new(),
        })
    }

    /// The file system's time now. Later changes have this ctime or a later one.
    pub(crate) fn now(&self) -> Result<FileTime> {
        now(&self.clock)
    }

    pub(crate) fn scan(&mut self) -> Result<Changes> {
        let mut changes = Changes::default();
        let fresh = |trust: &StatTrust| *trust != StatTrust::Settled;
        let any_fresh =
            self.files.iter().any(|f| fresh(&f.trust)) || self.dirs.values().any(|d| fresh(&d.trust));
        // Read before the hashes: what happened before this time can no longer change unseen.
        let now = if any_fresh { Some(self.now()?) } else { None };
        for (path, dir) in &mut self.dirs {
            let stat = stat_at(&self.root, if path.is_empty() { b"." } else { path }).map(|s| to_stat(&s));
            if stat == Some(dir.stat) {
                if !still(&mut dir.trust, dir.stat, now, || names_hash(&self.top, path)) {
                    changes.dirs.insert(path.clone(), stat);
                }
            } else if stat.is_none() || !same_names(&self.root, &self.clock, &self.top, path, dir)? {
                changes.dirs.insert(path.clone(), stat);
            }
        }
        for file in &mut self.files {
            let found = fstatat(&self.root, file.path.as_c_str(), AtFlags::AT_SYMLINK_NOFOLLOW).ok();
            let stat = found.as_ref().map(to_stat);
            if stat != Some(file.stat)
                || !still(&mut file.trust, file.stat, now, || content_hash(&self.top, file.path.as_bytes()))
            {
                let stat = stat.zip(found.map(|s| s.st_size as u64));
                changes.files.insert(file.path.as_bytes().to_owned(), stat);
            }
        }
        changes.other = self.others.iter().any(|(path, stat)| stat_of(path) != *stat);
        Ok(changes)
    }

    /// How far to trust a stat if the snapshot began at `began`.
    pub(crate) fn trust(
        &self,
        stat: &Stat,
        began: FileTime,
        hash: impl FnOnce() -> Option<Oid>,
    ) -> StatTrust {
        match stat.ctime < began {
            true => StatTrust::Settled,
            false => hash().map_or(StatTrust::Unknown, StatTrust::Fresh),
        }
    }

    pub(crate) fn stat(&self, path: &[u8]) -> Option<Stat> {
        stat_at(&self.root, if path.is_empty() { b"." } else { path }).map(|s| to_stat(&s))
    }

    pub(crate) fn hidden_changes<'a>(&self, changes: &'a Changes) -> impl Iterator<Item = &'a [u8]> {
        changes.files.iter().filter_map(|(path, now)| {
            let at = self.files.binary_search_by(|file| file.path.as_bytes().cmp(path)).ok()?;
            let before = &self.files.get(at)?.stat;
            now.is_some_and(|(now, _)| now.hides_from_git(before)).then_some(path.as_slice())
        })
    }

    pub(crate) fn size(&self, path: &[u8]) -> Option<u64> {
        stat_at(&self.root, path).map(|s| s.st_size as u64)
    }
}

fn now(clock: &File) -> Result<FileTime> {
    let read = || {
        clock.write_all_at(b".", 0)?;
        clock.metadata()
    };
    let meta = read().map_err(|e| Error::file("touch", Path::new("the run's clock file"), e))?;
    Ok((meta.ctime() as u32, meta.ctime_nsec() as u32))
}

/// Whether a folder with another stat still has the same names; then updates its stat.
fn same_names(root: &File, clock: &File, top: &Path, path: &[u8], dir: &mut WatchedDir) -> Result<bool> {
    let before = now(clock)?;
    let Some(stat) = stat_at(root, if path.is_empty() { b"." } else { path }).map(|s| to_stat(&s)) else {
        return Ok(false);
    };
    if names_hash(top, path) != Some(dir.names) {
        return Ok(false);
    }
    let trust = if stat.ctime < before { StatTrust::Settled } else { StatTrust::Fresh(dir.names) };
    *dir = WatchedDir { stat, trust, names: dir.names };
    Ok(true)
}

/// Whether something with an unchanged stat is unchanged, and whether the stat alone is enough from now on.
fn still(
    trust: &mut StatTrust,
    stat: Stat,
    now: Option<FileTime>,
    hash: impl FnOnce() -> Option<Oid>,
) -> bool {
    match *trust {
        StatTrust::Settled => true,
        StatTrust::Unknown => false,
        StatTrust::Fresh(known) => {
            let same = hash() == Some(known);
            if same && now.is_some_and(|now| stat.ctime < now) {
                *trust = StatTrust::Settled;
            }
            same
        }
    }
}

fn stat_at(root: &File, path: &[u8]) -> Option<FileStat> {
    fstatat(root, OsStr::from_bytes(path), AtFlags::AT_SYMLINK_NOFOLLOW).ok()
}

fn to_stat(stat: &FileStat) -> Stat {
    Stat {
        mtime: (stat.st_mtime as u32, stat.st_mtime_nsec as u32),
        ctime: (stat.st_ctime as u32, stat.st_ctime_nsec as u32),
        ino: stat.st_ino as u32,
        size: stat.st_size as u32,
    }
}

pub(crate) fn stat_of(path: &Path) -> Option<Stat> {
    fs::symlink_metadata(path).ok().map(|meta| Stat::from(&meta))
}

pub(crate) fn content_hash(top: &Path, path: &[u8]) -> Option<Oid> {
    let full = top.join(OsStr::from_bytes(path));
    let meta = fs::symlink_metadata(&full).ok()?;
    if meta.is_symlink() {
        return Some(ObjectFormat::Sha1.id_of("link", fs::read_link(&full).ok()?.as_os_str().as_bytes()));
    }
    if meta.len() > FRESH_MAX || !meta.is_file() {
        return None;
    }
    // A pipe may have replaced it: don't block.
    let mut bytes = Vec::new();
    ralph_loop_safe_fs::open_plain(&full).ok()?.take(FRESH_MAX + 1).read_to_end(&mut bytes).ok()?;
    Some(ObjectFormat::Sha1.id_of("file", &bytes))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum NameKind {
    File,
    Folder,
    Link,
    Special,
}

pub(crate) fn list(top: &Path, dir: &[u8]) -> Option<Vec<(Vec<u8>, NameKind)>> {
    // A folder that has become a link leads out of the tree, so its content doesn't count. The kernel resolves the
    // path at once: checking each folder takes minutes if an agent has nested a thousand.
    let dir = if dir.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(dir)) };
    let found = SafeDir::open(top).ok()?.entries(dir, usize::MAX).ok()?;
    let names = found.into_iter().map(|entry| {
        let kind = match entry.kind {
            Kind::Folder => NameKind::Folder,
            Kind::File => NameKind::File,
            Kind::Link => NameKind::Link,
            Kind::Special => NameKind::Special,
        };
        (entry.name.into_vec(), kind)
    });
    Some(names.collect())
}

fn names_hash(top: &Path, dir: &[u8]) -> Option<Oid> {
    list(top, dir).map(|names| hash_names(&names))
}

pub(crate) fn hash_names(names: &[(Vec<u8>, NameKind)]) -> Oid {
    let mut text = Vec::new();
    for (name, kind) in names {
        text.extend_from_slice(name);
        text.extend_from_slice(match kind {
            NameKind::File => b"\0",
            NameKind::Folder => b"/\0",
            NameKind::Link => b"/@\0",
            NameKind::Special => b"/?\0",
        });
    }
    ObjectFormat::Sha1.id_of("names", &text)
}
