//! `ralph serve` through the real binary: many runs, many people, one page.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests are a border, too")]

#[path = "serve/access.rs"]
mod access;
#[path = "serve/attacks.rs"]
mod attacks;
#[path = "serve/client.rs"]
mod client;
#[path = "serve/files.rs"]
mod files;
#[path = "serve/index.rs"]
mod index;
#[path = "serve/live.rs"]
mod live;
#[path = "serve/machine.rs"]
mod machine;
#[path = "serve/mcp.rs"]
mod mcp;
#[path = "serve/operations.rs"]
mod operations;
#[path = "serve/start.rs"]
mod start;
#[path = "serve/steer.rs"]
mod steer;
#[path = "serve/stranger.rs"]
mod stranger;

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
