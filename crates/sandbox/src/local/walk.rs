//! Resolves a path inside the workspace, one step at a time.
//!
//! Every component is checked without following it; links are resolved here, on a stack of open folders, so that `..`
//! never climbs above the root and git's folder is noticed whatever link leads there. Works the same on all systems;
//! between commands nothing runs in the workspace, so races don't matter.

use crate::os::FOLDER;
use crate::paths;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, openat, readlinkat};
use nix::libc;
use nix::sys::stat::{FileStat, Mode, fstatat, mkdirat};
use ralph_loop_domain::ports::SandboxError;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// Links followed before a path counts as circular.
const LINKS_MAX: u32 = 40;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    Follow,
    Keep,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Stop,
    Make,
}

/// A name in an open folder of the workspace. The name may not exist yet.
pub(crate) struct WalkedPath {
    pub(crate) folder: OwnedFd,
    /// `None` if the path means the folder itself.
    pub(crate) name: Option<OsString>,
    /// `None` if nothing exists there.
    pub(crate) stat: Option<FileStat>,
    /// The path without links.
    pub(crate) real: PathBuf,
}

/// Finds `path` below `root`; `None` if a folder on the way is missing or isn't a folder.
pub(crate) fn find(
    root: &Path,
    path: &Path,
    last: Last,
    missing: Missing,
) -> Result<Option<WalkedPath>, SandboxError> {
    let mut walk = Walk { root, path, stack: Vec::new(), names: Vec::new(), links: 0 };
    walk.run(last, missing)
}

/// Opens the folder `path` below `root`; also returns its path without links.
pub(crate) fn folder(root: &Path, path: &Path) -> Result<(OwnedFd, PathBuf), SandboxError> {
    let failed = |errno: Errno| file_error("enter", path, errno);
    let place = find(root, path, Last::Follow, Missing::Stop)?.ok_or_else(|| failed(Errno::ENOENT))?;
    match place.name {
        None => Ok((place.folder, place.real)),
        Some(name) => {
            let opened = openat(&place.folder, name.as_os_str(), FOLDER, Mode::empty()).map_err(failed)?;
            Ok((opened, place.real))
        }
    }
}

pub(crate) fn file_error(verb: &'static str, path: &Path, errno: Errno) -> SandboxError {
    SandboxError::File { verb, path: path.to_owned(), reason: errno.desc().to_owned() }
}

pub(crate) fn kind(stat: &FileStat) -> libc::mode_t {
    stat.st_mode & libc::S_IFMT
}

struct Walk<'a> {
    root: &'a Path,
    path: &'a Path,
    stack: Vec<OwnedFd>,
    names: Vec<OsString>,
    links: u32,
}

impl Walk<'_> {
    fn run(&mut self, last: Last, missing: Missing) -> Result<Option<WalkedPath>, SandboxError> {
        let mut pending: VecDeque<OsString> = paths::names(self.path)?.into();
        self.restart()?;
        while let Some(name) = pending.pop_front() {
            if name == ".." {
                self.up()?;
                continue;
            }
            if paths::is_git(&name) {
                return Err(self.outside());
            }
            let stat = match fstatat(self.here()?, name.as_os_str(), AtFlags::AT_SYMLINK_NOFOLLOW) {
                Ok(stat) => Some(stat),
                Err(Errno::ENOENT) => None,
                Err(Errno::ENOTDIR) => return Ok(None),
                Err(errno) => return Err(file_error("find", self.path, errno)),
            };
            let is_last = pending.is_empty();
            let is_link = stat.as_ref().is_some_and(|stat| kind(stat) == libc::S_IFLNK);
            if is_link && !(is_last && last == Last::Keep) {
                self.follow(&name, &mut pending)?;
            } else if is_last {
                return self.place(Some(name), stat).map(Some);
            } else if !self.down(name, stat.as_ref(), missing)? {
                return Ok(None);
            }
        }
        self.place(None, None).map(Some)
    }

    fn outside(&self) -> SandboxError {
        SandboxError::OutsideWorkspace(self.path.to_owned())
    }

    fn here(&self) -> Result<&OwnedFd, SandboxError> {
        self.stack.last().ok_or_else(|| self.outside())
    }

    fn restart(&mut self) -> Result<(), SandboxError> {
        let opened = nix::fcntl::open(self.root, FOLDER, Mode::empty())
            .map_err(|errno| file_error("open", self.root, errno))?;
        self.stack = vec![opened];
        self.names.clear();
        Ok(())
    }

    fn up(&mut self) -> Result<(), SandboxError> {
        self.stack.pop();
        self.names.pop();
        self.here().map(drop)
    }

    /// Enters the folder `name`; false if there is none.
    fn down(
        &mut self,
        name: OsString,
        stat: Option<&FileStat>,
        missing: Missing,
    ) -> Result<bool, SandboxError> {
        match stat {
            None if missing == Missing::Stop => return Ok(false),
            None => mkdirat(self.here()?, name.as_os_str(), Mode::from_bits_truncate(0o777))
                .map_err(|errno| file_error("make the folder of", self.path, errno))?,
            Some(stat) if kind(stat) != libc::S_IFDIR => return Ok(false),
            Some(_) => {}
        }
        let opened = openat(self.here()?, name.as_os_str(), FOLDER, Mode::empty())
            .map_err(|errno| file_error("open the folder of", self.path, errno))?;
        self.stack.push(opened);
        self.names.push(name);
        Ok(true)
    }

    /// Puts the target of the link `name` before the rest of the path.
    fn follow(&mut self, name: &OsStr, pending: &mut VecDeque<OsString>) -> Result<(), SandboxError> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(file_error("follow", self.path, Errno::ELOOP));
        }
        let target = PathBuf::from(
            readlinkat(self.here()?, name).map_err(|errno| file_error("follow", self.path, errno))?,
        );
        let steps = if target.is_absolute() {
            // An absolute target may still be inside.
            let inside = target.strip_prefix(self.root).map_err(|_| self.outside())?.to_owned();
            self.restart()?;
            inside
        } else {
            target
        };
        for step in steps.components().rev() {
            match step {
                Component::Normal(name) => pending.push_front(name.to_owned()),
                Component::ParentDir => pending.push_front("..".into()),
                _ => {}
            }
        }
        Ok(())
    }

    fn place(&mut self, name: Option<OsString>, stat: Option<FileStat>) -> Result<WalkedPath, SandboxError> {
        let mut real: PathBuf = self.root.to_owned();
        real.extend(self.names.iter().chain(&name));
        let folder = self.stack.pop().ok_or_else(|| self.outside())?;
        Ok(WalkedPath { folder, name, stat, real })
    }
}
