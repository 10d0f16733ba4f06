//! Asks on the terminal for the permissions a repo requests, before a run starts.

use crate::confirm::{confirm, may_ask};
use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::trust::consent::Difference;
use ralph_loop_app::{App, RunRequest, TrustRequest};
use ralph_loop_protocol::describe::Tone;

/// Settles the request. Asks first about another repo that the task names, before contacting it, then about
/// the rest. Without a terminal, the run is rejected with the same list.
pub fn settle(request: &RunRequest, app: &App, out: &Out) -> Result<RunRequest, CommandError> {
    let asks = !request.yes && may_ask(out);
    if asks && let Some(asked) = app.asked_for_source(request)? {
        ask(&asked, app, out)?;
    }
    let settled = app.settle(request)?;
    // The run reports configuration problems.
    if asks && let Ok(asked) = app.asked(&settled) {
        ask(&asked, app, out)?;
    }
    Ok(settled)
}

fn ask(asked: &TrustRequest, app: &App, out: &Out) -> Result<(), CommandError> {
    let difference = asked.difference()?;
    if difference.new.is_empty() || asked.is_in_variable(app.environment()) {
        return Ok(());
    }
    show(&difference, out);
    if confirm("Allow this, from now on?", out) {
        return asked.allow();
    }
    Err(CommandError::needs_person("not started: this repository requests permissions that you haven't allowed")
        .hint("remove it from the repo's files, set it in your own configuration or with a flag, or review it with `ralph trust`"))
}

/// The list, with changes since the last approval.
pub fn show(difference: &Difference, out: &Out) {
    out.say(format!("{} This repository asks for:", out.err(Tone::Attention, "trust:")));
    difference.lines().iter().for_each(|line| out.say(format!("  {line}")));
}
