//! Reading runs.

pub mod attach;
pub mod cost;
pub mod list;
pub mod logs;
pub mod replay;
pub mod show;
pub mod status;
