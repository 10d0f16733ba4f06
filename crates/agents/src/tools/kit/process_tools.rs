//! `stopProcess`, `getProcessOutput`, `listProcesses`.

use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::tools::args::Args;
use ralph_loop_domain::model::ToolSpec;
use ralph_loop_protocol::display::text;
use serde_json::json;

const LINES: u64 = 50;
const BYTES: usize = 24 * 1024;

pub(super) struct StopProcess;

impl Tool for StopProcess {
    fn spec(&self) -> ToolSpec {
        let name =
            json!({ "name": { "type": "string", "minLength": 1, "description": "The process's name" } });
        spec("stopProcess", "Stop a process of startProcess with its children.", name, &["name"])
    }
    fn what(&self, args: &Args<'_>) -> String {
        args.str("name").to_owned()
    }
    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let name = args.str("name");
        Ok(ToolOutcome::text(match context.processes.stop(name)? {
            None => format!("`{name}` is stopped"),
            Some(how) => format!("`{name}` {how} before"),
        }))
    }
}

pub(super) struct GetProcessOutput;

impl Tool for GetProcessOutput {
    fn spec(&self) -> ToolSpec {
        spec(
            "getProcessOutput",
            "Show a process's last output and whether it still runs.",
            json!({
                "name": { "type": "string", "minLength": 1, "description": "The process's name" },
                "lines": {
                    "type": "integer", "minimum": 1, "maximum": 500,
                    "description": "How many of the last lines (default 50)",
                },
            }),
            &["name"],
        )
    }
    fn beside_others(&self) -> bool {
        true
    }
    fn what(&self, args: &Args<'_>) -> String {
        args.str("name").to_owned()
    }
    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let (listed, output) = context.processes.output(args.str("name"))?;
        let lines = usize::try_from(args.number("lines").unwrap_or(LINES)).unwrap_or(usize::MAX);
        let shown = text::tail(text::tail_lines(&output, lines), BYTES);
        let shown = if shown.trim().is_empty() { "[no output so far]" } else { shown };
        Ok(ToolOutcome {
            text: format!("{}\n{shown}", listed.line()),
            line: listed.line(),
            ..ToolOutcome::default()
        })
    }
}

pub(super) struct ListProcesses;

impl Tool for ListProcesses {
    fn spec(&self) -> ToolSpec {
        spec("listProcesses", "List the processes of startProcess.", json!({}), &[])
    }
    fn beside_others(&self) -> bool {
        true
    }
    fn what(&self, _: &Args<'_>) -> String {
        String::new()
    }
    fn call(&self, _: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let all = context.processes.list();
        let lines: Vec<String> = all.iter().map(|one| one.line()).collect();
        Ok(ToolOutcome {
            text: if lines.is_empty() { "no processes".to_owned() } else { lines.join("\n") },
            line: text::count(all.len(), "process"),
            ..ToolOutcome::default()
        })
    }
}
