//! What the agents of a run need from this machine.

pub mod agent_settings;
pub mod consult;
pub(crate) mod filters;
pub(crate) mod hooks;
pub(crate) mod installed;
pub mod isolation;
pub mod programs;
pub mod scratch;
