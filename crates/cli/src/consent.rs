//! What a repo asks for and only its user can allow, asked at the terminal before a run begins.

use crate::confirm::{confirm, may_ask};
use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::consent::Difference;
use ralph_loop_app::{App, Asked, RunRequest};
use ralph_loop_protocol::describe::Tone;

/// The request as it is run. Shows what is new and asks, where somebody is there who can answer: first about another repo that
/// a task names, before anything connects to it, then about all the rest. Where nobody is there, the run itself is refused with
/// the same list.
pub fn settle(request: &RunRequest, app: &App, out: &Out) -> Result<RunRequest, CommandError> {
    let asks = !request.yes && may_ask(out);
    if asks && let Some(asked) = app.asked_for_source(request)? {
        ask(&asked, app, out)?;
    }
    let settled = app.settle(request)?;
    // What is wrong with the configuration is told by the run.
    if asks && let Ok(asked) = app.asked(&settled) {
        ask(&asked, app, out)?;
    }
    Ok(settled)
}

fn ask(asked: &Asked, app: &App, out: &Out) -> Result<(), CommandError> {
    let difference = asked.difference()?;
    if difference.new.is_empty() || asked.is_named_in(app.environment()) {
        return Ok(());
    }
    show(&difference, out);
    if confirm("Allow this, from now on?", out) {
        return asked.allow();
    }
    Err(CommandError::needs_person("nothing was started: this repository asks for what you have not allowed")
        .hint("take it out of its files, or say it yourself in your own configuration or by flag; `ralph trust` asks again"))
}

/// The list, with what has changed since it was last allowed.
pub fn show(difference: &Difference, out: &Out) {
    out.say(format!("{} This repository asks for:", out.err(Tone::Attention, "trust:")));
    difference.lines().iter().for_each(|line| out.say(format!("  {line}")));
}
