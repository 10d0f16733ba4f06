//! Writing and judging tasks.

pub mod harness;
pub mod init;
pub mod lint;
pub mod plan;
pub mod prove;
pub mod schema;
