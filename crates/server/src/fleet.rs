//! The fleet side of a server: database and triggers.

pub(crate) mod fleet_secrets;
pub(crate) mod fleet_work;

use ralph_loop_app::{AppError, Environment};
use ralph_loop_fleet::files::Files;
use ralph_loop_fleet::trigger::Triggers;
use ralph_loop_fleet::{Fleet, db};
use std::sync::Arc;

/// Database connections.
const CONNECTIONS: u32 = 6;

#[derive(Debug)]
pub struct FleetSide {
    pub fleet: Fleet,
    pub triggers: Triggers,
    /// Secret of the code host's webhook signatures.
    pub webhook_secret: Option<String>,
    /// Files of runs on other machines.
    pub files: Arc<Files>,
    /// Database URL, for enrolling workers.
    pub url: String,
}

impl FleetSide {
    /// Set if the variables name Postgres and an artifact store.
    pub async fn open(env: &Environment) -> Result<Option<Arc<Self>>, AppError> {
        let vars = env.vars();
        let (Some(url), Some(_)) = (db::url(vars), vars.filled("RALPH_ARTIFACTS")) else { return Ok(None) };
        let fleet = Fleet::connect(&url, CONNECTIONS).await?;
        let triggers = match vars.filled("RALPH_TRIGGERS") {
            None => Triggers::default(),
            Some(path) => read(&path)?,
        };
        let files = Arc::new(Files::new(vars));
        Ok(Some(Arc::new(Self {
            fleet,
            triggers,
            files,
            webhook_secret: vars.filled("RALPH_WEBHOOK_SECRET"),
            url,
        })))
    }
}

fn read(path: &str) -> Result<Triggers, AppError> {
    let wrong = |why: String| {
        AppError::usage(format!("RALPH_TRIGGERS: `{path}`: {why}")).hint("docs/SCALE.md shows such a file")
    };
    let text = ralph_loop_safe_fs::read_plain(path, 1024 * 1024).map_err(|e| wrong(e.to_string()))?;
    Triggers::parse(&String::from_utf8_lossy(&text)).map_err(wrong)
}
