//! Runs in other sandboxes: in containers of a real engine, and on fake clouds that really run commands. The binary and
//! everything between it and the provider's API are real.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

mod agents;
mod browser;
mod clouds;
mod docker;
mod fixture;
mod isolation;
mod sbx;
mod stories;
