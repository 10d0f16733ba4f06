//! The command line's errors are those of `ralph-loop-app`.

pub use ralph_loop_app::AppError as CommandError;
