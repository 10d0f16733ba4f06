//! Files of a checkout as they were at the start, the rest of it as it is.

use ralph_loop_evidence::harness::{as_at_start, with_examples_of};
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// A larger file is not put back.
const FILE_MAX: u64 = 64 * 1024 * 1024;

/// What is put back.
#[derive(Debug, Default)]
pub(crate) struct PutBack {
    /// The files.
    pub paths: BTreeSet<String>,
    /// Those of which only the examples in their documentation are.
    pub examples: BTreeSet<String>,
    /// Those of which nothing is product, though of their kind some parts are.
    pub whole: BTreeSet<String>,
    /// Those that stood elsewhere at the start: where.
    pub moved: BTreeMap<String, String>,
}

impl PutBack {
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether the change of a file is undone by this.
    pub(crate) fn contains(&self, path: &str) -> bool {
        self.paths.contains(path) || self.moved.values().any(|from| from == path)
    }

    /// The file as it was, with what is product in it as it is.
    fn text_of(&self, path: &str, old: Option<&str>, new: Option<&str>, top: &SafeDir) -> Option<String> {
        if self.whole.contains(path) {
            return old.map(str::to_owned);
        }
        if let Some(new) = new.filter(|_| self.examples.contains(path)) {
            return Some(with_examples_of(old, new));
        }
        let folder = path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        as_at_start(path, old, new, &|name| top.facts(format!("{folder}{name}")).is_ok())
    }
}

/// Puts files back to what they are in the folder `start`, in the folder `into`: only the keys that decide, where the rest of a
/// file is product.
pub(crate) fn put_back(back: &PutBack, start: &Path, into: &Path) -> io::Result<()> {
    let (old, new) = (SafeDir::open(start)?, SafeDir::open(into)?);
    // What was not there goes first: it may stand where a folder was.
    for path in &back.paths {
        if old.facts(path).is_ok() {
            continue;
        }
        let before = back.moved.get(path).and_then(|from| text(&old, from));
        let rest = text(&new, path).and_then(|now| back.text_of(path, before.as_deref(), Some(&now), &new));
        match rest {
            Some(rest) => new.replace(path, rest.as_bytes())?,
            None => {
                new.remove(path)?;
                remove_folders(path, &old, &new)?;
            }
        }
    }
    for path in &back.paths {
        let Ok(facts) = old.facts(path) else { continue };
        match facts.kind {
            Kind::Link => new.link(path, &old.read_link(path)?)?,
            Kind::File => {
                let bytes = match (text(&old, path), text(&new, path)) {
                    (Some(was), Some(now)) => {
                        back.text_of(path, Some(&was), Some(&now), &new).map(String::into_bytes)
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

/// Removes the folders of a file that is gone, as far as nothing is left in them and the start had none: a program may go by that
/// a folder is there.
fn remove_folders(path: &str, old: &SafeDir, new: &SafeDir) -> io::Result<()> {
    let mut folder = path;
    while let Some((above, _)) = folder.rsplit_once('/') {
        let is_empty = new.entries(above, 1).is_ok_and(|inside| inside.is_empty());
        if old.facts(above).is_ok() || !is_empty {
            break;
        }
        new.remove(above)?;
        folder = above;
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
        write(&into, "test/deep/keep", "new");
        write(&into, "lib/own.py", "work");
        write(&into, "lib/test_own.py", "new");
        let paths = ["tests/run.sh", "tests/gone.py", "tests/more.py", "test/deep/keep", "lib/test_own.py"];
        let paths = paths.map(str::to_owned).into();
        put_back(&PutBack { paths, ..PutBack::default() }, &start, &into).unwrap();
        assert_eq!(std::fs::read_to_string(into.join("tests/run.sh")).unwrap(), "old");
        let mode = std::fs::metadata(into.join("tests/run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111 & mode);
        assert!(mode & 0o100 != 0 && into.join("tests/gone.py").exists() && into.join("part.txt").exists());
        assert!(!into.join("tests/more.py").exists() && !into.join("test").exists());
        assert!(into.join("lib/own.py").exists());
    }
}
