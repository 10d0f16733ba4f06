//! What a change touches: its lines and its paths.

pub mod patch;
pub mod paths;
