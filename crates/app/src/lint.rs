//! Lints a task as far as possible without running anything.

mod facts;

use crate::environment::Environment;
use crate::task_source::TaskSource;
use ralph_loop_task::lint::{LintFacts, LintReport};

pub fn lint_task(env: &Environment, source: &TaskSource, passing_before: &[String]) -> LintReport {
    let mut configured = facts::configuration(env, source);
    let known = |missing_programs| LintFacts {
        missing_programs,
        passing_before: passing_before.to_vec(),
        verifiers: configured.verifiers.clone(),
        budget_set: configured.budget_set,
        has_forge: configured.has_forge,
    };
    let mut report = ralph_loop_task::lint::lint(source.dialect, &source.files, &known(Vec::new()));
    let missing =
        report.task.as_ref().map(|task| facts::missing_programs(env, task, source)).unwrap_or_default();
    if !missing.is_empty() {
        report = ralph_loop_task::lint::lint(source.dialect, &source.files, &known(missing));
    }
    report.diagnostics.append(&mut configured.diagnostics);
    report
}
