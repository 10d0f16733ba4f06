//! A run while it works: in the foreground, or followed from outside.

pub(crate) mod follow;
pub(crate) mod live_text;
pub(crate) mod present;
pub(crate) mod report;
pub(crate) mod session_lines;
