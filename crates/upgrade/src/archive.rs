//! Archives, unpacked where nothing of theirs can lead out of the folder.

use crate::error::UpgradeError;
use std::fs::{self, File};
use std::io::{BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// Files of an archive.
const FILES_MAX: usize = 2_000;
/// Bytes of all of them.
const BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Unpacks the regular files below the archive's one folder and returns their paths. Links, devices, paths that lead elsewhere
/// and names that a list of files could not hold are refused, not skipped: no archive of ours has any. Everybody may use what
/// is unpacked and only its owner change it, whatever the archive and this process say of rights.
pub(crate) fn unpack(archive: &Path, name: &str, into: &Path) -> Result<Vec<PathBuf>, UpgradeError> {
    let wrong = |reason: String| UpgradeError::Archive { name: name.to_owned(), reason };
    let file = File::open(archive).map_err(UpgradeError::file("read", archive))?;
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(BufReader::new(file)));
    let (mut files, mut left) = (Vec::new(), BYTES_MAX);
    for entry in tar.entries().map_err(|e| wrong(e.to_string()))? {
        let mut entry = entry.map_err(|e| wrong(e.to_string()))?;
        let path = entry.path().map_err(|e| wrong(e.to_string()))?.into_owned();
        let kind = entry.header().entry_type();
        let shown = path.display().to_string().escape_debug().to_string();
        let below = below_folder(&path).ok_or_else(|| wrong(format!("`{shown}` leads elsewhere")))?;
        if !is_plain(&below) {
            return Err(wrong(format!("`{shown}` is not written in plain characters")));
        }
        if kind.is_dir() {
            continue;
        }
        if !kind.is_file() || below.as_os_str().is_empty() {
            return Err(wrong(format!("`{shown}` is no regular file")));
        }
        left = left.checked_sub(entry.size()).ok_or_else(|| wrong("it is too large".into()))?;
        if files.len() == FILES_MAX {
            return Err(wrong("it has too many files".into()));
        }
        let runs = entry.header().mode().unwrap_or(0) & 0o100 != 0;
        let target = into.join(&below);
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).map_err(UpgradeError::file("make", folder))?;
        }
        let mut out = File::create_new(&target).map_err(UpgradeError::file("write", &target))?;
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = entry.read(&mut buffer).map_err(|e| wrong(e.to_string()))?;
            if read == 0 {
                break;
            }
            out.write_all(&buffer[..read]).map_err(UpgradeError::file("write", &target))?;
        }
        let rights = fs::Permissions::from_mode(if runs { 0o755 } else { 0o644 });
        out.set_permissions(rights)
            .and_then(|()| out.sync_all())
            .map_err(UpgradeError::file("write", &target))?;
        files.push(below);
    }
    Ok(files)
}

/// The path without its first folder; nothing where it has other parts than names.
fn below_folder(path: &Path) -> Option<PathBuf> {
    let mut parts = path.components();
    let named = |part: &Component<'_>| matches!(part, Component::Normal(_));
    parts.next().filter(named)?;
    let rest = parts.as_path();
    rest.components().all(|part| named(&part)).then(|| rest.to_owned())
}

/// Whether a name can stand in a list with one name per line, and on a terminal.
fn is_plain(path: &Path) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._+@~/-".contains(byte);
    path.as_os_str().as_encoded_bytes().iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_folder_and_never_lead_out() {
        assert_eq!(below_folder(Path::new("r-1/bin/ralph")), Some("bin/ralph".into()));
        assert_eq!(below_folder(Path::new("r-1/")), Some(PathBuf::new()));
        for bad in ["/etc/passwd", "../x", "r-1/../../x", "r-1/a/../b"] {
            assert_eq!(below_folder(Path::new(bad)), None, "{bad}");
        }
    }
}
