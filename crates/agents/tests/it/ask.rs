//! Questions to one model or agent: bounded, priced, and ended at the time limit.

use crate::support::Canned;
use jiff::Timestamp;
use ralph_loop_agents::{BackendAsker, CliAgent};
use ralph_loop_domain::model::{
    ModelClient, ModelError, ModelErrorKind, ModelReply, ModelRequest, ModelSink, ReplyPart, StopReason,
};
use ralph_loop_domain::ports::{
    AskErrorKind, AskSink, AskTarget, AskedAgent, Asker as _, EarlierAnswer, ExecEnd, NoAskSink, Question,
    StopCause,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::{CostBasis, Tokens, Usd};
use ralph_loop_task::config::{AgentConfig, Profile};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers in two pieces, unless stopped; keeps its requests.
#[derive(Default)]
struct Model(Mutex<Vec<ModelRequest>>);

impl ModelClient for Model {
    fn call(
        &self,
        _: &Profile,
        request: &ModelRequest,
        sink: &mut dyn ModelSink,
    ) -> Result<ModelReply, ModelError> {
        self.0.lock().unwrap().push(request.clone());
        for piece in ["forty", "-two"] {
            sink.text(piece);
            if sink.poll().is_break() {
                let message = "the call was ended".into();
                return Err(ModelError {
                    kind: ModelErrorKind::Stopped(StopCause::Cancelled),
                    message,
                    hint: None,
                });
            }
        }
        Ok(ModelReply {
            parts: vec![ReplyPart::Text { text: "forty-two".into() }],
            stop: StopReason::EndTurn,
            tokens: Some(Tokens { input: 10, output: 2, ..Tokens::default() }),
            cost: None,
            model: None,
            tries: 1,
        })
    }
}

#[derive(Default)]
struct RecordingSink {
    heard: String,
    stop: bool,
}

impl AskSink for RecordingSink {
    fn text(&mut self, piece: &str) {
        self.heard.push_str(piece);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if self.stop { ControlFlow::Break(StopCause::Cancelled) } else { ControlFlow::Continue(()) }
    }
}

fn question<'a>(whom: AskTarget<'a>, earlier: &'a [EarlierAnswer]) -> Question<'a> {
    Question {
        whom,
        system: "Answer in one word.",
        prompt: "What is six times seven?",
        earlier,
        schema: None,
        max_output_tokens: Some(100),
        max_cost: None,
        timeout: Duration::from_secs(60),
        stream: true,
        now: Timestamp::UNIX_EPOCH,
    }
}

#[test]
fn a_model_is_asked_once_within_its_bounds_and_its_answer_is_priced() {
    let model = Arc::new(Model::default());
    // A dollar per token.
    let asking = BackendAsker::new()
        .with_client(model.clone())
        .with_pricing(Arc::new(|_, tokens| Some((Usd::from_dollars(tokens.total() as f64), Usd::ZERO))));
    let profile = Profile::of_model("p", "zai/x");
    let whom = AskTarget::Profile(&profile);
    let earlier = [EarlierAnswer { answer: "many".into(), then: "A number, please.".into() }];
    let mut sink = RecordingSink::default();
    let answer = asking.ask(&question(whom, &earlier), &mut sink).unwrap();
    assert_eq!((answer.text.as_str(), sink.heard.as_str()), ("forty-two", "forty-two"));
    assert_eq!(
        (answer.usage.cost, answer.usage.basis),
        (Some(Usd::from_dollars(12.0)), CostBasis::Estimated)
    );
    let asked = model.0.lock().unwrap().remove(0);
    assert_eq!((asked.messages.len(), asked.max_output_tokens, asked.stream), (3, Some(100), true));

    let dear = Question { max_cost: Some(Usd::from_dollars(5.0)), ..question(whom, &[]) };
    assert_eq!(asking.ask(&dear, &mut NoAskSink).unwrap_err().kind, AskErrorKind::TooExpensive);
    assert!(model.0.lock().unwrap().is_empty(), "what is known to cost too much is not asked");
    let late = Question { timeout: Duration::ZERO, ..question(whom, &[]) };
    assert_eq!(asking.ask(&late, &mut NoAskSink).unwrap_err().kind, AskErrorKind::TimedOut);
    let mut stopped = RecordingSink { stop: true, ..RecordingSink::default() };
    assert_eq!(asking.ask(&question(whom, &[]), &mut stopped).unwrap_err().kind, AskErrorKind::Stopped);
    assert_eq!(
        BackendAsker::new().ask(&question(whom, &[]), &mut NoAskSink).unwrap_err().kind,
        AskErrorKind::NotAvailable
    );
}

#[test]
fn an_installed_agent_is_asked_in_one_session_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let prompt_file = folder.path().join("question.md");
    let run = RunId::from("ask");
    let config = AgentConfig::command("cat", &["cat"]);
    let agent = CliAgent::new(config.clone());
    let ask = |sandbox: &Canned, earlier: &[EarlierAnswer], sink: &mut dyn AskSink| {
        let agent = AskedAgent {
            agent: &agent,
            config: &config,
            model: None,
            sandbox,
            run: &run,
            iteration: 1,
            prompt_file: &prompt_file,
        };
        BackendAsker::new().ask(&question(AskTarget::Agent(agent), earlier), sink)
    };
    let sandbox = Canned::new("forty-two", "", ExecEnd::Exited(0));
    let earlier = [EarlierAnswer { answer: "many".into(), then: "A number, please.".into() }];
    let mut sink = RecordingSink::default();
    let answer = ask(&sandbox, &earlier, &mut sink).unwrap();
    assert_eq!((answer.text.as_str(), sink.heard.as_str()), ("forty-two", "forty-two"));
    assert_eq!(sandbox.asked.borrow().len(), 1);
    assert_eq!(sandbox.asked.borrow()[0].timeout, Some(Duration::from_secs(60)));
    let asked = std::fs::read_to_string(&prompt_file).unwrap();
    for part in ["one word", "six times seven", "many", "A number, please."] {
        assert!(asked.contains(part), "{asked}");
    }
    let error = ask(&Canned::new("", "broken", ExecEnd::Exited(3)), &[], &mut NoAskSink).unwrap_err();
    assert!(error.kind == AskErrorKind::Failed && error.message.contains("broken"), "{error}");
    let error = ask(&Canned::new("", "", ExecEnd::TimedOut), &[], &mut NoAskSink).unwrap_err();
    assert_eq!(error.kind, AskErrorKind::TimedOut);
    let mut stopped = RecordingSink { stop: true, ..RecordingSink::default() };
    assert_eq!(ask(&sandbox, &[], &mut stopped).unwrap_err().kind, AskErrorKind::Stopped);
}
