//! Agents of kind `actions`: one model call per session, answered with a strict JSON contract of actions. An invalid
//! answer may be repaired a limited number of times; then it is recorded as a failure.

mod contract;
pub mod intake;
mod json;
pub mod patch;
mod perform;
mod preamble;

pub use contract::{Action, Claims, Contract, OnError};

use crate::bounded::{RESPONSE_MAX, value};
use crate::session::call::{Caller, choose};
use crate::session::deadline::Deadline;
use crate::session::prompt::split;
use crate::session::spend::{Pricing, SpendCounter};
use intake::IntakeError;
use perform::{ActionResults, ActionRunner};
use ralph_loop_domain::model::{
    Message, ModelClient, ModelReply, ModelRequest, ReplyPart, StopReason, TextPart, UserPart,
};
use ralph_loop_domain::ports::{
    Agent, FINAL_MESSAGE_MAX, ReleaseWhen, Sandbox, SandboxError, SessionReport, SessionRequest, SessionSink,
    Stream,
};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_task::config::{AgentConfig, Models};
use serde_json::{Value, json};
use std::sync::Arc;

const REPAIR: &str = include_str!("templates/repair.md");
/// How much of an invalid answer is sent back for repair.
const SENT_BACK_MAX: usize = 64 * 1024;
const CLAIMS_MAX: usize = 500;
const CLAIM_MAX: usize = 200;

pub struct ActionsAgent {
    config: AgentConfig,
    models: Models,
    prices: Pricing,
    client: Arc<dyn ModelClient>,
    redactor: Arc<Redactor>,
}

impl std::fmt::Debug for ActionsAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ActionsAgent").field("config", &self.config).finish_non_exhaustive()
    }
}

impl ActionsAgent {
    /// An agent of kind `actions` that calls models through `client`.
    pub fn new(config: AgentConfig, models: Models, prices: Pricing, client: Arc<dyn ModelClient>) -> Self {
        Self { config, models, prices, client, redactor: Arc::new(Redactor::default()) }
    }

    /// Redacts these secrets in files with complete outputs.
    pub fn with_redactor(mut self, redactor: Arc<Redactor>) -> Self {
        self.redactor = redactor;
        self
    }
}

impl Agent for ActionsAgent {
    fn name(&self) -> &AgentName {
        &self.config.name
    }

    fn config(&self) -> Option<&AgentConfig> {
        Some(&self.config)
    }

    fn preamble(&self) -> String {
        preamble::preamble(self.config.system_prompt.as_deref())
    }

    fn session(
        &self,
        request: &SessionRequest<'_>,
        sandbox: &dyn Sandbox,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionReport, SandboxError> {
        let deadline = Deadline::of(request);
        let choice = match choose(&self.models, &self.config, request.model) {
            Ok(choice) => choice,
            Err(end) => return Ok(SessionSummary::default().report(end, &SpendCounter::default(), deadline)),
        };
        let mut caller = Caller {
            client: &*self.client,
            pricing: &self.prices,
            request,
            choice,
            spend: SpendCounter::default(),
            deadline,
        };
        let mut told = SessionSummary::default();
        let answer = self.answer(&mut caller, &mut told, sink);
        told.profile = caller.choice.profile.name.clone();
        told.model = caller.choice.profile.litellm_model.clone();
        let end = match answer {
            Err(end) => end,
            Ok(contract) => {
                let inputs = told.answer["actions"].as_array().cloned().unwrap_or_default();
                let mut performer = ActionRunner {
                    request,
                    sandbox,
                    sink,
                    redactor: &self.redactor,
                    deadline,
                    done: ActionResults::default(),
                };
                let end = performer.perform(&contract.actions, &inputs);
                told.done = performer.done;
                // The claims of an unfinished session may be cut off.
                if end.is_none() {
                    told.done.wishes.claims = claims(&contract);
                }
                told.summary = contract.summary;
                sink.output(Stream::Stdout, format!("{}\n", told.final_message()).as_bytes());
                end.unwrap_or(SessionEnd::Completed)
            }
        };
        Ok(told.report(end, &caller.spend, deadline))
    }

    fn release_resources(&self, _: ReleaseWhen) {}
}

impl ActionsAgent {
    /// The model's answer, repaired if needed and allowed.
    fn answer(
        &self,
        caller: &mut Caller<'_>,
        told: &mut SessionSummary,
        sink: &mut dyn SessionSink,
    ) -> Result<Contract, SessionEnd> {
        let prompt = split(caller.request.prompt, caller.request.stable);
        let mut call = ModelRequest {
            system: prompt.system,
            messages: vec![prompt.user.clone()],
            json_schema: serde_json::from_str(contract::SCHEMA).ok(),
            stream: true,
            ..ModelRequest::default()
        };
        loop {
            if let Some(end) = caller.deadline.check(sink) {
                return Err(end);
            }
            let what = if told.repairs == 0 { "asking" } else { "asking again:" };
            sink.activity(&text::one_line(&format!("{what} {}", caller.choice.profile.litellm_model), 160));
            let reply = caller.call(&call, sink)?;
            let said = reply.text();
            let problem = match read(&reply, &said) {
                Ok((contract, answer)) => {
                    told.answer = answer;
                    return Ok(contract);
                }
                Err(Unreadable::End(end)) if told.repairs == 0 => return Err(end),
                Err(Unreadable::End(_)) => "the model gave no answer when it was asked to fix it".to_owned(),
                Err(Unreadable::Problem(problem)) => problem.to_string(),
            };
            told.answer = Value::String(said.clone());
            sink.activity(&text::one_line(&format!("the answer breaks the contract: {problem}"), 160));
            if let Some(why) = self.no_repair(caller, told.repairs) {
                let reason = format!("the model's answer breaks the contract ({why}): {problem}");
                return Err(SessionEnd::Failed { reason: text::head(&reason, 4000).to_owned() });
            }
            told.repairs += 1;
            call.messages = vec![prompt.user.clone()];
            if !said.trim().is_empty() {
                let text = text::head(&said, SENT_BACK_MAX).to_owned();
                call.messages.push(Message::Assistant { parts: vec![ReplyPart::Text { text }] });
            }
            let words = REPAIR.replace("{{problem}}", &problem);
            call.messages
                .push(Message::User { parts: vec![UserPart::Text(TextPart::plain(words.trim_end()))] });
        }
    }

    /// Why there is no further try.
    fn no_repair(&self, caller: &Caller<'_>, repairs: u32) -> Option<String> {
        if repairs >= self.config.max_repairs {
            return Some(format!("after {}", text::count(repairs as usize, "repair")));
        }
        let spent = caller.spend.cost();
        let left = caller.request.budget_left.filter(|left| spent >= *left)?;
        Some(format!("no money left for a repair: {spent} of {left}"))
    }
}

enum Unreadable {
    End(SessionEnd),
    Problem(IntakeError),
}

fn read(reply: &ModelReply, said: &str) -> Result<(Contract, Value), Unreadable> {
    match intake::read(said) {
        Ok(read) => Ok(read),
        Err(_) if reply.stop == StopReason::Refusal => {
            let reason = match text::one_line(said, 400) {
                words if words.is_empty() => "the model declined".to_owned(),
                words => format!("the model declined: {words}"),
            };
            Err(Unreadable::End(SessionEnd::Refused { reason }))
        }
        Err(_) if reply.stop == StopReason::MaxTokens => Err(Unreadable::Problem(IntakeError::MaxTokens)),
        Err(_) if said.trim().is_empty() => Err(Unreadable::End(SessionEnd::Empty)),
        Err(problem) => Err(Unreadable::Problem(problem)),
    }
}

fn claims(contract: &Contract) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    let all = contract.claims.checkboxes_checked.iter().chain(&contract.claims.milestones_completed);
    for id in all.map(|id| id.trim()).filter(|id| !id.is_empty() && id.len() <= CLAIM_MAX) {
        if ids.len() < CLAIMS_MAX && !ids.iter().any(|known| known == id) {
            ids.push(id.to_owned());
        }
    }
    ids
}

/// What a session leaves for its report: model, answer, repairs, results.
#[derive(Debug, Default)]
struct SessionSummary {
    profile: String,
    model: String,
    /// The contract, or the invalid text.
    answer: Value,
    repairs: u32,
    summary: String,
    done: ActionResults,
}

impl SessionSummary {
    /// The summary, and what failed, on the same line and at its end: a promise alone on a line or at the end would
    /// count.
    fn final_message(&self) -> String {
        let Some(failure) = &self.done.failure else {
            return text::tail(&self.summary, FINAL_MESSAGE_MAX).to_owned();
        };
        let rest = match self.done.skipped {
            0 => String::new(),
            many => format!(" ({} after it not run)", text::count(many, "action")),
        };
        let end = if failure.trim_end().ends_with('>') { " …" } else { "" };
        format!("{} But {failure}{rest}{end}", text::one_line(&self.summary, 8000))
    }

    fn report(self, end: SessionEnd, spend: &SpendCounter, deadline: Deadline) -> SessionReport {
        let final_message = self.final_message();
        let response = json!({
            "format": "actions",
            "profile": self.profile,
            "model": self.model,
            "answer": self.answer,
            "repairs": self.repairs,
            "results": self.done.results,
        });
        SessionReport {
            end,
            final_message,
            usage: spend.usage(),
            response: value(response, RESPONSE_MAX),
            duration: deadline.used(),
            exit_code: None,
            survivors: self.done.survivors,
            wishes: self.done.wishes,
        }
    }
}
