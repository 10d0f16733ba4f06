//! Taking a result, undoing it, cleaning up.

pub mod apply;
pub mod archive;
pub mod clean;
pub mod diff;
pub mod open;
pub mod publish;
pub mod restore;
