//! The server's private files, below the user's `ralph` folder.

use ralph_loop_app::AppError;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::StateHome;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Size limit of a file.
const FILE_MAX: u64 = 16 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct ServerHome(PathBuf);

impl ServerHome {
    /// Creates the folder, private to its owner.
    pub fn make(home: &StateHome) -> Result<Self, AppError> {
        let path = home.path().join("server");
        let failed = |e| AppError::environment(format!("cannot make the folder `{}`: {e}", path.display()));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path.join("queue")).map_err(failed)?;
        Ok(Self(path))
    }
    pub fn path(&self) -> &Path {
        &self.0
    }
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    /// Waiting runs.
    pub fn queue(&self) -> PathBuf {
        self.0.join("queue")
    }
    /// A file's content; `None` if missing. Refuses a file that others can read.
    pub fn read_private(&self, path: &Path) -> Result<Option<Vec<u8>>, AppError> {
        let meta = match std::fs::metadata(path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(unreadable(path, &e)),
        };
        if meta.permissions().mode() & 0o077 != 0 {
            return Err(AppError::environment(format!("others can read `{}`", path.display()))
                .hint(format!("it holds secrets: `chmod 600 {}`", path.display())));
        }
        ralph_loop_safe_fs::read_plain(path, FILE_MAX).map(Some).map_err(|e| unreadable(path, &e))
    }
    /// Writes a private file atomically.
    pub fn write_private(&self, path: &Path, bytes: &[u8]) -> Result<(), AppError> {
        artifacts::write_atomic(path, bytes)?;
        let failed = |e| AppError::environment(format!("cannot protect `{}`: {e}", path.display()));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)
    }
    pub fn append(&self, path: &Path) -> std::io::Result<std::fs::File> {
        std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> AppError {
    AppError::environment(format!("cannot read `{}`: {error}", path.display()))
}
