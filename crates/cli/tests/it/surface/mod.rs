//! Servers, fleets and the terminal UI.

pub(crate) mod deploy;
pub(crate) mod fleet;
pub(crate) mod log;
pub(crate) mod serve;
pub(crate) mod terminal_ui;
pub(crate) mod version;
