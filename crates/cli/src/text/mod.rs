//! Runs and tables as text.

pub(crate) mod proof_text;
pub(crate) mod run_text;
pub(crate) mod table;
pub(crate) mod version;
pub(crate) mod words;
