//! The routes, one file per subject. Each takes a [`crate::auth::Caller`]; [`list`] names them all.

mod access;
mod any_bytes;
mod artifacts;
mod control;
mod costs;
mod create;
mod debug;
mod diagnosis;
mod diff;
mod docs;
mod events;
mod files;
mod fleet;
mod guardrails;
mod health;
mod iterations;
mod list;
mod mcp;
mod output;
mod page;
mod prepare;
mod races;
mod result;
mod run;
mod runs;
mod sandbox;
#[cfg(feature = "schema")]
pub(crate) mod schemas;
mod session;
mod shown_path;
mod task;
mod watch;

#[doc(hidden)]
pub use any_bytes::read_anything;
pub use list::{Operation, operations, router};
