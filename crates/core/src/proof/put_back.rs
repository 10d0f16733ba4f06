//! Files of a checkout as they were at the start, the rest of it as it is.

use ralph_evidence::harness::as_at_start;
use ralph_safe_fs::{Kind, Links, SafeDir};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A larger file is not put back.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// Puts `paths` back to what they are in the folder `start`, in the folder `into`: only the keys that decide, where the rest of a
/// file is product.
pub(crate) fn put_back(paths: &BTreeSet<String>, start: &Path, into: &Path) -> io::Result<()> {
    let (old, new) = (SafeDir::open(start)?, SafeDir::open(into)?);
    // What was not there goes first: it may stand where a folder was.
    for path in paths {
        if old.facts(path).is_ok() {
            continue;
        }
        match text(&new, path).and_then(|now| as_at_start(path, None, Some(&now))) {
            Some(rest) => new.replace(path, rest.as_bytes())?,
            None => new.remove(path)?,
        }
    }
    for path in paths {
        let Ok(facts) = old.facts(path) else { continue };
        match facts.kind {
            Kind::Link => new.link(path, &old.read_link(path)?)?,
            Kind::File => {
                let bytes = match (text(&old, path), text(&new, path)) {
                    (Some(was), Some(now)) => {
                        as_at_start(path, Some(&was), Some(&now)).map(String::into_bytes)
                    }
                    _ => None,
                };
                let bytes = match bytes {
                    Some(bytes) => bytes,
                    None => old.read(path, Links::Refused, FILE_MAX)?,
                };
                let mode = old.open_file(path, Links::Refused)?.metadata()?.permissions().mode();
                new.remove(path)?;
                new.write_with(path, &bytes, mode & 0o777)?;
            }
            _ => return Err(io::Error::other(format!("{path} is no file"))),
        }
    }
    Ok(())
}

fn text(folder: &SafeDir, path: &str) -> Option<String> {
    folder.read_text(path, Links::Refused, FILE_MAX).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_back_with_their_rights_and_new_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let (start, into) = (folder.path().join("start"), folder.path().join("into"));
        let write = |top: &Path, path: &str, text: &str| {
            let path = top.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(&start, "tests/run.sh", "old");
        std::fs::set_permissions(start.join("tests/run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        write(&start, "tests/gone.py", "gone");
        write(&into, "tests/run.sh", "new");
        write(&into, "tests/more.py", "more");
        write(&into, "part.txt", "work");
        let paths = ["tests/run.sh", "tests/gone.py", "tests/more.py"].map(str::to_owned).into();
        put_back(&paths, &start, &into).unwrap();
        assert_eq!(std::fs::read_to_string(into.join("tests/run.sh")).unwrap(), "old");
        let mode = std::fs::metadata(into.join("tests/run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111 & mode);
        assert!(mode & 0o100 != 0 && into.join("tests/gone.py").exists() && into.join("part.txt").exists());
        assert!(!into.join("tests/more.py").exists());
    }
}
