//! The id of this machine: random, created once in the state home. It tells drivers on several machines apart and
//! says nothing about the machine.

use crate::error::JournalError;
use crate::folder::layout::StateHome;
use ralph_loop_protocol::id::MachineId;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Random bytes in an id, written as twice as many digits.
const BYTES: usize = 16;

/// The id of this machine, created if missing. Two processes that ask for the first time get the same.
pub fn id(home: &StateHome) -> Result<MachineId, JournalError> {
    let path = home.machine_id();
    if let Some(known) = read(&path) {
        return Ok(known);
    }
    let failed = |verb, path: &Path, error| JournalError::file(verb, path, error);
    std::fs::create_dir_all(home.path()).map_err(|e| failed("make the folder", home.path(), e))?;
    let fresh = random().map_err(|e| failed("write", &path, e))?;
    let draft = path.with_file_name(format!("machine-id.{fresh}"));
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| writeln!(file, "{fresh}"))
        // Linking is atomic, whatever other processes do; an invalid file is replaced.
        .and_then(|()| match std::fs::hard_link(&draft, &path) {
            Err(_) if read(&path).is_none() => std::fs::rename(&draft, &path),
            _ => Ok(()),
        });
    let _ = std::fs::remove_file(&draft);
    written.map_err(|e| failed("write", &path, e))?;
    Ok(read(&path).unwrap_or_else(|| MachineId::new(fresh)))
}

fn read(path: &Path) -> Option<MachineId> {
    let mut text = String::new();
    std::fs::File::open(path).ok()?.take(2 * BYTES as u64 + 2).read_to_string(&mut text).ok()?;
    let text = text.trim_end_matches('\n');
    let digits = text.len() == 2 * BYTES && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    digits.then(|| MachineId::new(text))
}

fn random() -> std::io::Result<String> {
    let mut bytes = [0u8; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    let mut text = String::with_capacity(2 * BYTES);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn id_is_created_once_and_private() {
        let temp = tempfile::tempdir().unwrap();
        let home = StateHome::at(&temp.path().join("state/ralph"));
        let asked: Vec<_> = (0..8)
            .map(|_| {
                let home = home.clone();
                std::thread::spawn(move || id(&home).unwrap())
            })
            .collect();
        let ids: Vec<MachineId> = asked.into_iter().map(|one| one.join().unwrap()).collect();
        assert!(ids.iter().all(|one| *one == ids[0]), "{ids:?}");
        assert_eq!(ids[0].as_str().len(), 32);
        assert_eq!(id(&home).unwrap(), ids[0]);
        let mode = std::fs::metadata(home.machine_id()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "no draft stays behind");
    }

    #[test]
    fn file_without_an_id_is_replaced() {
        let temp = tempfile::tempdir().unwrap();
        let home = StateHome::at(temp.path());
        for garbage in ["", "no id\n", &"f".repeat(33)] {
            std::fs::write(home.machine_id(), garbage).unwrap();
            let made = id(&home).unwrap();
            assert_eq!(std::fs::read_to_string(home.machine_id()).unwrap(), format!("{made}\n"));
        }
        let other = tempfile::tempdir().unwrap();
        assert_ne!(id(&home).unwrap(), id(&StateHome::at(other.path())).unwrap());
    }
}
