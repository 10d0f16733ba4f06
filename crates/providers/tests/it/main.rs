//! One test program for the public interface, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it tried"
)]

mod daytona;
mod e2b;
mod orphans;
mod prism;
mod real;
mod vendor_sdks;
mod vercel;
