//! Runs other commands of the `ralph` binary for interfaces without a command line; the `--json` output is
//! the answer.
#![allow(
    clippy::disallowed_methods,
    reason = "a command of our own binary, which guards what it starts itself"
)]

use crate::environment::Environment;
use crate::error::{AppError, ErrorKind};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Polling interval.
const LOOK: Duration = Duration::from_millis(25);
/// Larger than any answer of ours.
const ANSWER_MAX: u64 = 64 * 1024 * 1024;

/// Runs `ralph --json ARGS` in `folder` until it ends or `stop` is set, and returns its answer or its error.
pub fn answer(
    env: &Environment,
    folder: &Path,
    args: &[&str],
    stop: &dyn Fn() -> bool,
) -> Result<Value, AppError> {
    let name = args.first().copied().unwrap_or_default();
    let failed = |what: String| AppError::environment(format!("`ralph {name}` did not work: {what}"));
    let Some(program) = env.program() else {
        return Err(AppError::environment("the `ralph` binary is not known"));
    };
    let mut command = Command::new(program);
    command.arg("-C").arg(folder).arg("--json").args(args);
    command.env_clear().envs(env.vars().iter());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
    let stdout = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(stdout) = stdout {
            // Use whatever could be read.
            let _ = stdout.take(ANSWER_MAX).read_to_end(&mut bytes);
        }
        bytes
    });
    let clock = SystemClock::default();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if stop() => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(AppError::usage(format!("`ralph {name}` was stopped")));
            }
            Ok(None) => clock.pause(LOOK),
            Err(e) => return Err(failed(e.to_string())),
        }
    };
    let bytes = reader.join().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let value = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    match value {
        Some(value) if value["error"].is_object() => Err(refusal(&value["error"], status.code())),
        Some(value) => Ok(value),
        None if status.success() => Ok(Value::Null),
        None => Err(failed(format!("it ended with {status} and printed nothing"))),
    }
}

/// The error that another `ralph` process reported as JSON.
pub(crate) fn refusal(error: &Value, code: Option<i32>) -> AppError {
    let kind = match code {
        Some(2) => ErrorKind::Usage,
        Some(3) => ErrorKind::NeedsPerson,
        _ => ErrorKind::Environment,
    };
    let said = |key: &str| error[key].as_str().map(str::to_owned);
    let code = serde_json::from_value(error["code"].clone()).ok();
    AppError { kind, code, message: said("message").unwrap_or_default(), cause: None, hint: said("hint") }
}
