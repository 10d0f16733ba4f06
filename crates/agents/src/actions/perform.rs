//! Performs actions in order.

use super::contract::{Action, OnError};
use super::patch::{self, Patched};
use crate::bounded::{ACTION_INPUT_MAX, value};
use crate::session::capture::Capture;
use crate::session::confine::{self, FileOperation};
use crate::session::deadline::Deadline;
use ralph_loop_domain::ports::{
    ActionEnd, ActionStart, AgentRequests, Ask, ExecEnd, ExecRequest, ExecSink, Sandbox, SandboxError,
    SessionRequest, SessionSink, StopCause, Stream, WriteMode,
};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::{CommitPart, SessionEnd};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

const LINE_MAX: usize = 4000;
const SHOWN_MAX: usize = 160;
const RESULT_MAX: usize = 400;

pub(super) struct ActionRunner<'a> {
    pub(super) request: &'a SessionRequest<'a>,
    pub(super) sandbox: &'a dyn Sandbox,
    pub(super) sink: &'a mut dyn SessionSink,
    pub(super) redactor: &'a Redactor,
    pub(super) deadline: Deadline,
    pub(super) done: ActionResults,
}

#[derive(Debug, Default)]
pub(super) struct ActionResults {
    pub(super) results: Vec<Value>,
    /// The first failing action's message, in one line.
    pub(super) failure: Option<String>,
    /// Actions that weren't run.
    pub(super) skipped: usize,
    pub(super) wishes: AgentRequests,
    /// Processes that commands left behind.
    pub(super) survivors: u32,
}

struct ActionOutcome {
    ok: bool,
    result: String,
    exit_code: Option<i32>,
    /// File with the complete output.
    file: Option<String>,
    /// The session ends with it.
    end: Option<SessionEnd>,
}

impl ActionOutcome {
    fn well(result: impl Into<String>) -> Self {
        Self { ok: true, result: result.into(), exit_code: None, file: None, end: None }
    }
    fn badly(result: impl ToString) -> Self {
        Self { ok: false, ..Self::well(result.to_string()) }
    }
}

impl ActionRunner<'_> {
    pub(super) fn perform(&mut self, actions: &[Action], inputs: &[Value]) -> Option<SessionEnd> {
        let mut stop: Option<String> = None;
        let mut end = None;
        for (n, action) in actions.iter().enumerate() {
            let number = u32::try_from(n + 1).unwrap_or(u32::MAX);
            let input = inputs.get(n).cloned().unwrap_or(Value::Null);
            if stop.is_none() {
                end = self.deadline.check(self.sink);
                stop = end.as_ref().map(|_| "the session had to end".to_owned());
            }
            if let Some(why) = &stop {
                self.skip(number, action, input, why);
                continue;
            }
            let came = self.one(number, action, input);
            if came.end.is_some() {
                end = came.end;
                stop = Some("the session had to end".to_owned());
            } else if !came.ok {
                let first = format!(
                    "action {number} ({} {}) failed: {}",
                    action.word(),
                    text::one_line(action.what(), 80),
                    text::one_line(&came.result, RESULT_MAX)
                );
                self.done.failure.get_or_insert(first);
                if action.on_error() == OnError::Stop {
                    stop = Some(format!("action {number} failed"));
                }
            } else if matches!(
                action,
                Action::Rotate { .. }
                    | Action::Pause { .. }
                    | Action::StopSuccess { .. }
                    | Action::StopFailure { .. }
            ) {
                stop = Some(format!("it came after `{}`", action.word()));
            }
        }
        end
    }

    fn one(&mut self, number: u32, action: &Action, input: Value) -> ActionOutcome {
        let what = text::one_line(action.what(), SHOWN_MAX);
        let line = match action {
            Action::Run { .. } => format!("running `{what}`"),
            Action::Patch { .. } | Action::Write { .. } => format!("editing {what}"),
            other => format!("{}: {what}", other.word()),
        };
        self.sink.activity(&text::one_line(&line, SHOWN_MAX));
        self.sink.action_started(&ActionStart { number, action: action.word().to_owned(), what });
        let begun = Instant::now();
        let came = self.act(number, action);
        let duration = begun.elapsed();
        self.sink.action_finished(&ActionEnd {
            number,
            ok: came.ok,
            result: text::one_line(&came.result, RESULT_MAX),
            exit_code: came.exit_code,
            duration,
        });
        let mut record = json!({
            "n": number,
            "type": action.word(),
            "input": value(input, ACTION_INPUT_MAX),
            "ok": came.ok,
            "result": came.result,
            "exit_code": came.exit_code,
            "duration_ms": u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        });
        if let Some(file) = &came.file {
            record["output_file"] = json!(file);
        }
        self.record(record);
        came
    }

    fn skip(&mut self, number: u32, action: &Action, input: Value, why: &str) {
        self.done.skipped += 1;
        self.record(json!({
            "n": number,
            "type": action.word(),
            "input": value(input, ACTION_INPUT_MAX),
            "ok": false,
            "skipped": true,
            "result": format!("not run: {why}"),
        }));
    }

    /// The line in `actions.jsonl`, and the result without its input, which the answer has already.
    fn record(&mut self, mut record: Value) {
        self.sink.action(&value(record.clone(), LINE_MAX).to_string());
        if let Value::Object(map) = &mut record {
            map.remove("input");
        }
        self.done.results.push(record);
    }

    fn act(&mut self, number: u32, action: &Action) -> ActionOutcome {
        match action {
            Action::Run { command, cwd, timeout, .. } => self.run(number, command, cwd.as_deref(), *timeout),
            Action::Patch { path, patch, .. } => self.patch(path, patch),
            Action::Write { path, content, append, .. } => self.write(path, content, *append),
            Action::Commit { message, paths } => {
                let wishes = &mut self.done.wishes;
                match paths.is_empty() {
                    true => wishes.commit_message = Some(message.clone()),
                    false => wishes
                        .commit_parts
                        .push(CommitPart { message: message.clone(), paths: paths.clone() }),
                }
                ActionOutcome::well("noted; the engine commits")
            }
            Action::Rotate { reason } => self.ask(Ask::Rotate { reason: reason.clone() }),
            Action::Pause { reason } => self.ask(Ask::Pause { reason: reason.clone() }),
            Action::StopFailure { reason } => self.ask(Ask::GiveUp { reason: reason.clone() }),
            Action::StopSuccess { .. } if self.done.failure.is_some() => {
                ActionOutcome::badly("does not count, as an action before it failed")
            }
            Action::StopSuccess { .. } => {
                self.done.wishes.done = true;
                ActionOutcome::well("noted; the engine checks")
            }
        }
    }

    fn ask(&mut self, ask: Ask) -> ActionOutcome {
        self.done.wishes.ask = Some(ask);
        ActionOutcome::well("noted; the engine decides")
    }

    fn run(&mut self, number: u32, command: &str, cwd: Option<&str>, timeout: Duration) -> ActionOutcome {
        let cwd = match cwd.map(confine::folder) {
            None => self.request.cwd.to_owned(),
            Some(Ok(folder)) => folder,
            Some(Err(refusal)) => return ActionOutcome::badly(refusal),
        };
        let left = self.deadline.left();
        let argv = ["sh", "-c", command].map(str::to_owned).to_vec();
        let mut exec = ExecRequest::new(argv);
        exec.cwd = cwd;
        exec.env = self.request.config.env.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        exec.timeout = Some(timeout.min(left));
        let name = match self.request.attempt {
            0 | 1 => format!("action-{number}.log"),
            attempt => format!("action-{number}-try-{attempt}.log"),
        };
        let capture = Capture::new(self.request.folder, &name, self.redactor);
        let mut sink = ActionExecSink { sink: &mut *self.sink, capture };
        let outcome = self.sandbox.exec(&exec, &mut sink);
        let excerpt = sink.capture.finish();
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return self.broken(&error),
        };
        self.done.survivors = self.done.survivors.saturating_add(outcome.survivors);
        let (ok, said, end) = match outcome.end {
            ExecEnd::Exited(code) => (code == 0, format!("exit code {code}"), None),
            ExecEnd::Signaled(signal) => (false, format!("ended by signal {signal}"), None),
            ExecEnd::TimedOut if left <= timeout => {
                (false, "ended with the session's time".to_owned(), Some(SessionEnd::TimedOut))
            }
            ExecEnd::TimedOut | ExecEnd::IdleTimedOut => {
                (false, format!("timed out after {}", text::duration(timeout)), None)
            }
            ExecEnd::Stopped(cause) => (false, "stopped".to_owned(), Some(SessionEnd::Stopped { cause })),
            ExecEnd::GuardLost => {
                (false, "its watching process died".to_owned(), Some(SessionEnd::Interrupted))
            }
        };
        let mut result = said;
        if !excerpt.text.trim().is_empty() {
            result.push('\n');
            result.push_str(&excerpt.text);
        }
        ActionOutcome { ok, result, exit_code: outcome.end.code(), file: excerpt.file, end }
    }

    fn patch(&mut self, path: &str, patch: &str) -> ActionOutcome {
        let path = match confine::file(path, FileOperation::Edit, self.request.protected) {
            Ok(path) => path,
            Err(refusal) => return ActionOutcome::badly(refusal),
        };
        let content = match self.sandbox.read(&path) {
            Ok(content) => content,
            Err(error) => return self.broken(&error),
        };
        match patch::apply(&path, patch, content.as_deref()) {
            Err(error) => ActionOutcome::badly(error),
            Ok(Patched::Removed) => self.did(self.sandbox.remove(&path), || "removed".to_owned()),
            Ok(Patched::Content(bytes, hunks)) => {
                let made = content.is_none();
                let written = self.sandbox.write(&path, &bytes, WriteMode::Replace);
                self.did(written, || match made {
                    true => "made".to_owned(),
                    false => format!("{} applied", text::count(hunks, "hunk")),
                })
            }
        }
    }

    fn write(&mut self, path: &str, content: &str, append: bool) -> ActionOutcome {
        let (change, mode) = match append {
            true => (FileOperation::Append, WriteMode::Append),
            false => (FileOperation::Edit, WriteMode::Replace),
        };
        match confine::file(path, change, self.request.protected) {
            Err(refusal) => ActionOutcome::badly(refusal),
            Ok(path) => {
                let written = self.sandbox.write(Path::new(&path), content.as_bytes(), mode);
                let bytes = text::count(content.len(), "byte");
                self.did(
                    written,
                    || if append { format!("{bytes} added") } else { format!("{bytes} written") },
                )
            }
        }
    }

    fn did(&self, done: Result<(), SandboxError>, said: impl FnOnce() -> String) -> ActionOutcome {
        match done {
            Ok(()) => ActionOutcome::well(said()),
            Err(error) => self.broken(&error),
        }
    }

    /// A lost sandbox ends the session; anything else fails one action. Either way the session is reported: the
    /// model's answer has already cost money.
    fn broken(&self, error: &SandboxError) -> ActionOutcome {
        let end = matches!(error, SandboxError::Broken(_))
            .then(|| SessionEnd::Failed { reason: error.to_string() });
        ActionOutcome { end, ..ActionOutcome::badly(error) }
    }
}

struct ActionExecSink<'a, 'b> {
    sink: &'a mut dyn SessionSink,
    capture: Capture<'b>,
}

impl ExecSink for ActionExecSink<'_, '_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.sink.output(stream, bytes);
        self.capture.push(stream, bytes);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.sink.poll()
    }
}
