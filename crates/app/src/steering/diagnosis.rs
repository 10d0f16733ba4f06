//! Sends the doctor's suggestions to a run.

use crate::app::App;
use crate::error::AppError;
use ralph_loop_core::handle::{ControlOutcome, RunHandle};
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::inbox;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::stuck::diagnosis::Report;
use ralph_loop_task::dialect::adopt;
use std::time::Duration;

/// How long to wait for the run to read one suggestion.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);

/// What was sent.
#[derive(Debug, Default)]
pub struct AppliedReport {
    /// The names of the controls.
    pub sent: Vec<&'static str>,
    /// The id of the last one.
    pub last: Option<String>,
    /// Whether the run has read all of them.
    pub received: bool,
}

/// Sends all suggestions. A task edit that can't be read stops them all; a running run's refusal is an error.
pub fn apply(
    handle: &RunHandle,
    app: &App,
    entry: &Registration,
    state: &RunState,
    report: &Report,
    by: &str,
) -> Result<AppliedReport, AppError> {
    let task = &state.spec.task;
    let controls = report.controls(task.file_text());
    for control in &controls {
        if let Control::Edit { task: text } = control {
            adopt::edited(task, text).map_err(|reason| refused("edit", &reason))?;
        }
    }
    let mut applied = AppliedReport { received: true, ..AppliedReport::default() };
    let mut letters = Vec::new();
    for control in controls {
        applied.sent.push(control.name());
        letters.push((control.name(), inbox::send(&entry.run_dir(), by, control)?.id));
    }
    for (name, letter) in &letters {
        match handle.wait_for_outcome(letter, ANSWER_TIMEOUT)? {
            ControlOutcome::Received => {}
            ControlOutcome::NotYet => applied.received = false,
            ControlOutcome::Refused(reason) => {
                let reason = app.environment().redactor(&entry.origin).text(&reason).into_owned();
                return Err(refused(name, &reason));
            }
        }
    }
    applied.last = letters.pop().map(|(_, id)| id);
    Ok(applied)
}

fn refused(name: &str, reason: &str) -> AppError {
    AppError::usage(format!("the doctor's `{name}` can't be applied: {reason}"))
        .hint("change the task yourself with `ralph edit`, or on its page")
}
