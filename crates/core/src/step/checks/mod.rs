//! The steps that run checks, and the places where they run.

pub(crate) mod baseline_checks;
pub(crate) mod clean_checkout;
pub(crate) mod environment;
pub(super) mod hidden;
pub(super) mod installed;
pub(super) mod measure;
pub(crate) mod prove;
pub(crate) mod recheck;
pub(super) mod start_fault;
pub(super) mod trees;
pub(super) mod uncommitted;
pub(crate) mod verify;
pub(super) mod workspace_setup;
