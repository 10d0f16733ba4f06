//! The files of a local forge: small JSON files, replaced atomically, numbered under a lock.

use crate::error::{Result, refused, unavailable};
use jiff::Timestamp;
use nix::fcntl::{Flock, FlockArg};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Most files read from one folder.
const FILES_MAX: usize = 2000;
/// A longer file is neither a user's nor ours.
const FILE_MAX: u64 = 8 * 1024 * 1024;

/// Held during a write.
pub(crate) struct Held(#[expect(dead_code, reason = "dropping it lets go")] Flock<File>);

pub(crate) struct StoredFile<T> {
    pub id: u64,
    pub at: Option<Timestamp>,
    pub value: T,
}

fn trouble(verb: &str, path: &Path, error: &io::Error) -> ralph_loop_domain::ports::ForgeError {
    unavailable(format!("cannot {verb} `{}`", path.display()), error)
}

/// Waits until no other process writes.
pub(crate) fn lock(root: &Path) -> Result<Held> {
    let path = root.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let mut file = file.map_err(|e| trouble("open", &path, &e))?;
    loop {
        match Flock::lock(file, FlockArg::LockExclusive) {
            Ok(held) => return Ok(Held(held)),
            Err((again, nix::errno::Errno::EINTR)) => file = again,
            Err((_, errno)) => return Err(trouble("lock", &path, &errno.into())),
        }
    }
}

pub(crate) fn folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|e| trouble("create", path, &e))
}

pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match fs::metadata(path) {
        Ok(meta) if meta.len() > FILE_MAX => {
            return Err(refused(
                format!("cannot read `{}`", path.display()),
                "it is too large",
                "make it smaller",
            ));
        }
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(trouble("read", path, &e)),
    }
    let bytes = fs::read(path).map_err(|e| trouble("read", path, &e))?;
    serde_json::from_slice(&bytes).map(Some).map_err(|e| {
        refused(format!("cannot read `{}`", path.display()), e, "mend the JSON in it, or remove the file")
    })
}

/// Replaces a file: readers see the old one or the new one.
pub(crate) fn write(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| unavailable("cannot write JSON", e))?;
    text.push('\n');
    write_bytes(path, text.as_bytes())
}

pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let parent = path.parent().unwrap_or(path);
    folder(parent)?;
    let name = format!(".new-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let new = parent.join(name);
    let written = File::create(&new).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)
    });
    written.map_err(|e| {
        let _ = fs::remove_file(&new);
        trouble("write", path, &e)
    })
}

/// The numbered and named files of a folder, oldest first if their names have numbers.
pub(crate) fn list<T: DeserializeOwned>(folder: &Path) -> Result<Vec<StoredFile<T>>> {
    let mut found = Vec::new();
    for path in files(folder)? {
        let at =
            fs::metadata(&path).and_then(|m| m.modified()).ok().and_then(|t| Timestamp::try_from(t).ok());
        // Removed since it was listed.
        if let Some(value) = read(&path)? {
            found.push(StoredFile { id: id_of(&path), at, value });
        }
    }
    found.sort_by_key(|one| one.id);
    Ok(found)
}

/// Like [`list`], with paths, by name.
pub(crate) fn list_named<T: DeserializeOwned>(folder: &Path) -> Result<Vec<(PathBuf, T)>> {
    let mut paths = files(folder)?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if let Some(value) = read(&path)? {
            found.push((path, value));
        }
    }
    Ok(found)
}

/// The end of a text file; `None` if it doesn't exist.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(FILE_MAX)))?;
        file.take(FILE_MAX).read_to_end(&mut bytes)
    });
    match read {
        Ok(_) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(trouble("read", path, &e)),
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(trouble("list", folder, &e)),
    };
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| {
        path.extension().is_some_and(|e| e == "json")
            && !path.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."))
    });
    Ok(paths.take(FILES_MAX).collect())
}

/// A number that no file of these folders has yet. Only under the lock.
pub(crate) fn next_number(folders: &[PathBuf], _: &Held) -> Result<u64> {
    let mut last = 0;
    for folder in folders {
        for path in files(folder)? {
            last = last.max(number_of(&path).unwrap_or(0));
        }
    }
    Ok(last + 1)
}

fn number_of(path: &Path) -> Option<u64> {
    path.file_stem()?.to_str()?.parse().ok()
}

fn id_of(path: &Path) -> u64 {
    number_of(path).unwrap_or_else(|| {
        let name = path.file_stem().unwrap_or_default().as_encoded_bytes();
        // FNV-1a, above every counted number.
        let hash = name.iter().fold(0x811c_9dc5_u32, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193));
        (1 << 32) | u64::from(hash)
    })
}

/// A file name for any text: `/` and other special characters become `%xx`, as in a URL.
pub(crate) fn file_name(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b' ' => out.push(char::from(byte)),
            b'.' if !out.is_empty() => out.push('.'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    ralph_loop_protocol::display::text::head(&out, 200).to_owned()
}
