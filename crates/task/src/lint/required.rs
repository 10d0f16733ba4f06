//! The rules that block a start: what every task needs so that a run ends and its result can be proven.

use super::{Diagnostic, Findings, LintFacts};
use crate::budget::Budgets;
use crate::criterion::{Check, Span};
use crate::dialect::diagnostic::line_end;
use crate::dialect::{Dialect, TaskFile, TaskTexts, frontmatter};
use ralph_loop_protocol::display::text::duration;

/// Fewest checkboxes of a `ralph_task.md`; a numeric goal counts as one.
const MIN_BOXES: usize = 2;

pub(super) fn check(task: &TaskFile, files: &TaskTexts, facts: &LintFacts, found: &mut Findings) {
    match task.dialect {
        Dialect::RalphTaskMd => ralph_task_md(task, files, found),
        Dialect::RalphJson => {
            something_to_check(task, facts, "acceptance_criteria", found);
            ralph_json_budget(task, files, found);
            forge(task, facts, found);
        }
        Dialect::Plan => {
            something_to_check(task, facts, "verifyCommands", found);
            configured_budget(facts, found);
            prd(files, found);
        }
        Dialect::PromptMd => {
            if facts.verifiers.is_some() {
                something_to_check(task, facts, "verifiers", found);
            }
            configured_budget(facts, found);
        }
    }
}

fn ralph_task_md(task: &TaskFile, files: &TaskTexts, found: &mut Findings) {
    let end = frontmatter::split(files.text()).map(|split| split.yaml.end).ok();
    let eol = line_end(files.text());
    let fill_in = |finding: &mut Diagnostic, line: &str| {
        if let Some(end) = end {
            finding.set_edit(end..end, format!("{line}{eol}"));
        }
    };
    let mut missing = |rule, message: &str, line: String| {
        fill_in(found.error(rule, Span::START, message, format!("add `{line}`")), &line);
    };
    let budgets = Budgets::default();
    let settings = &task.settings;
    if settings.max_iterations.is_none() {
        let line = format!("max_iterations: {}", budgets.max_iterations);
        missing("missing-max-iterations", "`max_iterations` is missing", line);
    }
    if settings.max_wall_time_minutes.is_none() {
        let line = format!("max_wall_time_minutes: {}", budgets.max_wall_time.as_secs() / 60);
        missing("missing-max-wall-time", "`max_wall_time_minutes` is missing", line);
    }
    if settings.max_cost_usd_estimate.is_none() && settings.max_tokens_total.is_none() {
        let line = format!("max_cost_usd_estimate: {}", budgets.max_cost.dollars());
        let message = "there is neither `max_cost_usd_estimate` nor `max_tokens_total`";
        missing("missing-cost-budget", message, line);
    }
    if task.test_command.is_none() {
        let example = task.global_verify.first().map_or("npm test".to_owned(), |command| command.display());
        let fix = format!("add the one command that must pass at the end: `test_command: {example:?}`");
        found.error("missing-test-command", Span::START, "`test_command` is missing", fix);
    }
    if !task.keys.contains_key("task_id") {
        let line = format!("task_id: {:?}", task.task_id);
        let message = "`task_id` is missing; one derived from the title changes with it";
        fill_in(found.warning("missing-task-id", Span::START, message, format!("add `{line}`")), &line);
    }
    boxes(task, found);
}

fn boxes(task: &TaskFile, found: &mut Findings) {
    let least = MIN_BOXES - usize::from(task.metric.is_some());
    if task.criteria.len() < least && !found.all.iter().any(|d| d.rule == "missing-criteria-section") {
        found.error(
            "too-few-criteria",
            task.criteria.first().map_or(Span::START, |c| c.place),
            format!(
                "the success criteria have {} of at least {}",
                task.criteria.len(),
                if least == 1 { "1 checkbox".to_owned() } else { format!("{least} checkboxes") }
            ),
            "split the definition of done into single conditions: `- [ ] M1.1 …`",
        );
    }
    if !task.global_verify.is_empty() {
        return;
    }
    for criterion in task.criteria.iter().filter(|c| c.check == Check::Claimed) {
        found.error(
            "missing-check",
            criterion.place,
            format!("nothing checks `{}`", criterion.id),
            "add `  - verify: ` with a command below it, or `verify_commands` to the frontmatter",
        );
    }
}

fn something_to_check(task: &TaskFile, facts: &LintFacts, key: &str, found: &mut Findings) {
    let configured = facts.verifiers.as_ref().is_some_and(|names| !names.is_empty());
    if task.is_checkable() || configured {
        return;
    }
    let fix = match task.dialect {
        Dialect::RalphJson => "add an acceptance criterion, for example of type `command_succeeds`",
        Dialect::Plan => "add the project's test command to `verifyCommands`",
        _ => "put a command under `## Verification`, as a list item: - `make test`",
    };
    found.error(
        "no-check",
        task.keys.get(key).copied().unwrap_or_default(),
        "`ralph` can't check when this task is done",
        fix,
    );
}

fn ralph_json_budget(task: &TaskFile, files: &TaskTexts, found: &mut Findings) {
    // A new key right after the opening brace is valid if the object has another key, and `task` is one.
    let Some(after_brace) = files.text().find('{').map(|at| at + 1) else { return };
    let eol = line_end(files.text());
    let mut warn = |message: &str, line: String, is_free: bool| {
        let finding = found.warning("missing-budget", Span::START, message, format!("add `{line}`"));
        if is_free {
            finding.set_edit(after_brace..after_brace, format!("{eol}  {line},"));
        }
    };
    let budgets = Budgets::default();
    if task.settings.max_iterations.is_none() {
        let line = format!("\"max_iterations\": {}", budgets.max_iterations);
        warn("`max_iterations` is missing; the default applies", line, true);
    }
    if task.settings.max_cost_usd_estimate.is_none() && task.settings.max_tokens_total.is_none() {
        let message = "there is neither `budget.max_cost_usd` nor `budget.max_tokens`; the default holds";
        let line = format!("\"budget\": {{\"max_cost_usd\": {}}}", budgets.max_cost.dollars());
        warn(message, line, !task.keys.contains_key("budget"));
    }
}

fn configured_budget(facts: &LintFacts, found: &mut Findings) {
    if facts.budget_set == Some(false) {
        let budgets = Budgets::default();
        found.warning(
            "missing-budget",
            Span::START,
            format!(
                "no budget is set; the defaults hold: {} iterations, {}, {}",
                budgets.max_iterations,
                duration(budgets.max_wall_time),
                budgets.max_cost
            ),
            "set `max_iterations` and `max_cost_usd_estimate` in `.ralph/config.json`",
        );
    }
}

fn forge(task: &TaskFile, facts: &LintFacts, found: &mut Findings) {
    for criterion in task.criteria.iter().filter(|c| c.check.needs_forge()) {
        if task.git.create_pr != Some(true) {
            found.warning(
                "needs-pull-request",
                criterion.place,
                format!("`{}` checks the pull request, but the task doesn't request one", criterion.id),
                "set `git.create_pr` to true",
            );
        }
        if !facts.has_forge {
            found.warning(
                "needs-forge",
                criterion.place,
                format!("`{}` needs a code host, and none is known here", criterion.id),
                "a GitHub remote and `GITHUB_TOKEN` are one; or use a command that can run here",
            );
        }
    }
}

fn prd(files: &TaskTexts, found: &mut Findings) {
    if files.beside("prd.md").is_none_or(|(_, text)| text.trim().is_empty()) {
        found.warning(
            "missing-prd",
            Span::START,
            "`prd.md` is missing, so every session starts without the requirements",
            "describe the feature and why you want it; run `ralph init --plan` for the headings",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::{apply_fixes, lint};
    use super::*;

    const FULL: &str = include_str!("../dialect/testdata/ralph_task.md");

    fn errors(dialect: Dialect, text: &str, facts: &LintFacts) -> Vec<&'static str> {
        let report = lint(dialect, &TaskTexts::new(dialect.main_file(), text), facts);
        report.diagnostics.iter().filter(|d| d.is_error()).map(|d| d.rule).collect()
    }

    fn without(key: &str) -> String {
        FULL.lines().filter(|line| !line.starts_with(key)).map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn a_good_task_is_not_refused() {
        assert!(errors(Dialect::RalphTaskMd, FULL, &LintFacts::default()).is_empty());
    }

    #[test]
    fn each_missing_key_blocks_the_start() {
        for (key, rule) in [
            ("test_command", "missing-test-command"),
            ("max_iterations", "missing-max-iterations"),
            ("max_wall_time_minutes", "missing-max-wall-time"),
            ("max_cost_usd_estimate", "missing-cost-budget"),
        ] {
            assert_eq!(errors(Dialect::RalphTaskMd, &without(key), &LintFacts::default()), [rule]);
        }
        let tokens = FULL.replace("max_cost_usd_estimate: 5", "max_tokens_total: 90000");
        assert!(errors(Dialect::RalphTaskMd, &tokens, &LintFacts::default()).is_empty());
    }

    #[test]
    fn two_boxes_and_a_check_for_each_are_needed() {
        let front = "---\ntask_id: t\ntest_command: x\nmax_iterations: 3\nmax_wall_time_minutes: 3\nmax_tokens_total: 3\n";
        let one = format!("{front}---\n# Success criteria\n- [ ] M1.1 a\n  - verify: `x`\n");
        assert_eq!(errors(Dialect::RalphTaskMd, &one, &LintFacts::default()), ["too-few-criteria"]);
        let unchecked = format!("{one}- [ ] M1.2 b\n");
        assert_eq!(errors(Dialect::RalphTaskMd, &unchecked, &LintFacts::default()), ["missing-check"]);
        let global = unchecked.replacen("---\n#", "verify_commands: [x]\n---\n#", 1);
        assert!(errors(Dialect::RalphTaskMd, &global, &LintFacts::default()).is_empty());
    }

    #[test]
    fn numeric_goal_counts_as_one_box() {
        let front = "---\ntask_id: t\ntest_command: x\nmax_iterations: 3\nmax_wall_time_minutes: 3\nmax_tokens_total: 3\nmetric: {command: ./bench.sh, pattern: 'n ([0-9]+)', better: lower, target: 1}\n---\n# Success criteria\n";
        let one = format!("{front}- [ ] M1.1 a\n  - verify: `x`\n");
        let found = errors(Dialect::RalphTaskMd, &one, &LintFacts::default());
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(errors(Dialect::RalphTaskMd, front, &LintFacts::default()), ["too-few-criteria"]);
    }

    #[test]
    fn missing_budgets_can_be_filled_in_with_the_defaults() {
        for eol in ["\n", "\r\n"] {
            let text = "---\ntest_command: x\n---\n# Success criteria\n- [ ] a\n  - verify: `x`\n- [ ] b\n  - verify: `y`\n"
                .replace('\n', eol);
            let report = lint(
                Dialect::RalphTaskMd,
                &TaskTexts::new("ralph_task.md", text.as_str()),
                &LintFacts::default(),
            );
            let fixed = apply_fixes(&text, &report.diagnostics);
            let again = lint(
                Dialect::RalphTaskMd,
                &TaskTexts::new("ralph_task.md", fixed.as_str()),
                &LintFacts::default(),
            );
            assert!(again.diagnostics.is_empty(), "{fixed}\n{:?}", again.diagnostics);
            assert!(fixed.contains("max_cost_usd_estimate: 10") && fixed.contains("- [ ] M1.2 b"), "{fixed}");
            assert_eq!(fixed.matches('\n').count(), fixed.matches(eol).count());
        }
    }

    #[test]
    fn the_other_dialects_need_one_thing_to_check() {
        let none = LintFacts { verifiers: Some(Vec::new()), ..LintFacts::default() };
        let tests = LintFacts { verifiers: Some(vec!["tests".into()]), ..LintFacts::default() };
        let plan = r#"{"userStories":[{"id":"a","title":"t","acceptanceCriteria":["x"],"passes":false}]}"#;
        for (dialect, text) in
            [(Dialect::RalphJson, "{\"task\": \"t\"}"), (Dialect::Plan, plan), (Dialect::PromptMd, "# T")]
        {
            assert_eq!(errors(dialect, text, &none), ["no-check"], "{dialect:?}");
            assert!(errors(dialect, text, &tests).is_empty(), "{dialect:?}");
        }
        assert!(errors(Dialect::PromptMd, "# T", &LintFacts::default()).is_empty(), "not known, not judged");
    }

    #[test]
    fn missing_json_budgets_are_a_warning_with_a_fix() {
        let text = "{\"task\": \"t\", \"acceptance_criteria\": [{\"type\": \"pr_approved\"}]}";
        let files = |text: &str| TaskTexts::new("ralph.json", text);
        let report = lint(Dialect::RalphJson, &files(text), &LintFacts::default());
        let rules: Vec<&str> = report.diagnostics.iter().map(|d| d.rule).collect();
        assert_eq!(rules, ["missing-budget", "missing-budget", "needs-forge", "needs-pull-request"]);
        let fixed = apply_fixes(text, &report.diagnostics);
        let facts = LintFacts { has_forge: true, ..LintFacts::default() };
        let again = lint(Dialect::RalphJson, &files(&fixed), &facts);
        assert_eq!(again.diagnostics.len(), 1, "{:?}", again.diagnostics);
        let set = again.task.unwrap().settings;
        assert_eq!(
            (set.max_iterations, set.max_cost_usd_estimate.map(|c| c.dollars())),
            (Some(30), Some(10.0))
        );
    }

    #[test]
    fn plan_without_requirements_or_budget_is_a_warning() {
        let facts = LintFacts { budget_set: Some(false), ..LintFacts::default() };
        let files = TaskTexts::new("ralph/tasks.json", include_str!("../dialect/testdata/tasks.json"));
        let rules = |files: &TaskTexts| -> Vec<&str> {
            lint(Dialect::Plan, files, &facts).diagnostics.iter().map(|d| d.rule).collect()
        };
        assert_eq!(rules(&files), ["missing-budget", "missing-prd", "no-acceptance-criteria"]);
        assert_eq!(rules(&files.with("ralph/prd.md", "# R")), ["missing-budget", "no-acceptance-criteria"]);
    }
}
