//! `ralph serve` through the real binary: many runs, many users, one dashboard.
#![allow(clippy::disallowed_methods, reason = "tests are a border, too")]

use crate::RALPH;

mod access;
mod api_edge_cases;
mod attacks;
pub mod client;
mod files;
mod index;
mod live;
pub mod machine;
mod mcp;
mod operations;
mod policy;
mod start;
mod steer;
