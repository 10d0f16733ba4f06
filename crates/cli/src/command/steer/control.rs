//! Controls: each command puts one control into the run's inbox. An active run reads it within a fraction of
//! a second, a stopped one when it resumes.

use crate::drive;
use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::steering::steer;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{App, ErrorKind};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::handle::ControlOutcome;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::control::{BudgetChange, Control};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{count, duration};
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::spec::RunSpec;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub struct RunOnly {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  ralph skip --agent codex")]
pub struct SkipArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Agent to skip [default: the active one]
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph cooldown gemini --seconds 3600
  ralph cooldown gemini --clear          use it again now")]
pub struct CooldownArgs {
    /// Agent
    pub agent: String,
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Length of the cooldown
    #[arg(long, value_name = "N", default_value_t = 900, conflicts_with = "clear")]
    pub seconds: u64,
    /// End the cooldown
    #[arg(long)]
    pub clear: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph model claude-opus-5-5 --agent claude
  ralph model claude-opus-5-5 --always   keep it for later iterations
  ralph model --default                  return to the configured model")]
pub struct ModelArgs {
    /// Model
    #[arg(required_unless_present = "default", value_parser = crate::parse::model)]
    pub model: Option<String>,
    /// Run id [default: the latest run in this folder]
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Use the model for this agent only
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Use it for all later iterations
    #[arg(long)]
    pub always: bool,
    /// Return to the configured model
    #[arg(long, conflicts_with_all = ["model", "always"])]
    pub default: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph edit --file PROMPT.md            replace the task with this file
  ralph edit --file - < new-task.md")]
pub struct EditArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// File with the new text, `-` for stdin
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph note 'The staging database is read-only.'
  ralph nudge 'Look at the drain path first.' --run k3f9")]
pub struct TextArgs {
    /// Text
    pub text: String,
    /// Run id [default: the latest run in this folder]
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

/// Sends a control without further arguments.
pub fn simple(
    args: &RunOnly,
    control: Control,
    app: &App,
    folder: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    let entry = app.open(folder, args.run.as_deref())?.entry;
    if control == Control::Stop && !app.handle(&entry).is_driven() {
        return end_here(&entry, control, app, folder, out);
    }
    send(app, &entry, control, out)
}

/// Ends a stopped run: this process reads the control itself. If the run can't be driven, its record is
/// enough.
fn end_here(
    entry: &Registration,
    control: Control,
    app: &App,
    folder: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    steer::refuse_finished(app, entry)?;
    let handle = app.handle(entry);
    let reason = if control == Control::Stop { EndReason::Stopped } else { EndReason::Cancelled };
    let state = handle.state()?;
    if state.people.needs_human.is_none() {
        handle.send(control)?;
        let id = Some(entry.run_id.as_str());
        match drive::resume_run(id, &[], &BudgetChange::default(), app, folder, out) {
            Ok(1 | 130) => return Ok(0),
            Ok(code) if code != 3 => return Ok(code),
            _ => {}
        }
    }
    app.end(entry, reason)?;
    if out.json {
        out.value(&serde_json::json!({ "run_id": entry.run_id, "ended": true }));
    }
    let word = if reason == EndReason::Stopped { "stopped" } else { "cancelled" };
    out.say(format!("run {} is {word}", entry.run_id));
    if !state.spending.compute.sandboxes.is_empty() {
        let hint = format!("`ralph sandbox rm {}` removes its sandboxes", entry.run_id);
        out.say(format!("{} {hint}", out.err(Tone::Plain, "next:")));
    }
    Ok(0)
}

/// Ends a run and waits for the end. A stopped run is ended immediately.
pub fn cancel(args: &RunOnly, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let entry = app.open(folder, args.run.as_deref())?.entry;
    let handle = app.handle(&entry);
    if !handle.is_driven() {
        return end_here(&entry, Control::Cancel, app, folder, out);
    }
    handle.send(Control::Cancel)?;
    let clock = SystemClock::default();
    while handle.is_driven() && clock.elapsed() < Duration::from_secs(20) {
        clock.pause(Duration::from_millis(50));
    }
    let ended = !handle.is_driven();
    if out.json {
        out.value(&serde_json::json!({ "run_id": entry.run_id, "sent": "cancel", "ended": ended }));
    }
    out.say(if ended {
        format!("run {} is cancelled", entry.run_id)
    } else {
        format!("run {} was asked to end", entry.run_id)
    });
    Ok(0)
}

pub fn skip(args: SkipArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let entry = app.open(folder, args.run.as_deref())?.entry;
    send(app, &entry, Control::Skip { agent: args.agent.map(AgentName::new) }, out)
}

pub fn cooldown(args: CooldownArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let entry = app.open(folder, args.run.as_deref())?.entry;
    let agent = AgentName::new(args.agent);
    send(app, &entry, Control::Cooldown { agent, seconds: if args.clear { 0 } else { args.seconds } }, out)
}

pub fn model(args: ModelArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let entry = app.open(folder, args.run.as_deref())?.entry;
    let agent = args.agent.map(AgentName::new);
    let chosen = args.model.is_some();
    let code = send(
        app,
        &entry,
        Control::Model { model: args.model, agent: agent.clone(), always: args.always },
        out,
    )?;
    let agents =
        app.handle(&entry).state().map(|state| state.spec.settings.agents.clone()).unwrap_or_default();
    let meant = agents.iter().filter(|known| agent.as_ref().is_none_or(|name| known.name == *name));
    let deaf: Vec<&str> =
        meant.filter(|known| !known.takes_model()).map(|known| known.name.as_str()).collect();
    if chosen && !deaf.is_empty() {
        out.say(format!(
            "{} the command of {} takes no model (`{{{{model}}}}`, `model_argv`); only RALPH_MODEL passes it on",
            out.err(Tone::Attention, "note:"),
            deaf.join(", ")
        ));
    }
    Ok(code)
}

pub fn edit(args: EditArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let entry = app.open(folder, args.run.as_deref())?.entry;
    let text = if args.file.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        repo_file::read_text(&folder.join(&args.file))
    }
    .map_err(|e| CommandError::usage(format!("cannot read `{}`: {e}", args.file.display())))?;
    if text.trim().is_empty() {
        return Err(CommandError::usage("the new task is empty")
            .hint("give it a task, or run `ralph stop` to end the run"));
    }
    let task = app.environment().redactor(&entry.origin).text(&text).into_owned();
    let before = app.handle(&entry).state()?.spec.clone();
    let code = send(app, &entry, Control::Edit { task }, out)?;
    let after = app.handle(&entry).state()?.spec.clone();
    if after.task != before.task || after.settings != before.settings {
        out.say(taken(&before, &after));
    }
    Ok(code)
}

/// What a run accepted of an edit.
fn taken(before: &RunSpec, after: &RunSpec) -> String {
    let settings = &after.settings;
    let mut parts = vec![format!("{} of text", count(after.task.text.lines().count(), "line"))];
    if !after.task.criteria.is_empty() {
        parts.push(count(after.task.criteria.len(), "criterion").replace("criterions", "criteria"));
    }
    parts.push(format!("checks: {}", settings.required_verifiers.join(", ")));
    let (old, new) = (&before.settings.budgets, &settings.budgets);
    if old.max_iterations != new.max_iterations {
        parts.push(format!("iterations: {} → {}", old.max_iterations, new.max_iterations));
    }
    if old.max_cost != new.max_cost {
        parts.push(format!("cost: {} → {}", old.max_cost, new.max_cost));
    }
    if old.max_wall_time != new.max_wall_time {
        parts.push(format!("time: {} → {}", duration(old.max_wall_time), duration(new.max_wall_time)));
    }
    if let Some(most) = new.max_tokens.filter(|_| old.max_tokens != new.max_tokens) {
        parts.push(format!("tokens: {most}"));
    }
    format!("taken: {}", parts.join("; "))
}

pub fn approve(args: &RunOnly, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let entry = app.open(folder, args.run.as_deref())?.entry;
    let mut accepted = false;
    if !app.handle(&entry).is_driven()
        && let Some(aside) = app.accept_sealed(&entry)?
    {
        accepted = true;
        out.say(format!(
            "the sealed copy is the journal again; the edited one is kept as `{}`",
            aside.display()
        ));
    }
    let asks = app.handle(&entry).state().map(|state| {
        state.people.needs_human.is_some() || state.people.alarm.is_some() || state.people.question.is_some()
    });
    if !accepted && matches!(asks, Ok(false)) {
        steer::refuse_finished(app, &entry)?;
        let id = &entry.run_id;
        return Err(CommandError::usage(format!("run {id} has nothing to approve"))
            .hint(format!("run `ralph status {id}`")));
    }
    send(app, &entry, Control::Approve, out)
}

pub fn text(
    args: TextArgs,
    control: impl FnOnce(String) -> Control,
    app: &App,
    folder: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    if args.text.trim().is_empty() {
        return Err(CommandError::usage("the text is empty"));
    }
    let entry = app.open(folder, args.run.as_deref())?.entry;
    send(app, &entry, control(args.text), out)
}

fn send(app: &App, entry: &Registration, control: Control, out: &Out) -> Result<u8, CommandError> {
    let sent = steer::send(app, entry, control)?;
    let (run, name) = (&entry.run_id, sent.control);
    if out.json {
        let taken = sent.outcome == ControlOutcome::Received;
        let mut told = serde_json::json!({ "run_id": run, "sent": name, "taken": taken, "id": sent.id });
        if let ControlOutcome::Refused(reason) = &sent.outcome {
            told["refused"] = reason.as_str().into();
        }
        out.value(&told);
    }
    match &sent.outcome {
        ControlOutcome::Refused(_) if out.json => {
            out.say(sent.words(run.as_str()));
            Ok(ErrorKind::Usage.exit_code())
        }
        ControlOutcome::Refused(reason) => {
            Err(CommandError::usage(format!("run {run} refused {name}: {reason}"))
                .hint("nothing was changed; fix it and send it again"))
        }
        ControlOutcome::Received | ControlOutcome::NotYet => {
            out.say(sent.words(run.as_str()));
            Ok(0)
        }
    }
}
