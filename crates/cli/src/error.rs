//! Errors at the command line are those of `ralph-app`: what failed, on what; the likely cause; the command that fixes it;
//! the exit code.

pub use ralph_app::AppError as CommandError;
