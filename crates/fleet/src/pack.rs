//! Several files as one object, a tar: a store takes about as long for a small file as for ten of them.

use crate::error::FleetError;
use std::io::Read as _;
use std::path::{Component, Path};

/// The end of a pack's name.
pub const SUFFIX: &str = ".tar";

/// The files, by their names, as one object.
pub fn pack(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, FleetError> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, name, bytes.as_slice()).map_err(|e| odd(&e))?;
    }
    tar.into_inner().map_err(|e| odd(&e))
}

/// Unpacks the files of a pack. Any client with the store's key can write a pack, so only plain files with plain names come
/// out, and none larger than `most`.
pub fn unpack(bytes: &[u8], most: u64) -> Result<Vec<(String, Vec<u8>)>, FleetError> {
    let mut files = Vec::new();
    for entry in tar::Archive::new(bytes).entries().map_err(|e| odd(&e))? {
        let entry = entry.map_err(|e| odd(&e))?;
        let path = entry.path().map_err(|e| odd(&e))?.into_owned();
        let Some(name) = plain(&path) else { continue };
        if !entry.header().entry_type().is_file() || entry.size() > most {
            continue;
        }
        let mut content = Vec::new();
        entry.take(most).read_to_end(&mut content).map_err(|e| odd(&e))?;
        files.push((name, content));
    }
    Ok(files)
}

fn plain(path: &Path) -> Option<String> {
    let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    path.to_str().filter(|name| plain && !name.is_empty()).map(str::to_owned)
}

fn odd(why: &std::io::Error) -> FleetError {
    FleetError::Store(format!("files of the run cannot be packed or unpacked: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_comes_out() {
        let long = format!("record/iterations/1/{}.log", "n".repeat(180));
        let files = vec![
            ("record/iterations/1/receipt.json".to_owned(), b"{}".to_vec()),
            ("ralph/notes.md".to_owned(), Vec::new()),
            (long, vec![7; 2000]),
        ];
        assert_eq!(unpack(&pack(&files).unwrap(), 4096).unwrap(), files);
        assert_eq!(unpack(&pack(&[]).unwrap(), 4096).unwrap(), []);
    }

    #[test]
    fn nothing_but_plain_files_comes_out() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut add = |name: &str, kind: tar::EntryType, size: u64| {
            let mut header = tar::Header::new_gnu();
            // As a hostile writer would: past every check of the name.
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(kind);
            header.set_size(size);
            header.set_cksum();
            tar.append(&header, std::io::repeat(b'x').take(size)).unwrap();
        };
        add("../../out", tar::EntryType::Regular, 3);
        add("/etc/passwd", tar::EntryType::Regular, 3);
        add("record/link", tar::EntryType::Symlink, 0);
        add("record/large", tar::EntryType::Regular, 5000);
        add("record/good", tar::EntryType::Regular, 3);
        let files = unpack(&tar.into_inner().unwrap(), 4096).unwrap();
        assert_eq!(files, [("record/good".to_owned(), b"xxx".to_vec())]);
    }

    #[test]
    fn a_torn_pack_is_an_error() {
        let mut bytes = pack(&[("record/a".to_owned(), vec![1; 3000])]).unwrap();
        bytes.truncate(1500);
        assert!(unpack(&bytes, 4096).is_err());
    }
}
