//! Shows text in the user's pager while the UI is suspended.
#![allow(clippy::disallowed_methods, reason = "the pager is the user's own program, in front of them")]

use super::terminal::Screen;
use crate::data::Problem;
use ralph_loop_app::Environment;
use std::io::Write as _;
use std::process::{Command, Stdio};

/// Shows sanitized text.
pub fn show(screen: &mut Screen, env: &Environment, text: &str) -> Result<(), Problem> {
    let pager = env.vars().filled("PAGER").unwrap_or_else(|| "less".to_owned());
    let mut command = Command::new("sh");
    command.arg("-c").arg(&pager).env_clear().envs(env.vars().iter()).stdin(Stdio::piped());
    if !env.vars().is_filled("LESS") {
        command.env("LESS", "-R");
    }
    let done = screen.lend(|| {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // Leaving the pager early closes its input.
            let _ = stdin.write_all(text.as_bytes());
        }
        child.wait()
    });
    let fix = "set PAGER to a program that shows its standard input, or use `ralph diff`";
    match done {
        Ok(status) if status.code() == Some(127) => {
            Err(Problem::new(format!("the pager `{pager}` isn't installed"), fix))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(Problem::new(format!("the pager `{pager}` cannot be started: {error}"), fix)),
    }
}
