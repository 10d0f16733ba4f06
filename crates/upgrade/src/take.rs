//! A release put in the place of the version that is there.
#![allow(
    clippy::disallowed_methods,
    reason = "tries whether the new program starts, before it takes the place of the old"
)]

use crate::archive::unpack;
use crate::error::UpgradeError;
use crate::fetch::Sink;
use crate::place::{LIST, Place};
use crate::releases::{Checksums, Releases, is_sum};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File, TryLockError};
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program, below the prefix.
const PROGRAM: &str = "bin/ralph";
/// How the folders of upgrades that are at work begin.
const STAGING: &str = ".upgrade-";

/// What an upgrade did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The archive.
    pub archive: String,
    /// Its sum.
    pub sha256: String,
    /// Files that are there now.
    pub files: usize,
    /// Files of the version before that are gone.
    pub removed: usize,
}

/// Takes a release for `target` into a place. `pinned` is a sum that somebody got another way: it must be the archive's, too.
pub fn take(
    releases: &Releases,
    sums: &Checksums,
    target: &str,
    place: &Place,
    pinned: Option<&str>,
) -> Result<Taken, UpgradeError> {
    let (name, listed) = sums.archive(target)?;
    let pinned = pinned.map(str::to_ascii_lowercase);
    if let Some(wanted) = pinned.filter(|pinned| pinned != listed) {
        let (found, name) = (listed.to_owned(), name.to_owned());
        return Err(match is_sum(&wanted) {
            true => UpgradeError::WrongSum { name, wanted, found },
            false => UpgradeError::Sums { reason: format!("`{wanted}` is no SHA-256 sum") },
        });
    }
    let home = place.prefix.join("share/ralph");
    let _lock = lock(&home, &place.prefix)?;
    sweep(&home);
    let staging = home.join(format!("{STAGING}{}", ralph_http::random_word()));
    // Nobody else may change what was checked before it is put in its place.
    fs::DirBuilder::new().mode(0o700).create(&staging).map_err(UpgradeError::file("make", &staging))?;
    let taken = staged(releases, sums, (name, listed), target, place, &staging);
    let _ = fs::remove_dir_all(&staging);
    taken
}

fn staged(
    releases: &Releases,
    sums: &Checksums,
    (name, listed): (&str, &str),
    target: &str,
    place: &Place,
    staging: &Path,
) -> Result<Taken, UpgradeError> {
    let archive = staging.join("archive");
    let mut download = Download::new(&archive)?;
    releases.archive(&sums.version, name, &mut download)?;
    let found = download.finish()?;
    if found != listed {
        return Err(UpgradeError::WrongSum { name: name.to_owned(), wanted: listed.to_owned(), found });
    }
    let tree = staging.join("tree");
    fs::create_dir(&tree).map_err(UpgradeError::file("make", &tree))?;
    let files = unpack(&archive, name, &tree)?;
    starts(&tree.join(PROGRAM), &sums.version.to_string())?;
    let list = Place::list(&sums.version.to_string(), target, &files);
    let list_file = staging.join("installed");
    let everybody_reads = fs::Permissions::from_mode(0o644);
    let written = fs::write(&list_file, list).and_then(|()| fs::set_permissions(&list_file, everybody_reads));
    written.map_err(UpgradeError::file("write", &list_file))?;
    // From here on only names change. The list goes first, so that whatever comes is known to `uninstall.sh`; the program last.
    put(&list_file, &place.prefix.join(LIST))?;
    let mut others: Vec<&PathBuf> =
        files.iter().filter(|path| path.as_path() != Path::new(PROGRAM)).collect();
    others.sort();
    for path in others.into_iter().chain([&PathBuf::from(PROGRAM)]) {
        put(&tree.join(path), &place.prefix.join(path))?;
    }
    let gone = place.files.iter().filter(|old| !files.contains(old) && old.as_path() != Path::new(LIST));
    let removed = gone.filter(|old| fs::remove_file(place.prefix.join(old)).is_ok()).count();
    Ok(Taken { archive: name.to_owned(), sha256: found, files: files.len(), removed })
}

/// One upgrade of a place at a time; the lock ends with this process.
fn lock(home: &Path, prefix: &Path) -> Result<File, UpgradeError> {
    let path = home.join(".lock");
    let file = fs::OpenOptions::new().create(true).append(true).open(&path);
    let file = file.map_err(UpgradeError::file("write", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(UpgradeError::Busy { prefix: prefix.display().to_string() }),
        Err(TryLockError::Error(source)) => Err(UpgradeError::File { verb: "lock", path, source }),
    }
}

/// Removes what upgrades have left that were killed; under the lock no other is at work.
fn sweep(home: &Path) {
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(STAGING) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn put(from: &Path, to: &Path) -> Result<(), UpgradeError> {
    if let Some(folder) = to.parent() {
        make_folder(folder).map_err(UpgradeError::file("make", folder))?;
    }
    fs::rename(from, to).map_err(UpgradeError::file("replace", to))
}

/// Makes a folder and those above it, for everybody to look into, whatever this process says of rights.
fn make_folder(folder: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|above| !above.is_dir()).collect();
    for one in missing.into_iter().rev() {
        fs::create_dir(one)?;
        fs::set_permissions(one, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Whether a program starts here and is the version that it should be.
fn starts(program: &Path, version: &str) -> Result<(), UpgradeError> {
    let wrong = |reason: String| UpgradeError::DoesNotStart { reason };
    let mut command = Command::new(program);
    command.arg("--version").env_clear().stdin(Stdio::null());
    let output = command.output().map_err(|e| wrong(e.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout);
    match (output.status.success(), said.trim() == format!("ralph {version}")) {
        (true, true) => Ok(()),
        (true, false) => {
            Err(wrong(format!("it calls itself `{}`", said.trim().chars().take(80).collect::<String>())))
        }
        (false, _) => {
            let told = String::from_utf8_lossy(&output.stderr);
            let line = told.lines().next().unwrap_or_default().chars().take(200).collect::<String>();
            Err(wrong(format!("{} {line}", output.status).trim_end().to_owned()))
        }
    }
}

/// An archive on its way into a file, with its sum.
struct Download {
    path: PathBuf,
    file: File,
    hash: Sha256,
}

impl Download {
    fn new(path: &Path) -> Result<Self, UpgradeError> {
        let file = File::create_new(path).map_err(UpgradeError::file("write", path))?;
        Ok(Self { path: path.to_owned(), file, hash: Sha256::new() })
    }

    fn finish(self) -> Result<String, UpgradeError> {
        self.file.sync_all().map_err(UpgradeError::file("write", &self.path))?;
        Ok(self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl Sink for Download {
    fn restart(&mut self) -> Result<(), UpgradeError> {
        self.hash = Sha256::new();
        let emptied = self.file.set_len(0).and_then(|()| self.file.rewind());
        emptied.map_err(UpgradeError::file("write", &self.path))
    }
    fn take(&mut self, bytes: &[u8]) -> Result<(), UpgradeError> {
        self.hash.update(bytes);
        self.file.write_all(bytes).map_err(UpgradeError::file("write", &self.path))
    }
}
