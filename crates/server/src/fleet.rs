//! What a server of a fleet has: the database, and what may start by itself.

use ralph_loop_app::{AppError, Environment};
use ralph_loop_fleet::trigger::Triggers;
use ralph_loop_fleet::{Fleet, db};
use std::sync::Arc;

/// Connections to the database.
const CONNECTIONS: u32 = 6;

/// What a server of a fleet has.
#[derive(Debug)]
pub struct FleetSide {
    /// The database.
    pub fleet: Fleet,
    /// What may start by itself.
    pub triggers: Triggers,
    /// With what the code host signs.
    pub webhook_secret: Option<String>,
    /// The address of the database, for workers that are let in.
    pub url: String,
}

impl FleetSide {
    /// Where the variables name a Postgres and an artifact store; else this server is alone.
    pub async fn open(env: &Environment) -> Result<Option<Arc<Self>>, AppError> {
        let vars = env.vars();
        let (Some(url), Some(_)) = (db::url(vars), vars.filled("RALPH_ARTIFACTS")) else { return Ok(None) };
        let fleet = Fleet::connect(&url, CONNECTIONS).await?;
        let triggers = match vars.filled("RALPH_TRIGGERS") {
            None => Triggers::default(),
            Some(path) => read(&path)?,
        };
        Ok(Some(Arc::new(Self { fleet, triggers, webhook_secret: vars.filled("RALPH_WEBHOOK_SECRET"), url })))
    }
}

fn read(path: &str) -> Result<Triggers, AppError> {
    let wrong = |why: String| {
        AppError::usage(format!("RALPH_TRIGGERS: `{path}`: {why}")).hint("docs/SCALE.md shows such a file")
    };
    let text = ralph_loop_safe_fs::read_plain(path, 1024 * 1024).map_err(|e| wrong(e.to_string()))?;
    Triggers::parse(&String::from_utf8_lossy(&text)).map_err(wrong)
}
