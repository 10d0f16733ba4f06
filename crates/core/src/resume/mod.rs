//! Opening, moving and replaying a run.

mod open;
pub mod relocate;
pub mod replay;
pub(crate) mod run_writer;
