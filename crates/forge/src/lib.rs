//! Code hosts, the backends of the `Forge` port.
//!
//! [`LocalForge`] is a folder: a bare repo, and pull requests as files that people and tests can edit.

mod error;
mod local;
mod mark;
mod review;

pub use local::LocalForge;
