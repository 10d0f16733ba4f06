//! A run's record as text: the task, what was tried, what failed; bounded.

use crate::record::log_tail::read_tail;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::layout::{RalphDir, RunDir};
use ralph_loop_protocol::display::text::{head, tail};
use ralph_loop_task::dialect::Dialect;
use ralph_loop_task::spec::Task;
use std::fmt::Write as _;

const TASK_MAX: usize = 12 * 1024;
const RULES_MAX: usize = 6 * 1024;
const ERRORS_MAX: u64 = 6 * 1024;
const LOG_MAX: u64 = 4 * 1024;
const DIFF_MAX: usize = 4 * 1024;
const DIFFS: usize = 3;

/// A run's record as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunRecord {
    pub task: String,
    /// The current guardrails.
    pub guardrails: String,
    /// Recent iterations, one line each.
    pub iterations: String,
    /// Signs of being stuck.
    pub evidence: Vec<String>,
    pub failures: String,
    pub diffs: String,
    /// The end of the error log.
    pub errors: String,
    /// Agents and models.
    pub agents: String,
}

/// The text that edits of the task must quote, after what else a plan says.
fn task_text(task: &Task) -> String {
    match task.dialect {
        Dialect::Plan => format!("{}\n\n{}", task.text, task.file_text()),
        _ => task.file_text().to_owned(),
    }
}

impl RunRecord {
    /// Reads a run's record, redacted; missing parts are empty.
    pub fn read(dir: &RalphDir, run: &RunDir, state: &RunState, redactor: &Redactor) -> Self {
        let clean = |text: &str| redactor.text(text).into_owned();
        let (_, rules) = dir.read_end("guardrails.md", RULES_MAX as u64);
        let mut failures = String::new();
        for result in state.work.checks.values().filter(|r| !r.passed) {
            let why = result.why.as_deref().unwrap_or("failed");
            let _ = writeln!(failures, "## {} ({why})\n", result.name);
            let _ = writeln!(failures, "{}\n", read_tail(&run.path().join(&result.log), LOG_MAX).trim_end());
        }
        let mut diffs = String::new();
        for summary in state.iterations.history.iter().rev().filter(|i| i.files > 0).take(DIFFS) {
            let path = run.iteration(summary.iteration).join("git_diff.patch");
            let patch = std::fs::read_to_string(path).unwrap_or_default();
            let _ = writeln!(
                diffs,
                "## iteration {}\n\n{}\n",
                summary.iteration,
                head(&patch, DIFF_MAX).trim_end()
            );
        }
        Self {
            task: clean(head(&task_text(&state.spec.task), TASK_MAX)),
            guardrails: clean(tail(&rules, RULES_MAX)),
            iterations: clean(&iterations(state)),
            evidence: evidence(state),
            failures: clean(&failures),
            diffs: clean(&diffs),
            errors: clean(&read_tail(&run.errors(), ERRORS_MAX)),
            agents: agents(state),
        }
    }

    /// The whole record for a prompt.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (title, body) in [
            ("The task", self.task.as_str()),
            ("Guardrails that hold already", &self.guardrails),
            ("Agents", &self.agents),
            ("The last iterations, oldest first", &self.iterations),
            ("Evidence of being stuck", &self.evidence.join("\n")),
            ("Failing checks", &self.failures),
            ("The last changes, newest first", &self.diffs),
            ("Recent errors", &self.errors),
        ] {
            if !body.trim().is_empty() {
                let _ = write!(out, "# {title}\n\n{}\n\n", body.trim());
            }
        }
        out
    }
}

fn iterations(state: &RunState) -> String {
    let mut text = String::new();
    for i in &state.iterations.history {
        let tests =
            i.tests.map_or_else(String::new, |t| format!(", tests {} pass {} fail", t.passed, t.failed));
        let _ = writeln!(
            text,
            "- {} ({}): {}; {} files, +{} -{}{tests}; score {:.2}; said: {}",
            i.iteration,
            i.agent,
            i.verdict.words(),
            i.files,
            i.added,
            i.removed,
            i.loop_score,
            if i.message.is_empty() { "nothing" } else { &i.message }
        );
    }
    text
}

fn evidence(state: &RunState) -> Vec<String> {
    if let Some(gutter) = &state.stuck.gutter {
        return gutter.evidence.clone();
    }
    let traces: Vec<_> = state.stuck.traces.iter().cloned().collect();
    let settings = &state.spec.settings;
    ralph_loop_domain::stuck::score(&traces, &settings.stuck_detection, settings.gutter_score).evidence
}

fn agents(state: &RunState) -> String {
    let mut text = String::new();
    for agent in &state.spec.settings.agents {
        let model = state.model_for(&agent.name).or_else(|| agent.profile.clone());
        let rest = match (state.agents.dropped.get(&agent.name), state.agents.cooldowns.get(&agent.name)) {
            (Some(reason), _) => format!("; takes no part: {reason}"),
            (None, Some(rest)) if rest.until > state.now => format!("; in cooldown: {}", rest.reason),
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "- {}{}{rest}",
            agent.name,
            model.map_or_else(String::new, |m| format!(" with {m}"))
        );
    }
    text
}
