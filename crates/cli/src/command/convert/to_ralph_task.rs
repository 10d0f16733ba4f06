//! A task as `ralph_task.md`.

use super::ConvertedFile;
use super::draft::TaskDraft;
use crate::task_files::NO_TESTS;
use ralph_domain::budget::Budgets;
use ralph_domain::config::{Better, CommandLine, join_argv};
use ralph_domain::criterion::{Check, Criterion};
use ralph_domain::dialect::checkbox::is_id;
use ralph_domain::dialect::template;
use ralph_domain::dialect::{MetricSection, Publish};
use ralph_domain::text::one_line;
use std::collections::BTreeSet;
use std::path::Path;

/// Renders the file.
pub fn write(draft: &mut TaskDraft, to: &Path) -> ConvertedFile {
    let none = "`ralph_task.md` has no such key";
    let git = draft.task.git.clone();
    draft.lose_if("working_dir", git.working_dir, "`ralph_task.md` works on the whole repository");
    draft.lose_if("commit_author", git.commit_author, "set it in `.ralph/config.json`");
    draft.lose_if("commit_email", git.commit_email, "set it in `.ralph/config.json`");
    draft.lose_if(
        "setup_commands",
        draft.task.settings.setup_commands.clone(),
        "set it in `.ralph/config.json`",
    );
    draft.lose_if(
        "protected_paths",
        draft.own_protected_paths().first().cloned(),
        "set it in `.ralph/config.json`",
    );
    draft.lose_if("context_files", draft.task.context_files.first().cloned(), none);
    if git.publish == Some(Publish::None) && git.create_pr == Some(false) {
        draft.lose("create_pr", "a `ralph_task.md` opens a pull request");
    }
    let boxes = boxes(draft);
    let front = frontmatter(draft);
    let mut body = format!("# Task: {}\n", draft.task.title);
    if !draft.text.is_empty() {
        let text = if draft.text.starts_with('#') {
            draft.text.clone()
        } else {
            format!("## Context\n\n{}", draft.text)
        };
        body.push_str(&format!("\n{text}\n"));
    }
    if !draft.task.rules.is_empty() {
        let rules: Vec<String> =
            draft.task.rules.iter().map(|rule| format!("- {}", one_line(rule, 1_000))).collect();
        body.push_str(&format!("\n## Constraints\n\n{}\n", rules.join("\n")));
    }
    body.push_str(&format!("\n## Success criteria\n{boxes}"));
    ConvertedFile { files: vec![(to.to_owned(), format!("---\n{front}---\n\n{body}"))], config: None }
}

fn frontmatter(draft: &mut TaskDraft) -> String {
    let mut out = String::new();
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            out.push_str(&format!("{key}: {value}\n"));
        }
    };
    let task = &draft.task;
    let filled = task.clone().filled(&task.vars());
    line("task_id", Some(quoted(&task.task_id)));
    line("repo_url", task.git.repo_url.as_deref().map(quoted));
    line("base_branch", task.git.base_branch.as_deref().map(quoted));
    let branch = filled.git.branch.unwrap_or_default();
    let open = template::open_names(&branch);
    if open.is_empty() {
        let (prefix, slug) = branch.rsplit_once('/').unwrap_or(("", &branch));
        // Without a prefix of its own a branch would get the usual one.
        line("target_branch_prefix", (!prefix.is_empty()).then(|| quoted(&format!("{prefix}/"))));
        line("target_branch_slug", (!slug.is_empty()).then(|| quoted(slug)));
    }
    let defaults = Budgets::default();
    let settings = &task.settings;
    let iterations = settings.max_iterations.unwrap_or(defaults.max_iterations);
    line("max_iterations", Some(iterations.to_string()));
    let minutes = settings.max_wall_time_minutes.unwrap_or(defaults.max_wall_time.as_secs_f64() / 60.0);
    line("max_wall_time_minutes", Some(minutes.to_string()));
    let cost = match (settings.max_cost_usd_estimate, settings.max_tokens_total) {
        (None, None) => Some(defaults.max_cost),
        (cost, _) => cost,
    };
    line("max_cost_usd_estimate", cost.map(|cost| cost.dollars().to_string()));
    line("max_tokens_total", settings.max_tokens_total.map(|n| n.to_string()));
    line("max_consecutive_gutter", settings.max_consecutive_gutter.map(|n| n.to_string()));
    let measures = task.metric.as_ref().map(|metric| &metric.command);
    let (measured, plain): (Vec<_>, Vec<_>) =
        draft.commands().into_iter().partition(|command| Some(command) == measures);
    let commands = if plain.is_empty() { measured } else { plain };
    let first = commands.first().cloned().or_else(|| {
        draft.task.criteria.iter().find_map(|c| match &c.check {
            Check::Command { command } => Some(command.clone()),
            _ => None,
        })
    });
    line("test_command", Some(first.as_ref().map_or_else(|| quoted(NO_TESTS), yaml)));
    // A box without a check of its own is judged by the commands of the whole task, so they must be named.
    let is_claimed = task.criteria.iter().any(|c| c.check == Check::Claimed);
    let skipped = if is_claimed { 0 } else { 1 };
    if commands.len() > skipped {
        let rest: Vec<String> = commands.iter().skip(skipped).map(|c| format!("\n  - {}", yaml(c))).collect();
        line("verify_commands", Some(rest.concat()));
    }
    line("metric", task.metric.as_ref().map(metric));
    line("keep_best", task.settings.keep_best.filter(|keep| *keep).map(|keep| keep.to_string()));
    line("tests", task.settings.tests.map(|tests| tests.as_str().to_owned()));
    line("require_proof", task.settings.require_proof.map(|level| level.as_str().to_owned()));
    line("pr", pr(draft));
    if first.is_none() {
        draft.lose("test_command", "the task names none; put yours where the placeholder stands");
    }
    if !open.is_empty() {
        draft.lose("branch", format!("`{branch}` has names that are not known; the usual branch is taken"));
    }
    out.replace(": \n", ":\n")
}

/// The number that is the goal, as lines below its key.
fn metric(metric: &MetricSection) -> String {
    let better = if metric.better == Better::Lower { "lower" } else { "higher" };
    format!(
        "\n  command: {}\n  pattern: {}\n  better: {better}\n  target: {}\n  repeat: {}",
        yaml(&metric.command),
        quoted(metric.pattern.as_str()),
        metric.target,
        metric.repeat
    )
}

fn pr(draft: &TaskDraft) -> Option<String> {
    let pr = &draft.task.pr;
    let title = pr.title_template.as_deref().map(|t| format!("\n  title_template: {}", quoted(t)));
    let body = pr.body_template.as_deref().map(|t| format!("\n  body_template: {}", quoted(t)));
    let text: String = title.into_iter().chain(body).collect();
    (!text.is_empty()).then_some(text)
}

fn boxes(draft: &mut TaskDraft) -> String {
    let mut taken: BTreeSet<String> = draft.task.criteria.iter().map(|c| c.id.clone()).collect();
    let mut renamed = Vec::new();
    let mut out = String::new();
    for criterion in draft.task.criteria.clone() {
        if criterion.check.needs_forge() {
            draft.lose(criterion.id, "a checkbox cannot ask the code host; `ralph.json` can");
            continue;
        }
        let id = if is_id(&criterion.id) { criterion.id.clone() } else { free_id(&mut taken) };
        if id != criterion.id {
            renamed.push(format!("{} is {id}", criterion.id));
        }
        let mark = if criterion.ticked { "x" } else { " " };
        let text = if criterion.text.trim().is_empty() {
            criterion.check.describe()
        } else {
            criterion.text.clone()
        };
        out.push_str(&format!("\n- [{mark}] {id} {}\n", one_line(&text, 4_000)));
        if let Some(story) = draft.task.stories.iter().find(|s| s.id == criterion.id) {
            let said = std::iter::once(&story.description).chain(&story.acceptance_criteria);
            for line in said.filter(|line| !line.trim().is_empty()) {
                out.push_str(&format!("  - {}\n", one_line(line, 1_000)));
            }
        }
        if let Some(command) = command(&criterion, draft) {
            let fence = if command.contains('`') { "``" } else { "`" };
            out.push_str(&format!("  - verify: {fence}{command}{fence}\n"));
        }
    }
    // A dialect without criteria of its own still has its commands.
    if draft.task.criteria.is_empty() {
        for command in draft.commands() {
            let line = command.display();
            out.push_str(&format!("\n- [ ] {} `{line}` passes\n  - verify: `{line}`\n", free_id(&mut taken)));
        }
        draft.lose("success criteria", "the task has none of its own: split what must be true into boxes");
    }
    if !renamed.is_empty() {
        draft.lose("ids", format!("checkboxes have ids like `M1.1`: {}", renamed.join(", ")));
    }
    out
}

fn free_id(taken: &mut BTreeSet<String>) -> String {
    let id = (1..).map(|n| format!("M1.{n}")).find(|id| !taken.contains(id)).unwrap_or_default();
    taken.insert(id.clone());
    id
}

/// The check as a shell command.
fn command(criterion: &Criterion, draft: &mut TaskDraft) -> Option<String> {
    let quote = |text: &str| join_argv(&[text.to_owned()]);
    let line = match &criterion.check {
        Check::Command { command } => command.display(),
        Check::FileExists { path } => format!("test -e {}", quote(path)),
        Check::FileContains { path, pattern } => {
            format!("{} {}", grep(&criterion.id, pattern.as_str(), draft)?, quote(path))
        }
        Check::CommandOutput { command, pattern } => {
            let grep = grep(&criterion.id, pattern.as_str(), draft)?;
            format!("out=$({}) && printf '%s\\n' \"$out\" | {grep}", command.display())
        }
        Check::PrChecksPass | Check::PrApproved | Check::Claimed => return None,
    };
    if line.contains('\n') {
        draft.lose(&criterion.id, "its command has several lines, which a `verify:` cannot hold");
        return None;
    }
    Some(line)
}

/// A search for a pattern, as far as `grep -E` knows its parts.
fn grep(id: &str, pattern: &str, draft: &mut TaskDraft) -> Option<String> {
    // It looks at single lines anyway.
    let bare = pattern.strip_prefix("(?m)").unwrap_or(pattern);
    let (flags, bare) = match bare.strip_prefix("(?i)") {
        Some(rest) => ("-Eqi", rest),
        None => ("-Eq", bare),
    };
    let bare = bare.replace("\\d", "[0-9]");
    if bare.contains("(?") || bare.contains("\\n") {
        draft.lose(id, format!("`grep` cannot look for /{pattern}/: write a check of your own"));
        return None;
    }
    draft.lose(id, "is checked with `grep -E` now, line by line; patterns differ in details");
    Some(format!("grep {flags} -- {}", join_argv(&[bare])))
}

fn yaml(command: &CommandLine) -> String {
    match command {
        CommandLine::Shell(line) => quoted(line),
        CommandLine::Argv(argv) => serde_json::to_string(argv).unwrap_or_default(),
    }
}

/// A text as a JSON string; YAML reads it the same way.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default()
}
