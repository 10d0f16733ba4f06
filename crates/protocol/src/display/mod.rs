//! What every screen shares: text, signs, colors, the view of a run.

pub mod look;
pub mod race;
pub mod sanitize;
pub mod text;
pub mod view;
