//! Reads controls from the inbox, journals them with their sender, and applies them.

mod approval;
pub(crate) mod task_edit;

use crate::error::DriveError;
use crate::ledger::Ledger;
use crate::record::guardrails::{self, GUARDRAILS, MEMORY_MAX};
use crate::record::sandboxes;
use crate::run::Run;
use ralph_loop_domain::ports::StopCause;
use ralph_loop_domain::repo::guardrail;
use ralph_loop_domain::state::Stage;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::inbox;
use ralph_loop_protocol::control::{Control, Letter};
use ralph_loop_protocol::event::EventBody;

/// Before every step: journals what came from outside since the last one, and does what the user asked for.
pub(crate) fn apply(run: &mut Run) -> Result<(), DriveError> {
    read(&mut run.ledger)?;
    sandboxes::record_refusals(run)?;
    sandboxes::record_sandbox_events(run)?;
    approval::handle_approval(run)?;
    approval::approve_tests(run)?;
    task_edit::handle_task_edit(run)
}

/// Reads new controls. Returns what they mean for the current session.
pub(crate) fn read(ledger: &mut Ledger) -> Result<Option<StopCause>, DriveError> {
    let mut stop = None;
    if ledger.cancel.get().is_some() {
        // A repeated request is urgent: no more time to end cleanly.
        stop = Some(if ledger.cancel.times() > 1 { StopCause::Cancelled } else { StopCause::Suspended });
    }
    let new = std::fs::metadata(ledger.record_dir.inbox()).is_ok_and(|m| m.len() > ledger.state.people.inbox);
    if !new {
        return Ok(stop);
    }
    for (letter, after) in inbox::read(&ledger.record_dir, ledger.state.people.inbox)? {
        match letter {
            Ok(letter) if ledger.state.has_letter(&letter.id) => ledger.state.pass_over_inbox(after),
            Ok(letter) => {
                let cause = stop_cause(ledger, &letter.control);
                accept(ledger, letter, after)?;
                stop = stop.or(cause);
            }
            Err(reason) => {
                let id = format!("unreadable-{after}");
                ledger.record(EventBody::ControlRefused { id, reason, inbox: after })?;
            }
        }
    }
    ledger.flush()?;
    Ok(stop)
}

/// Ends a suspending run permanently, because the user asked for that.
pub(crate) fn cancel_instead(ledger: &mut Ledger, by: &str) -> Result<(), DriveError> {
    let letter =
        Letter { id: format!("signal-{}", ledger.state.seq), from: by.into(), control: Control::Cancel };
    let inbox = ledger.state.people.inbox;
    ledger.record(EventBody::ControlReceived { letter, inbox })?;
    Ok(())
}

fn stop_cause(ledger: &Ledger, control: &Control) -> Option<StopCause> {
    let current = ledger.state.iterations.current.as_ref().filter(|c| c.stage == Stage::Working)?;
    match control {
        Control::Cancel => Some(StopCause::Cancelled),
        Control::Rotate => Some(StopCause::Rotated),
        Control::Skip { agent: None } => Some(StopCause::Skipped),
        Control::Skip { agent: Some(agent) } if *agent == current.agent => Some(StopCause::Skipped),
        Control::Cooldown { agent, seconds } if *seconds > 0 && *agent == current.agent => {
            Some(StopCause::Skipped)
        }
        _ => None,
    }
}

fn accept(ledger: &mut Ledger, letter: Letter, inbox: u64) -> Result<(), DriveError> {
    if let Control::Skip { agent: Some(agent) }
    | Control::Cooldown { agent, .. }
    | Control::Model { agent: Some(agent), .. } = &letter.control
        && ledger.state.spec.settings.agent(agent).is_none()
    {
        let reason = format!("there is no agent `{agent}` in this run");
        ledger.record(EventBody::ControlRefused { id: letter.id, reason, inbox })?;
        return Ok(());
    }
    if let Control::Model { model: Some(model), agent, .. } = &letter.control
        && let Some((problem, known)) = ledger.state.spec.settings.unknown_model(agent.as_ref(), model)
    {
        let reason = format!("{problem}: {known}");
        ledger.record(EventBody::ControlRefused { id: letter.id, reason, inbox })?;
        return Ok(());
    }
    if let Control::Edit { task } = &letter.control
        && let Err(reason) = task_edit::check_edit(ledger, task)
    {
        ledger.record(EventBody::ControlRefused { id: letter.id, reason, inbox })?;
        return Ok(());
    }
    let event = ledger.record(EventBody::ControlReceived { letter, inbox })?;
    let EventBody::ControlReceived { letter, .. } = event.body else { return Ok(()) };
    carry_out(ledger, &letter)
}

/// Performs effects outside the state. Each is repeatable, so that a crash between journal and effect
/// loses nothing.
fn carry_out(ledger: &mut Ledger, letter: &Letter) -> Result<(), DriveError> {
    match &letter.control {
        Control::Note { text } => write_note(ledger, text, letter),
        Control::Guardrail { text } => {
            let rule = guardrail::written(text, ledger.state.iterations.count, &letter.from);
            add_guardrail(ledger, &rule, letter)?;
            guardrails::sync_guardrails(ledger);
            Ok(())
        }
        Control::Cooldown { .. } => ledger.save_cooldowns(),
        Control::Edit { .. } => task_edit::new_spec_version(ledger),
        _ => Ok(()),
    }
}

/// Repeats the effects of recent controls, which a crash may have prevented.
pub(crate) fn redo_controls(ledger: &mut Ledger) -> Result<(), DriveError> {
    let letters: Vec<Letter> = ledger.state.people.letters.iter().cloned().collect();
    for letter in letters {
        if matches!(letter.control, Control::Note { .. } | Control::Guardrail { .. }) {
            carry_out(ledger, &letter)?;
        }
    }
    Ok(())
}

fn add_guardrail(ledger: &mut Ledger, rule: &str, letter: &Letter) -> Result<(), DriveError> {
    let marker = format!("<!-- {} {} -->", letter.id, letter.from);
    let before = ledger.dir.read_text(GUARDRAILS, MEMORY_MAX);
    if before.contains(&marker) {
        return Ok(());
    }
    let head = if before.is_empty() { "# Guardrails\n" } else { "" };
    let text = ledger.redactor.text(rule);
    ledger.dir.append(GUARDRAILS, &format!("{head}\n{}\n{marker}\n", text.trim_end()))?;
    Ok(())
}

/// Stores a note in the run's record: sessions can't change it there and other runs don't read it.
fn write_note(ledger: &mut Ledger, text: &str, letter: &Letter) -> Result<(), DriveError> {
    let marker = format!("<!-- {} {} -->", letter.id, letter.from);
    let path = ledger.record_dir.notes();
    let mut notes = std::fs::read_to_string(&path).unwrap_or_default();
    if notes.contains(&marker) {
        return Ok(());
    }
    let text = ledger.redactor.text(text);
    notes.push_str(&format!("{}{}\n{marker}\n", if notes.is_empty() { "" } else { "\n" }, text.trim_end()));
    artifacts::write_atomic(&path, notes.as_bytes())?;
    Ok(())
}
