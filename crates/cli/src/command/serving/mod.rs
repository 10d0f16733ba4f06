//! Servers, workers and what agents call.

pub mod audit;
pub mod deploy;
pub mod hook;
pub mod index;
pub mod mcp;
pub mod sandbox;
pub mod serve;
pub mod worker;
