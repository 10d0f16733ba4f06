//! The local folder: its files, and writing what came out of a sandbox.

use super::tar::{Body, Member};
use crate::local::walk::{self, Last, Missing};
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::libc;
use nix::sys::stat::{Mode, fchmod};
use nix::unistd::{UnlinkatFlags, symlinkat, unlinkat};
use ralph_loop_domain::ports::SandboxError;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) const FILES_MAX: usize = 200_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) size: u64,
    changed: (i64, i64, i64, i64),
    number: u64,
    mode: u32,
}

impl Stamp {
    fn of(found: &fs::Metadata) -> Self {
        Self {
            size: found.size(),
            changed: (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()),
            number: found.ino(),
            mode: found.mode(),
        }
    }
}

/// Whether both sides have a file of the workspace. Git's folder and the run's records stay here; of the state files
/// an agent gets only its own.
pub(super) fn is_shared(path: &str) -> bool {
    let mut parts = path.split('/');
    if parts.clone().any(|part| part.eq_ignore_ascii_case(".git")) {
        return false;
    }
    let last = path.rsplit('/').next().unwrap_or(path);
    if last.starts_with(".ralph-") && last.ends_with(".tmp") {
        return false;
    }
    if parts.next() != Some(".ralph") {
        return true;
    }
    path.matches('/').count() == 1
        && (path.ends_with(".md") || path.ends_with(".log") || path == ".ralph/config.json")
}

/// Whether a change made inside is copied back.
pub(super) fn comes_back(path: &str) -> bool {
    is_shared(path) && path != ".ralph/config.json"
}

/// Every shared file and link of the folder.
pub(super) fn scan(root: &Path) -> Result<BTreeMap<String, Stamp>, SandboxError> {
    let mut found = BTreeMap::new();
    let mut folders = vec![String::new()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(root.join(&folder)) {
            Ok(entries) => entries,
            // It existed a moment ago.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !folder.is_empty() => continue,
            Err(error) => return Err(failed("list", &root.join(&folder), &error)),
        };
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            let Ok(about) = entry.path().symlink_metadata() else { continue };
            if about.is_dir() {
                if path == ".ralph" || is_shared(&path) {
                    folders.push(path);
                }
            } else if (about.is_file() || about.is_symlink()) && is_shared(&path) {
                found.insert(path, Stamp::of(&about));
            }
        }
        if found.len() > FILES_MAX {
            return Err(SandboxError::Broken(format!(
                "`{}` holds more than {FILES_MAX} files, too many to be copied into a sandbox",
                root.display()
            )));
        }
    }
    Ok(found)
}

pub(super) fn stamp(root: &Path, path: &str) -> Option<Stamp> {
    root.join(path).symlink_metadata().ok().map(|about| Stamp::of(&about))
}

/// A file or link for an archive; `None` if it is gone or something else now.
pub(super) fn member(root: &Path, path: &str) -> Option<Member> {
    let place = root.join(path);
    let about = place.symlink_metadata().ok()?;
    let body = if about.is_symlink() {
        Body::Link(fs::read_link(&place).ok()?.to_str()?.to_owned())
    } else {
        Body::File(crate::local::files::read(root, Path::new(path)).ok()??)
    };
    Some(Member { path: path.to_owned(), mode: about.mode() & 0o777, body })
}

/// Writes a member into the folder: a new file next to the old one, then a rename. Writes nothing through a link.
pub(super) fn put(root: &Path, member: &Member) -> Result<(), SandboxError> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let path = Path::new(&member.path);
    let outside = || SandboxError::OutsideWorkspace(path.to_owned());
    let place = walk::find(root, path, Last::Keep, Missing::Make)?.ok_or_else(outside)?;
    let name = place.name.as_ref().ok_or_else(outside)?;
    if place.real != root.join(path) {
        return Err(outside());
    }
    if place.stat.is_some_and(|stat| walk::kind(&stat) == libc::S_IFDIR) {
        // Only removes an empty folder; its content wasn't meant.
        unlinkat(&place.folder, name.as_os_str(), UnlinkatFlags::RemoveDir)
            .map_err(|errno| walk::file_error("replace", path, errno))?;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let beside = OsString::from(format!(".ralph-{}-m{number}.tmp", std::process::id()));
    let written = || -> std::io::Result<()> {
        match &member.body {
            Body::Link(to) => symlinkat(to.as_str(), &place.folder, beside.as_os_str())?,
            Body::File(bytes) => {
                let flags =
                    OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let fd = openat(&place.folder, beside.as_os_str(), flags, Mode::from_bits_truncate(0o600))?;
                fchmod(&fd, Mode::from_bits_truncate(plain(member.mode) as nix::libc::mode_t))?;
                File::from(fd).write_all(bytes)?;
            }
        }
        renameat(&place.folder, beside.as_os_str(), &place.folder, name.as_os_str())?;
        Ok(())
    };
    written().map_err(|error| {
        unlinkat(&place.folder, beside.as_os_str(), UnlinkatFlags::NoRemoveDir).ok();
        failed("write", path, &error)
    })
}

/// Permissions as git knows them: readable and writable for the owner, and maybe executable.
fn plain(mode: u32) -> u32 {
    if mode & 0o100 != 0 { 0o755 } else { 0o644 }
}

/// Removes a file or link, and the folders that become empty.
pub(super) fn take_away(root: &Path, path: &str) -> Result<(), SandboxError> {
    let whole = Path::new(path);
    let Some(place) = walk::find(root, whole, Last::Keep, Missing::Stop)? else { return Ok(()) };
    if place.real != root.join(whole) {
        return Err(SandboxError::OutsideWorkspace(whole.to_owned()));
    }
    let Some(name) = &place.name else { return Ok(()) };
    match unlinkat(&place.folder, name.as_os_str(), UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => {}
        Err(errno) => return Err(walk::file_error("remove", whole, errno)),
    }
    let mut above = whole.parent();
    while let Some(folder) = above.filter(|folder| !folder.as_os_str().is_empty()) {
        if fs::remove_dir(root.join(folder)).is_err() {
            break;
        }
        above = folder.parent();
    }
    Ok(())
}

fn failed(verb: &'static str, path: &Path, error: &std::io::Error) -> SandboxError {
    SandboxError::File { verb, path: path.to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_paths() {
        for path in ["a", "src/a.rs", ".gitignore", ".ralph/progress.md", ".ralph/errors.log"] {
            assert!(is_shared(path) && comes_back(path), "{path}");
        }
        for path in
            [".git/config", "sub/.git/x", ".ralph/runs/x/spec.json", ".ralph/run.lock", ".ralph/runs/a.md"]
        {
            assert!(!is_shared(path), "{path}");
        }
        assert!(is_shared(".ralph/config.json") && !comes_back(".ralph/config.json"));
    }

    #[test]
    fn nothing_is_written_through_a_link_or_outside() {
        let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = dir.path().canonicalize().unwrap();
        std::os::unix::fs::symlink(out.path(), root.join("out")).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink("real", root.join("alias")).unwrap();
        let file = |path: &str| Member { path: path.into(), mode: 0o755, body: Body::File(b"x".to_vec()) };
        for bad in ["out/x", "alias/x", "../x", "/tmp/x", ".git/hooks/x", "a/.git/x"] {
            assert!(matches!(put(&root, &file(bad)), Err(SandboxError::OutsideWorkspace(_))), "{bad}");
            assert!(matches!(take_away(&root, bad), Err(SandboxError::OutsideWorkspace(_))), "{bad}");
        }
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
        put(&root, &file("deep/down/x")).unwrap();
        assert_eq!(fs::metadata(root.join("deep/down/x")).unwrap().mode() & 0o777, 0o755);
        // The link itself is replaced, not its target.
        put(&root, &file("alias")).unwrap();
        assert!(root.join("alias").symlink_metadata().unwrap().is_file() && root.join("real").is_dir());
        take_away(&root, "deep/down/x").unwrap();
        assert!(!root.join("deep").exists());
    }
}
