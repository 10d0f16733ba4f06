//! Setting up a machine and a repo.

pub mod bug_report;
pub mod completions;
pub mod doctor;
pub mod man;
pub mod models;
pub mod notify;
pub mod plugin;
pub mod probe;
pub mod trust;
