//! `exec`: a command that ends.

use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::bounded::Tail;
use crate::session::capture::Capture;
use crate::tools::args::Args;
use ralph_loop_domain::model::ToolSpec;
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, ExecSink, StopCause, Stream};
use ralph_loop_protocol::display::text;
use serde_json::json;
use std::ops::ControlFlow;
use std::time::Duration;

const TIMEOUT: u64 = 300;
const TIMEOUT_MAX: u64 = 3600;
const LINES: usize = 50;
const BYTES: usize = 16 * 1024;

pub(super) struct Exec;

impl Tool for Exec {
    fn spec(&self) -> ToolSpec {
        spec(
            "exec",
            "Run a command to its end (builds, tests, type checks, git) and show its last 50 lines. For servers and \
             watchers use startProcess.",
            json!({
                "command": { "type": "string", "minLength": 1, "description": "The command, as for a shell" },
                "cwd": { "type": "string", "description": "Folder to run in; the working folder where absent" },
                "timeout": {
                    "type": "integer", "minimum": 1, "maximum": TIMEOUT_MAX,
                    "description": "Longest run in seconds (default 300)",
                },
            }),
            &["command"],
        )
    }

    fn beside_others(&self) -> bool {
        true
    }

    fn what(&self, args: &Args<'_>) -> String {
        args.str("command").to_owned()
    }

    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let timeout = Duration::from_secs(args.number("timeout").unwrap_or(TIMEOUT));
        let mut request = ExecRequest::new(crate::tools::shell(args.str("command")));
        request.cwd = context.path_rules.folder(args.maybe("cwd"))?;
        request.timeout = Some(timeout);
        let file = format!("tool-{}.log", context.number);
        let mut sink = OutputSink {
            capture: Capture::new(context.folder, &file, context.redactor),
            tail: Tail::new(BYTES),
            lines: 0,
            context,
        };
        let outcome = context.sandbox.exec(&request, &mut sink).map_err(|error| error.to_string())?;
        let (lines, cut) = (sink.lines, sink.tail.truncated());
        let shown = sink.tail.text();
        let kept = sink.capture.finish().file.map(|name| context.folder.join(name));
        let took = text::duration(outcome.duration);
        let line = match outcome.end {
            ExecEnd::Exited(code) => format!("exit code {code} after {took}"),
            ExecEnd::Signaled(signal) => format!("ended by signal {signal} after {took}"),
            ExecEnd::TimedOut => format!(
                "stopped after {took}, its time limit; pass a longer `timeout`, or use startProcess for a process that \
                 doesn't end"
            ),
            ExecEnd::Stopped(_) => "stopped, as the session ends".to_owned(),
            ExecEnd::IdleTimedOut | ExecEnd::GuardLost => {
                return Err("the command was lost; run it again".to_owned());
            }
        };
        let last = text::tail_lines(&shown, LINES);
        let mut text = line.clone();
        if outcome.survivors > 0 {
            text.push_str(&format!(
                "\n[it left {} behind, which was ended; use startProcess for processes that should keep running]",
                text::count(outcome.survivors as usize, "process")
            ));
        }
        if cut || last.len() < shown.len() {
            let where_kept = kept.as_ref().map(|path| format!("; the whole output is in {}", path.display()));
            let showing = last.lines().count();
            text.push_str(&format!("\n[last {showing} of {lines} lines{}]", where_kept.unwrap_or_default()));
        } else if let Some(path) = &kept {
            // All of it was shown.
            std::fs::remove_file(path).ok();
        }
        if shown.trim().is_empty() {
            text.push_str("\n[no output]");
        } else {
            text.push('\n');
            text.push_str(last);
        }
        let failed = !outcome.end.success();
        Ok(ToolOutcome {
            text,
            line,
            exit_code: outcome.end.code(),
            failed,
            survivors: outcome.survivors,
            ..ToolOutcome::default()
        })
    }
}

struct OutputSink<'a> {
    capture: Capture<'a>,
    tail: Tail,
    lines: u64,
    context: &'a ToolContext<'a>,
}

impl ExecSink for OutputSink<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.capture.push(stream, bytes);
        self.tail.push(bytes);
        (self.context.printed)(stream, bytes);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        match self.context.halt.get() {
            Some(stop) => ControlFlow::Break(stop.cause()),
            None => ControlFlow::Continue(()),
        }
    }
}
