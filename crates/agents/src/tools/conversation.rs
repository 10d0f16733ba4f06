//! A session's conversation: asks the model, makes its calls, returns the results, until it stops or something ends
//! it.

use super::agent::SessionResources;
use super::calls::CallContext;
use super::halt::Halt;
use crate::bounded::{RESPONSE_MAX, value};
use crate::session::Pricing;
use crate::session::call::{Caller, choose};
use crate::session::deadline::Deadline;
use crate::session::prompt::split;
use crate::session::spend::SpendCounter;
use ralph_loop_domain::model::{
    Message, ModelClient, ModelReply, ModelRequest, ReplyPart, StopReason, TextPart, ToolCall, UserPart,
};
use ralph_loop_domain::ports::{
    AgentRequests, FINAL_MESSAGE_MAX, Sandbox, SandboxError, SessionReport, SessionRequest, SessionSink,
    StopCause, Stream,
};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::Usage;
use ralph_loop_task::config::{AgentConfig, MAX_TOKENS_PER_ITERATION, Models};
use serde_json::json;

/// A last limit on model calls in one session.
const TURNS_MAX: u32 = 400;
/// How often in a row a cut answer may be continued.
const CUT_MAX: u32 = 3;
/// Most results with pictures in a conversation.
const PICTURES_MAX: usize = 12;
/// How many stay if there are more.
const PICTURES_KEPT: usize = 6;
/// From this share of the tokens on, the model gets a warning.
const WARN_AT: f64 = 0.8;

pub(super) struct SessionModel<'a> {
    pub(super) config: &'a AgentConfig,
    pub(super) models: &'a Models,
    pub(super) pricing: &'a Pricing,
    pub(super) client: &'a dyn ModelClient,
    pub(super) resources: &'a SessionResources,
}

pub(super) fn session(
    session_model: &SessionModel<'_>,
    request: &SessionRequest<'_>,
    sandbox: &dyn Sandbox,
    sink: &mut dyn SessionSink,
) -> Result<SessionReport, SandboxError> {
    let deadline = Deadline::of(request);
    let choice = match choose(session_model.models, session_model.config, request.model) {
        Ok(choice) => choice,
        Err(end) => return Ok(report(end, Usage::unknown(), deadline)),
    };
    let caller = Caller {
        client: session_model.client,
        pricing: session_model.pricing,
        request,
        choice,
        spend: SpendCounter::default(),
        deadline,
    };
    let bench = CallContext {
        resources: session_model.resources,
        request,
        sandbox,
        deadline,
        halt: Halt::default(),
        connections: Vec::new(),
        made: 0,
        survivors: 0,
    };
    let mut asked = opening(session_model, request);
    let limit = session_model.config.max_tokens_per_iteration.unwrap_or(MAX_TOKENS_PER_ITERATION);
    let mut talk =
        Conversation { caller, bench, request, limit, guessed: 0, turns: 0, said: String::new(), done: None };
    let end = talk.go(&mut asked, sink)?;
    Ok(talk.report(end))
}

/// The first request: the prompt in cached parts, and what earlier sessions left running.
fn opening(session_model: &SessionModel<'_>, request: &SessionRequest<'_>) -> ModelRequest {
    let mut prompt = split(request.prompt, request.stable);
    let running = session_model.resources.processes.word_to_next();
    if let Message::User { parts } = &mut prompt.user
        && !running.is_empty()
    {
        parts.push(UserPart::Text(TextPart::plain(
            session_model.resources.redactor.text(&running).into_owned(),
        )));
    }
    ModelRequest {
        system: prompt.system,
        messages: vec![prompt.user],
        tools: session_model.resources.toolbox.specs(),
        stream: true,
        ..ModelRequest::default()
    }
}

struct Conversation<'a> {
    caller: Caller<'a>,
    bench: CallContext<'a>,
    request: &'a SessionRequest<'a>,
    /// The session's token limit.
    limit: u64,
    /// Estimated tokens of calls whose provider reported none.
    guessed: u64,
    turns: u32,
    said: String,
    /// The summary of `done`.
    done: Option<String>,
}

impl Conversation<'_> {
    fn go(
        &mut self,
        asked: &mut ModelRequest,
        sink: &mut dyn SessionSink,
    ) -> Result<SessionEnd, SandboxError> {
        let mut cut = 0;
        loop {
            if let Some(end) = self.caller.deadline.check(sink).or_else(|| self.over_budget()) {
                return Ok(end);
            }
            sink.activity(&format!("thinking ({})", self.caller.choice.profile.name));
            let before = self.caller.choice.profile.name.clone();
            let reply = match self.caller.call(asked, sink) {
                Ok(reply) => reply,
                Err(end) => return Ok(end),
            };
            self.turns += 1;
            if before != self.caller.choice.profile.name {
                // The second model can't use data that only the first one's provider understands.
                forget_opaque(asked);
            }
            self.apply_sink(asked, &reply, sink);
            let calls: Vec<ToolCall> = reply.tool_calls().cloned().collect();
            let stop = reply.stop;
            asked.messages.push(Message::Assistant { parts: reply.parts });
            if !calls.is_empty() {
                cut = 0;
                let mut outcome = match self.bench.make(&calls, sink)? {
                    Ok(outcome) => outcome,
                    Err(end) => return Ok(end),
                };
                self.done = outcome.done;
                if self.done.is_some() {
                    return Ok(SessionEnd::Completed);
                }
                if let (Some(note), Some(last)) = (self.warning(), outcome.results.last_mut()) {
                    last.text.push_str(&note);
                }
                asked.messages.push(Message::ToolResults { results: outcome.results });
                forget_pictures(&mut asked.messages);
                continue;
            }
            match stop {
                StopReason::Refusal => {
                    return Ok(SessionEnd::Refused { reason: text::one_line(&self.said, 300) });
                }
                StopReason::MaxTokens if cut < CUT_MAX => {
                    cut += 1;
                    say(
                        asked,
                        "Your answer was too long and was cut. Continue where it ended, in smaller steps.",
                    );
                }
                StopReason::MaxTokens => {
                    let reason = format!("the model's answer was cut {} times in a row", cut + 1);
                    return Ok(SessionEnd::Unfinished { reason });
                }
                _ if self.said.trim().is_empty() && self.bench.made == 0 => return Ok(SessionEnd::Empty),
                _ => return Ok(SessionEnd::Completed),
            }
        }
    }

    fn apply_sink(&mut self, asked: &ModelRequest, reply: &ModelReply, sink: &mut dyn SessionSink) {
        let said = reply.text();
        if !said.trim().is_empty() {
            sink.output(Stream::Stdout, format!("\n{}\n", said.trim_end()).as_bytes());
            self.said = said;
        }
        if reply.tokens.is_none() {
            let length: usize = asked.messages.iter().map(weight).sum::<usize>()
                + reply.parts.iter().map(part_weight).sum::<usize>();
            self.guessed += length as u64 / 4;
        }
    }

    /// Tokens so far. Cache reads aren't counted again with every call.
    fn used(&self) -> u64 {
        let tokens = self.caller.spend.tokens();
        tokens.input + tokens.output + tokens.cache_write + self.guessed
    }

    fn over_budget(&self) -> Option<SessionEnd> {
        let used = self.used();
        if used >= self.limit {
            let reason = format!("the session used {used} tokens; {} are allowed", self.limit);
            return Some(SessionEnd::Unfinished { reason });
        }
        if self.turns >= TURNS_MAX {
            let reason = format!("the session took {TURNS_MAX} turns without an end");
            return Some(SessionEnd::Unfinished { reason });
        }
        let spent = self.caller.spend.cost();
        let left = self.request.budget_left?;
        (spent >= left).then_some(SessionEnd::Stopped { cause: StopCause::Budget })
    }

    /// A warning for the model when its tokens run out.
    fn warning(&self) -> Option<String> {
        let used = self.used();
        (used as f64 >= self.limit as f64 * WARN_AT && used < self.limit).then(|| {
            format!(
                "\n\n[{used} of {} tokens of this session are used. Finish your current step and write what is left to \
                 `.ralph/progress.md`; a fresh session continues.]",
                self.limit
            )
        })
    }

    fn report(self, end: SessionEnd) -> SessionReport {
        let said = self.done.as_ref().unwrap_or(&self.said);
        let usage = self.caller.spend.usage();
        let profile = &self.caller.choice.profile;
        let response = json!({
            "format": "tools",
            "profile": profile.name,
            "model": usage.model.as_deref().unwrap_or(&profile.litellm_model),
            "turns": self.turns,
            "tool_calls": self.bench.made,
            "stop": end.reason().unwrap_or_else(|| end.word()),
            "done": self.done.is_some(),
            "text": said,
        });
        let final_message = text::tail(said, FINAL_MESSAGE_MAX).to_owned();
        SessionReport {
            final_message,
            response: value(response, RESPONSE_MAX),
            survivors: self.bench.survivors,
            wishes: AgentRequests { done: self.done.is_some(), ..AgentRequests::default() },
            ..report(end, usage, self.caller.deadline)
        }
    }
}

fn report(end: SessionEnd, usage: Usage, deadline: Deadline) -> SessionReport {
    let stop = end.reason().unwrap_or_else(|| end.word()).to_owned();
    SessionReport {
        response: json!({ "format": "tools", "turns": 0, "tool_calls": 0, "stop": stop }),
        end,
        final_message: String::new(),
        usage,
        duration: deadline.used(),
        exit_code: None,
        survivors: 0,
        wishes: AgentRequests::default(),
    }
}

fn say(asked: &mut ModelRequest, words: &str) {
    asked.messages.push(Message::User { parts: vec![UserPart::Text(TextPart::plain(words))] });
}

fn forget_opaque(asked: &mut ModelRequest) {
    for message in &mut asked.messages {
        if let Message::Assistant { parts } = message {
            parts.retain(|part| !matches!(part, ReplyPart::Opaque { .. }));
        }
    }
}

/// Removes old pictures from a conversation with too many: providers limit their number, and each costs with every
/// call. In steps, because each change of earlier messages costs the provider's cache.
fn forget_pictures(messages: &mut [Message]) {
    let results = messages.iter_mut().filter_map(|message| match message {
        Message::ToolResults { results } => Some(results),
        _ => None,
    });
    let mut with: Vec<_> = results.flatten().filter(|result| !result.images.is_empty()).collect();
    if with.len() <= PICTURES_MAX {
        return;
    }
    let old = with.len() - PICTURES_KEPT;
    for result in with.drain(..old) {
        result.images.clear();
        result.text.push_str("\n[the picture is no longer shown]");
    }
}

/// The length of a message in bytes; a picture counts with a typical size.
fn weight(message: &Message) -> usize {
    const PICTURE: usize = 6000;
    match message {
        Message::User { parts } => parts
            .iter()
            .map(|part| match part {
                UserPart::Text(part) => part.text.len(),
                UserPart::Image(_) => PICTURE,
            })
            .sum(),
        Message::Assistant { parts } => parts.iter().map(part_weight).sum(),
        Message::ToolResults { results } => {
            results.iter().map(|result| result.text.len() + result.images.len() * PICTURE).sum()
        }
    }
}

fn part_weight(part: &ReplyPart) -> usize {
    match part {
        ReplyPart::Text { text } => text.len(),
        ReplyPart::ToolCall(call) => call.input.to_string().len(),
        ReplyPart::Opaque { value, .. } => value.to_string().len(),
    }
}
