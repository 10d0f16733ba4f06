//! Lints a task as far as possible without running anything, and tries its checks if asked.

pub mod checks;
mod facts;
pub mod probe;

use crate::environment::Environment;
use crate::error::AppError;
use crate::task::task_source::TaskSource;
use checks::TaskCheck;
use probe::{ProbeEnd, ProbeWatch, Probed};
use ralph_loop_task::dialect;
use ralph_loop_task::lint::{Diagnostic, LintFacts, LintReport};
use std::time::Duration;

/// A linted task with its checks.
#[derive(Debug, Clone)]
pub struct LintedTask {
    pub report: LintReport,
    /// Empty if the configuration can't be read.
    pub checks: Vec<TaskCheck>,
    /// How the checks ended before any work, if they were tried.
    pub probed: Vec<Probed>,
}

/// Lints a task.
pub fn lint_task(env: &Environment, source: &TaskSource) -> LintedTask {
    let task = dialect::read(source.dialect, &source.files);
    let checks = checks::of_task(env, source, task.as_ref()).ok();
    let mut configured = facts::configuration(env, source, checks.as_deref());
    let facts = LintFacts {
        missing_programs: task
            .as_ref()
            .map(|task| facts::missing_programs(env, task, source))
            .unwrap_or_default(),
        verifiers: configured.verifiers,
        budget_set: configured.budget_set,
        has_forge: configured.has_forge,
    };
    let mut report = ralph_loop_task::lint::lint(source.dialect, &source.files, &facts);
    report.diagnostics.append(&mut configured.diagnostics);
    LintedTask { report, checks: checks.unwrap_or_default(), probed: Vec::new() }
}

/// Lints a task and tries each check once; a task that works in a clone has nothing to try here.
pub fn probe_task(
    env: &Environment,
    source: &TaskSource,
    limit: Duration,
    watch: &dyn ProbeWatch,
) -> Result<LintedTask, AppError> {
    let mut linted = lint_task(env, source);
    let Some(task) = linted.report.task.as_ref().filter(|task| task.git.repo_url.is_none()) else {
        return Ok(linted);
    };
    linted.probed = probe::probe(env, source, task, &linted.checks, limit, watch)?;
    let passing = linted.probed.iter().filter(|one| one.end == ProbeEnd::Passes);
    let passing: Vec<String> = passing.map(|one| one.check.verifier.name.clone()).collect();
    let mut found = ralph_loop_task::lint::passing_already(task, &passing);
    found.extend(probe::judge(&linted.probed, task));
    linted.report.diagnostics.extend(found);
    linted.report.diagnostics.sort_by(Diagnostic::order);
    Ok(linted)
}
