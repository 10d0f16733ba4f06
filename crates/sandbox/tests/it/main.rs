//! One test program for the public interface, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it tried"
)]

mod common;
mod conformance;
mod docker;
mod embedder;
mod exec;
mod files;
mod flood;
mod hosted;
mod isolation;
mod local_provider;
mod memory;
mod owner_killed;
mod sbx;
mod survivors;
