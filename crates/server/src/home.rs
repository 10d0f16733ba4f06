//! The server's private files, below the user's `ralph` folder.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use ralph_loop_app::AppError;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::{artifacts, machine};
use ralph_loop_protocol::display::text::one_line;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Size limit of a file.
const FILE_MAX: u64 = 16 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct ServerHome {
    folder: PathBuf,
    state: StateHome,
}

/// The right to write the folder's users, sessions and queue; one server has it as long as it runs.
#[derive(Debug)]
pub struct Claim(Flock<std::fs::File>);

impl Claim {
    /// Tells the next server who has the folder.
    pub fn name(&mut self, url: &str) -> std::io::Result<()> {
        self.0.set_len(0)?;
        self.0.write_all(format!("process {} serves {url}", std::process::id()).as_bytes())
    }
}

impl ServerHome {
    /// Creates the folder, private to its owner.
    pub fn make(home: &StateHome) -> Result<Self, AppError> {
        let path = home.path().join("server");
        let failed = |e| AppError::environment(format!("cannot make the folder `{}`: {e}", path.display()));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path.join("queue")).map_err(failed)?;
        Ok(Self { folder: path, state: home.clone() })
    }
    /// Takes the folder for this server. Two would overwrite each other's users and start queued runs twice.
    pub fn claim(&self) -> Result<Claim, AppError> {
        let path = self.file("lock");
        let file = std::fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(|e| AppError::environment(format!("cannot open `{}`: {e}", path.display())))?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Claim(lock)),
            Err((_, Errno::EWOULDBLOCK)) => {
                let by = ralph_loop_safe_fs::read_plain(&path, 4096).unwrap_or_default();
                let by = one_line(&String::from_utf8_lossy(&by), 200);
                let by = if by.is_empty() { "it is starting or ending".to_owned() } else { by };
                Err(AppError::environment(format!("another server uses `{}`", self.folder.display()))
                    .cause(by)
                    .hint("open that address or stop that server; `XDG_STATE_HOME=DIR ralph serve` uses another folder"))
            }
            Err((_, errno)) => {
                Err(AppError::environment(format!("cannot lock `{}`: {errno}", path.display())))
            }
        }
    }
    /// The id of this machine.
    pub fn machine(&self) -> Result<String, AppError> {
        Ok(machine::id(&self.state)?.to_string())
    }
    pub fn path(&self) -> &Path {
        &self.folder
    }
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
    /// Waiting runs.
    pub fn queue(&self) -> PathBuf {
        self.folder.join("queue")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_one_server_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let home = ServerHome::make(&StateHome::from_env(folder.path().to_str(), None).unwrap()).unwrap();
        let mut first = home.claim().unwrap();
        first.name("http://127.0.0.1:8000").unwrap();
        let refused = home.claim().unwrap_err();
        assert!(refused.message.contains("another server uses"), "{refused:?}");
        assert!(format!("{refused:?}").contains("http://127.0.0.1:8000"), "{refused:?}");
        drop(first);
        home.claim().unwrap();
    }
}
