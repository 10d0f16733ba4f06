//! Tests whose program is also the sandbox guard: `main` starts it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and says what it tried"
)]

mod actions_local;
#[cfg(feature = "browser")]
mod managers;
#[allow(dead_code, reason = "shared with the other tests")]
#[path = "../it/support/model.rs"]
mod model;

fn main() -> std::process::ExitCode {
    ralph_loop_sandbox::init();
    ralph_loop_testkit::libtest::run(&[
        actions_local::TESTS,
        #[cfg(feature = "browser")]
        managers::TESTS,
    ])
}
