//! Continuing, moving and replaying a run.

pub(crate) mod baseline;
pub(crate) mod integrity;
pub mod relocate;
pub mod replay;
pub(crate) mod run_writer;
