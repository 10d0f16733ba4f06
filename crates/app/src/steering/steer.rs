//! Sends a control to a run's inbox, rejects what can't have an effect, and reports the outcome.

use crate::app::App;
use crate::config::model_access;
use crate::error::AppError;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::handle::ControlOutcome;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::describe::clock_time;
use ralph_loop_protocol::id::AgentName;
use std::time::Duration;

/// How long to wait for a busy run.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub id: String,
    pub control: &'static str,
    /// The outcome so far.
    pub outcome: ControlOutcome,
    pub driven: bool,
}

impl Sent {
    /// The outcome as one line.
    pub fn words(&self, run: &str) -> String {
        let name = self.control;
        match &self.outcome {
            ControlOutcome::Received => format!("{name}: accepted by run {run}"),
            ControlOutcome::Refused(reason) => format!("{name}: run {run} refused it: {reason}"),
            ControlOutcome::NotYet if self.driven => format!(
                "{name}: sent; run {run} is busy and applies it at its next step (`ralph logs -f {run}`)"
            ),
            ControlOutcome::NotYet => {
                format!(
                    "{name}: saved for run {run}, which isn't running; run `ralph resume {run}` to continue it"
                )
            }
        }
    }
}

/// Sends a control and waits briefly for the run to read it. Controls that can't be carried out are rejected.
pub fn send(app: &App, entry: &Registration, control: Control) -> Result<Sent, AppError> {
    refuse_finished(app, entry)?;
    let control = checked(app, entry, control)?;
    let (handle, name) = (app.handle(entry), control.name());
    let id = handle.send(control)?;
    let outcome = handle.wait_for_outcome(&id, ANSWER_TIMEOUT)?;
    Ok(Sent { id, control: name, outcome, driven: handle.is_driven() })
}

/// Rejects steering a finished run.
pub fn refuse_finished(app: &App, entry: &Registration) -> Result<(), AppError> {
    match &app.handle(entry).state()?.result.finished {
        Some(end) => Err(AppError::usage(format!("run {} is over: {}", entry.run_id, end.summary))
            .hint("`ralph list` shows the runs of this folder")),
        None => Ok(()),
    }
}

/// The control for the inbox: its agent is one of the run's, its text is redacted.
fn checked(app: &App, entry: &Registration, control: Control) -> Result<Control, AppError> {
    // The inbox is a file, so no secrets.
    let clean = |text: &str| match text.trim() {
        "" => Err(AppError::usage("the text is empty")),
        _ => Ok(app.environment().redactor(&entry.origin).text(text).into_owned()),
    };
    Ok(match control {
        Control::Note { text } => Control::Note { text: clean(&text)? },
        Control::Nudge { text } => Control::Nudge { text: clean(&text)? },
        Control::Guardrail { text } => Control::Guardrail { text: clean(&text)? },
        Control::Skip { agent } => {
            skippable(app, entry, agent.as_ref())?;
            Control::Skip { agent }
        }
        Control::Cooldown { agent, seconds } => {
            known(app, entry, Some(&agent))?;
            Control::Cooldown { agent, seconds }
        }
        Control::Model { model, agent, always } => {
            known(app, entry, agent.as_ref())?;
            if let Some(model) = &model {
                let state = app.handle(entry).state()?;
                model_access::check_choice(app.environment(), &state.spec.settings, agent.as_ref(), model)?;
            }
            Control::Model { model, agent, always }
        }
        other => other,
    })
}

fn known(app: &App, entry: &Registration, agent: Option<&AgentName>) -> Result<(), AppError> {
    let Some(agent) = agent else { return Ok(()) };
    let state = app.handle(entry).state()?;
    if state.spec.settings.agent(agent).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = state.spec.settings.agents.iter().map(|a| a.name.as_str()).collect();
    Err(AppError::usage(format!("agent `{agent}` isn't part of run {}", entry.run_id))
        .hint(format!("its agents: {}", names.join(", "))))
}

/// Rejects skipping the only agent that could work.
fn skippable(app: &App, entry: &Registration, agent: Option<&AgentName>) -> Result<(), AppError> {
    known(app, entry, agent)?;
    let (state, id) = (app.handle(entry).state()?, &entry.run_id);
    if let [only] = state.spec.settings.agents.as_slice() {
        return Err(AppError::usage(format!("`{}` is the only agent of run {id}; no other agent can take its turn", only.name))
            .hint(format!("run `ralph rotate {id}` for a fresh session, `ralph pause {id}` to pause, or `ralph cancel {id}` to end the run")));
    }
    match why_no_other_agent(app, &state, agent) {
        Some(busy) => Err(AppError::usage(format!("no other agent of run {id} is available: {busy}"))
            .hint(format!("run `ralph rotate {id}` for a fresh session, `ralph cooldown AGENT {id} --clear` to end a cooldown, or `ralph pause {id}` to pause"))),
        None => Ok(()),
    }
}

/// Why none of the other agents can work now; `None` if one can.
fn why_no_other_agent(app: &App, state: &RunState, skipped: Option<&AgentName>) -> Option<String> {
    let current = state.iterations.current.as_ref().map(|current| &current.agent);
    let skipped = skipped.or(current).or(state.agents.last_agent.as_ref())?;
    let (now, zone) = (SystemClock::default().now(), app.environment().zone());
    let mut reasons = Vec::new();
    for agent in state.spec.settings.agents.iter().filter(|agent| agent.name != *skipped) {
        let name = &agent.name;
        if let Some(reason) = state.agents.dropped.get(name) {
            reasons.push(format!("{name} takes no further part ({reason})"));
        } else if let Some(rest) = state.agents.cooldowns.get(name).filter(|rest| rest.until > now) {
            let until = clock_time(rest.until, now, Some(&zone));
            reasons.push(format!("{name} rests until {until} ({})", rest.reason));
        } else if state.agents.skip.contains(name) {
            reasons.push(format!("{name} is skipped already"));
        } else {
            return None;
        }
    }
    Some(reasons.join("; "))
}
