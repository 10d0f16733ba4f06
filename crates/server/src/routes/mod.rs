//! The routes, one file per subject. Each takes a [`crate::auth::Caller`]; [`list`] names them all.

mod any_bytes;
mod costs;
mod create;
mod demo;
mod docs;
mod health;
mod list;
mod page;
mod people;
mod prepare;
mod races;
mod record;
mod run;
mod runs;
#[cfg(feature = "schema")]
pub(crate) mod schemas;
mod steer;
mod watch;

#[doc(hidden)]
pub use any_bytes::read_anything;
pub use list::{Operation, operations, router};
