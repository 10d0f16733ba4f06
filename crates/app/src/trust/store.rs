//! The user's approvals: one file per repo in their state folder, `trust/<repo>.json`.

use super::{Ask, identity};
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_protocol::id::Digest;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Why approvals can't be read or stored.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The file exists but can't be parsed.
    #[error("can't read your approvals in `{path}`: {why}")]
    Unreadable { path: String, why: String },
    #[error("can't write your approvals to `{path}`: {why}")]
    Unwritable { path: String, why: String },
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    version: u32,
    /// For display.
    repo: PathBuf,
    allowed: Vec<Ask>,
}

#[derive(Debug, Clone)]
pub struct TrustStore {
    repo: PathBuf,
    path: PathBuf,
}

impl TrustStore {
    pub fn of(home: &StateHome, top: &Path) -> Self {
        let repo = identity(top);
        let name = Digest::of(repo.as_os_str().as_bytes());
        Self { path: home.path().join("trust").join(format!("{name}.json")), repo }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What identifies the repo.
    pub fn repo(&self) -> &Path {
        &self.repo
    }

    pub fn allowed(&self) -> Result<Vec<Ask>, StoreError> {
        let bad = |why: String| StoreError::Unreadable { path: self.path.display().to_string(), why };
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(bad(e.to_string())),
        };
        let file: TrustFile = serde_json::from_slice(&text).map_err(|e| bad(e.to_string()))?;
        match file.version {
            1 => Ok(file.allowed),
            other => Err(bad(format!("it has version {other}, and this ralph reads version 1"))),
        }
    }

    /// Allows `asks` and forgets earlier approvals of the same files that aren't requested any more;
    /// `sources` lists the files examined.
    pub fn allow(&self, asks: &[Ask], sources: &[String]) -> Result<(), StoreError> {
        let _lock = self.lock()?;
        let mut allowed = self.allowed()?;
        allowed
            .retain(|old| !sources.contains(&old.source) && asks.iter().all(|new| new.digest != old.digest));
        allowed.extend(asks.iter().cloned());
        allowed.sort();
        let file = TrustFile { version: 1, repo: self.repo.clone(), allowed };
        let text = serde_json::to_vec_pretty(&file).map_err(|e| self.unwritable(e))?;
        artifacts::write_durable(&self.path, &text).map_err(|e| self.unwritable(e))
    }

    /// Forgets everything and returns the number of approvals.
    pub fn revoke(&self) -> Result<usize, StoreError> {
        let _lock = self.lock()?;
        let had = self.allowed()?.len();
        match std::fs::remove_file(&self.path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.unwritable(e)),
            _ => Ok(had),
        }
    }

    /// Serializes concurrent approvals.
    fn lock(&self) -> Result<nix::fcntl::Flock<File>, StoreError> {
        let open = || -> io::Result<File> {
            let folder = self.path.parent().unwrap_or(&self.path);
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            OpenOptions::new().create(true).append(true).mode(0o600).open(self.path.with_extension("lock"))
        };
        let file = open().map_err(|e| self.unwritable(e))?;
        nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive)
            .map_err(|(_, errno)| self.unwritable(errno))
    }

    fn unwritable(&self, why: impl std::fmt::Display) -> StoreError {
        StoreError::Unwritable { path: self.path.display().to_string(), why: why.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::PrivilegeKind;

    fn ask(source: &str, content: &str) -> Ask {
        Ask::new(PrivilegeKind::Sandbox, source, "allowed_hosts", content, content)
    }

    #[test]
    fn approvals_are_stored_per_repo_and_file() {
        let place = tempfile::tempdir().unwrap();
        let home = StateHome::at(&place.path().join("state"));
        let repo = |name: &str| {
            std::fs::create_dir_all(place.path().join(name).join(".git")).unwrap();
            TrustStore::of(&home, &place.path().join(name))
        };
        let (one, two) = (repo("one"), repo("two"));
        let sources = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(one.allowed().unwrap(), []);
        one.allow(&[ask("config", "a"), ask("config", "b")], &sources(&["config"])).unwrap();
        one.allow(&[ask("task", "c")], &sources(&["task"])).unwrap();
        one.allow(&[ask("config", "b")], &sources(&["config"])).unwrap();
        assert_eq!(one.allowed().unwrap(), [ask("config", "b"), ask("task", "c")]);
        assert_eq!(two.allowed().unwrap(), []);
        assert_eq!(one.revoke().unwrap(), 2);
        assert_eq!(one.allowed().unwrap(), []);
    }

    #[test]
    fn an_unreadable_file_is_reported_and_not_changed() {
        let place = tempfile::tempdir().unwrap();
        let store = TrustStore::of(&StateHome::at(place.path()), place.path());
        store.allow(&[ask("config", "a")], &[]).unwrap();
        std::fs::write(store.path(), "{\"version\": 1, ").unwrap();
        assert!(store.allowed().is_err());
        assert!(store.allow(&[ask("config", "b")], &[]).is_err());
        assert!(store.revoke().is_err());
        assert_eq!(std::fs::read_to_string(store.path()).unwrap(), "{\"version\": 1, ");
        std::fs::write(store.path(), "{\"version\": 2, \"repo\": \"/\", \"allowed\": []}").unwrap();
        assert!(store.allowed().unwrap_err().to_string().contains("version 2"));
    }
}
