//! Refs: read and moved in-process with git's lock files if the repo keeps them as files, through git otherwise.

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

    /// Moves a ref from `expected` (`None`: it must not exist) to `new`; fails if it is anywhere else.
    pub(crate) fn update(&self, name: &str, new: &str, expected: Option<&str>) -> Result<()> {
        if self.format == RefFormat::Other {
            return self.update_by_git(name, new, expected);
        }
        check_name(name)?;
        // The user's branch is flushed as git does it; the run's refs can be recreated.
        let flush = if name.starts_with("refs/heads/") { Flush::Yes } else { Flush::No };
        let content = format!("{new}\n");
        let target = self.common.join(name);
        self.locks.replace(&target, content.as_bytes(), flush, || self.check(name, expected))
    }

    /// Creates a ref, so that a later process of the run recognizes it as this run's.
    pub(crate) fn create(&self, name: &str, new: &str) -> Result<()> {
        check_name(name)?;
        let content = format!("{new}\n");
        self.locks.create(&self.common.join(name), content.as_bytes(), || self.check(name, None))
    }

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

    /// Removes the locks on these refs that a killed process of this run left behind.
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

    /// Adds a branch move to the reflogs, so that the user can undo it. Git does this only if it moves the ref.
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
            // Never creates logs, and only writes to plain files. A failed write loses nothing but convenience.
            let Ok(folder) = SafeDir::open(folder) else { continue };
            if folder.facts(&log).is_ok_and(|facts| facts.kind == Kind::File)
                && let Ok(mut file) = folder.open_log(&log)
            {
                let _ = file.write_all(line.as_bytes());
            }
        }
    }

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

    pub(crate) fn is_ancestor(&self, old: &str, new: &str) -> Result<bool> {
        let args = ["merge-base", "--is-ancestor", old, new];
        // 128: one of them is gone, so the answer is unknown.
        Ok(self.git.call(args).accept(&[1, 128]).run()?.code == 0)
    }
}

/// Whether git accepts this ref name. It becomes a path below `.git`, and may come from a task or a repo.
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
    fn invalid_ref_names_are_rejected() {
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
