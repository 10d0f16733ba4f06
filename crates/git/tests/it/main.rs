//! One test program for the public interface, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it tried"
)]

mod checkpoints;
mod clean;
mod command;
mod filters;
mod hand_back;
mod partial_clones;
mod places;
mod process_budget;
mod push;
mod resuming;
mod support;
mod watching;
