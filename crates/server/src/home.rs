//! Where the server keeps what is its own: below `ralph`'s folder of this user, for this user alone.

use ralph_loop_app::AppError;
use ralph_loop_journal::artifacts;
use ralph_loop_journal::layout::StateHome;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Most bytes of a file that the server keeps.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// The server's own folder.
#[derive(Debug, Clone)]
pub struct ServerHome(PathBuf);

impl ServerHome {
    /// Makes the folder, for its owner alone.
    pub fn make(home: &StateHome) -> Result<Self, AppError> {
        let path = home.path().join("server");
        let failed = |e| AppError::environment(format!("cannot make the folder `{}`: {e}", path.display()));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path.join("queue")).map_err(failed)?;
        Ok(Self(path))
    }
    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }
    /// A file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    /// The runs that wait for their turn.
    pub fn queue(&self) -> PathBuf {
        self.0.join("queue")
    }
    /// The content of a file; `None` where there is none. One that others can read is refused.
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
    /// Writes a file that nobody else can read, all at once.
    pub fn write_private(&self, path: &Path, bytes: &[u8]) -> Result<(), AppError> {
        artifacts::write_atomic(path, bytes)?;
        let failed = |e| AppError::environment(format!("cannot protect `{}`: {e}", path.display()));
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)
    }
    /// Opens a file that is only added to.
    pub fn append(&self, path: &Path) -> std::io::Result<std::fs::File> {
        std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(path)
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> AppError {
    AppError::environment(format!("cannot read `{}`: {error}", path.display()))
}
