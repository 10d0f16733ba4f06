//! Options of a server.

use crate::http::network::Network;
use crate::scheduler::Limits;
use ralph_loop_app::AppError;
use ralph_loop_protocol::id::RunId;
use serde::Deserialize;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Options of a server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 for any free one.
    pub port: u16,
    /// The owner's token; `None` generates and stores one.
    pub token: Option<String>,
    /// Limits for active runs.
    pub limits: Limits,
    /// Folders in which runs may start.
    pub repos: Vec<PathBuf>,
    /// Base folder for a relative file in `RALPH_DB_URL`.
    pub folder: PathBuf,
    /// Proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<Network>,
    /// Filled with scripted runs.
    pub demo: bool,
    /// Starts a scripted run on request.
    pub demos: Option<DemoStarter>,
}

/// What a scripted run shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DemoScenario {
    /// A bug gets fixed.
    Bug,
    /// The agent gets stuck and needs a hint.
    Stuck,
    /// A feature comes with its own tests.
    Feature,
}

/// Makes the example's folder and starts its run.
#[derive(Clone)]
pub struct DemoStarter(Arc<dyn Fn(DemoScenario) -> Result<RunId, AppError> + Send + Sync>);

impl DemoStarter {
    pub fn new(start: impl Fn(DemoScenario) -> Result<RunId, AppError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }
    pub(crate) fn start(&self, scenario: DemoScenario) -> Result<RunId, AppError> {
        (self.0)(scenario)
    }
}

impl fmt::Debug for DemoStarter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DemoStarter")
    }
}

/// A listening server.
#[derive(Debug, Clone)]
pub struct Ready {
    pub url: String,
    /// The owner's token.
    pub token: String,
    /// A URL with a single-use login code, valid for one minute.
    pub login_url: String,
    /// Where a damaged index was moved; a new one is built from the records.
    pub set_aside: Option<PathBuf>,
}
