//! Errors at the command line are those of `ralph-loop-app`: what failed, on what; the likely cause; the command that fixes it;
//! the exit code.

pub use ralph_loop_app::AppError as CommandError;
