//! Continuing, moving and replaying a run.

pub mod relocate;
pub mod replay;
pub(crate) mod run_writer;
