//! A question to a model: one call, or none if it is known to cost too much.

use crate::session::spend::Pricing;
use ralph_loop_domain::model::{
    Message, ModelClient, ModelReply, ModelRequest, ModelSink, ReplyPart, TextPart, UserPart,
};
use ralph_loop_domain::ports::{AskAnswer, AskError, AskErrorKind, AskSink, Question, StopCause};
use ralph_loop_protocol::money::{CostBasis, Tokens, Usage, Usd};
use ralph_loop_task::config::Profile;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Bytes per token, to estimate a question's cost.
const BYTES_PER_TOKEN: u64 = 4;

pub(super) fn ask(
    client: &dyn ModelClient,
    profile: &Profile,
    question: &Question<'_>,
    pricing: Option<&Pricing>,
    sink: &mut dyn AskSink,
) -> Result<AskAnswer, AskError> {
    let request = request(question);
    if let Some((cost, most)) = too_expensive(profile, question, pricing) {
        let message = format!("asking {} may cost {cost}, more than {most}", profile.name);
        return Err(AskError::free(AskErrorKind::TooExpensive, message));
    }
    let mut sink = ModelAnswerSink { sink, deadline: Instant::now() + question.timeout, cut: None };
    let reply = client.call(profile, &request, &mut sink).map_err(|error| AskError {
        kind: sink.cut.unwrap_or(AskErrorKind::Failed),
        message: error.message,
        hint: error.hint,
        usage: Box::new(Usage::free()),
    })?;
    Ok(AskAnswer { text: reply.text(), usage: usage_of(profile, &reply, pricing) })
}

fn request(question: &Question<'_>) -> ModelRequest {
    let mut messages = vec![user(question.prompt)];
    for earlier in question.earlier {
        let parts = vec![ReplyPart::Text { text: earlier.answer.clone() }];
        messages.extend([Message::Assistant { parts }, user(&earlier.then)]);
    }
    ModelRequest {
        system: vec![TextPart::cached(question.system)],
        messages,
        json_schema: question.schema.cloned(),
        max_output_tokens: question.max_output_tokens,
        stream: question.stream,
        ..ModelRequest::default()
    }
}

fn user(text: &str) -> Message {
    Message::User { parts: vec![UserPart::Text(TextPart::plain(text))] }
}

/// The question's maximum cost, if that exceeds its limit.
fn too_expensive(
    profile: &Profile,
    question: &Question<'_>,
    pricing: Option<&Pricing>,
) -> Option<(Usd, Usd)> {
    let most = question.max_cost?;
    let bytes = question.system.len()
        + question.prompt.len()
        + question.earlier.iter().map(|e| e.answer.len() + e.then.len()).sum::<usize>();
    let tokens = Tokens {
        input: bytes as u64 / BYTES_PER_TOKEN,
        output: question.max_output_tokens.unwrap_or_default(),
        ..Tokens::default()
    };
    let (cost, _) = pricing?(&profile.litellm_model, &tokens)?;
    (cost > most).then_some((cost, most))
}

fn usage_of(profile: &Profile, reply: &ModelReply, pricing: Option<&Pricing>) -> Usage {
    let estimate = reply.tokens.and_then(|tokens| pricing?(&profile.litellm_model, &tokens));
    let (cost, basis) = match (reply.cost, estimate) {
        (Some(cost), _) => (Some(cost), CostBasis::Reported),
        (None, Some((cost, _))) => (Some(cost), CostBasis::Estimated),
        (None, None) => (None, CostBasis::Unknown),
    };
    Usage {
        tokens: reply.tokens,
        cost,
        basis,
        saved: estimate.map(|(_, saved)| saved),
        model: reply.model.clone().or_else(|| Some(profile.litellm_model.clone())),
    }
}

struct ModelAnswerSink<'a> {
    sink: &'a mut dyn AskSink,
    deadline: Instant,
    cut: Option<AskErrorKind>,
}

impl ModelSink for ModelAnswerSink<'_> {
    fn text(&mut self, piece: &str) {
        self.sink.text(piece);
    }
    fn waiting(&mut self, wait: Duration, reason: &str) {
        self.sink.waiting(wait, reason);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if let ControlFlow::Break(cause) = self.sink.poll() {
            self.cut = Some(AskErrorKind::Stopped);
            return ControlFlow::Break(cause);
        }
        if Instant::now() >= self.deadline {
            self.cut = Some(AskErrorKind::TimedOut);
            return ControlFlow::Break(StopCause::Budget);
        }
        ControlFlow::Continue(())
    }
}
