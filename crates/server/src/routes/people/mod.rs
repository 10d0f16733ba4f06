//! Users, workers and other programs.

pub(super) mod access;
pub(super) mod fleet;
pub(super) mod mcp;
pub(super) mod session;
