//! A workspace, a model that plays a script, and a sink that remembers.

use ralph_loop_agents::ToolsAgent;
use ralph_loop_agents::tools::CustomTool;
use ralph_loop_domain::model::{
    Message, ModelClient, ModelError, ModelReply, ModelRequest, ModelSink, ReplyPart, StopReason, ToolCall,
    ToolResult, UserPart,
};
use ralph_loop_domain::ports::{
    ActionEnd, ActionStart, Agent as _, Sandbox as _, SessionReport, SessionRequest, SessionSink, StopCause,
    Stream,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::{Tokens, Usd};
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use ralph_loop_task::config::{AgentConfig, AgentKind, Models, Profile};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A workspace with its sandbox.
pub struct Stage {
    dir: tempfile::TempDir,
    folder: tempfile::TempDir,
    pub sandbox: LocalSandbox,
    pub config: AgentConfig,
    pub timeout: Duration,
    pub budget: Option<Usd>,
    pub protected: Vec<String>,
    pub stable: Vec<usize>,
    /// The session is cancelled when its output has this text.
    pub cancel_at: Option<&'static str>,
}

impl Stage {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let run =
            format!("tools-{}", dir.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.'));
        let options = LocalOptions {
            guard_exe: Some(PathBuf::from(env!("CARGO_BIN_EXE_ralph"))),
            ..LocalOptions::new(run, &ralph_loop_testkit::vars())
        };
        let sandbox = LocalSandbox::start(dir.path(), options).unwrap();
        Self {
            dir,
            folder: tempfile::tempdir().unwrap(),
            sandbox,
            config: AgentConfig::model("worker", AgentKind::Tools, "first"),
            timeout: Duration::from_secs(120),
            budget: None,
            protected: Vec::new(),
            stable: Vec::new(),
            cancel_at: None,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }
    pub fn write(&self, name: &str, content: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), content).unwrap();
    }
    /// The process with the id in a file.
    pub fn pid(&self, name: &str) -> i32 {
        self.read(name).trim().parse().unwrap()
    }

    pub fn agent(&self, script: &Arc<Script>) -> ToolsAgent {
        self.agent_with(script, Vec::new())
    }
    pub fn agent_with(&self, script: &Arc<Script>, custom: Vec<Box<dyn CustomTool>>) -> ToolsAgent {
        let profile = |name: &str| (name.to_owned(), Profile::of_model("", &format!("maker/{name}")));
        let models = Models { profiles: ["first", "second"].map(profile).into(), ..Models::default() };
        let pricing: ralph_loop_agents::Pricing = Arc::new(|model, tokens| {
            model.starts_with("maker/").then(|| (Usd::from_dollars(tokens.input as f64 / 1e6), Usd::ZERO))
        });
        ToolsAgent::new(
            self.config.clone(),
            models,
            pricing,
            Arc::clone(script) as Arc<dyn ModelClient>,
            custom,
        )
    }

    /// Runs one session of `agent`.
    pub fn session(&self, agent: &ToolsAgent, prompt: &str) -> (SessionReport, RecordingSink) {
        let mut told = RecordingSink { cancel_at: self.cancel_at, ..RecordingSink::default() };
        let run = RunId::from("r1");
        let request = SessionRequest {
            run: &run,
            iteration: 1,
            attempt: 1,
            prompt,
            prompt_file: Path::new("/nowhere"),
            cwd: Path::new(""),
            model: None,
            timeout: self.timeout,
            budget_left: self.budget,
            config: &self.config,
            now: "2026-11-15T03:00:00Z".parse().unwrap(),
            stable: &self.stable,
            protected: &self.protected,
            folder: self.folder.path(),
        };
        let report = agent.session(&request, &self.sandbox, &mut told).unwrap();
        told.assert_calls_have_results();
        (report, told)
    }

    /// Runs a session in which the model gives these replies in turn.
    pub fn play(&self, replies: Vec<ModelReply>) -> Played {
        let script = Script::of(replies);
        let agent = self.agent(&script);
        let (report, told) = self.session(&agent, "the task");
        Played { report, told, script }
    }

    /// The result of one call.
    pub fn call(&self, tool: &str, input: Value) -> ToolResult {
        self.play(vec![calls(&[(tool, input)]), says("fine")]).result(1, 0)
    }
}

/// The outcome of a session.
pub struct Played {
    pub report: SessionReport,
    pub told: RecordingSink,
    pub script: Arc<Script>,
}

impl Played {
    /// The tool result that the model got after reply `turn` (from 1) for call `at` (from 0).
    pub fn result(&self, turn: usize, at: usize) -> ToolResult {
        self.script.results(turn)[at].clone()
    }
}

type ReplyFn = dyn Fn(usize, &Profile, &ModelRequest) -> Result<ModelReply, ModelError> + Send + Sync;

/// A model whose answers come from a function of the turn; it records its requests.
pub struct Script {
    answer: Box<ReplyFn>,
    pub asked: Mutex<Vec<ModelRequest>>,
}

impl Script {
    pub fn of(replies: Vec<ModelReply>) -> Arc<Self> {
        Self::answering(move |turn, _, _| {
            Ok(replies.get(turn).cloned().unwrap_or_else(|| panic!("the script has no turn {turn}")))
        })
    }
    pub fn answering(
        answer: impl Fn(usize, &Profile, &ModelRequest) -> Result<ModelReply, ModelError> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { answer: Box::new(answer), asked: Mutex::default() })
    }
    pub fn asked(&self, turn: usize) -> ModelRequest {
        self.asked.lock().unwrap()[turn].clone()
    }
    pub fn turns(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
    pub fn results(&self, turn: usize) -> Vec<ToolResult> {
        match self.asked(turn).messages.pop() {
            Some(Message::ToolResults { results }) => results,
            other => panic!("no results: {other:?}"),
        }
    }
}

/// All texts of the first message.
pub fn opening(asked: &ModelRequest) -> String {
    match &asked.messages[0] {
        Message::User { parts } => parts
            .iter()
            .map(|part| match part {
                UserPart::Text(part) => part.text.as_str(),
                UserPart::Image(_) => "",
            })
            .collect(),
        other => panic!("{other:?}"),
    }
}

impl ModelClient for Script {
    fn call(
        &self,
        profile: &Profile,
        request: &ModelRequest,
        sink: &mut dyn ModelSink,
    ) -> Result<ModelReply, ModelError> {
        let turn = {
            let mut asked = self.asked.lock().unwrap();
            asked.push(request.clone());
            asked.len() - 1
        };
        let reply = (self.answer)(turn, profile, request)?;
        sink.text(&reply.text());
        Ok(reply)
    }
}

fn reply(parts: Vec<ReplyPart>, stop: StopReason) -> ModelReply {
    let tokens = Some(Tokens { input: 100, output: 10, ..Tokens::default() });
    ModelReply { parts, stop, tokens, cost: None, model: None, tries: 1 }
}

/// A reply with text that ends the turn.
pub fn says(text: &str) -> ModelReply {
    reply(vec![ReplyPart::Text { text: text.into() }], StopReason::EndTurn)
}

/// A reply with tool calls.
pub fn calls(all: &[(&str, Value)]) -> ModelReply {
    let parts = all.iter().enumerate().map(|(at, (name, input))| {
        ReplyPart::ToolCall(ToolCall { id: format!("call-{at}"), name: (*name).into(), input: input.clone() })
    });
    reply(parts.collect(), StopReason::ToolUse)
}

/// The same reply, with this many fresh tokens.
pub fn costing(mut reply: ModelReply, input: u64) -> ModelReply {
    reply.tokens = Some(Tokens { input, ..Tokens::default() });
    reply
}

/// Records the events of a session.
#[derive(Default)]
pub struct RecordingSink {
    pub output: String,
    pub activities: Vec<String>,
    pub actions: Vec<Value>,
    pub started: Vec<ActionStart>,
    pub finished: Vec<ActionEnd>,
    pub tokens: String,
    cancel_at: Option<&'static str>,
}

impl RecordingSink {
    fn assert_calls_have_results(&self) {
        let mut started: Vec<u32> = self.started.iter().map(|a| a.number).collect();
        let mut finished: Vec<u32> = self.finished.iter().map(|a| a.number).collect();
        started.sort_unstable();
        finished.sort_unstable();
        assert_eq!(started, finished);
        assert_eq!(started, (1..=started.len() as u32).collect::<Vec<_>>());
        assert_eq!(started.len(), self.actions.len());
    }
}

impl SessionSink for RecordingSink {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.output.push_str(&String::from_utf8_lossy(bytes));
    }
    fn activity(&mut self, line: &str) {
        self.activities.push(line.to_owned());
    }
    fn action(&mut self, json_line: &str) {
        self.actions.push(serde_json::from_str(json_line).unwrap());
    }
    fn action_started(&mut self, action: &ActionStart) {
        self.started.push(action.clone());
    }
    fn action_finished(&mut self, action: &ActionEnd) {
        self.finished.push(action.clone());
    }
    fn token(&mut self, text: &str) {
        self.tokens.push_str(text);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        match self.cancel_at {
            Some(text) if self.output.contains(text) => ControlFlow::Break(StopCause::Cancelled),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Whether a process runs; a zombie doesn't count.
pub fn alive(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().unwrap().trim_start().chars().next().unwrap();
    !matches!(state, 'Z' | 'X')
}

/// Children of this process that are guards or zombies.
pub fn children() -> Vec<String> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let (name, rest) = stat.rsplit_once(')').unwrap();
        if rest.split_whitespace().nth(1) == Some(me.as_str()) {
            found.push(name.split_once('(').unwrap().1.to_owned());
        }
    }
    found
}

/// The text of a result that must be an error.
#[track_caller]
pub fn refused(result: &ToolResult) -> &str {
    assert!(result.is_error, "{}", result.text);
    &result.text
}

/// The text of a result that must not be an error.
#[track_caller]
pub fn fine(result: &ToolResult) -> &str {
    assert!(!result.is_error, "{}", result.text);
    &result.text
}

/// The stage's root, as its sandbox sees it.
pub fn root(stage: &Stage) -> &Path {
    stage.sandbox.root()
}
