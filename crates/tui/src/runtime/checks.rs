//! Lints a draft and runs its checks before any work.

use super::perform::World;
use crate::data::{Baseline, LintLine};
use ralph_loop_app::scratch::Scratch;
use ralph_loop_app::{AppError, lint, task_source};
use ralph_loop_domain::ports::{ExecRequest, ExecSink, Sandbox as _, StopCause, Stream};
use ralph_loop_protocol::text::one_line;
use ralph_loop_task::dialect::Dialect;
use std::ops::ControlFlow;
use std::time::Duration;

/// Timeout of one check.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Limits of a check's output, in bytes and lines.
const OUTPUT_MAX: usize = 64 * 1024;
const LINES_MAX: usize = 12;

/// Lints a draft as the task file it would become.
pub fn lint(world: &World, draft: &str) -> Result<Vec<LintLine>, AppError> {
    let top = world.top();
    let source = task_source::with_side_files(&top, Dialect::PromptMd, "PROMPT.md", draft.to_owned())?;
    let report = lint::lint_task(world.env(), &source, &[]);
    let found = report.diagnostics.iter().map(|one| LintLine {
        error: one.is_error(),
        line: if one.file == "PROMPT.md" { one.line } else { 1 },
        message: one_line(&one.message, 300),
        fix: one_line(&one.fix, 300),
    });
    Ok(found.collect())
}

/// Runs commands one after another, sandboxed as in a run.
pub fn baseline(world: &World, commands: &[String]) -> Result<Baseline, AppError> {
    let scratch = Scratch::over_repo(world.env(), "check", &world.top())?;
    let mut over = Baseline::default();
    for command in commands {
        let argv = ["sh", "-c", command.as_str()].map(str::to_owned).to_vec();
        let request = ExecRequest { timeout: Some(TIMEOUT), ..ExecRequest::new(argv) };
        let mut sink = Sink::default();
        let end = scratch.sandbox.exec(&request, &mut sink)?.end;
        let text = String::from_utf8_lossy(&sink.last).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES_MAX)..].iter().map(|line| one_line(line, 200));
        over.checks.push((one_line(command, 200), end.success(), last.collect()));
    }
    Ok(over)
}

#[derive(Default)]
struct Sink {
    last: Vec<u8>,
}

impl ExecSink for Sink {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.last.extend_from_slice(bytes);
        let extra = self.last.len().saturating_sub(OUTPUT_MAX);
        self.last.drain(..extra);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}
