//! Refs: read and moved in-process with git's own lock files where the repo keeps them as files, through git otherwise.

use crate::command::Git;
use crate::error::{Error, Result};
use crate::index::Stat;
use crate::object::Identity;
use crate::repo::{RefFormat, Repo};
use crate::watch::stat_of;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The refs of a repo, as seen from one work tree.
#[derive(Debug, Clone)]
pub(crate) struct Refs {
    git: Git,
    common: PathBuf,
    git_dir: PathBuf,
    format: RefFormat,
}

/// Every ref with its value: an object id, or the name of the ref that it stands for. `HEAD` is one of them.
pub(crate) type RefMap = BTreeMap<String, String>;

/// What the ref files look like from outside, cheap to compare.
pub(crate) type Fingerprint = BTreeMap<PathBuf, (Stat, Option<Vec<u8>>)>;

impl Refs {
    pub(crate) fn new(repo: &Repo) -> Self {
        Self {
            git: repo.git(),
            common: repo.common_dir.clone(),
            git_dir: repo.git_dir.clone(),
            format: repo.ref_format,
        }
    }

    /// The object id (or `ref: name`) that a ref holds.
    pub(crate) fn read(&self, name: &str) -> Result<Option<String>> {
        if self.format == RefFormat::Other {
            let args = ["for-each-ref", "--format=%(refname) %(objectname)", name];
            let output = self.git.call(args).run()?.text();
            let found = output.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            return Ok(found.map(str::to_owned));
        }
        let path = self.common.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => return Ok(Some(text.trim_end().to_owned())),
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory
                ) => {}
            Err(e) => return Err(Error::file("read", &path, e)),
        }
        let packed = match fs::read(self.common.join("packed-refs")) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::file("read", &self.common.join("packed-refs"), e)),
        };
        let found = packed.split(|b| *b == b'\n').find_map(|line| {
            let (id, rest) = line.split_at_checked(line.iter().position(|b| *b == b' ')?)?;
            (&rest[1..] == name.as_bytes()).then(|| String::from_utf8_lossy(id).into_owned())
        });
        Ok(found)
    }

    /// Moves a ref from `expected` (`None`: it must not exist) to `new`. Anything else there is left as it is.
    pub(crate) fn update(&self, name: &str, new: &str, expected: Option<&str>) -> Result<()> {
        if self.format == RefFormat::Other {
            return self.update_by_git(name, new, expected);
        }
        let path = self.common.join(name);
        let lock = lock_path(&path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
        }
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&lock) {
            Ok(file) => file,
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                return Err(Error::RefLocked { name: name.to_owned(), lock });
            }
            Err(e) => return Err(Error::file("lock", &lock, e)),
        };
        let moved = self.check(name, expected).and_then(|()| {
            let mut write = || {
                file.write_all(format!("{new}\n").as_bytes())?;
                // The user's branch is flushed as git does it; the run's own refs can be made again.
                if name.starts_with("refs/heads/") {
                    file.sync_data()?;
                }
                fs::rename(&lock, &path)
            };
            write().map_err(|e| Error::file("move", &path, e))
        });
        if moved.is_err() {
            let _ = fs::remove_file(&lock);
        }
        moved
    }

    fn check(&self, name: &str, expected: Option<&str>) -> Result<()> {
        let actual = self.read(name)?;
        if actual.as_deref() == expected {
            return Ok(());
        }
        let word = |id: Option<&str>| id.unwrap_or("nothing").to_owned();
        Err(Error::RefMoved {
            name: name.to_owned(),
            expected: word(expected),
            actual: word(actual.as_deref()),
        })
    }

    fn update_by_git(&self, name: &str, new: &str, expected: Option<&str>) -> Result<()> {
        self.check(name, expected)?;
        let zero = "0".repeat(new.len());
        let args = ["update-ref", "-m", "ralph", name, new, expected.unwrap_or(&zero)];
        self.git.call(args).run()?;
        Ok(())
    }

    /// Notes a move of a branch in the logs that git keeps of it, so that `git reflog` can undo it. Git does this itself
    /// where it moves the ref.
    pub(crate) fn log_move(&self, name: &str, old: &str, new: &str, who: &Identity, at: i64, why: &str) {
        if self.format == RefFormat::Other {
            return;
        }
        let line = format!("{old} {new} {} <{}> {at} +0000\t{why}\n", who.name, who.email);
        for log in [self.common.join("logs").join(name), self.git_dir.join("logs/HEAD")] {
            // Logs that do not exist are not wanted. A log that cannot be written loses nothing but convenience.
            if let Ok(mut file) = OpenOptions::new().append(true).open(&log) {
                let _ = file.write_all(line.as_bytes());
            }
        }
    }

    /// Removes a lock that this run left behind when it was killed: only with exactly the content it would have.
    pub(crate) fn break_own_lock(&self, name: &str, would_hold: &str) {
        let lock = lock_path(&self.common.join(name));
        if fs::read_to_string(&lock).is_ok_and(|text| text.trim_end() == would_hold) {
            let _ = fs::remove_file(&lock);
        }
    }

    /// Removes locks on refs that nobody but this run moves.
    pub(crate) fn break_locks_below(&self, folder: &str) {
        let Ok(names) = fs::read_dir(self.common.join(folder)) else { return };
        for entry in names.flatten() {
            if entry.file_name().to_string_lossy().ends_with(".lock") {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Every ref, from git.
    pub(crate) fn all(&self) -> Result<RefMap> {
        let args = ["for-each-ref", "--format=%(refname) %(objectname) %(symref)"];
        let output = self.git.call(args).run()?;
        let mut map = RefMap::new();
        for line in output.text().lines() {
            let mut words = line.splitn(3, ' ');
            if let (Some(name), Some(id)) = (words.next(), words.next()) {
                let target = words.next().filter(|t| !t.is_empty()).unwrap_or(id);
                map.insert(name.to_owned(), target.to_owned());
            }
        }
        map.insert("HEAD".to_owned(), self.head()?);
        Ok(map)
    }

    /// What `HEAD` is: the full name of its branch, or a commit.
    pub(crate) fn head(&self) -> Result<String> {
        if self.format == RefFormat::Files {
            let path = self.git_dir.join("HEAD");
            let text = fs::read_to_string(&path).map_err(|e| Error::file("read", &path, e))?;
            let text = text.trim_end();
            return Ok(text.strip_prefix("ref: ").unwrap_or(text).to_owned());
        }
        let name = self.git.call(["symbolic-ref", "-q", "HEAD"]).accept(&[1]).run()?;
        if name.code == 0 {
            return Ok(name.text());
        }
        Ok(self.git.call(["rev-parse", "HEAD"]).run()?.text())
    }

    /// The ref files' stats, without those below `skip`. The newest files' content stands in it, too: a later change
    /// in the same clock tick would not show in their stat.
    pub(crate) fn fingerprint(&self, skip: &str) -> Fingerprint {
        let mut print = Fingerprint::new();
        for path in [self.git_dir.join("HEAD"), self.common.join("packed-refs")] {
            if let Some(stat) = stat_of(&path) {
                print.insert(path, (stat, None));
            }
        }
        let skip = self.common.join(skip);
        collect(&self.common.join("refs"), &skip, &mut print);
        collect(&self.common.join("reftable"), &skip, &mut print);
        if self.git_dir != self.common {
            collect(&self.git_dir.join("refs"), &skip, &mut print);
            collect(&self.git_dir.join("reftable"), &skip, &mut print);
        }
        let newest = print.values().map(|(stat, _)| stat.ctime).max();
        for (path, (stat, content)) in &mut print {
            if Some(stat.ctime) == newest && stat.size < 64 * 1024 {
                *content = fs::read(path).ok();
            }
        }
        print
    }

    /// Whether nothing changed since `old` was taken.
    pub(crate) fn unchanged(&self, old: &Fingerprint, skip: &str) -> bool {
        let now = self.fingerprint(skip);
        now.len() == old.len()
            && old.iter().all(|(path, (stat, content))| {
                now.get(path).is_some_and(|(now, _)| now == stat)
                    && content.as_ref().is_none_or(|content| fs::read(path).is_ok_and(|now| now == *content))
            })
    }

    /// Takes a move of our own into a fingerprint, leaving the rest of it as it was.
    pub(crate) fn note_own_move(&self, print: &mut Fingerprint, name: &str) {
        let path = self.common.join(name);
        if let Some(stat) = stat_of(&path) {
            let content = fs::read(&path).ok();
            print.insert(path, (stat, content));
        }
    }

    /// Whether `old` is an ancestor of `new`.
    pub(crate) fn is_ancestor(&self, old: &str, new: &str) -> Result<bool> {
        let args = ["merge-base", "--is-ancestor", old, new];
        // 128: one of them is gone, so there is no telling.
        Ok(self.git.call(args).accept(&[1, 128]).run()?.code == 0)
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn collect(folder: &Path, skip: &Path, print: &mut Fingerprint) {
    let Ok(names) = fs::read_dir(folder) else { return };
    for entry in names.flatten() {
        let path = entry.path();
        if path == skip {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, skip, print),
            Ok(_) => {
                if let Some(stat) = stat_of(&path) {
                    print.insert(path, (stat, None));
                }
            }
            Err(_) => {}
        }
    }
}

/// Whether a person must look at a move of this ref.
pub(crate) fn concerns_people(name: &str, run: &str) -> bool {
    if name.starts_with("refs/remotes/") {
        return false;
    }
    match name.strip_prefix("refs/ralph/") {
        Some(rest) => rest.split('/').next() == Some(run),
        None => true,
    }
}
