//! Describes the start of a run and its sessions.

use super::Tone;
use crate::display::text::{count, duration, one_line};
use crate::event::{
    ActionFinished, BaselineChecks, EgressRefused, EventBody, SandboxFate, SandboxGone, SessionEnd, StopCause,
};
use std::time::Duration;

pub(super) fn words(body: &EventBody) -> Option<(Tone, String)> {
    let said = match body {
        EventBody::RunCreated { title, .. } => (Tone::Plain, format!("run created: {title}")),
        EventBody::DriverStarted { torn_bytes, .. } if *torn_bytes > 0 => (
            Tone::Attention,
            format!("continuing from the journal; set aside {torn_bytes} bytes of a torn last line"),
        ),
        EventBody::DriverStarted { .. } | EventBody::Placed(_) => return None,
        EventBody::Prepared { baseline, checks, .. } => {
            let branch = baseline.branch.as_deref().unwrap_or("a detached HEAD");
            let dirty = match baseline.dirty_total {
                0 => "clean".to_owned(),
                n => format!("{} with your uncommitted changes, which stay untouched", count(n, "file")),
            };
            let checks = checks.as_ref().map(|checks| format!("; {}", at_the_start(checks)));
            let (head, checks) = (baseline.head.short(), checks.unwrap_or_default());
            (Tone::Muted, format!("snapshot taken on {branch} at {head} ({dirty}){checks}"))
        }
        EventBody::IterationStarted { iteration, attempt, agent, model, .. } => {
            let mut text = format!("iteration {iteration}: {agent} works");
            if let Some(model) = model {
                text.push_str(&format!(" with {model}"));
            }
            if *attempt > 1 {
                text.push_str(&format!(" (try {attempt})"));
            }
            (Tone::Plain, text)
        }
        EventBody::SessionEnded { end, promised, duration_ms, survivors, .. } => {
            let time = duration(Duration::from_millis(*duration_ms));
            let mut text = match end {
                SessionEnd::Completed if *promised => format!("session ended after {time} with the promise"),
                SessionEnd::Completed => format!("session ended after {time}"),
                SessionEnd::Stopped { cause } => {
                    format!("session ended after {time}: {}", cause_words(*cause))
                }
                // The line that drops the agent has the reason and the fix.
                end @ (SessionEnd::Auth { .. } | SessionEnd::Billing { .. }) => {
                    format!("session ended after {time}: {}", end.word())
                }
                end => match end.reason() {
                    Some(reason) => {
                        format!("session ended after {time}: {} ({})", end.word(), one_line(reason, 160))
                    }
                    None => format!("session ended after {time}: {}", end.word()),
                },
            };
            if *survivors > 0 {
                text.push_str(&format!(
                    "; {} it had left running ended",
                    count(*survivors as usize, "process")
                ));
            }
            let tone = if matches!(end, SessionEnd::Completed) { Tone::Muted } else { Tone::Attention };
            (tone, text)
        }
        EventBody::ActionStarted(_) => return None,
        EventBody::ActionFinished(ActionFinished { number, ok, result, .. }) => {
            let tone = if *ok { Tone::Muted } else { Tone::Attention };
            (tone, format!("action {number}: {result}"))
        }
        EventBody::EgressRefused(EgressRefused { host, port, reason, times }) => {
            let often = if *times > 1 { format!(" ({times} times)") } else { String::new() };
            (Tone::Attention, format!("the sandbox refused {host}:{port}{often}: {reason}"))
        }
        EventBody::SandboxReady(made) => {
            (Tone::Muted, format!("the sandbox {} of {} is ready", made.id, made.provider))
        }
        EventBody::SandboxGone(gone) => gone.describe(),
        _ => return None,
    };
    Some(said)
}

/// The checks before the first session: `at the start tests fails (exit code 1)`.
fn at_the_start(checks: &BaselineChecks) -> String {
    if let Some(setup) = &checks.setup_failed {
        return format!("at the start the setup `{}` fails", one_line(setup, 80));
    }
    let failing: Vec<String> = checks
        .results
        .iter()
        .filter(|result| !result.passed)
        .map(|result| {
            format!("{} ({})", result.name, one_line(result.why.as_deref().unwrap_or("failed"), 240))
        })
        .collect();
    match failing.as_slice() {
        [] => "at the start every check passes".to_owned(),
        [one] => format!("at the start {one} fails"),
        many => format!("at the start {} fail", many.join(", ")),
    }
}

fn cause_words(cause: StopCause) -> &'static str {
    match cause {
        StopCause::Cancelled => "cancelled",
        StopCause::Suspended => "the run was suspended",
        StopCause::Rotated => "a fresh session was requested",
        StopCause::Skipped => "its agent was skipped",
        StopCause::Hopeless => "gave up waiting",
        StopCause::Budget => "a budget was used up",
    }
}

impl SandboxGone {
    fn describe(&self) -> (Tone, String) {
        let id = &self.id;
        match self.fate {
            SandboxFate::Destroyed => (Tone::Muted, format!("the sandbox {id} was removed")),
            SandboxFate::Stopped => {
                (Tone::Muted, format!("the sandbox {id} is stopped until the run continues"))
            }
            SandboxFate::Kept => (Tone::Muted, format!("the sandbox {id} is kept, as requested")),
            SandboxFate::Lost => {
                (Tone::Attention, format!("the sandbox {id} is lost; another one takes its place"))
            }
        }
    }
}
