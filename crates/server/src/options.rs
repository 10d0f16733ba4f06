//! Options of a server.

use crate::http::network::Network;
use crate::scheduler::Limits;
use std::net::IpAddr;
use std::path::PathBuf;

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
