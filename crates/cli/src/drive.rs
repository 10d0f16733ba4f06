//! Drives a run in the foreground, for `run`, `resume`, `cancel` and `demo`.

use crate::confirm::{answer, may_ask};
use crate::consent;
use crate::error::CommandError;
use crate::output::Out;
use crate::process::log;
use crate::process::signals;
use crate::progress::report::{Presenter, summary};
use ralph_loop_app::read::find;
use ralph_loop_app::task::project;
use ralph_loop_app::{
    App, ErrorKind, NotifyRequest, Plan, PublishRequest, ResumeOutcome, RunReport, RunRequest, StartedRun,
};
use ralph_loop_core::handle::ControlOutcome;
use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::outcome::{EndReason, RunResult};
use std::path::Path;

/// Starts a run and drives it to its end.
pub fn start(request: &RunRequest, app: &App, out: &Out) -> Result<u8, CommandError> {
    let request = &consent::settle(request, app, out)?;
    let presenter = Presenter::new(app, out);
    let plan = app.prepare(request, &presenter)?;
    let begun = app.start(plan, signals::install(), &presenter)?;
    Ok(finish(begun, app, out))
}

/// Starts a plan and drives it to its end.
pub fn start_plan(plan: Plan, app: &App, out: &Out) -> Result<u8, CommandError> {
    let begun = app.start(plan, signals::install(), &Presenter::new(app, out))?;
    Ok(finish(begun, app, out))
}

/// Like [`start`], but asks once for a check if nothing checks the result.
pub fn start_asking(request: &RunRequest, app: &App, out: &Out) -> Result<u8, CommandError> {
    match start(request, app, out) {
        Err(error) if error.kind == ErrorKind::NothingChecks && may_ask(out) => {
            out.say("No test command found. `ralph` needs a command that shows when the task is done.");
            let proposed = project::proposed_tests(&find::top(&request.folder)).into_iter().next();
            let question = match &proposed {
                Some(command) => format!("Which command shows that it's done? (Enter: {command}) "),
                None => "Which command shows that it's done? ".to_owned(),
            };
            let Ok(said) = answer(&question, out) else { return Err(error) };
            let Some(command) = said.or(proposed) else { return Err(error) };
            let mut request = request.clone();
            request.overrides.verify = vec![command];
            start(&request, app, out)
        }
        other => other,
    }
}

/// Like [`start`], but always prints the documented result object.
pub fn start_or_report(request: &RunRequest, app: &App, out: &Out) -> u8 {
    start(request, app, out).unwrap_or_else(|error| refuse(&error, out))
}

/// Reports why there is no run.
pub fn refuse(error: &CommandError, out: &Out) -> u8 {
    if out.json {
        out.value(&RunResult::refused(error.to_run_error()));
    }
    let mut people = *out;
    people.json = false;
    people.fail(error)
}

/// Resumes a run.
pub fn resume_run(
    name: Option<&str>,
    notify: &[NotifyRequest],
    budgets: &BudgetChange,
    app: &App,
    folder: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    let begun = app.resume(folder, name, notify, budgets, signals::install(), &Presenter::new(app, out))?;
    Ok(finish(begun, app, out))
}

/// Hands over the result of a run that has ended.
pub fn publish(
    name: Option<&str>,
    request: &PublishRequest,
    app: &App,
    folder: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    let run = app.publish(folder, name, request, signals::install(), &Presenter::new(app, out))?;
    Ok(drive(run, app, out))
}

fn finish(begun: ResumeOutcome, app: &App, out: &Out) -> u8 {
    match begun {
        ResumeOutcome::Ready(run) => drive(*run, app, out),
        ResumeOutcome::Told { run, outcome, stopped } => report_resume(&run, &outcome, stopped, out),
        ResumeOutcome::Ended { run } => {
            out.say(format!("run {run} is cancelled; it had not begun"));
            if out.json {
                out.value(&serde_json::json!({ "run_id": run, "ended": true }));
            }
            0
        }
        ResumeOutcome::CaughtUp { run, told } => {
            out.say(format!("run {run} is over; notifications are sent now (`ralph show {run}` shows it)"));
            if out.json {
                out.value(&serde_json::json!({ "run_id": run, "told": told }));
            }
            0
        }
    }
}

/// Resumes a run held for a fleet; returns the exit code, its state and the error.
pub fn finish_leased(begun: ResumeOutcome, app: &App, out: &Out) -> (u8, EndReason, Option<String>) {
    let ready = match begun {
        ResumeOutcome::Ready(ready) => ready,
        over => return (finish(over, app, out), EndReason::Completed, None),
    };
    let finished = drive_to_the_end(*ready, app, out);
    let reason = finished.result.reason;
    let why = finished.result.error.as_ref().map(|error| error.message.clone());
    finished.tidy_up();
    (reason.exit_code(), reason, why)
}

/// The outcome of `resume` if another process drives the run.
fn report_resume(run: &RunId, outcome: &ControlOutcome, stopped: Option<u32>, out: &Out) -> u8 {
    if out.json {
        let mut value = serde_json::json!({
            "run_id": run, "sent": "resume", "taken": *outcome == ControlOutcome::Received,
        });
        if let Some(pid) = stopped {
            value["stopped_pid"] = pid.into();
        }
        out.value(&value);
    }
    match (stopped, outcome) {
        (Some(pid), _) => {
            out.warn(format!("run {run} can't continue: its process {pid} is stopped (Ctrl-Z, SIGSTOP)"));
            let next = format!("run `fg` in its terminal, or `kill -CONT {pid}`");
            out.warn(format!("{} {next}", out.err(Tone::Plain, "next:")));
            return ErrorKind::NeedsPerson.exit_code();
        }
        (None, ControlOutcome::Received) => {
            out.say(format!("run {run} continues (`ralph logs -f {run}` follows it)"));
        }
        (None, ControlOutcome::Refused(reason)) => {
            out.warn(format!("run {run} refused to continue: {reason}"));
            return ErrorKind::Usage.exit_code();
        }
        (None, ControlOutcome::NotYet) => out.say(format!(
            "resume: sent; run {run} is busy and continues at its next step (`ralph logs -f {run}`)"
        )),
    }
    0
}

/// Drives a run to its end and reports the result.
fn drive(run: StartedRun, app: &App, out: &Out) -> u8 {
    let finished = drive_to_the_end(run, app, out);
    let code = finished.result.reason.exit_code();
    finished.tidy_up();
    code
}

fn drive_to_the_end(run: StartedRun, app: &App, out: &Out) -> RunReport {
    ralph_loop_sandbox::release_code_pages();
    log::attach(&run);
    let finished = run.run();
    summary(&finished, app, out);
    if out.json {
        out.value(&finished.result);
    } else if !out.quiet {
        finished.mark_seen();
    }
    finished
}
