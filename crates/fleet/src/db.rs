//! The connection to the fleet's Postgres, for callers that wait and for callers that do not.

use crate::error::FleetError;
use crate::schema;
use ralph_loop_domain::vars::Vars;
use sqlx::Connection as _;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use std::future::Future;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

/// How long a statement waits for a connection.
const WAIT: Duration = Duration::from_secs(10);
/// How long an answer is waited for: a network that is cut gives none, and no error either.
const ANSWER: Duration = Duration::from_secs(15);
/// A connection that was used within this time is taken for whole.
const FRESH: Duration = Duration::from_secs(1);
/// The time that a worker holds a run without saying so again.
pub const LEASE: Duration = Duration::from_secs(30);
/// Shorter leases are taken for loss by an ordinary delay.
const LEASE_MIN: Duration = Duration::from_millis(1500);

/// What helps where no database is named.
pub const NO_URL: &str = "`ralph worker --enrol URL --token TOKEN` lets this machine in; or set `RALPH_DB_URL=postgres://user:password@host/name`, as the server has it";

/// The fleet's Postgres.
#[derive(Debug, Clone)]
pub struct Fleet {
    pool: PgPool,
    runtime: Option<Arc<tokio::runtime::Runtime>>,
    patience: Duration,
}

pub use sqlx::PgPool as Pool;
pub use tokio::runtime::Runtime;

/// Creates a runtime for synchronous callers. It runs on the thread that waits: a worker thread would cost two thread switches
/// for every statement.
pub fn runtime() -> Result<Runtime, FleetError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| FleetError::Database(e.to_string()))
}

/// The address of a fleet's database, where the variables name one.
pub fn url(vars: &Vars) -> Option<String> {
    vars.filled("RALPH_DB_URL")
        .filter(|url| url.starts_with("postgres://") || url.starts_with("postgresql://"))
}

/// How long a lease lasts here.
pub fn lease_time(vars: &Vars) -> Duration {
    let named = vars.filled("RALPH_LEASE_SECONDS").and_then(|text| text.parse::<f64>().ok());
    let named = named.filter(|seconds| seconds.is_finite() && (0.0..=86_400.0).contains(seconds));
    named.map_or(LEASE, Duration::from_secs_f64).max(LEASE_MIN)
}

fn pool_options(connections: u32) -> PgPoolOptions {
    let options = PgPoolOptions::new().max_connections(connections).acquire_timeout(WAIT);
    options.test_before_acquire(false).before_acquire(|connection, meta| {
        Box::pin(async move {
            if meta.idle_for > FRESH {
                connection.ping().await?;
            }
            Ok(true)
        })
    })
}

impl Fleet {
    /// Connects in the runtime of the caller, and makes the tables where they are not there.
    pub async fn connect(url: &str, connections: u32) -> Result<Self, FleetError> {
        let options = PgConnectOptions::from_str(url)?;
        let pool = pool_options(connections).connect_with(options).await?;
        if !schema::is_current(&pool).await? {
            schema::migrate(&pool).await?;
        }
        Ok(Self { pool, runtime: None, patience: ANSWER })
    }

    /// Connects for callers that wait.
    pub fn open(url: &str) -> Result<Self, FleetError> {
        Self::open_with(url, 2)
    }

    /// The same, over so many connections at most.
    pub fn open_with(url: &str, connections: u32) -> Result<Self, FleetError> {
        let runtime = runtime()?;
        let mut fleet = runtime.block_on(Self::connect(url, connections))?;
        fleet.runtime = Some(Arc::new(runtime));
        Ok(fleet)
    }

    /// Returns the same database over one more connection, for a caller that must not wait for the others. It opens on first use.
    pub fn beside(&self) -> Self {
        let _inside = self.runtime.as_ref().map(|runtime| runtime.enter());
        let options = (*self.pool.connect_options()).clone();
        Self { pool: pool_options(1).connect_lazy_with(options), ..self.clone() }
    }

    /// The same, where an answer that takes longer than this is none.
    #[must_use]
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The connections.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Waits for what is done with the database.
    pub fn wait<T>(&self, what: impl Future<Output = Result<T, FleetError>>) -> Result<T, FleetError> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(self.within(what)),
            None => Err(FleetError::Database("this connection is not for callers that wait".into())),
        }
    }

    /// The same for callers that have a runtime: an answer that takes too long is none.
    pub async fn within<T>(
        &self,
        what: impl Future<Output = Result<T, FleetError>>,
    ) -> Result<T, FleetError> {
        let answer = tokio::time::timeout(self.patience, what).await;
        answer.unwrap_or_else(|_| Err(FleetError::Database("it did not answer in time".into())))
    }

    /// Returns whether a committed append survives the loss of the database's machine: it commits only once a standby has it.
    ///
    /// Reads the settings, because every role can see them. Only administrators can see which standbys are connected. If none is,
    /// nothing commits.
    pub async fn has_synchronous_standby(&self) -> Result<bool, FleetError> {
        let (standbys, commit): (String, String) = sqlx::query_as(
            "SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit')",
        )
        .fetch_one(&self.pool)
        .await?;
        Ok(!standbys.trim().is_empty() && !["off", "local"].contains(&commit.as_str()))
    }
}

/// Notes that the database is up: the time when it was not expires no lease.
pub async fn pulse(pool: &PgPool) -> Result<(), FleetError> {
    sqlx::query("SELECT ralph_seal.pulse()").execute(pool).await?;
    Ok(())
}

/// Statements that the database has carried out so far. It counts them where `pg_stat_statements` is loaded.
pub async fn statements(pool: &PgPool) -> Result<i64, FleetError> {
    sqlx::query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements").execute(pool).await?;
    Ok(sqlx::query_scalar("SELECT COALESCE(sum(calls), 0)::bigint FROM pg_stat_statements")
        .fetch_one(pool)
        .await?)
}
