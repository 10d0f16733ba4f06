//! Refs: read and moved in-process with git's own lock files where the repo keeps them as files, through git otherwise.

use crate::error::{Error, Result};
use crate::locks::left_lock::LeftLocks;
use crate::locks::lock_file::{Flush, LockFiles};
use crate::objects::files;
use crate::objects::writer::CommitIdentity;
use crate::process::command::Git;
use crate::repo::{RefFormat, Repo};
use ralph_loop_safe_fs::{Kind, SafeDir};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The refs of a repo, as seen from one work tree.
#[derive(Debug, Clone)]
pub(crate) struct Refs {
    git: Git,
    common: PathBuf,
    git_dir: PathBuf,
    format: RefFormat,
    locks: LockFiles,
}

impl Refs {
    /// The refs of `repo`, moved with locks of the run whose folder is `run_folder`.
    pub(crate) fn new(repo: &Repo, run_folder: &Path) -> Self {
        Self {
            locks: LockFiles::new(run_folder.to_owned()),
            git: repo.git(),
            common: repo.common_dir.clone(),
            git_dir: repo.git_dir.clone(),
            format: repo.ref_format,
        }
    }

    /// Locks that killed sessions have left are removed.
    pub(crate) fn removing_left(mut self, left: LeftLocks) -> Self {
        self.locks = self.locks.removing_left(left);
        self
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
        match files::read_text(&path, files::REF_MAX) {
            Ok(text) => return Ok(Some(text.trim_end().to_owned())),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            // A folder: branches whose names begin with this one.
            Err(_) if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) => {}
            Err(e) => return Err(Error::file("read", &path, e)),
        }
        let packed = match files::read(&self.common.join("packed-refs"), files::PACKED_REFS_MAX) {
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
        check_name(name)?;
        // The user's branch is flushed as git does it; the run's own refs can be made again.
        let flush = if name.starts_with("refs/heads/") { Flush::Yes } else { Flush::No };
        let content = format!("{new}\n");
        let target = self.common.join(name);
        self.locks.replace(&target, content.as_bytes(), flush, || self.check(name, expected))
    }

    /// Makes a ref that is not there yet, so that a later process of the run can tell that it was this run's doing.
    pub(crate) fn create(&self, name: &str, new: &str) -> Result<()> {
        check_name(name)?;
        let content = format!("{new}\n");
        self.locks.create(&self.common.join(name), content.as_bytes(), || self.check(name, None))
    }

    /// Points `HEAD` of this work tree at a branch.
    pub(crate) fn point_head_at(&self, branch: &str) -> Result<()> {
        let name = format!("refs/heads/{branch}");
        check_name(&name)?;
        if self.format == RefFormat::Other {
            self.git.call(["symbolic-ref", "-m", "ralph", "HEAD", &name]).run()?;
            return Ok(());
        }
        let content = format!("ref: {name}\n");
        self.locks.replace(&self.git_dir.join("HEAD"), content.as_bytes(), Flush::Yes, || Ok(()))
    }

    /// Removes the locks on these refs that an earlier process of this run left behind when it was killed.
    pub(crate) fn release_locks<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            let folder = if name == "HEAD" { &self.git_dir } else { &self.common };
            self.locks.release(&folder.join(name));
        }
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
    pub(crate) fn log_move(
        &self,
        name: &str,
        old: &str,
        new: &str,
        who: &CommitIdentity,
        at: i64,
        why: &str,
    ) {
        if self.format == RefFormat::Other {
            return;
        }
        let line = format!("{old} {new} {} <{}> {at} +0000\t{why}\n", who.name, who.email);
        for (folder, log) in [(&self.common, format!("logs/{name}")), (&self.git_dir, "logs/HEAD".to_owned())]
        {
            // Logs that do not exist are not wanted, and what is no plain file is none. A log that cannot be written loses
            // nothing but convenience.
            let Ok(folder) = SafeDir::open(folder) else { continue };
            if folder.facts(&log).is_ok_and(|facts| facts.kind == Kind::File)
                && let Ok(mut file) = folder.open_log(&log)
            {
                let _ = file.write_all(line.as_bytes());
            }
        }
    }

    /// What `HEAD` is: the full name of its branch, or a commit.
    pub(crate) fn head(&self) -> Result<String> {
        if self.format == RefFormat::Files {
            let path = self.git_dir.join("HEAD");
            let text = files::read_text(&path, files::REF_MAX).map_err(|e| Error::file("read", &path, e))?;
            let text = text.trim_end();
            return Ok(text.strip_prefix("ref: ").unwrap_or(text).to_owned());
        }
        let name = self.git.call(["symbolic-ref", "-q", "HEAD"]).accept(&[1]).run()?;
        if name.code == 0 {
            return Ok(name.text());
        }
        Ok(self.git.call(["rev-parse", "HEAD"]).run()?.text())
    }

    /// Whether `old` is an ancestor of `new`.
    pub(crate) fn is_ancestor(&self, old: &str, new: &str) -> Result<bool> {
        let args = ["merge-base", "--is-ancestor", old, new];
        // 128: one of them is gone, so there is no telling.
        Ok(self.git.call(args).accept(&[1, 128]).run()?.code == 0)
    }
}

/// Whether git takes this for the name of a ref. It becomes a path below `.git`, and may come from a task or a repo.
fn check_name(name: &str) -> Result<()> {
    let bad = |part: &str| {
        part.is_empty() || part.starts_with('.') || part.ends_with(".lock") || part.ends_with('.')
    };
    let odd = |c: char| c.is_control() || " ~^:?*[\\".contains(c);
    let sound = name.starts_with("refs/")
        && !name.split('/').any(bad)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(odd);
    match sound {
        true => Ok(()),
        false => Err(Error::refused(
            format!("`{}` is not a valid name for a ref", name.escape_debug()),
            "use letters, digits, `-`, `_`, `.` and `/`",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_git_takes_for_a_name_becomes_a_path() {
        for good in ["refs/heads/main", "refs/heads/a/b.c-d_e@f", "refs/ralph/r1/work", "refs/heads/ä"] {
            check_name(good).unwrap();
        }
        for bad in [
            "HEAD",
            "config",
            "refs/heads/",
            "refs/heads/../../config",
            "refs//x",
            "refs/heads/.x",
            "refs/heads/x.lock",
            "refs/heads/x.lock/y",
            "refs/heads/a b",
            "refs/heads/a\nb",
            "refs/heads/a@{1}",
            "refs/heads/a.",
        ] {
            check_name(bad).unwrap_err();
        }
    }
}
