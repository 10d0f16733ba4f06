//! Shared parts of the fake clouds: a small HTTP server, switchable faults, and machines that are folders whose commands really run.

mod inside;
mod server;
mod text;

pub(crate) use inside::{Inside, Job, write};
pub use server::{Fault, Seen};
pub(crate) use server::{Reply, Server};
pub(crate) use text::{Query, parts};
