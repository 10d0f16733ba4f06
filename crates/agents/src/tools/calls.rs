//! The tool calls of one reply: each in a thread with its own connection, in parallel if independent, while this
//! thread listens to the engine. Results are in the order of the calls.

use super::agent::SessionResources;
use super::halt::{Halt, Stop};
use super::kit::{ToolContext, ToolOutcome};
use super::path_rules::PathRules;
use crate::bounded::{self, ACTION_INPUT_MAX};
use crate::session::deadline::Deadline;
use ralph_loop_domain::model::{ToolCall, ToolResult};
use ralph_loop_domain::ports::{
    ActionEnd, ActionStart, Sandbox, SandboxError, SessionRequest, SessionSink, Stream,
};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

const TOGETHER: usize = 4;
/// More calls in one reply are refused.
const MOST: usize = 64;
/// Bytes of all results of one reply; later ones are cut.
const RESULTS_MAX: usize = 192 * 1024;
/// A result is never cut below this.
const RESULT_MIN: usize = 1024;
const QUEUE: usize = 64;
const STEP: Duration = Duration::from_millis(50);

pub(crate) struct CallContext<'a> {
    pub(crate) resources: &'a SessionResources,
    pub(crate) request: &'a SessionRequest<'a>,
    pub(crate) sandbox: &'a dyn Sandbox,
    pub(crate) deadline: Deadline,
    pub(crate) halt: Halt,
    /// Idle connections.
    pub(crate) connections: Vec<Box<dyn Sandbox>>,
    /// Calls made so far.
    pub(crate) made: u32,
    /// Processes that commands left behind.
    pub(crate) survivors: u32,
}

/// The results of one reply's calls.
#[derive(Debug, Default)]
pub(crate) struct CallsOutcome {
    pub(crate) results: Vec<ToolResult>,
    /// The summary of `done`.
    pub(crate) done: Option<String>,
}

enum WorkerEvent {
    Began(usize),
    Printed(Stream, Vec<u8>),
    Ended(usize, Duration, Result<ToolOutcome, String>),
}

impl CallContext<'_> {
    pub(crate) fn make(
        &mut self,
        calls: &[ToolCall],
        sink: &mut dyn SessionSink,
    ) -> Result<Result<CallsOutcome, SessionEnd>, SandboxError> {
        let mut outcome = CallsOutcome::default();
        let (calls, refused) = calls.split_at(calls.len().min(MOST));
        let mut rest = calls;
        while let Some(first) = rest.first() {
            let alone = !self.resources.toolbox.beside_others(first);
            let together = rest.iter().take_while(|call| self.resources.toolbox.beside_others(call)).count();
            let (batch, after) = rest.split_at(if alone { 1 } else { together });
            rest = after;
            for (call, made) in batch.iter().zip(self.batch(batch, sink)?) {
                self.survivors += made.as_ref().map_or(0, |made| made.survivors);
                outcome.results.push(self.result(call, made, &mut outcome.done));
            }
            if let Some(stop) = self.halt.get() {
                return Ok(Err(stop.session_end()));
            }
        }
        for call in refused {
            let too_many = Err(format!("not called: a reply may have {MOST} calls"));
            outcome.results.push(self.result(call, too_many, &mut outcome.done));
        }
        bound(&mut outcome.results);
        Ok(Ok(outcome))
    }

    fn result(
        &self,
        call: &ToolCall,
        made: Result<ToolOutcome, String>,
        done: &mut Option<String>,
    ) -> ToolResult {
        let (made, is_error) = match made {
            Ok(made) => (made, false),
            Err(why) => (ToolOutcome::text(why), true),
        };
        if made.done.is_some() {
            *done = made.done;
        }
        ToolResult {
            id: call.id.clone(),
            name: call.name.clone(),
            text: self.resources.redactor.text(&made.text).into_owned(),
            images: made.images,
            is_error,
        }
    }

    /// Runs calls in parallel; listens at the same time.
    fn batch(
        &mut self,
        batch: &[ToolCall],
        sink: &mut dyn SessionSink,
    ) -> Result<Vec<Result<ToolOutcome, String>>, SandboxError> {
        let hands = batch.len().min(TOGETHER);
        while self.connections.len() < hands {
            self.connections.push(self.sandbox.new_connection()?);
        }
        let connections = self.connections.split_off(self.connections.len() - hands);
        let first = self.made;
        self.made += u32::try_from(batch.len()).unwrap_or(0);
        let next = AtomicUsize::new(0);
        let (news, heard) = sync_channel(QUEUE);
        let root = self.sandbox.root().to_owned();
        let host_root = self.sandbox.host_root().map(std::path::Path::to_owned);
        let mut ended: Vec<Option<Result<ToolOutcome, String>>> = batch.iter().map(|_| None).collect();
        let bench = &*self;
        let (resources, request, halt) = (bench.resources, bench.request, &bench.halt);
        let path_rules = PathRules {
            root: &root,
            host_root: host_root.as_deref(),
            cwd: request.cwd,
            protected: request.protected,
        };
        let folder = request.folder;
        let worker = |connection: Box<dyn Sandbox>, news: SyncSender<WorkerEvent>| {
            while let Some((at, call)) = take(batch, &next) {
                let begun = Instant::now();
                // Only fails if the whole scope is ending.
                news.send(WorkerEvent::Began(at)).ok();
                let printed = |stream: Stream, bytes: &[u8]| {
                    news.send(WorkerEvent::Printed(stream, bytes.to_vec())).ok();
                };
                let context = ToolContext {
                    sandbox: &*connection,
                    path_rules,
                    halt,
                    processes: &resources.processes,
                    #[cfg(feature = "browser")]
                    browsers: &resources.browsers,
                    redactor: &resources.redactor,
                    folder,
                    done_file: &resources.done_file,
                    number: number(first, at),
                    printed: &printed,
                };
                let made = match halt.get() {
                    Some(_) => Err("not called, as the session ends".to_owned()),
                    None => resources.toolbox.call(call, &context),
                };
                news.send(WorkerEvent::Ended(at, begun.elapsed(), made)).ok();
            }
            connection
        };
        let worker = &worker;
        let back = std::thread::scope(|scope| {
            let hands: Vec<_> = connections
                .into_iter()
                .map(|connection| {
                    let news = news.clone();
                    scope.spawn(move || worker(connection, news))
                })
                .collect();
            drop(news);
            loop {
                match heard.recv_timeout(STEP) {
                    Ok(WorkerEvent::Began(at)) => begin(resources, batch.get(at), number(first, at), sink),
                    Ok(WorkerEvent::Printed(stream, bytes)) => sink.output(stream, &bytes),
                    Ok(WorkerEvent::Ended(at, took, made)) => {
                        finish(resources, batch.get(at), number(first, at), took, &made, sink);
                        if let Some(slot) = ended.get_mut(at) {
                            *slot = Some(made);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                match bench.deadline.check(sink) {
                    Some(SessionEnd::Stopped { cause }) => halt.stop(Stop::Cause(cause)),
                    Some(_) => halt.stop(Stop::TimedOut),
                    None => {}
                }
            }
            hands.into_iter().filter_map(|hand| hand.join().ok()).collect::<Vec<_>>()
        });
        self.connections.extend(back);
        let lost = || Err("the call was lost".to_owned());
        Ok(ended.into_iter().map(|made| made.unwrap_or_else(lost)).collect())
    }
}

/// Cuts results that make a reply too long; the first ones stay whole.
fn bound(results: &mut [ToolResult]) {
    let mut left = RESULTS_MAX;
    for result in results {
        let room = left.max(RESULT_MIN);
        if result.text.len() > room {
            let kept = text::head(&result.text, room).to_owned();
            result.text =
                format!("{kept}\n[cut: the results of one reply are too long; ask for less at once]");
        }
        left = left.saturating_sub(result.text.len());
    }
}

/// The next unclaimed call.
fn take<'a>(batch: &'a [ToolCall], next: &AtomicUsize) -> Option<(usize, &'a ToolCall)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    batch.get(at).map(|call| (at, call))
}

fn number(first: u32, at: usize) -> u32 {
    first + u32::try_from(at).unwrap_or(0) + 1
}

/// A call in one line.
fn in_words(name: &str, what: &str) -> String {
    match name {
        "exec" => format!("running `{what}`"),
        "readFile" => format!("reading {what}"),
        "writeFile" | "editFile" => format!("editing {what}"),
        "listFiles" => format!("listing {what}"),
        "startProcess" => format!("starting {what}"),
        _ => format!("{name} {what}").trim_end().to_owned(),
    }
}

fn begin(resources: &SessionResources, call: Option<&ToolCall>, number: u32, sink: &mut dyn SessionSink) {
    let Some(call) = call else { return };
    let what = resources.redactor.text(&resources.toolbox.what(call)).into_owned();
    let line = format!("{} {what}", call.name);
    sink.activity(&text::one_line(&in_words(&call.name, &what), 160));
    sink.output(Stream::Stdout, format!("\n> {}\n", line.trim_end()).as_bytes());
    sink.action_started(&ActionStart { number, action: call.name.clone(), what });
}

fn finish(
    resources: &SessionResources,
    call: Option<&ToolCall>,
    number: u32,
    took: Duration,
    made: &Result<ToolOutcome, String>,
    sink: &mut dyn SessionSink,
) {
    let Some(call) = call else { return };
    let (ok, words, exit_code) = match made {
        Ok(made) => {
            let words = if made.line.is_empty() { made.text.as_str() } else { made.line.as_str() };
            (!made.failed, words, made.exit_code)
        }
        Err(why) => (false, why.as_str(), None),
    };
    let result = text::one_line(&resources.redactor.text(words), 300);
    sink.output(Stream::Stdout, format!("< {result}\n").as_bytes());
    let input = bounded::value(call.input.clone(), ACTION_INPUT_MAX);
    let mut line = json!({
        "type": "tool", "number": number, "name": call.name, "input": input, "ok": ok, "result": result,
        "duration_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    });
    if let Some(code) = exit_code {
        line["exit_code"] = json!(code);
    }
    // The line shows the outcome; the content tells two calls apart.
    if let Ok(made) = made
        && !made.line.is_empty()
    {
        line["output"] = json!(text::one_line(&resources.redactor.text(&made.text), 400));
    }
    sink.action(&line.to_string());
    sink.action_finished(&ActionEnd { number, ok, result, exit_code, duration: took });
}
