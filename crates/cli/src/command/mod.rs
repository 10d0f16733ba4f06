//! The commands, one file each.

pub mod serve_all;
pub mod setup;
pub mod start;
pub mod steer;
pub mod take;
pub mod task;
pub mod watch;
