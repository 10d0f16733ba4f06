//! `startProcess`: a server or watcher that keeps running.

use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::tools::args::Args;
use crate::tools::process::{ProcessStart, Ready, Signal, address};
use ralph_loop_domain::model::ToolSpec;
use ralph_loop_protocol::display::text;
use serde_json::json;
use std::time::Duration;

const READY: u64 = 60;
const LINES: usize = 20;
const BYTES: usize = 8 * 1024;
const NAME_MAX: usize = 60;

pub(super) struct StartProcess;

/// The URL outside the sandbox for `url` inside.
fn preview(url: &str, context: &ToolContext<'_>) -> Option<String> {
    // A preview is optional: without one the process runs all the same.
    let shown = context.sandbox.host_address(address::port(url)?).ok()??;
    Some(format!(" (people see it at {shown})"))
}

impl Tool for StartProcess {
    fn spec(&self) -> ToolSpec {
        spec(
            "startProcess",
            "Start a process that keeps running, like a dev server or a watcher. Starting another with the same name ends \
             the old one. Waits for readySignal, or for an address in the output, and returns the address. It outlives \
             this session until it is stopped or idle.",
            json!({
                "name": { "type": "string", "minLength": 1, "description": "A name like `dev-server`" },
                "command": { "type": "string", "minLength": 1, "description": "The command, as for a shell" },
                "cwd": { "type": "string", "description": "Folder to run in; the working folder where absent" },
                "env": {
                    "type": "object", "additionalProperties": { "type": "string" },
                    "description": "Variables added to its environment",
                },
                "readySignal": {
                    "type": "string", "minLength": 1,
                    "description": "A text or regular expression that it prints when it is ready",
                },
                "readyTimeout": {
                    "type": "integer", "minimum": 1, "maximum": 600,
                    "description": "Longest wait for the signal in seconds (default 60)",
                },
            }),
            &["name", "command"],
        )
    }

    fn what(&self, args: &Args<'_>) -> String {
        format!("{}: {}", args.str("name"), args.str("command"))
    }

    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let name = args.str("name");
        if name.len() > NAME_MAX || name.chars().any(char::is_control) {
            return Err(format!("a process's name has at most {NAME_MAX} plain characters"));
        }
        let start = ProcessStart {
            name: name.to_owned(),
            command: args.str("command").to_owned(),
            cwd: context.path_rules.folder(args.maybe("cwd"))?,
            env: args.pairs("env"),
            signal: args.maybe("readySignal").map(Signal::new),
        };
        let (view, replaced) = context.processes.start(start, context.sandbox)?;
        let limit = Duration::from_secs(args.number("readyTimeout").unwrap_or(READY));
        let ready = context.processes.wait(&view, args.maybe("readySignal").is_some(), limit, context.halt);
        let (listed, output) = context.processes.output(name)?;
        let output = text::tail(text::tail_lines(&output, LINES), BYTES);
        let output = match output.trim().is_empty() {
            true => "[no output so far]".to_owned(),
            false => format!("last output:\n{}", output.trim_end()),
        };
        match ready {
            Ready::Yes => {
                let before = if replaced { "; the old one of this name is ended" } else { "" };
                let preview = listed.url.as_deref().and_then(|url| preview(url, context)).unwrap_or_default();
                let place = listed.url.map(|url| format!(" at {url}")).unwrap_or_default();
                let line = format!("`{name}` runs{place}{preview}{before}");
                Ok(ToolOutcome { text: format!("{line}\n{output}"), line, ..ToolOutcome::default() })
            }
            Ready::Ended(ended) => Err(format!("`{name}` {} before it was ready; {output}", ended.words())),
            Ready::NotYet => Err(format!(
                "`{name}` never became ready: `{}` is not in its output after {}. It still runs (stopProcess ends \
                 it); {output}",
                args.str("readySignal"),
                text::duration(limit)
            )),
            Ready::Halted(_) => Err("stopped waiting, as the session ends".to_owned()),
        }
    }
}
