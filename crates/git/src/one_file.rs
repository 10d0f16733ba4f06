//! One file from one work tree into another: whole or not at all, never through a link, never over what nobody looked at.

use crate::command::Git;
use crate::entry::on_disk;
use crate::entry::{MODE_GITLINK, TreeEntry};
use crate::error::{Error, Result};
use crate::index::Stat;
use crate::oid::{ObjectFormat, Oid};
use crate::survey::parent;
use crate::watch::stat_of;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const MODE_LINK: u32 = 0o120_000;
/// Larger files are hashed by git.
const READ_MAX: u64 = 8 * 1024 * 1024;

/// The result of copying one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyOutcome {
    /// It is there.
    Done,
    /// Something stands where it belongs or has changed just now, or its path is too long there: nothing was touched.
    InTheWay,
}

/// How a file looks from outside; a folder is none.
pub(crate) fn stat_of_file(top: &Path, path: &[u8]) -> Option<Stat> {
    let path = on_disk(top, path);
    fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_dir()).then(|| stat_of(&path)).flatten()
}

/// What git has recorded of the files that are copied: a copy that is something else is not handed on.
#[derive(Debug)]
pub(crate) struct Recorded<'a> {
    pub(crate) git: &'a Git,
    pub(crate) format: ObjectFormat,
    /// The tree whose attributes decided about filters.
    pub(crate) attributes: Option<String>,
}

impl Recorded<'_> {
    /// Whether the file or link at `copy` is what `entry` says of `path`.
    fn is(&self, copy: &Path, entry: &TreeEntry) -> bool {
        if entry.mode == MODE_LINK {
            let target = fs::read_link(copy).unwrap_or_default();
            return self.format.id_of("blob", target.as_os_str().as_bytes()) == entry.oid;
        }
        let small = fs::metadata(copy).is_ok_and(|meta| meta.len() <= READ_MAX);
        let plain = match small {
            true => fs::read(copy).is_ok_and(|bytes| self.format.id_of("blob", &bytes) == entry.oid),
            false => self.hashed(&["--no-filters".into()], copy) == Some(entry.oid),
        };
        // A file that goes through a filter or has other line ends.
        let mut by_path = OsString::from("--path=");
        by_path.push(OsStr::from_bytes(&entry.path));
        plain || self.hashed(&[by_path], copy) == Some(entry.oid)
    }

    fn hashed(&self, options: &[OsString], file: &Path) -> Option<Oid> {
        let args = std::iter::once(OsStr::new("hash-object")).chain(options.iter().map(OsString::as_os_str));
        let call = self.git.call(args.chain([OsStr::new("--"), file.as_os_str()]));
        let call = match &self.attributes {
            Some(tree) => call.env("GIT_ATTR_SOURCE", tree),
            None => call,
        };
        Oid::from_hex(call.run().ok()?.text().trim().as_bytes())
    }
}

/// Makes `path` below `to` what it is below `from`. `entry` is what git knows of it there (`None`: it is gone), `seen` how
/// the file below `to` looked when it was compared. `room` is a folder for the copy until it is whole.
pub(crate) fn bring(
    path: &[u8],
    entry: Option<&TreeEntry>,
    (from, to): (&Path, &Path),
    seen: Option<Stat>,
    room: &Path,
    recorded: &Recorded<'_>,
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
        match fs::create_dir_all(folder) {
            Err(e) if is_too_long(&e) => return Ok(CopyOutcome::InTheWay),
            made => made.map_err(|e| Error::file("create", folder, e))?,
        }
    }
    fs::create_dir_all(room).map_err(|e| Error::file("create", room, e))?;
    if let Ok(placed) = place(&source, entry, &target, &room.join("incoming"), recorded) {
        return Ok(placed);
    }
    // The room may be on another disk: then beside the file itself.
    let mut name = OsStr::new(".ralph-incoming-").to_owned();
    name.push(target.file_name().unwrap_or_default());
    let beside = target.with_file_name(name);
    match place(&source, entry, &target, &beside, recorded) {
        Ok(placed) => Ok(placed),
        Err(e) => {
            let _ = fs::remove_file(&beside);
            if is_too_long(&e) { Ok(CopyOutcome::InTheWay) } else { Err(Error::file("write", &target, e)) }
        }
    }
}

/// Whether a path that fits in the one folder is too long in the other, for the kernel: nobody can put the file there.
fn is_too_long(error: &std::io::Error) -> bool {
    error.kind() == ErrorKind::InvalidFilename
}

fn place(
    source: &Path,
    entry: &TreeEntry,
    target: &Path,
    temporary: &Path,
    recorded: &Recorded<'_>,
) -> std::io::Result<CopyOutcome> {
    match fs::remove_file(temporary) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    if entry.mode == MODE_LINK {
        std::os::unix::fs::symlink(fs::read_link(source)?, temporary)?;
    } else {
        let mut from = open_regular(source)?;
        let mut to = OpenOptions::new().write(true).create_new(true).open(temporary)?;
        std::io::copy(&mut from, &mut to)?;
        // The user's own choice of who may read the file stays; git knows only whether it can be run.
        let old = fs::symlink_metadata(target).ok().filter(fs::Metadata::is_file);
        let mode = match old {
            Some(old) => old.permissions().mode() & 0o7777,
            None => from.metadata()?.permissions().mode() & 0o775,
        };
        let mode = if entry.mode & 0o111 != 0 { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 };
        fs::set_permissions(temporary, Permissions::from_mode(mode))?;
    }
    if !recorded.is(temporary, entry) {
        fs::remove_file(temporary)?;
        return Ok(CopyOutcome::InTheWay);
    }
    fs::rename(temporary, target)?;
    Ok(CopyOutcome::Done)
}

/// Opens a file for reading, and neither a link nor anything that would make the reader wait.
fn open_regular(path: &Path) -> std::io::Result<File> {
    let flags = nix::fcntl::OFlag::O_NOFOLLOW | nix::fcntl::OFlag::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(std::io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
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
    use ralph_loop_domain::vars::Vars;
    use std::path::PathBuf;

    #[allow(clippy::disallowed_methods, reason = "tests are a border, too")]
    fn git() -> Git {
        let vars: Vars = std::env::vars_os().collect();
        Git::in_folder(&vars, "/")
    }

    fn recorded(git: &Git) -> Recorded<'_> {
        Recorded { git, format: ObjectFormat::Sha1, attributes: None }
    }

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
        fn content(&self, path: &str) -> Vec<u8> {
            let path = self.from.join(path);
            match fs::read_link(&path) {
                Ok(target) => target.into_os_string().into_encoded_bytes(),
                Err(_) => fs::read(&path).unwrap_or_default(),
            }
        }
        fn bring(&self, path: &str, mode: Option<u32>) -> CopyOutcome {
            let entry = mode.map(|mode| TreeEntry {
                path: path.into(),
                mode,
                oid: ObjectFormat::Sha1.id_of("blob", &self.content(path)),
            });
            let seen = stat_of_file(&self.to, path.as_bytes());
            let places = (self.from.as_path(), self.to.as_path());
            bring(path.as_bytes(), entry.as_ref(), places, seen, &self.room, &recorded(&git())).unwrap()
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
        let entry = TreeEntry {
            path: b"g".to_vec(),
            mode: 0o100_644,
            oid: ObjectFormat::Sha1.id_of("blob", b"agent"),
        };
        let bring_g = |seen| {
            let places = (two.from.as_path(), two.to.as_path());
            bring(b"g", Some(&entry), places, seen, &two.room, &recorded(&git())).unwrap()
        };
        assert_eq!(bring_g(None), CopyOutcome::InTheWay);
        assert_eq!(fs::read(two.to.join("g")).unwrap(), b"just now");
        // Neither is what is no longer what was recorded of it.
        fs::write(two.from.join("g"), "later").unwrap();
        assert_eq!(bring_g(stat_of_file(&two.to, b"g")), CopyOutcome::InTheWay);
        fs::write(two.from.join("g"), "agent").unwrap();
        assert_eq!(bring_g(stat_of_file(&two.to, b"g")), CopyOutcome::Done);
    }

    #[test]
    fn a_path_that_is_too_long_in_the_other_folder_is_in_the_way() {
        let mut two = TwoFolders::new();
        two.to = two.to.with_file_name("t".repeat(250));
        fs::create_dir(&two.to).unwrap();
        let deep = format!("{}/", "l".repeat(200)).repeat((4080 - two.from.as_os_str().len()) / 201);
        fs::create_dir_all(two.from.join(&deep)).unwrap();
        fs::write(two.from.join(&deep).join("f"), "x").unwrap();
        assert_eq!(two.bring(&format!("{deep}f"), Some(0o100_644)), CopyOutcome::InTheWay);
    }
}
