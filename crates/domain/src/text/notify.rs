//! The text of notifications, in one place. Notifiers add nothing.

use crate::ports::{Notification, Occasion};
use crate::state::{PendingNotification, RunState};
use ralph_loop_protocol::display::text::{count, one_line};
use ralph_loop_protocol::money::Cost;

const TITLE: usize = 120;

/// The notification for an occasion of this run.
pub fn notification(state: &RunState, open: &PendingNotification) -> Notification {
    let run = &state.spec.run_id;
    let detail = sentence(&open.detail);
    let cost = match state.spending.totals.cost {
        Cost::UNKNOWN => "an unknown cost".to_owned(),
        cost => cost.to_string(),
    };
    let so_far = format!("{} and {cost} so far.", count(state.iterations.count as usize, "iteration"));
    let (text, hint) = match open.occasion {
        Occasion::Start => {
            let names: Vec<&str> = state.spec.settings.agents.iter().map(|a| a.name.as_str()).collect();
            (format!("The run starts with {}.", names.join(", ")), Some(format!("ralph status {run}")))
        }
        Occasion::NeedsHuman => {
            let approval = state.people.needs_human.as_ref().is_some_and(|need| need.reason.needs_approval());
            let next = match approval {
                true => format!("ralph approve {run} && ralph resume {run}"),
                false => format!("ralph resume {run}"),
            };
            (format!("The run needs you: {detail} {so_far}"), Some(next))
        }
        Occasion::Gutter => (
            format!("The run is stuck: {detail} `ralph` tries another approach. {so_far}"),
            Some(format!("ralph nudge 'a hint' --run {run}")),
        ),
        Occasion::LimitWait => {
            let end =
                state.telling.waited_until.map(|until| until.strftime("%Y-%m-%d %H:%M UTC").to_string());
            let end = end.map_or_else(String::new, |end| format!(" It continues automatically at {end}."));
            (format!("The run waits for a limit: {detail}{end}"), Some(format!("ralph status {run}")))
        }
        Occasion::Success => (detail.clone(), Some(format!("ralph show {run}"))),
        Occasion::Failure => {
            (format!("The run ended without success. {detail}"), Some(format!("ralph show {run}")))
        }
    };
    Notification {
        id: format!("{run}-{}", open.of.0),
        at: open.at,
        occasion: open.occasion,
        run_id: run.clone(),
        title: one_line(&state.spec.task.title, TITLE),
        text,
        hint,
        pr_url: state.handover.pr.as_ref().map(|pr| pr.url.clone()),
        iterations: state.iterations.count,
        cost: state.spending.totals.cost,
    }
}

/// With exactly one full stop at its end.
fn sentence(text: &str) -> String {
    match text.ends_with(['.', '?', '…']) {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

/// The first line of a notification, as a lock screen shows it.
pub fn heading(message: &Notification) -> String {
    let done = message.text.split(" after ").next().unwrap_or_default().to_lowercase();
    let what = match message.occasion {
        Occasion::Start => "started",
        Occasion::NeedsHuman => "needs you",
        Occasion::Gutter => "circles",
        Occasion::LimitWait => "waits for a limit",
        Occasion::Success => done.split(':').next().unwrap_or_default(),
        Occasion::Failure => "ended without success",
    };
    format!("ralph: {what}: {}", message.title)
}

/// The whole notification as plain text, for email and desktop.
pub fn body(message: &Notification) -> String {
    let mut lines = vec![message.text.clone()];
    lines.extend(message.pr_url.as_ref().map(|url| format!("Pull request: {url}")));
    lines.extend(message.hint.as_ref().map(|hint| format!("Next: {hint}")));
    lines.push(format!("Run {}", message.run_id));
    lines.join("\n")
}
