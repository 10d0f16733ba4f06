//! Running checks: on the original files, in the workspace, and in clean checkouts.

pub(crate) mod baseline_checks;
pub(crate) mod check;
pub(crate) mod clean_checkout;
pub(crate) mod installed;
pub(crate) mod measure;
pub(crate) mod missing_programs;
pub(crate) mod subject;
pub(crate) mod trees;
pub(crate) mod uncommitted;
pub(crate) mod workspace_setup;
