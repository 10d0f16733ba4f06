//! The index: one row per run, so that lists, searches and sums do not read a hundred thousand journals. It is never the truth.
//! Thrown away, it is made again from the records of the runs, with the same rows.
//!
//! SQLite in the server's own folder, or Postgres where `RALPH_DB_URL` names one. Both speak the same statements.

mod costs;
mod counts;
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
use ralph_app::AppError;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;
use words::Words;

/// Connections to a database.
const CONNECTIONS: u32 = 4;
/// How long a statement waits for another one, and how long a database may take to answer at the start.
const WAIT: Duration = Duration::from_secs(10);

/// The index.
#[derive(Debug)]
pub struct Index {
    pool: Pool,
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
    /// Opens it: the database of this address, else a file in the server's folder. A file that is damaged is made anew.
    pub async fn open(url: Option<&str>, home: &ServerHome) -> Result<Self, AppError> {
        let pool = match url {
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Pool::Postgres(postgres(url).await?)
            }
            Some(url) => match url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) {
                Some(path) => Pool::Sqlite(sqlite(Path::new(path)).await?),
                None => {
                    return Err(AppError::usage("RALPH_DB_URL names no database that ralph knows")
                        .hint("`postgres://user:password@host/name`, or `sqlite:FILE`"));
                }
            },
            None => Pool::Sqlite(sqlite(&home.file("index.sqlite")).await?),
        };
        let index =
            Self { pool, totals: Counts::default(), by_status: Counts::default(), words: Words::default() };
        schema::migrate(&index).await.map_err(|error| {
            AppError::environment(format!("the tables of the index cannot be made: {error}"))
                .hint("`ralph index rebuild` makes it anew; nothing else is lost with it")
        })?;
        Ok(index)
    }

    /// Which database it is, in one word.
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

    /// Ends its connections.
    pub async fn close(&self) {
        on!(self, pool => pool.close().await);
    }

    pub(crate) fn forget_counts(&self) {
        self.totals.forget();
        self.by_status.forget();
    }
}

async fn sqlite(path: &Path) -> Result<SqlitePool, AppError> {
    let open = || async {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // It can be made again: what a power cut takes is no loss.
            .synchronous(SqliteSynchronous::Off)
            .busy_timeout(WAIT);
        SqlitePoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(WAIT)
            .connect_with(options)
            .await
    };
    match open().await {
        Ok(pool) => Ok(pool),
        Err(sqlx::Error::Database(_)) => {
            // Not a database any more. Nothing but this index was in it.
            for end in ["", "-wal", "-shm"] {
                let mut name = path.as_os_str().to_owned();
                name.push(end);
                let _ = std::fs::remove_file(name);
            }
            open().await.map_err(|error| unusable(&path.display().to_string(), &error))
        }
        Err(error) => Err(unusable(&path.display().to_string(), &error)),
    }
}

async fn postgres(url: &str) -> Result<PgPool, AppError> {
    let wrong = |error: &sqlx::Error| {
        // The address may hold a password, and so may what is said of it.
        let said = ralph_domain::text::one_line(&error.to_string().replace(url, "RALPH_DB_URL"), 200);
        AppError::environment(format!("the database of RALPH_DB_URL cannot be used: {said}"))
            .hint("check the address and that Postgres runs there; without RALPH_DB_URL the index is a file")
    };
    let options = PgConnectOptions::from_str(url).map_err(|error| wrong(&error))?;
    // A schema of its own: what is thrown away with the index is nobody else's.
    let mut first = sqlx::PgConnection::connect_with(&options).await.map_err(|error| wrong(&error))?;
    // Where it is there and this login may make none, that is fine; where it is not, making the tables says so.
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

fn unusable(place: &str, error: &sqlx::Error) -> AppError {
    AppError::environment(format!("the index `{place}` cannot be used: {error}"))
        .hint("remove the file: it is made again from the records of the runs")
}
