//! Reads and writes in a `.ralph/` folder. Agents and repos can write there as well, so everything goes through
//! [`ralph_loop_safe_fs`]: no link is followed, only regular files count, and nothing blocks.

use crate::error::JournalError;
use crate::folder::layout::RalphDir;
use ralph_loop_protocol::id::Digest;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Longer logs are rotated to `NAME.1`.
const ROTATE_AT: u64 = 4 * 1024 * 1024;
const CONFIG_MAX: u64 = 16 * 1024 * 1024;
const NAME: &str = ".ralph";

impl RalphDir {
    fn open(&self) -> io::Result<SafeDir> {
        SafeDir::open(self.workspace())?.folder(NAME)
    }

    /// The folder, created if missing, ready for a file `name` in it. A link or a file in its place is removed.
    fn make(&self, name: &str) -> io::Result<SafeDir> {
        let workspace = SafeDir::open(self.workspace())?;
        let clear = |dir: &SafeDir, path: &Path| match dir.facts(path) {
            Ok(facts) if facts.kind != Kind::Folder => dir.remove(path),
            _ => Ok(()),
        };
        clear(&workspace, Path::new(NAME))?;
        let dir = workspace.create_folder(NAME)?;
        let folders = Path::new(name).parent().map(Path::ancestors).into_iter().flatten();
        let mut folders: Vec<&Path> = folders.filter(|path| !path.as_os_str().is_empty()).collect();
        folders.reverse();
        folders.into_iter().try_for_each(|folder| clear(&dir, folder))?;
        Ok(dir)
    }

    fn workspace(&self) -> &Path {
        self.path().parent().unwrap_or(Path::new("/"))
    }

    pub fn open_file(&self, name: &str) -> io::Result<File> {
        self.open()?.open_file(name, Links::Refused)
    }

    /// The first `max` bytes of a file; `None` if it isn't a regular file.
    pub fn read(&self, name: &str, max: u64) -> Option<Vec<u8>> {
        self.open().ok()?.read(name, Links::Refused, max).ok()
    }

    /// The first `max` bytes as text; empty if unreadable.
    pub fn read_text(&self, name: &str, max: u64) -> String {
        String::from_utf8_lossy(&self.read(name, max).unwrap_or_default()).into_owned()
    }

    /// The last `max` bytes of a file as text, and where they begin; empty if unreadable.
    pub fn read_end(&self, name: &str, max: u64) -> (u64, String) {
        let read = self.open().and_then(|dir| dir.read_end(name, Links::Refused, max));
        read.map_or_else(
            |_| (0, String::new()),
            |(from, bytes)| (from, String::from_utf8_lossy(&bytes).into_owned()),
        )
    }

    pub fn config_digest(&self) -> Option<Digest> {
        self.read("config.json", CONFIG_MAX).map(|text| Digest::of(&text))
    }

    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let written = self.make(name).and_then(|dir| dir.write(name, bytes));
        written.map_err(|e| JournalError::file("write", &self.join(name), e))
    }

    /// Appends to a log for users; rotates a full one to `NAME.1`.
    pub fn append(&self, name: &str, text: &str) -> Result<(), JournalError> {
        let append = || {
            let dir = self.make(name)?;
            let mut file = dir.open_log(name)?;
            if file.metadata()?.len() > ROTATE_AT {
                dir.rename(name, format!("{name}.1"))?;
                file = dir.open_log(name)?;
            }
            file.write_all(text.as_bytes())
        };
        append().map_err(|e| JournalError::file("append to", &self.join(name), e))
    }

    /// Removes the entry of this name, if any.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        match self.open() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            dir => dir?.remove(name),
        }
    }

    /// Makes `name` a link to `target`, replacing any other entry.
    pub fn link(&self, name: &str, target: &Path) -> io::Result<()> {
        let dir = self.make(name)?;
        if dir.read_link(name).is_ok_and(|found| found == target) {
            return Ok(());
        }
        dir.link(name, target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn planted_links_are_replaced_and_never_followed() {
        let base = tempfile::tempdir().unwrap();
        let (top, outside) = (base.path().join("repo"), base.path().join("outside"));
        fs::create_dir_all(&top).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("errors.log"), "SECRET").unwrap();
        let dir = RalphDir::of(&top);
        // The whole folder is a link.
        symlink(&outside, top.join(".ralph")).unwrap();
        assert_eq!(dir.read_text("errors.log", 100), "");
        assert_eq!(dir.read_end("errors.log", 100), (0, String::new()));
        dir.append("errors.log", "one\n").unwrap();
        assert_eq!(fs::read_to_string(outside.join("errors.log")).unwrap(), "SECRET");
        assert_eq!(dir.read_text("errors.log", 100), "one\n");
        // A file in it is.
        fs::remove_file(dir.join("errors.log")).unwrap();
        symlink(outside.join("errors.log"), dir.join("errors.log")).unwrap();
        assert_eq!(dir.read("errors.log", 100), None);
        dir.append("errors.log", "two\n").unwrap();
        dir.write("state.json", b"{}").unwrap();
        assert_eq!(dir.read_text("errors.log", 100), "two\n");
        assert_eq!(fs::read_to_string(outside.join("errors.log")).unwrap(), "SECRET");
        assert!(!outside.join("state.json").exists());
        // A folder below it is.
        symlink(&outside, dir.join("changelog")).unwrap();
        dir.append("changelog/global.md", "x").unwrap();
        assert!(!outside.join("global.md").exists());
        assert_eq!(dir.read_text("changelog/global.md", 100), "x");
        dir.link("iterations", Path::new("runs/r1/iterations")).unwrap();
        dir.link("iterations", Path::new("runs/r2/iterations")).unwrap();
        assert_eq!(fs::read_link(dir.join("iterations")).unwrap(), Path::new("runs/r2/iterations"));
    }

    #[test]
    fn full_log_is_rotated() {
        let base = tempfile::tempdir().unwrap();
        let dir = RalphDir::of(base.path());
        dir.append("activity.log", "first\n").unwrap();
        fs::File::options()
            .write(true)
            .open(dir.join("activity.log"))
            .unwrap()
            .set_len(ROTATE_AT + 1)
            .unwrap();
        dir.append("activity.log", "second\n").unwrap();
        assert_eq!(dir.read_text("activity.log", 100), "second\n");
        assert!(dir.join("activity.log.1").is_file());
    }
}
