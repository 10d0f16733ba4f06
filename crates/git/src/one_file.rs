//! One file from one work tree into another: whole or not at all, never through a link, never over what nobody looked at.

use crate::entry::{MODE_GITLINK, TreeEntry};
use crate::error::{Error, Result};
use crate::index::Stat;
use crate::snapshot::on_disk;
use crate::survey::parent;
use crate::watch::stat_of;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

const MODE_LINK: u32 = 0o120_000;

/// The result of copying one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyOutcome {
    /// It is there.
    Done,
    /// Something stands where it belongs, or has changed just now: nothing was touched.
    InTheWay,
}

/// How a file looks from outside; a folder is none.
pub(crate) fn stat_of_file(top: &Path, path: &[u8]) -> Option<Stat> {
    let path = on_disk(top, path);
    fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir()).then(|| stat_of(&path)).flatten()
}

/// Makes `path` below `to` what it is below `from`. `entry` is what git knows of it there (`None`: it is gone), `seen` how
/// the file below `to` looked when it was compared. `room` is a folder for the copy until it is whole.
pub(crate) fn bring(
    path: &[u8],
    entry: Option<&TreeEntry>,
    (from, to): (&Path, &Path),
    seen: Option<Stat>,
    room: &Path,
) -> Result<CopyOutcome> {
    let target = on_disk(to, path);
    if !stands_on_real_folders(to, path) || stat_of_file(to, path) != seen {
        return Ok(CopyOutcome::InTheWay);
    }
    let Some(entry) = entry else { return remove(to, path) };
    let source = on_disk(from, path);
    let is_folder = fs::symlink_metadata(&target).is_ok_and(|meta| meta.is_dir());
    if entry.mode == MODE_GITLINK || is_folder || !stands_on_real_folders(from, path) {
        return Ok(CopyOutcome::InTheWay);
    }
    let Ok(kind) = fs::symlink_metadata(&source) else { return Ok(CopyOutcome::InTheWay) };
    if kind.is_symlink() != (entry.mode == MODE_LINK) || !(kind.is_symlink() || kind.is_file()) {
        return Ok(CopyOutcome::InTheWay);
    }
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(|e| Error::file("create", folder, e))?;
    }
    fs::create_dir_all(room).map_err(|e| Error::file("create", room, e))?;
    if place(&source, entry, &target, &room.join("incoming")).is_ok() {
        return Ok(CopyOutcome::Done);
    }
    // The room may be on another disk: then beside the file itself.
    let mut name = OsStr::new(".ralph-incoming-").to_owned();
    name.push(target.file_name().unwrap_or_default());
    let beside = target.with_file_name(name);
    place(&source, entry, &target, &beside)
        .inspect_err(|_| {
            let _ = fs::remove_file(&beside);
        })
        .map_err(|e| Error::file("write", &target, e))?;
    Ok(CopyOutcome::Done)
}

fn place(source: &Path, entry: &TreeEntry, target: &Path, temporary: &Path) -> std::io::Result<()> {
    match fs::remove_file(temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    if entry.mode == MODE_LINK {
        std::os::unix::fs::symlink(fs::read_link(source)?, temporary)?;
    } else {
        fs::copy(source, temporary)?;
        // The user's own choice of who may read the file stays; git knows only whether it can be run.
        let old = fs::symlink_metadata(target).ok().filter(fs::Metadata::is_file);
        let mode = match old {
            Some(old) => old.permissions().mode() & 0o7777,
            None => fs::metadata(source)?.permissions().mode() & 0o775,
        };
        let mode = if entry.mode & 0o111 != 0 { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
        fs::set_permissions(temporary, Permissions::from_mode(mode))?;
    }
    fs::rename(temporary, target)
}

fn remove(top: &Path, path: &[u8]) -> Result<CopyOutcome> {
    let target = on_disk(top, path);
    match fs::remove_file(&target) {
        Ok(()) => {}
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
        Err(e) if e.kind() == ErrorKind::IsADirectory => return Ok(CopyOutcome::InTheWay),
        Err(e) => return Err(Error::file("remove", &target, e)),
    }
    // Folders that this leaves empty go too; a folder with anything in it refuses.
    let mut dir = parent(path);
    while !dir.is_empty() && fs::remove_dir(on_disk(top, dir)).is_ok() {
        dir = parent(dir);
    }
    Ok(CopyOutcome::Done)
}

/// Whether all folders above `path` are folders (or missing), not links that lead elsewhere and not files.
pub(crate) fn stands_on_real_folders(top: &Path, path: &[u8]) -> bool {
    Path::new(OsStr::from_bytes(path))
        .ancestors()
        .skip(1)
        .filter(|dir| !dir.as_os_str().is_empty())
        .all(|dir| fs::symlink_metadata(top.join(dir)).map_or(true, |meta| meta.is_dir()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oid::ObjectFormat;
    use std::path::PathBuf;

    struct TwoFolders {
        _folder: tempfile::TempDir,
        from: PathBuf,
        to: PathBuf,
        room: PathBuf,
    }

    impl TwoFolders {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let [from, to, room] = ["from", "to", "room"].map(|name| folder.path().join(name));
            fs::create_dir(&from).unwrap();
            fs::create_dir(&to).unwrap();
            Self { _folder: folder, from, to, room }
        }
        fn bring(&self, path: &str, mode: Option<u32>) -> CopyOutcome {
            let entry = mode.map(|mode| TreeEntry {
                path: path.into(),
                mode,
                oid: ObjectFormat::Sha1.id_of("blob", b""),
            });
            let seen = stat_of_file(&self.to, path.as_bytes());
            bring(path.as_bytes(), entry.as_ref(), (&self.from, &self.to), seen, &self.room).unwrap()
        }
    }

    #[test]
    fn files_links_and_modes_come_over_and_go() {
        let two = TwoFolders::new();
        fs::create_dir(two.from.join("a")).unwrap();
        fs::write(two.from.join("a/run"), "x").unwrap();
        std::os::unix::fs::symlink("../elsewhere", two.from.join("a/link")).unwrap();
        assert_eq!(two.bring("a/run", Some(0o100_755)), CopyOutcome::Done);
        assert_eq!(two.bring("a/link", Some(0o120_000)), CopyOutcome::Done);
        assert_eq!(fs::metadata(two.to.join("a/run")).unwrap().permissions().mode() & 0o777, 0o755);
        assert_eq!(fs::read_link(two.to.join("a/link")).unwrap(), Path::new("../elsewhere"));
        fs::set_permissions(two.to.join("a/run"), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(two.bring("a/run", Some(0o100_644)), CopyOutcome::Done);
        assert_eq!(fs::metadata(two.to.join("a/run")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(two.bring("a/run", None), CopyOutcome::Done);
        assert_eq!(two.bring("a/link", None), CopyOutcome::Done);
        assert!(!two.to.join("a").exists());
    }

    #[test]
    fn nothing_goes_through_a_link_or_over_a_folder_or_over_a_fresh_change() {
        let two = TwoFolders::new();
        let outside = two.room.with_file_name("outside");
        fs::create_dir(&outside).unwrap();
        fs::create_dir(two.from.join("d")).unwrap();
        fs::write(two.from.join("d/x"), "agent").unwrap();
        std::os::unix::fs::symlink(&outside, two.to.join("d")).unwrap();
        assert_eq!(two.bring("d/x", Some(0o100_644)), CopyOutcome::InTheWay);
        assert!(!outside.join("x").exists());
        fs::write(two.from.join("f"), "agent").unwrap();
        fs::create_dir(two.to.join("f")).unwrap();
        assert_eq!(two.bring("f", Some(0o100_644)), CopyOutcome::InTheWay);
        fs::write(two.from.join("g"), "agent").unwrap();
        fs::write(two.to.join("g"), "just now").unwrap();
        let entry =
            TreeEntry { path: b"g".to_vec(), mode: 0o100_644, oid: ObjectFormat::Sha1.id_of("blob", b"") };
        let brought = bring(b"g", Some(&entry), (&two.from, &two.to), None, &two.room).unwrap();
        assert_eq!(brought, CopyOutcome::InTheWay);
        assert_eq!(fs::read(two.to.join("g")).unwrap(), b"just now");
    }
}
