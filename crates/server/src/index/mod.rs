//! The index: one row per run, so that lists, searches and totals needn't read a hundred thousand journals.
//! It is disposable: rebuilding it from run records gives the same rows.
//!
//! SQLite in the server's folder, or the file or Postgres that `RALPH_DB_URL` names, with the same
//! statements.

mod costs;
mod counts;
mod file;
mod keys;
mod list;
mod read;
mod schema;
mod spend;
mod words;
mod write;

pub use costs::{CostRow, CostSums, CostsBy};
pub use keys::KnownKey;
pub use list::{ListQuery, Page, SortBy};
pub use read::{entries, read_run};
pub use spend::Spend;
pub use write::Indexed;

use crate::home::ServerHome;
use counts::Counts;
use file::IndexFile;
use ralph_loop_app::AppError;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::SqlitePool;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;
use words::Words;

/// Connections to a database.
const CONNECTIONS: u32 = 4;
/// How long a statement waits for a lock, and a database may take to answer at start.
const WAIT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Index {
    pool: Pool,
    file: Option<IndexFile>,
    set_aside: Option<PathBuf>,
    /// This machine's id: rows that it writes carry it.
    home: String,
    totals: Counts<i64>,
    by_status: Counts<BTreeMap<String, i64>>,
    words: Words,
}

#[derive(Debug)]
enum Pool {
    Sqlite(SqlitePool),
    Postgres(PgPool),
}

/// Runs the same statements on either database.
macro_rules! on {
    ($index:expr, $pool:ident => $body:expr) => {
        match &$index.pool {
            $crate::index::Pool::Sqlite($pool) => $body,
            $crate::index::Pool::Postgres($pool) => $body,
        }
    };
}
pub(crate) use on;

impl Index {
    /// Opens the database that the URL names, or a file in the server's folder. A relative file is in
    /// `folder`. A damaged index is set aside; a file that isn't an index is refused.
    pub async fn open(url: Option<&str>, folder: &Path, home: &ServerHome) -> Result<Self, AppError> {
        let index = Self::open_unnamed(url, folder, home).await?;
        Ok(Self { home: home.machine()?, ..index })
    }

    async fn open_unnamed(url: Option<&str>, folder: &Path, home: &ServerHome) -> Result<Self, AppError> {
        let file = match url {
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                let index = Self::of(Pool::Postgres(postgres(url).await?), None, None);
                schema::migrate(&index).await.map_err(|error| no_tables(&error))?;
                return Ok(index);
            }
            Some(url) => IndexFile::of_url(url, folder).ok_or_else(|| {
                AppError::usage("RALPH_DB_URL doesn't name a database that `ralph` knows")
                    .hint("write `postgres://user:password@host/name`, `sqlite:///FILE` (in the working folder) or `sqlite:////FILE` (absolute)")
            })?,
            None => IndexFile::in_home(home),
        };
        let moved = file.claim().await?;
        match Self::of_file(&file, moved).await {
            Err(error) if file::is_damage(&error) => Self::in_place_of(&file).await,
            opened => opened.map_err(|error| file.unusable(&error)),
        }
    }

    fn of(pool: Pool, file: Option<IndexFile>, set_aside: Option<PathBuf>) -> Self {
        Self {
            pool,
            file,
            set_aside,
            home: String::new(),
            totals: Counts::default(),
            by_status: Counts::default(),
            words: Words::default(),
        }
    }

    async fn of_file(file: &IndexFile, set_aside: Option<PathBuf>) -> Result<Self, sqlx::Error> {
        let index = Self::of(Pool::Sqlite(file.connect().await?), Some(file.clone()), set_aside);
        schema::migrate(&index).await?;
        Ok(index)
    }

    /// Creates an empty index in place of a damaged one.
    async fn in_place_of(file: &IndexFile) -> Result<Self, AppError> {
        let moved = file.set_aside()?;
        file.claim().await?;
        Self::of_file(file, Some(moved)).await.map_err(|error| file.unusable(&error))
    }

    /// Empties the index; sets a damaged file aside.
    pub async fn emptied(self) -> Result<Self, AppError> {
        match (self.clear().await, &self.file) {
            (Ok(()), _) => Ok(self),
            (Err(error), Some(file)) if file::is_damage(&error) => {
                self.close().await;
                Ok(Self { home: self.home.clone(), ..Self::in_place_of(file).await? })
            }
            (Err(error), Some(file)) => Err(file.unusable(&error)),
            (Err(error), None) => Err(no_tables(&error)),
        }
    }

    /// Where a damaged index was moved on opening.
    pub fn set_aside(&self) -> Option<&Path> {
        self.set_aside.as_deref()
    }

    /// The database kind.
    pub fn kind(&self) -> &'static str {
        match self.pool {
            Pool::Sqlite(_) => "sqlite",
            Pool::Postgres(_) => "postgres",
        }
    }

    /// Whether it answers.
    pub async fn answers(&self) -> bool {
        on!(self, pool => sqlx::query("SELECT 1").execute(pool).await.is_ok())
    }

    /// Closes the connections.
    pub async fn close(&self) {
        on!(self, pool => pool.close().await);
    }

    pub(crate) fn forget_counts(&self) {
        self.totals.forget();
        self.by_status.forget();
    }
}

async fn postgres(url: &str) -> Result<PgPool, AppError> {
    let wrong = |error: &sqlx::Error| {
        // The URL and errors quoting it may contain a password.
        let said = ralph_loop_protocol::display::text::one_line(
            &error.to_string().replace(url, "RALPH_DB_URL"),
            200,
        );
        AppError::environment(format!("can't use the database in RALPH_DB_URL: {said}"))
            .hint("check the address and that Postgres runs there; without RALPH_DB_URL the index is a file")
    };
    let options = PgConnectOptions::from_str(url).map_err(|error| wrong(&error))?;
    // A separate schema, so that dropping the index affects nothing else.
    let mut first = sqlx::PgConnection::connect_with(&options).await.map_err(|error| wrong(&error))?;
    // If the schema exists, missing permission to create it is fine; if not, creating tables reports it.
    let _ = sqlx::query("CREATE SCHEMA IF NOT EXISTS ralph_index").execute(&mut first).await;
    let _ = first.close().await;
    let options = options.options([("search_path", "ralph_index")]);
    PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(WAIT)
        .connect_with(options)
        .await
        .map_err(|error| wrong(&error))
}

fn no_tables(error: &sqlx::Error) -> AppError {
    AppError::environment("cannot make the tables of the index in the database of RALPH_DB_URL")
        .cause(error.to_string())
        .hint("give its login the right to create tables in the schema `ralph_index`")
}
