//! Runs whose commands happen somewhere else: in containers of a real engine, and on clouds whose stand-ins run commands for
//! real. The binary is the real one, and so is everything between it and the provider's wire.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

mod agents;
mod browser;
mod clouds;
mod docker;
mod fixture;
mod isolation;
mod sbx;
mod stories;
