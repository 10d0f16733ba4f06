//! Tests of the binary `ralph`, in one program, so that it's linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it tried"
)]

mod agents;
mod daily;
mod long;
mod result;
mod runs;
mod safety;
mod surface;
mod tasks;

/// The program under test.
const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
