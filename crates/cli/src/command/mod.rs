//! The commands, one file each.

pub mod serving;
pub mod setup;
pub mod start;
pub mod steer;
pub mod take;
pub mod task;
pub mod watch;
