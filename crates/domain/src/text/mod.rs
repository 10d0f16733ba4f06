//! Texts about a run, for people.

pub mod change_text;
pub mod claim;
pub(crate) mod end_summary;
pub mod notify;
