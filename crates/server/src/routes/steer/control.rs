//! Steers a run: each control goes into its inbox with its sender. A stopped run is resumed or ended in a
//! separate process.

use crate::auth::Caller;
use crate::http::extract::{Answer, Body};
use crate::http::problem::Problem;
use crate::people::Role;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use ralph_loop_app::config::model_access;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::steering::diagnosis;
use ralph_loop_core::handle::{ControlOutcome, RunHandle};
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::control::{BudgetChange, Control};
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::Usd;
use ralph_loop_protocol::outcome::EndReason;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for a busy run.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// Size limit of text for agents.
const TEXT_MAX: usize = 64 * 1024;

/// A control.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ControlBody {
    /// pause, resume, rotate, stop, cancel, skip, cooldown, model, note, guardrail, nudge, edit, approve, budget, diagnose, apply
    /// or answer.
    kind: String,
    /// The text of a note, guardrail, nudge or edit.
    text: Option<String>,
    /// The agent concerned.
    agent: Option<String>,
    /// Length of a cooldown in seconds.
    seconds: Option<u64>,
    /// The model; null for the configured one.
    model: Option<String>,
    /// Not only for the next iteration.
    always: bool,
    /// approve, resume, stop or cancel.
    answer: Option<String>,
    /// Iteration limit.
    max_iterations: Option<u32>,
    /// Working time limit in seconds.
    max_seconds: Option<u64>,
    /// Cost limit.
    max_cost_usd: Option<f64>,
    /// Token limit.
    max_tokens: Option<u64>,
}

impl ControlBody {
    /// Fuzzing entry point: parses without a run and returns a score of what was understood.
    pub(in crate::routes) fn read_whole(&self) -> usize {
        usize::from(budget(self).is_ok())
    }
}

/// The outcome of a control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ControlAnswer {
    /// The control's id in the journal.
    letter: Option<String>,
    /// `received` by the run, `saved` until the run reads it, `started` in a new process, or `ended`.
    outcome: &'static str,
    /// The controls sent, if there were several.
    sent: Vec<&'static str>,
}

impl ControlAnswer {
    fn new(letter: Option<String>, outcome: &'static str) -> Self {
        Self { letter, outcome, sent: Vec::new() }
    }
}

pub(crate) async fn control(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(run): Path<String>,
    Body(mut body): Body<ControlBody>,
) -> Answer<(StatusCode, Json<ControlAnswer>)> {
    caller.may(Role::Operator)?;
    if body.kind == "answer" {
        body.kind = match body.answer.as_deref() {
            Some(word @ ("approve" | "resume" | "stop" | "cancel")) => word.to_owned(),
            _ => return Err(Problem::bad("`answer` is one of approve, resume, stop, cancel")),
        };
    }
    if server.scheduler.is_waiting(&run) {
        if !matches!(body.kind.as_str(), "stop" | "cancel") {
            return Err(Problem::conflict("the run has not begun").hint("it can only be cancelled now"));
        }
        caller.note(&server, &body.kind, Some(&run), None)?;
        if !server.scheduler.take_out(&run).await? {
            return Err(Problem::conflict("the run begins at this moment").hint("try again in a few seconds"));
        }
        return Ok((StatusCode::ACCEPTED, Json(ControlAnswer::new(None, "ended"))));
    }
    if let Some(answer) = crate::routes::people::fleet::take_out(&server, &caller, &run, &body.kind).await? {
        return Ok((StatusCode::ACCEPTED, Json(ControlAnswer::new(None, answer))));
    }
    let entry = server.entry(&run)?;
    // Task edits of one run are serialized.
    let _alone = server.edit_alone(&entry.run_id).await;
    let own = server.clone();
    let id = entry.run_id.clone();
    let answer = server.apart(move || Steering::open(own, caller, entry)?.carry_out(&body)).await?;
    server.live.touch(&id);
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// One caller's control of a run.
struct Steering {
    server: Arc<Server>,
    caller: Caller,
    reading: RunSnapshot,
    handle: RunHandle,
    driven: bool,
}

impl Steering {
    fn open(server: Arc<Server>, caller: Caller, entry: Registration) -> Result<Self, Problem> {
        let handle = RunHandle::new(entry.run_dir(), caller.actor());
        let reading = RunSnapshot::load(server.app.environment(), entry)?;
        // If a fleet worker drives it, controls go there.
        let driven = handle.is_driven() || ralph_loop_app::adopt::is_of_fleet(&reading.entry.run_dir());
        Ok(Self { server, caller, reading, handle, driven })
    }

    fn entry(&self) -> &Registration {
        &self.reading.entry
    }

    fn carry_out(&self, body: &ControlBody) -> Result<ControlAnswer, Problem> {
        let run = self.entry().run_id.as_str();
        let control = self.control(body)?;
        self.refuse_over(&body.kind)?;
        let detail = body.text.clone().or_else(|| body.model.clone()).or_else(|| body.agent.clone());
        let detail = detail.map(|text| self.clean(&text));
        self.caller.note(&self.server, &body.kind, Some(run), detail)?;
        match (&control, self.driven) {
            (None, _) => self.apply(),
            (Some(control), true) => self.tell(control.clone()),
            (Some(control), false) => self.act(control.clone()),
        }
    }

    /// The control; `None` for `apply`, which sends several.
    fn control(&self, body: &ControlBody) -> Result<Option<Control>, Problem> {
        let agent = self.agent(body.agent.as_deref())?;
        Ok(Some(match body.kind.as_str() {
            "pause" => Control::Pause,
            "resume" => Control::Resume,
            "rotate" => Control::Rotate,
            "stop" => Control::Stop,
            "cancel" => Control::Cancel,
            "approve" => Control::Approve,
            "diagnose" => Control::Diagnose,
            "skip" => Control::Skip { agent },
            "cooldown" => {
                let agent = agent.ok_or_else(|| Problem::bad("`agent` says who is to rest"))?;
                Control::Cooldown { agent, seconds: body.seconds.unwrap_or(900) }
            }
            "model" => {
                let (env, settings) = (self.server.app.environment(), &self.reading.state.spec.settings);
                if let Some(model) = &body.model {
                    model_access::check_choice(env, settings, agent.as_ref(), model)?;
                }
                Control::Model { model: body.model.clone(), agent, always: body.always }
            }
            "note" => Control::Note { text: self.text(body)? },
            "guardrail" => Control::Guardrail { text: self.text(body)? },
            "edit" => Control::Edit { task: self.text(body)? },
            "nudge" if !self.reading.state.spec.settings.mode.takes_nudges() => {
                return Err(Problem::forbidden("hints for one session need the mode guided or debug").hint(
                    "add a note or a guardrail instead; `mode` in the task or the configuration changes this",
                ));
            }
            "nudge" => Control::Nudge { text: self.text(body)? },
            "budget" => Control::Budget(budget(body)?),
            "apply" => return Ok(None),
            other => {
                let shown = ralph_loop_protocol::display::text::one_line(other, 40);
                return Err(Problem::bad(format!("unknown control `{shown}`")).hint("`/api/docs` lists them"));
            }
        }))
    }

    fn agent(&self, name: Option<&str>) -> Result<Option<AgentName>, Problem> {
        let Some(name) = name else { return Ok(None) };
        let agent = AgentName::new(name);
        let settings = &self.reading.state.spec.settings;
        if settings.agent(&agent).is_some() {
            return Ok(Some(agent));
        }
        let known: Vec<&str> = settings.agents.iter().map(|a| a.name.as_str()).collect();
        let shown = ralph_loop_protocol::display::text::one_line(name, 60);
        Err(Problem::refused(format!("agent `{shown}` isn't part of this run"))
            .hint(format!("its agents: {}", known.join(", "))))
    }

    /// The text, redacted: users may paste secrets.
    fn text(&self, body: &ControlBody) -> Result<String, Problem> {
        let text = body.text.as_deref().unwrap_or_default();
        if text.trim().is_empty() || text.len() > TEXT_MAX * 2 {
            return Err(Problem::bad(format!("`text` is empty or longer than {} kB", TEXT_MAX / 512)));
        }
        Ok(self.clean(text))
    }

    fn clean(&self, text: &str) -> String {
        self.server.app.environment().redactor(&self.entry().origin).text(text).into_owned()
    }

    fn refuse_over(&self, kind: &str) -> Result<(), Problem> {
        let of_fleet = || ralph_loop_app::adopt::is_of_fleet(&self.entry().run_dir());
        match &self.reading.state.result.finished {
            // A worker won't read it again, so the control would wait forever.
            Some(end) if of_fleet() => Err(Problem::conflict(format!("the run is over: {}", end.summary))
                .hint("a fleet run can't continue after its end; start a new one")),
            Some(end) if kind == "budget" && end.reason.is_budget() => Ok(()),
            Some(_) if kind == "diagnose" => Ok(()),
            Some(end) => Err(Problem::conflict(format!("the run is over: {}", end.summary))
                .hint("start a new one for the rest")),
            None => Ok(()),
        }
    }

    /// Sends a control to a live run.
    fn tell(&self, control: Control) -> Result<ControlAnswer, Problem> {
        let name = control.name();
        let letter = self.handle.send(control)?;
        match self.handle.wait_for_outcome(&letter, ANSWER_TIMEOUT)? {
            ControlOutcome::Received => Ok(ControlAnswer::new(Some(letter), "received")),
            ControlOutcome::NotYet => Ok(ControlAnswer::new(Some(letter), "saved")),
            ControlOutcome::Refused(reason) => {
                Err(Problem::conflict(format!("the run refused {name}: {reason}"))
                    .hint("nothing was changed"))
            }
        }
    }

    /// Acts on a stopped run in a separate process.
    fn act(&self, control: Control) -> Result<ControlAnswer, Problem> {
        let app = self.server.app.clone();
        let unchanged = BudgetChange::default();
        match control {
            Control::Stop | Control::Cancel => self.end(control),
            Control::Resume => {
                app.spawn_resume(self.entry(), &unchanged)?;
                Ok(ControlAnswer::new(None, "started"))
            }
            Control::Approve => {
                app.accept_sealed(self.entry())?;
                let letter = self.handle.send(control)?;
                app.spawn_resume(self.entry(), &unchanged)?;
                Ok(ControlAnswer::new(Some(letter), "started"))
            }
            Control::Budget(change) if self.reading.state.result.finished.is_some() => {
                app.spawn_resume(self.entry(), &change)?;
                Ok(ControlAnswer::new(None, "started"))
            }
            Control::Diagnose => {
                app.spawn_diagnose(self.entry())?;
                Ok(ControlAnswer::new(None, "started"))
            }
            other => Ok(ControlAnswer::new(Some(self.handle.send(other)?), "saved")),
        }
    }

    /// Ends a stopped run: through a process that can clean up, or else in its record only.
    fn end(&self, control: Control) -> Result<ControlAnswer, Problem> {
        let reason = if control == Control::Stop { EndReason::Stopped } else { EndReason::Cancelled };
        if self.reading.state.people.needs_human.is_none() {
            let letter = self.handle.send(control)?;
            if self.server.app.spawn_resume(self.entry(), &BudgetChange::default()).is_ok() {
                return Ok(ControlAnswer::new(Some(letter), "ended"));
            }
        }
        self.server.app.end(self.entry(), reason)?;
        Ok(ControlAnswer::new(None, "ended"))
    }

    /// Sends the doctor's suggestions.
    fn apply(&self) -> Result<ControlAnswer, Problem> {
        let state = &self.reading.state;
        let Some(found) = super::diagnosis::latest(&self.reading)? else {
            return Err(Problem::conflict("no doctor has read this run yet").hint("`diagnose` asks one"));
        };
        let from = format!("doctor, applied by {}", self.caller.actor());
        let sent = diagnosis::apply(&self.handle, &self.server.app, self.entry(), state, &found, &from)?;
        let outcome = if self.driven && sent.received { "received" } else { "saved" };
        Ok(ControlAnswer { letter: sent.last, outcome, sent: sent.sent })
    }
}

fn budget(body: &ControlBody) -> Result<BudgetChange, Problem> {
    let cost = body.max_cost_usd.filter(|cost| cost.is_finite() && *cost >= 0.0);
    if body.max_cost_usd.is_some() && cost.is_none() {
        return Err(Problem::bad("`max_cost_usd` must be a number of at least 0"));
    }
    let change = BudgetChange {
        max_iterations: body.max_iterations,
        max_seconds: body.max_seconds,
        max_cost: cost.map(Usd::from_dollars),
        max_tokens: body.max_tokens,
    };
    if change.is_empty() {
        return Err(Problem::bad("no budget is named")
            .hint("`max_iterations`, `max_seconds`, `max_cost_usd` or `max_tokens`"));
    }
    Ok(change)
}
