//! The file of an SQLite index: location, ownership check, handling of damage.

use crate::home::ServerHome;
use ralph_loop_app::AppError;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePool, SqlitePoolOptions,
    SqliteSynchronous,
};
use sqlx::{Connection as _, Executor as _};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// SQLite application id of a `ralph` index: the letters `ralp`.
const APPLICATION_ID: u32 = 0x7261_6c70;
const MAGIC: &[u8] = b"SQLite format 3\0";
const HEADER_BYTES: usize = 100;
const APPLICATION_ID_AT: usize = 68;
/// Damaged indexes kept next to a file.
const SET_ASIDE_MAX: u32 = 1000;

/// Content found at a path.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    Nothing,
    Index,
    Other,
}

/// Location of an SQLite index.
#[derive(Debug, Clone)]
pub(super) struct IndexFile {
    path: PathBuf,
    /// Named by the user; otherwise in the server's folder.
    is_named: bool,
}

impl IndexFile {
    pub(super) fn in_home(home: &ServerHome) -> Self {
        Self { path: home.file("index.sqlite"), is_named: false }
    }

    /// The file of a URL. `sqlite:///FILE` is relative to `folder`; `sqlite:////FILE` and `sqlite:/FILE` are
    /// absolute.
    pub(super) fn of_url(url: &str, folder: &Path) -> Option<Self> {
        let rest = url.strip_prefix("sqlite:")?;
        let path = rest.strip_prefix("///").or_else(|| rest.strip_prefix("//")).unwrap_or(rest);
        (!path.is_empty()).then(|| Self { path: folder.join(path), is_named: true })
    }

    /// Ensures that the file is an index of ours or can become one. Only a file in the server's folder is set
    /// aside if it isn't.
    pub(super) async fn claim(&self) -> Result<Option<PathBuf>, AppError> {
        let mut moved = None;
        match self.content().await? {
            Content::Index => return Ok(None),
            Content::Nothing => {}
            Content::Other if self.is_named => return Err(self.not_ours()),
            Content::Other => moved = Some(self.set_aside()?),
        }
        // Before the write-ahead log exists, because the mark would go there instead of the file.
        let mut first = SqliteConnection::connect_with(&self.options().create_if_missing(true))
            .await
            .map_err(|error| self.unusable(&error))?;
        let mark = format!("PRAGMA application_id = {APPLICATION_ID}");
        first.execute(sqlx::AssertSqlSafe(mark)).await.map_err(|error| self.unusable(&error))?;
        let _ = first.close().await;
        Ok(moved)
    }

    /// Connects to a claimed index.
    pub(super) async fn connect(&self) -> Result<SqlitePool, sqlx::Error> {
        let options = self
            .options()
            .journal_mode(SqliteJournalMode::Wal)
            // A power failure loses nothing that the records can't restore.
            .synchronous(SqliteSynchronous::Off)
            .busy_timeout(super::WAIT);
        SqlitePoolOptions::new()
            .max_connections(super::CONNECTIONS)
            .acquire_timeout(super::WAIT)
            .connect_with(options)
            .await
    }

    /// Moves a damaged index and its log to a free name next to it.
    pub(super) fn set_aside(&self) -> Result<PathBuf, AppError> {
        let free = (1..SET_ASIDE_MAX).map(|number| suffixed(&self.path, &format!(".broken-{number}")));
        let failed = |why: String| {
            AppError::environment(format!("cannot move the damaged index `{}`", self.path.display()))
                .cause(why)
                .hint("move it away, then start again: the records of the runs restore it")
        };
        let Some(to) = free.into_iter().find(|path| path.symlink_metadata().is_err()) else {
            return Err(failed(format!("{SET_ASIDE_MAX} damaged ones are there already")));
        };
        std::fs::rename(&self.path, &to).map_err(|e| failed(e.to_string()))?;
        for end in ["-wal", "-shm", "-journal"] {
            match std::fs::rename(suffixed(&self.path, end), suffixed(&to, end)) {
                Err(e) if e.kind() != ErrorKind::NotFound => return Err(failed(e.to_string())),
                _ => {}
            }
        }
        Ok(to)
    }

    pub(super) fn unusable(&self, error: &sqlx::Error) -> AppError {
        AppError::environment(format!("cannot use the index `{}`", self.path.display()))
            .cause(error.to_string())
            .hint("check that its folder exists and that you can write there; in RALPH_DB_URL, `sqlite:////FILE` is absolute and `sqlite:///FILE` relative")
    }

    fn not_ours(&self) -> AppError {
        AppError::usage(format!("`{}` isn't an index of `ralph`", self.path.display()))
            .cause("RALPH_DB_URL names a file that isn't such a database; nothing was changed")
            .hint("name a file that doesn't exist yet: `export RALPH_DB_URL=sqlite:///ralph-index.db`")
    }

    fn options(&self) -> SqliteConnectOptions {
        SqliteConnectOptions::new().filename(&self.path)
    }

    async fn content(&self) -> Result<Content, AppError> {
        let failed = |e: std::io::Error| {
            AppError::environment(format!("cannot read the index `{}`: {e}", self.path.display()))
        };
        let mut header = Vec::with_capacity(HEADER_BYTES);
        match ralph_loop_safe_fs::open_plain(&self.path) {
            Ok(file) => file.take(HEADER_BYTES as u64).read_to_end(&mut header).map_err(failed)?,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Content::Nothing),
            Err(e) if e.kind() == ErrorKind::InvalidInput => return Err(self.not_ours()),
            Err(e) => return Err(failed(e)),
        };
        if header.is_empty() {
            return Ok(Content::Nothing);
        }
        if header.len() < HEADER_BYTES || !header.starts_with(MAGIC) {
            return Ok(Content::Other);
        }
        let marked =
            header.get(APPLICATION_ID_AT..).is_some_and(|id| id.starts_with(&APPLICATION_ID.to_be_bytes()));
        match marked || self.has_our_tables().await {
            true => Ok(Content::Index),
            false => Ok(Content::Other),
        }
    }

    /// Recognizes an unmarked older index. Opened as immutable, so that no files appear next to it.
    async fn has_our_tables(&self) -> bool {
        let Ok(mut peek) =
            SqliteConnection::connect_with(&self.options().read_only(true).immutable(true)).await
        else {
            return false;
        };
        let found = sqlx::query_scalar::<_, i64>(
            "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name IN ('ralph_index_version', 'idempotency')",
        )
        .fetch_one(&mut peek)
        .await;
        let _ = peek.close().await;
        found.is_ok_and(|tables| tables == 2)
    }
}

/// Whether an error means damaged content, rather than a busy, full or protected file.
pub(super) fn is_damage(error: &sqlx::Error) -> bool {
    const ERROR: i32 = 1;
    const CORRUPT: i32 = 11;
    const NOT_A_DATABASE: i32 = 26;
    let sqlx::Error::Database(error) = error else { return false };
    let code = error.code().and_then(|code| code.parse::<i32>().ok());
    // The low byte is the kind, the rest details.
    code.is_some_and(|code| [ERROR, CORRUPT, NOT_A_DATABASE].contains(&(code & 0xff)))
}

fn suffixed(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::super::Index;
    use super::*;
    use ralph_loop_journal::folder::layout::StateHome;

    fn home(folder: &Path) -> ServerHome {
        ServerHome::make(&StateHome::from_env(folder.to_str(), None).unwrap()).unwrap()
    }

    /// Overwrites what follows the header.
    fn damage(path: &Path) {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[HEADER_BYTES..4096].fill(0xff);
        std::fs::write(path, bytes).unwrap();
    }

    #[test]
    fn three_slashes_are_relative_and_four_absolute() {
        let path = |url: &str| IndexFile::of_url(url, Path::new("/work")).map(|file| file.path);
        assert_eq!(path("sqlite:///./ralph.db"), Some("/work/./ralph.db".into()));
        assert_eq!(path("sqlite://ralph.db"), Some("/work/ralph.db".into()));
        assert_eq!(path("sqlite:ralph.db"), Some("/work/ralph.db".into()));
        assert_eq!(path("sqlite:////data/ralph.db"), Some("/data/ralph.db".into()));
        assert_eq!(path("sqlite:/data/ralph.db"), Some("/data/ralph.db".into()));
        assert_eq!(path("sqlite:///"), None);
        assert_eq!(path("mysql://db/x"), None);
    }

    #[tokio::test]
    async fn a_file_that_is_not_an_index_is_refused_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        let other = folder.path().join("other.db");
        let mut theirs = SqliteConnection::connect_with(
            &SqliteConnectOptions::new().filename(&other).create_if_missing(true),
        )
        .await
        .unwrap();
        theirs.execute("CREATE TABLE runs (id TEXT)").await.unwrap();
        theirs.close().await.unwrap();
        let notes = folder.path().join("notes.txt");
        std::fs::write(&notes, "my notes, and long enough to be more than a header of SQLite ".repeat(3))
            .unwrap();
        for path in [&notes, &other, &folder.path().to_owned()] {
            let before = std::fs::read(path).ok();
            let error = Index::open(Some(&format!("sqlite:{}", path.display())), folder.path(), &home)
                .await
                .unwrap_err();
            assert!(error.message.contains("isn't an index of `ralph`"), "{error:?}");
            assert_eq!(std::fs::read(path).ok(), before);
        }
        let mut names: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["notes.txt", "other.db", "ralph"], "nothing new next to them");
    }

    #[tokio::test]
    async fn a_damaged_index_is_set_aside_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let home = home(folder.path());
        let url = "sqlite:///ralph.db";
        let path = folder.path().join("ralph.db");
        for number in 1..=2 {
            let index = Index::open(Some(url), folder.path(), &home).await.unwrap();
            assert_eq!(index.set_aside(), None);
            index.close().await;
            damage(&path);
            let bytes = std::fs::read(&path).unwrap();
            let index = Index::open(Some(url), folder.path(), &home).await.unwrap();
            let kept = folder.path().join(format!("ralph.db.broken-{number}"));
            assert_eq!(index.set_aside(), Some(kept.as_path()));
            assert_eq!(std::fs::read(kept).unwrap(), bytes);
            assert!(index.answers().await && index.known().await.unwrap().is_empty());
            index.close().await;
        }
    }
}
