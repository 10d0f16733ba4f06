//! How a server is started.

use crate::scheduler::Limits;
use std::net::IpAddr;
use std::path::PathBuf;

/// How a server is started.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// The address that it listens on.
    pub host: IpAddr,
    /// The port; 0 for any that is free.
    pub port: u16,
    /// The token of the owner, where somebody gave one; else one is made and kept.
    pub token: Option<String>,
    /// How many runs may be at work.
    pub limits: Limits,
    /// Folders that runs may be started in.
    pub repos: Vec<PathBuf>,
    /// The folder that a relative file in `RALPH_DB_URL` is in.
    pub folder: PathBuf,
    /// Filled with scripted runs.
    pub demo: bool,
}

/// A server that listens.
#[derive(Debug, Clone)]
pub struct Ready {
    /// Its address.
    pub url: String,
    /// The token of its owner.
    pub token: String,
    /// The address with a code that logs in once, within one minute.
    pub login_url: String,
    /// Where the index was moved to, because it was damaged; a new one is made from the records.
    pub set_aside: Option<PathBuf>,
}
