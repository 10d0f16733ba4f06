//! What happens between a plan and a running driver.

pub mod asked_by;
pub(crate) mod fleet_mark;
pub mod handover;
pub(crate) mod hold;
pub mod locks;
pub mod log;
pub(crate) mod sandboxes;
pub(crate) mod spawn;
pub mod state_files;
