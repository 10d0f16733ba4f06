//! Folders of objects that borrow from others.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// A folder of objects, and all that it borrows from.
pub(crate) fn borrowed_from(objects: &Path) -> Vec<PathBuf> {
    let mut found = vec![objects.to_owned()];
    let mut at = 0;
    // Git itself follows five steps.
    while at < found.len() && found.len() < 16 {
        let folder = found[at].clone();
        at += 1;
        let list = fs::read(folder.join("info/alternates")).unwrap_or_default();
        for line in list.split(|b| *b == b'\n').filter(|l| !l.is_empty() && !l.starts_with(b"#")) {
            let path = folder.join(OsStr::from_bytes(line));
            if !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}
