//! Restores permissions that a tree's writer removed from its owner: a folder's owner can always get them back.

use crate::open;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// What an owner needs to list, enter and change a folder.
const OWNER: RawMode = 0o700;
const DEPTH: u32 = 512;

/// Restores the owner's right to list, enter and change a folder. The path is the caller's; does nothing if it is a
/// link or not a folder.
pub fn restore_owner(path: impl AsRef<Path>) -> io::Result<()> {
    restore_at(rustix::fs::CWD, path.as_ref())
}

/// The same for the folder and all folders below it. Skips what other users own.
pub fn restore_owner_below(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    restore_owner(path)?;
    below(&rustix::fs::open(path, open::FOLDER | OFlags::NOFOLLOW, Mode::empty())?, DEPTH)
}

/// Removes the caller's folder with all its content, even if permissions of folders were removed. Links are removed,
/// never followed; a missing folder is fine.
pub fn remove_tree(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    match std::fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_dir() => return std::fs::remove_file(path),
        Err(error) if missing(&error) => return Ok(()),
        _ => {}
    }
    let removed = match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            restore_owner_below(path)?;
            std::fs::remove_dir_all(path)
        }
        done => done,
    };
    match removed {
        Err(error) if !missing(&error) => Err(error),
        _ => Ok(()),
    }
}

/// The mode that restores an owner's permissions; `None` if it has them, or isn't a folder.
fn restored_mode(mode: RawMode) -> Option<Mode> {
    let taken = FileType::from_raw_mode(mode) == FileType::Directory && mode & OWNER != OWNER;
    taken.then(|| Mode::from_raw_mode(mode & 0o7777 | OWNER))
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn restore_at(folder: impl AsFd, name: &Path) -> io::Result<()> {
    match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(stat) => match restored_mode(stat.st_mode) {
            None => Ok(()),
            // Never through a link: whatever has its name now, nothing outside is changed.
            Some(mode) => Ok(rustix::fs::chmodat(&folder, name, mode, AtFlags::SYMLINK_NOFOLLOW)?),
        },
    }
}

#[cfg(target_os = "linux")]
pub(crate) fn restore_at(folder: impl AsFd, name: &Path) -> io::Result<()> {
    use rustix::fd::AsRawFd as _;
    /// Opened only as a reference, which needs no permissions for the folder.
    const NAMED: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

    let named = match rustix::fs::openat(folder, name, NAMED, Mode::empty()) {
        Ok(named) => named,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let Some(mode) = restored_mode(rustix::fs::fstat(&named)?.st_mode) else { return Ok(()) };
    // Through the handle: whatever has its name now stays unchanged.
    Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", named.as_raw_fd()), mode)?)
}

fn below(folder: &OwnedFd, depth: u32) -> io::Result<()> {
    if depth == 0 {
        return Err(crate::invalid("too many folders below each other"));
    }
    for name in folders_in(folder)? {
        // What another user owns isn't ours to change.
        match restore_at(folder, &name) {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            _ => {}
        }
        match rustix::fs::openat(folder, &name, open::FOLDER | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(inside) => below(&inside, depth - 1)?,
            Err(Errno::NOENT | Errno::ACCESS | Errno::NOTDIR | Errno::LOOP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn folders_in(folder: &OwnedFd) -> io::Result<Vec<PathBuf>> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        let name = PathBuf::from(std::ffi::OsStr::from_bytes(entry.file_name().to_bytes()));
        if name == Path::new(".") || name == Path::new("..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => rustix::fs::statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
            known => known,
        };
        if kind == FileType::Directory {
            found.push(name);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn owner_permissions_are_restored_without_following_links() {
        let base = tempfile::tempdir().unwrap();
        let [tree, other] = ["tree", "other"].map(|name| base.path().join(name));
        std::fs::create_dir_all(tree.join("a/b/c")).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::fs::write(tree.join("a/file"), "x").unwrap();
        symlink(&other, tree.join("a/link")).unwrap();
        let set = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        set(&tree.join("a/file"), 0o444);
        set(&tree.join("a/b/c"), 0o005);
        set(&tree.join("a/b"), 0o000);
        set(&tree.join("a"), 0o555);
        set(&tree, 0o000);
        set(&other, 0o500);
        restore_owner_below(&tree).unwrap();
        for (path, wanted) in [("", 0o700), ("a", 0o755), ("a/b", 0o700), ("a/b/c", 0o705), ("a/file", 0o444)]
        {
            assert_eq!(mode(&tree.join(path)), wanted, "{path}");
        }
        assert_eq!(mode(&other), 0o500, "a link's target isn't changed");
        restore_owner(tree.join("a/link")).unwrap();
        assert_eq!(mode(&other), 0o500);

        set(&tree.join("a/b"), 0o000);
        set(&tree, 0o500);
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && other.exists());
        remove_tree(&tree).unwrap();
    }
}
