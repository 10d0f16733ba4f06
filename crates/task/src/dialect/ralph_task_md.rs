//! `ralph_task.md`: YAML frontmatter for the settings, markdown with checkboxes for the definition of done.

use super::checkbox::{self, Checkbox, Checkboxes};
use super::diagnostic::{Findings, Lines, line_end};
use super::frontmatter::{self, Frontmatter, SplitError};
use super::json::unknown_key_fix;
use super::task_file::{Dialect, GitChoice, ModelChoice, PrChoice, Publish, SandboxChoice, TaskFile};
use super::{TaskTexts, names, template};
use crate::config::{CommandLine, REPEAT_MAX};
use crate::criterion::{Check, Criterion, Span, VerifyCommand};
use ralph_loop_protocol::display::text::{count, head, nearest, one_line};
use std::collections::BTreeMap;

/// Names of sandbox providers; `docker-sandbox` is an alias of `sbx`.
pub const PROVIDERS: &[&str] = &["local", "docker", "sbx", "docker-sandbox", "daytona", "e2b", "vercel"];

pub(crate) fn read(files: &TaskTexts, found: &mut Findings) -> Option<TaskFile> {
    let (file, text) = (files.name(), files.text());
    let lines = Lines::new(text);
    let split = match frontmatter::split(text) {
        Ok(split) => split,
        Err(error) => {
            no_frontmatter(error, text, found);
            return None;
        }
    };
    // The body is parsed even with invalid frontmatter, so that all findings appear at once.
    let boxes = checkbox::read(text, split.body.start);
    let front = frontmatter::read(text, &split, &lines, found);
    let body = text.get(split.body.clone()).unwrap_or_default();
    let criteria = criteria(&boxes, &lines, found);
    let (front, keys) = front?;
    let front = without_blanks(front);

    let title = boxes.title.as_deref().map_or("", without_prefix);
    let named = if title.is_empty() { front.task_id.as_deref().unwrap_or("task") } else { title };
    let goal = body.replace("\r\n", "\n").trim().to_owned();
    let title = one_line(named, 80);
    let mut task = TaskFile::new(Dialect::RalphTaskMd, file, &title, goal);
    task.criteria = criteria;
    task.rules = boxes.constraints;
    task.keys = keys;
    fill_in(&mut task, front, found);
    Some(task)
}

fn no_frontmatter(error: SplitError, text: &str, found: &mut Findings) {
    const RULE: &str = "missing-frontmatter";
    match error {
        SplitError::Missing => {
            let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
            let fix = "put `---`, the keys (`test_command`, budgets) and another `---` at the top";
            let finding = found.error(RULE, Span::START, "the file does not start with a frontmatter", fix);
            finding.set_edit(at..at, ["---", "max_iterations: 30", "---", ""].join(line_end(text)));
        }
        SplitError::Unclosed => {
            found.error(
                RULE,
                Span::START,
                "the frontmatter has no end",
                "put a line `---` after its last key",
            );
        }
    }
}

fn without_blanks(mut front: Frontmatter) -> Frontmatter {
    for value in [
        &mut front.repo_url,
        &mut front.base_branch,
        &mut front.sandbox_provider,
        &mut front.sandbox_image,
        &mut front.model_profile_default,
        &mut front.model_profile_fallback,
    ] {
        *value = names::non_blank(value.take());
    }
    front
}

fn without_prefix(title: &str) -> &str {
    match title.get(..5) {
        Some(head) if head.eq_ignore_ascii_case("task:") => title[5..].trim(),
        _ => title,
    }
}

fn criteria(boxes: &Checkboxes, lines: &Lines<'_>, found: &mut Findings) -> Vec<Criterion> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = Vec::with_capacity(boxes.boxes.len());
    for entry in &boxes.boxes {
        let place = lines.place(entry.mark - 1);
        if let Some(line) = first.insert(&entry.id, place.line) {
            found.error(
                "duplicate-id",
                place,
                format!("the id `{}` is used twice; the first is in line {line}", entry.id),
                "give each checkbox a unique id",
            );
        }
        if !entry.id_written {
            found
                .warning(
                    "missing-id",
                    place,
                    "the checkbox has no id",
                    format!("start its text with `{}`", entry.id),
                )
                .set_edit(entry.id_at..entry.id_at, id_text(entry));
        }
        if entry.text.is_empty() {
            found.error(
                "empty-criterion",
                place,
                format!("`{}` is empty", entry.id),
                "write what must be true, or remove the checkbox",
            );
        }
        let check = match entry.verify.as_slice() {
            [] => Check::Claimed,
            [(command, at)] => {
                let place = lines.place(*at);
                let command = CommandLine::Shell(command.clone());
                check_command(&command, "verify:", place, found);
                Check::Command { command }
            }
            [(command, _), (_, at), ..] => {
                found.error(
                    "ambiguous-check",
                    lines.place(*at),
                    format!("`{}` has more than one `verify:`", entry.id),
                    "join the commands with `&&` in one `verify:`",
                );
                Check::Command { command: CommandLine::Shell(command.clone()) }
            }
        };
        out.push(Criterion {
            id: entry.id.clone(),
            text: entry.text.clone(),
            milestone: entry.milestone.clone(),
            check,
            ticked: entry.ticked,
            place,
        });
    }
    misread(boxes, lines, found);
    out
}

fn id_text(entry: &Checkbox) -> String {
    // Brackets with nothing after them need a space, or they are no longer a box.
    let before = if entry.id_at == entry.mark + 2 { " " } else { "" };
    let after = if entry.text.is_empty() { "" } else { " " };
    format!("{before}{}{after}", entry.id)
}

/// Text that may be meant as a criterion or a check but isn't parsed as one.
fn misread(boxes: &Checkboxes, lines: &Lines<'_>, found: &mut Findings) {
    if !boxes.has_section {
        let hint = match boxes.outside.len() {
            0 => String::new(),
            boxes => format!("; {} elsewhere do not count", count(boxes, "checkbox").replace("xs", "xes")),
        };
        found.error(
            "missing-criteria-section",
            Span::START,
            format!("no heading `Success criteria`{hint}"),
            "put the checkboxes under a heading `## Success criteria`",
        );
    } else {
        for at in &boxes.outside {
            found.warning(
                "checkbox-outside",
                lines.place(*at),
                "this checkbox is not under the success criteria: it does not count",
                "move it there, or make it a plain list item",
            );
        }
    }
    for range in &boxes.broken {
        let spaced = lines.text().get(range.end..).is_some_and(|rest| rest.starts_with([' ', '\t']));
        let finding = found.error(
            "not-a-checkbox",
            lines.place(range.start),
            "this looks like a checkbox, but it is none",
            "write `- [ ] text` with a space in the brackets and one after them",
        );
        finding.set_edit(range.clone(), if spaced { "[ ]" } else { "[ ] " });
    }
    for at in &boxes.ambiguous {
        found.error(
            "ambiguous-check",
            lines.place(*at),
            "this `verify:` names more than one command",
            "put one command between backticks; join several with `&&`",
        );
    }
    for at in &boxes.inline_verify {
        found.warning(
            "verify-in-text",
            lines.place(*at),
            "`verify:` inside the text of a checkbox is not read as a check",
            "put it in a list item below: `  - verify: ` and the command in backticks",
        );
    }
}

/// Refuses a command that can't be run.
pub(crate) fn check_command(command: &CommandLine, key: &str, place: Span, found: &mut Findings) {
    let problem = match command {
        CommandLine::Shell(line) if line.trim().is_empty() => "is empty",
        CommandLine::Argv(argv) if argv.first().is_none_or(|first| first.trim().is_empty()) => "is empty",
        _ if command.argv().iter().any(|arg| arg.contains('\0')) => "has a NUL byte",
        _ => return,
    };
    found.error(
        "bad-command",
        place,
        format!("the command of `{key}` {problem}"),
        "name a command, for example `npm test`",
    );
}

/// A command that may also have to print something.
pub(crate) fn check_verify(verify: &VerifyCommand, key: &str, place: Span, found: &mut Findings) {
    check_command(verify.command(), key, place, found);
    if let Err(problem) = verify.output() {
        let fix =
            format!("for example `{{command: {:?}, contains: \"3 items\"}}`", verify.command().display());
        found.error("bad-output", place, problem, fix);
    }
}

fn fill_in(task: &mut TaskFile, front: Frontmatter, found: &mut Findings) {
    let at = |key: &str, keys: &BTreeMap<String, Span>| keys.get(key).copied().unwrap_or_default();
    values(&front, &task.keys, found);

    if let Some(id) = front.task_id.as_deref().filter(|id| names::is_usable_id(id)) {
        task.task_id = id.to_owned();
    }
    if let Some(slug) = front.target_branch_slug.as_deref().filter(|slug| !slug.trim().is_empty()) {
        task.slug = slug.trim().to_owned();
    }
    let branch = match front.target_branch_prefix.as_deref().map(str::trim).filter(|p| !p.is_empty()) {
        Some(prefix) if prefix.ends_with(['/', '-', '_']) => format!("{prefix}{}", task.slug),
        Some(prefix) => format!("{prefix}/{}", task.slug),
        None => names::branch(&task.task_id, &task.slug),
    };
    if let Some(problem) = names::branch_problem(&branch) {
        let key =
            if front.target_branch_slug.is_some() { "target_branch_slug" } else { "target_branch_prefix" };
        found.error(
            "bad-branch",
            at(key, &task.keys),
            format!("invalid branch name `{branch}`: {problem}"),
            "change `target_branch_prefix` or `target_branch_slug`",
        );
    }
    task.git = GitChoice {
        repo_url: front.repo_url,
        base_branch: front.base_branch,
        branch: Some(branch),
        create_pr: Some(true),
        publish: Some(Publish::Pr),
        ..GitChoice::default()
    };
    let pr = front.pr.unwrap_or_default();
    task.pr = PrChoice {
        draft: pr.draft,
        labels: pr.labels.unwrap_or_default(),
        title_template: pr.title_template,
        body_template: pr.body_template,
    };
    let size = front.sandbox_resources.unwrap_or_default();
    task.sandbox = SandboxChoice {
        provider: front.sandbox_provider.map(|p| if p == "docker-sandbox" { "sbx".into() } else { p }),
        image: front.sandbox_image,
        vcpu: size.vcpu,
        memory_gib: size.memory_gib,
        disk_gib: size.disk_gib,
    };
    task.model = ModelChoice {
        default_profile: front.model_profile_default,
        fallback_profile: front.model_profile_fallback,
    };
    task.settings.max_iterations = front.max_iterations;
    task.settings.max_wall_time_minutes = front.max_wall_time_minutes;
    task.settings.max_cost_usd_estimate = front.max_cost_usd_estimate;
    task.settings.max_tokens_total = front.max_tokens_total;
    task.settings.max_consecutive_gutter = front.max_consecutive_gutter;
    task.settings.tests = front.tests;
    task.settings.mode = front.mode;
    task.settings.require_proof = front.require_proof;
    task.settings.keep_best = front.keep_best;
    task.metric = front.metric;
    task.settings.completion = Some(crate::config::Completion::Checks);
    task.test_command = front.test_command;
    task.global_verify = front.verify_commands.unwrap_or_default();
}

/// Values of the right type that are invalid.
fn values(front: &Frontmatter, keys: &BTreeMap<String, Span>, found: &mut Findings) {
    let at = |key: &str| keys.get(key).copied().unwrap_or_default();
    let mut refuse = |rule, key: &str, message: String, fix: String| {
        found.error(rule, at(key), message, fix);
    };
    if let Some(id) = front.task_id.as_deref().filter(|id| !names::is_usable_id(id)) {
        refuse(
            "bad-task-id",
            "task_id",
            format!("the task id `{}` is not usable", one_line(id, 60)),
            "use letters, digits, `-`, `_` and `.`: it becomes part of a branch name".into(),
        );
    }
    if let Some(name) = front.sandbox_provider.as_deref().filter(|name| !PROVIDERS.contains(name)) {
        let fix = match nearest(head(name, 64), PROVIDERS.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("choose one of {}", PROVIDERS.join(", ")),
        };
        refuse("bad-provider", "sandbox_provider", format!("unknown sandbox provider `{name}`"), fix);
    }
    if let Some(problem) = front.repo_url.as_deref().and_then(names::url_problem) {
        let message = format!("can't clone from `repo_url`: {problem}");
        refuse("bad-url", "repo_url", message, "name the repository as `git clone` takes it".into());
    }
    let pr = front.pr.as_ref();
    for text in pr.iter().flat_map(|pr| [&pr.title_template, &pr.body_template]).flatten() {
        for (_, name) in template::unknown_names(text) {
            let fix = unknown_key_fix(&name, template::NAMES.iter().copied());
            refuse("unknown-name", "pr", format!("no template knows `{{{{{name}}}}}`"), fix);
        }
    }
    let size = front.sandbox_resources.unwrap_or_default();
    let positive = [
        ("max_iterations", front.max_iterations.map(f64::from)),
        ("max_wall_time_minutes", front.max_wall_time_minutes),
        ("max_tokens_total", front.max_tokens_total.map(|n| n as f64)),
        ("max_consecutive_gutter", front.max_consecutive_gutter.map(f64::from)),
        ("sandbox_resources", size.vcpu),
        ("sandbox_resources", size.memory_gib),
        ("sandbox_resources", size.disk_gib),
    ];
    for (key, value) in positive {
        if value.is_some_and(|v| !v.is_finite() || v <= 0.0) {
            refuse(
                "bad-number",
                key,
                format!("`{key}` must be more than 0"),
                "give a positive number".into(),
            );
        }
    }
    if let Some(branch) = &front.base_branch
        && let Some(problem) = names::branch_problem(branch)
    {
        refuse(
            "bad-branch",
            "base_branch",
            format!("invalid branch name `{}`: {problem}", one_line(branch, 60)),
            "name a branch of the repository".into(),
        );
    }
    if let Some(command) = &front.test_command {
        check_command(command, "test_command", at("test_command"), found);
    }
    for command in front.verify_commands.iter().flatten() {
        check_verify(command, "verify_commands", at("verify_commands"), found);
    }
    metric(front, keys, found);
}

/// A measurement that can't be made, or has no direction.
fn metric(front: &Frontmatter, keys: &BTreeMap<String, Span>, found: &mut Findings) {
    let at = |key: &str| keys.get(key).copied().unwrap_or_default();
    let mut refuse = |key: &str, message: &str, fix: &str| {
        found.error("bad-metric", at(key), message, fix);
    };
    let Some(metric) = &front.metric else {
        if front.keep_best == Some(true) {
            refuse(
                "keep_best",
                "`keep_best` needs a `metric`",
                "name the number: `metric: {command: ./bench.sh, pattern: 'p99 ([0-9.]+)', better: lower, target: 80}`",
            );
        }
        return;
    };
    if !metric.target.is_finite() {
        refuse("metric", "the `target` of the `metric` isn't a number", "set the number to reach");
    }
    if !(1..=REPEAT_MAX).contains(&metric.repeat) {
        refuse(
            "metric",
            &format!("`repeat` of the `metric` must be between 1 and {REPEAT_MAX}"),
            "5 is enough to know the noise of most measurements",
        );
    }
    check_command(&metric.command, "metric", at("metric"), found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{Diagnostic, Dialect, parse};

    fn rules(text: &str) -> Vec<&'static str> {
        let mut found = Findings::of("ralph_task.md");
        read(&TaskTexts::new("ralph_task.md", text), &mut found);
        found.all.sort_by(Diagnostic::order);
        found.all.into_iter().map(|d| d.rule).collect()
    }

    fn with_front(front: &str) -> String {
        format!("---\n{front}\n---\n# Task: T\n## Success criteria\n- [ ] M1.1 a\n")
    }

    #[test]
    fn a_whole_task_is_read() {
        let text = include_str!("testdata/ralph_task.md");
        let task = parse(Dialect::RalphTaskMd, &TaskTexts::new("ralph_task.md", text)).unwrap();
        assert_eq!(task.title, "Rate-limit the login form");
        assert_eq!(task.git.branch.as_deref(), Some("ralph/login-7/limit"));
        assert_eq!(task.git.publish, Some(Publish::Pr));
        assert_eq!(task.criteria.len(), 3);
        assert_eq!(task.criteria[0].check.describe(), "`pytest tests/test_login.py -q` exits with 0");
        assert_eq!(task.criteria[2].check, Check::Claimed);
        assert_eq!(task.settings.max_iterations, Some(20));
        assert_eq!(task.settings.protected_paths.as_deref().unwrap(), ["ralph_task.md"]);
        assert_eq!(task.sandbox.provider.as_deref(), Some("sbx"));
        assert_eq!(
            task.verifiers().iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
            ["tests", "verify-2"]
        );
        assert_eq!(task.rules, ["Do not touch the session store."]);
        assert!(task.goal.starts_with("# Task:") && !task.goal.contains("max_iterations"));
        assert_eq!(task.keys["test_command"].line, 16);
    }

    #[test]
    fn values_that_cannot_hold_are_refused() {
        for (front, rule) in [
            ("task_id: a/b", "bad-task-id"),
            ("sandbox_provider: daytna", "bad-provider"),
            ("max_iterations: 0", "bad-number"),
            ("max_wall_time_minutes: -1", "bad-number"),
            ("sandbox_resources: {vcpu: 0}", "bad-number"),
            ("target_branch_slug: a b", "bad-branch"),
            ("base_branch: -x", "bad-branch"),
            ("repo_url: ext::sh", "bad-url"),
            ("pr: {title_template: '{{sumary}}'}", "unknown-name"),
            ("test_command: ''", "bad-command"),
            ("verify_commands: [[]]", "bad-command"),
        ] {
            assert_eq!(rules(&with_front(front)), [rule], "{front}");
        }
        assert!(rules(&with_front("task_id: x\nbase_branch: ''\nrepo_url: ' '")).is_empty());
        assert!(rules(&with_front("base_branch: ralph/other/thing")).is_empty(), "stacked on another run");
    }

    #[test]
    fn ambiguous_checks_are_refused() {
        let body = |lines: &str| format!("---\n---\n# Success criteria\n{lines}");
        assert_eq!(rules(&body("- [ ] M1.1 a\n- [ ] M1.1 b\n")), ["duplicate-id"]);
        assert_eq!(rules(&body("- [ ] a\n")), ["missing-id"]);
        assert_eq!(rules(&body("- [ ] M1.1\n")), ["empty-criterion"]);
        assert_eq!(rules(&body("- [ ] M1.1 a\n  - verify: `x`\n  - verify: `y`\n")), ["ambiguous-check"]);
        assert_eq!(rules(&body("- [ ] M1.1 a\n  - verify:\n")), ["bad-command"]);
        assert_eq!(rules(&body("- [] M1.1 a\n")), ["not-a-checkbox"]);
        assert_eq!(rules(&body("- [ ] M1.1 a, verify: `x`\n")), ["verify-in-text"]);
        assert_eq!(rules("---\n---\n# X\n- [ ] a\n"), ["missing-criteria-section"]);
        assert_eq!(rules("# X\n"), ["missing-frontmatter"]);
        assert_eq!(rules("---\na: b\n"), ["missing-frontmatter"]);
    }

    #[test]
    fn wrong_frontmatter_does_not_hide_what_is_wrong_below() {
        let text = "---\nzzz: 1\n---\n# Success criteria\n- [ ] M1.1 a\n- [ ] M1.1 b\n";
        assert_eq!(rules(text), ["unknown-key", "duplicate-id"]);
    }
}
