//! Lints a draft and runs its checks before any work.

use super::perform::World;
use crate::data::{Baseline, LintLine};
use ralph_loop_app::AppError;
use ralph_loop_app::task::lint::checks::TaskCheck;
use ralph_loop_app::task::lint::probe::{SECONDS, Unwatched};
use ralph_loop_app::task::lint::{lint_task, probe_task};
use ralph_loop_app::task::task_source;
use ralph_loop_app::task::task_source::TaskSource;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::dialect::Dialect;
use ralph_loop_task::lint::LintReport;
use std::time::Duration;

/// The draft as the task file it would become.
fn source(world: &World, draft: &str) -> Result<TaskSource, AppError> {
    task_source::with_side_files(&world.top(), Dialect::PromptMd, "PROMPT.md", draft.to_owned())
}

fn lines(report: &LintReport) -> Vec<LintLine> {
    let found = report.diagnostics.iter().map(|one| LintLine {
        error: one.is_error(),
        line: if one.file == "PROMPT.md" { one.line } else { 1 },
        message: one_line(&one.message, 300),
        fix: one_line(&one.fix, 300),
    });
    found.collect()
}

/// Lints a draft; also returns its checks with their sources.
pub fn lint(world: &World, draft: &str) -> Result<(Vec<LintLine>, Vec<String>), AppError> {
    let linted = lint_task(world.env(), &source(world, draft)?);
    Ok((lines(&linted.report), linted.checks.iter().map(TaskCheck::line).collect()))
}

/// Lints a draft and runs each of its checks once, sandboxed as in a run.
pub fn baseline(world: &World, draft: &str) -> Result<Baseline, AppError> {
    let linted = probe_task(world.env(), &source(world, draft)?, Duration::from_secs(SECONDS), &Unwatched)?;
    let checks = linted.probed.into_iter().map(|one| (one.check.line(), one.end, one.last_lines));
    Ok(Baseline { draft: draft.to_owned(), checks: checks.collect(), lint: lines(&linted.report) })
}
