//! Tests of what this crate offers, in one program, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it tried"
)]

mod actions;
mod actions_intake;
mod ask;
mod flood;
mod formats;
mod litellm;
mod model_bytes;
mod model_wires;
mod probe;
mod samples;
mod scripted;
mod streams;
mod support;
mod traps;
