//! Tests of this crate, in one program, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it tried"
)]

mod engine;
mod examples;
mod help;
mod library_ends;
mod loop_agent;
mod prompt;
mod replay;
mod stepping;
mod support;
mod watch;
