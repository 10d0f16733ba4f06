//! A model that answers as a test says, and a session's records.

use ralph_loop_agents::{ActionsAgent, Pricing};
use ralph_loop_domain::model::{
    ModelClient, ModelError, ModelErrorKind, ModelReply, ModelRequest, ModelSink, ReplyPart, StopReason,
};
use ralph_loop_domain::ports::{
    ActionEnd, ActionStart, Agent, Sandbox, SessionReport, SessionRequest, SessionSink, StopCause, Stream,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::{Tokens, Usd};
use ralph_loop_task::config::{AgentConfig, AgentKind, Models, Profile};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub type ModelResult = Result<ModelReply, ModelError>;
type Answers = dyn Fn(usize, &Profile, &ModelRequest, &mut dyn ModelSink) -> ModelResult + Send + Sync;

/// A closure as a model; it records its requests.
pub struct Fake {
    answers: Box<Answers>,
    pub asked: Mutex<Vec<(String, ModelRequest)>>,
}

impl Fake {
    /// The closure gets the number of the call, from 0.
    pub fn new(
        answers: impl Fn(usize, &Profile, &ModelRequest, &mut dyn ModelSink) -> ModelResult
        + Send
        + Sync
        + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { answers: Box::new(answers), asked: Mutex::default() })
    }
    /// Answers with these texts in order; then repeats the last one.
    pub fn says(texts: &[&str]) -> Arc<Self> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Self::new(move |n, _, _, _| Ok(reply(&texts[n.min(texts.len() - 1)])))
    }
    pub fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
    pub fn request(&self, n: usize) -> ModelRequest {
        self.asked.lock().unwrap()[n].1.clone()
    }
    pub fn profiles(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }
}

impl ModelClient for Fake {
    fn call(&self, profile: &Profile, request: &ModelRequest, sink: &mut dyn ModelSink) -> ModelResult {
        let n = {
            let mut asked = self.asked.lock().unwrap();
            asked.push((profile.name.clone(), request.clone()));
            asked.len() - 1
        };
        (self.answers)(n, profile, request, sink)
    }
}

pub fn reply(text: &str) -> ModelReply {
    ModelReply {
        parts: vec![ReplyPart::Text { text: text.to_owned() }],
        stop: StopReason::EndTurn,
        tokens: Some(Tokens { input: 1000, output: 100, cached: 10, cache_write: 1 }),
        cost: None,
        model: None,
        tries: 1,
    }
}

pub fn failure(kind: ModelErrorKind) -> ModelError {
    ModelError { kind, message: "no luck with zai/cheap".into(), hint: Some("set a key".into()) }
}

pub fn config() -> AgentConfig {
    AgentConfig::model("worker", AgentKind::Actions, "cheap")
}

pub fn models() -> Models {
    let profile = |name: &str| (name.to_owned(), Profile::of_model(name, &format!("zai/{name}")));
    Models { profiles: ["cheap", "strong"].map(profile).into(), default: None, fallback: None }
}

/// A millionth of a dollar per token.
pub fn prices() -> Pricing {
    Arc::new(|model: &str, tokens: &Tokens| {
        model.starts_with("zai/").then(|| (Usd::from_dollars(tokens.total() as f64 / 1e6), Usd::ZERO))
    })
}

#[derive(Default)]
pub struct RecordingSink {
    pub activities: Vec<String>,
    pub actions: Vec<Value>,
    pub started: Vec<ActionStart>,
    pub finished: Vec<ActionEnd>,
    pub tokens: String,
    pub output: String,
    pub polls: u32,
    /// Ends the session at this poll.
    pub stop_at: Option<(u32, StopCause)>,
    /// Ends the session as soon as its output contains this.
    pub stop_on: Option<&'static str>,
}

impl SessionSink for RecordingSink {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.output.push_str(&String::from_utf8_lossy(bytes));
    }
    fn activity(&mut self, line: &str) {
        assert!(line.len() <= 200 && !line.contains('\n'), "{line:?}");
        self.activities.push(line.to_owned());
    }
    fn action(&mut self, json_line: &str) {
        assert!(json_line.len() <= 4096 && !json_line.contains('\n'), "{json_line:?}");
        self.actions.push(serde_json::from_str(json_line).unwrap());
    }
    fn action_started(&mut self, action: &ActionStart) {
        assert_eq!(self.started.len(), self.finished.len(), "one action at a time");
        self.started.push(action.clone());
    }
    fn action_finished(&mut self, action: &ActionEnd) {
        assert!(action.result.len() <= 400 && !action.result.contains('\n'), "{action:?}");
        self.finished.push(action.clone());
        assert_eq!(self.started.len(), self.finished.len(), "every action that begins ends");
    }
    fn token(&mut self, text: &str) {
        self.tokens.push_str(text);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.polls += 1;
        if self.stop_on.is_some_and(|word| self.output.contains(word)) {
            return ControlFlow::Break(StopCause::Cancelled);
        }
        match self.stop_at {
            Some((at, cause)) if self.polls >= at => ControlFlow::Break(cause),
            _ => ControlFlow::Continue(()),
        }
    }
}

pub struct Session {
    pub config: AgentConfig,
    pub models: Models,
    pub prices: Pricing,
    pub prompt: String,
    pub stable: Vec<usize>,
    pub protected: Vec<String>,
    pub model: Option<&'static str>,
    pub timeout: Duration,
    pub budget_left: Option<Usd>,
    pub folder: PathBuf,
    pub cwd: PathBuf,
    pub told: RecordingSink,
}

impl Default for Session {
    fn default() -> Self {
        Self {
            config: config(),
            models: models(),
            prices: prices(),
            prompt: "do it".into(),
            stable: Vec::new(),
            protected: Vec::new(),
            model: None,
            timeout: Duration::from_secs(600),
            budget_left: None,
            folder: PathBuf::new(),
            cwd: PathBuf::new(),
            told: RecordingSink::default(),
        }
    }
}

impl Session {
    pub fn play(&mut self, client: &Arc<Fake>, sandbox: &dyn Sandbox) -> SessionReport {
        let agent = ActionsAgent::new(
            self.config.clone(),
            self.models.clone(),
            Arc::clone(&self.prices),
            Arc::clone(client) as Arc<dyn ModelClient>,
        );
        let run = RunId::from("r");
        let request = SessionRequest {
            run: &run,
            iteration: 1,
            attempt: 1,
            prompt: &self.prompt,
            prompt_file: Path::new("/p/prompt.md"),
            cwd: &self.cwd,
            model: self.model,
            timeout: self.timeout,
            budget_left: self.budget_left,
            config: &self.config,
            now: "2026-11-15T03:00:00Z".parse().unwrap(),
            stable: &self.stable,
            protected: &self.protected,
            folder: &self.folder,
        };
        agent.session(&request, sandbox, &mut self.told).unwrap()
    }
}
