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

/// The program under test: this build, or the installed one that `scripts/attacks` names.
const RALPH: &str = match option_env!("RALPH_UNDER_TEST") {
    Some(program) => program,
    None => env!("CARGO_BIN_EXE_ralph"),
};
