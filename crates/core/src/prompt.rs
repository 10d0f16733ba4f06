//! The prompt of a session: fixed order, bounded, deterministic. What never changes stands first, then what changes
//! slowly, then what changes each time, so that providers can cache the beginning.

use ralph_domain::config::Completion;
use ralph_domain::dialect::Dialect;
use ralph_domain::dialect::template::{self, Vars};
use ralph_domain::state::RunState;
use ralph_domain::text::{count, duration, head, tail, tail_lines};
use ralph_journal::layout::{RalphDir, RunDir};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

const TEMPLATE: &str = include_str!("../templates/prompt_md.md");
const BOXES: &str = "- The engine ticks a box of the task file when its check passes. You may tick a box that has no \
                      `verify:` of its own when it is done; change nothing else in that file.\n";
const STORIES: &str = "- Work on one story: the first by priority whose `dependsOn` all pass. When it is done, set its \
                        `passes` to true and say in its `notes` how it was checked. You may add, split and reorder \
                        stories; never remove acceptance criteria or change `verifyCommands`.\n";
const CONTEXT_MAX: usize = 50 * 1024;
const TREE_MAX: usize = 200;
const TASK_MAX: usize = 96 * 1024;
const PART_MAX: usize = 12 * 1024;
const ERROR_LINES: usize = 200;
const CHECK_MAX: usize = 6 * 1024;
const FILES_MAX: usize = 40;

/// What the prompt takes from files, read once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Files {
    /// Files that the task wants shown, and the list of files of its working folder.
    pub context: Vec<(String, String)>,
    /// `.ralph/guardrails.md`.
    pub guardrails: String,
    /// `.ralph/progress.md`.
    pub progress: String,
    /// `.ralph/notes.md`.
    pub notes: String,
    /// The end of `.ralph/errors.log`.
    pub errors: String,
    /// The end of each failing check's log: name, why, log path, text.
    pub failing: Vec<(String, String, String, String)>,
}

impl Files {
    /// Reads them; what is not there is empty.
    pub fn read(dir: &RalphDir, run: &RunDir, state: &RunState) -> Self {
        let text = |name: &str| read_bounded(&dir.join(name), PART_MAX as u64 * 2);
        let failing = state
            .checks
            .values()
            .filter(|r| !r.passed)
            .map(|r| {
                let output = crate::step::judge::read_tail(&run.path().join(&r.log), CHECK_MAX as u64);
                (r.name.clone(), r.why.clone().unwrap_or_default(), r.log.clone(), output)
            })
            .collect();
        Self {
            context: context(state),
            guardrails: text("guardrails.md"),
            progress: text("progress.md"),
            notes: text("notes.md"),
            errors: crate::step::judge::read_tail(&dir.errors_log(), PART_MAX as u64 * 2),
            failing,
        }
    }
}

/// Context files, together below 50 kB, and what is in the working folder.
fn context(state: &RunState) -> Vec<(String, String)> {
    let task = &state.spec.task;
    let top = &state.spec.workspace;
    let mut left = CONTEXT_MAX;
    let mut shown = Vec::new();
    for name in &task.context_files {
        let text = read_bounded(&top.join(name), left as u64);
        left = left.saturating_sub(text.len());
        let text =
            if left == 0 { format!("{text}\n\n[cut here; the whole text is in `{name}`]") } else { text };
        shown.push((name.clone(), text));
        if left == 0 {
            break;
        }
    }
    if let Some(folder) = &task.working_dir {
        let mut names = Vec::new();
        tree(&top.join(folder), "", &mut names);
        shown.push((format!("{folder}/"), names.join("\n")));
    }
    shown
}

/// Names of files below a folder, sorted, folders before what is in them; bounded.
fn tree(folder: &Path, below: &str, names: &mut Vec<String>) {
    let Ok(listing) = std::fs::read_dir(folder) else { return };
    let mut found: Vec<(String, bool)> = listing
        .flatten()
        .filter_map(|e| Some((e.file_name().into_string().ok()?, e.file_type().is_ok_and(|t| t.is_dir()))))
        .filter(|(name, _)| !name.starts_with('.') && name != "node_modules" && name != "target")
        .collect();
    found.sort();
    for (name, is_dir) in found {
        if names.len() >= TREE_MAX {
            return;
        }
        names.push(format!("{below}{name}{}", if is_dir { "/" } else { "" }));
        if is_dir {
            tree(&folder.join(&name), &format!("{below}{name}/"), names);
        }
    }
}

fn read_bounded(path: &Path, max: u64) -> String {
    use std::io::Read as _;
    let Ok(file) = std::fs::File::open(path) else { return String::new() };
    let mut bytes = Vec::new();
    let _ = file.take(max).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The prompt for the next session. Same state and files, same bytes.
pub fn assemble(state: &RunState, files: &Files) -> String {
    let mut out = String::with_capacity(16 * 1024);
    rules(&mut out, state);
    let task = task_text(state);
    section(
        &mut out,
        &format!("Task (`{}`)", state.spec.task.source),
        &cut_head(&task, TASK_MAX, &state.spec.task.source),
    );
    for (name, text) in &files.context {
        section(&mut out, &format!("File `{name}`"), text);
    }
    section(&mut out, "Guardrails", &cut_tail(untitled(&files.guardrails), PART_MAX, ".ralph/guardrails.md"));
    section(
        &mut out,
        "Progress so far",
        &cut_head(untitled(&files.progress), PART_MAX, ".ralph/progress.md"),
    );
    section(&mut out, "Notes from people", &cut_tail(untitled(&files.notes), PART_MAX, ".ralph/notes.md"));
    section(&mut out, "Recent errors", &recent_errors(&files.errors));
    section(&mut out, "What has changed", &changes(state));
    section(&mut out, "Checks", &checks(state, files));
    section(&mut out, "Where the run stands", &standing(state));
    if !state.nudges.is_empty() {
        section(&mut out, "Read this first", &state.nudges.join("\n\n"));
    }
    out
}

/// Where sessions leave word for each other; a plan has a file of its own.
fn progress_file(state: &RunState) -> String {
    let task = &state.spec.task;
    match task.dialect {
        Dialect::Plan => Path::new(&task.source).with_file_name("progress.txt").display().to_string(),
        _ => ".ralph/progress.md".into(),
    }
}

/// The task in its dialect's own words; a plan's prompt may ask for the iteration's number.
fn task_text(state: &RunState) -> std::borrow::Cow<'_, str> {
    let text = &state.spec.task.text;
    if state.spec.task.dialect != Dialect::Plan {
        return text.into();
    }
    let vars = Vars::new()
        .with("iteration", (state.iterations + 1).to_string())
        .with("max_iterations", state.spec.settings.budgets.max_iterations.to_string())
        .with("run_id", state.spec.run_id.as_str())
        .with("branch", state.spec.branch.as_deref().unwrap_or_default());
    template::fill(text, &vars).into()
}

fn rules(out: &mut String, state: &RunState) {
    let settings = &state.spec.settings;
    let checks: Vec<String> = settings.required().map(|v| format!("`{}`", v.command_line())).collect();
    let mut protected: Vec<String> = settings.protected_paths.iter().map(|p| format!("`{p}`")).collect();
    protected.push(format!("`{}`", state.spec.task.source));
    protected.push("CI files".into());
    protected.push("scripts that the checks run".into());
    let mut text = TEMPLATE
        .replace("{{checks}}", &checks.join(", "))
        .replace("{{promise}}", &settings.completion_promise)
        .replace("{{progress}}", &progress_file(state))
        .replace(
            "{{git}}",
            match settings.allow_agent_commits {
                true => "do not stash, reset or switch branches; you may commit on the current branch",
                false => "do not commit, stash, reset or switch branches",
            },
        )
        .replace("{{protected}}", &protected.join(", "));
    for rule in &state.spec.task.rules {
        let _ = writeln!(text, "- {}", rule.trim());
    }
    if let Some(folder) = &state.spec.task.working_dir {
        let _ = writeln!(text, "- Work in `{folder}`; leave the rest of the repository alone.");
    }
    text.push_str(match state.spec.task.dialect {
        Dialect::RalphTaskMd => BOXES,
        Dialect::Plan => STORIES,
        Dialect::RalphJson | Dialect::PromptMd => "",
    });
    if settings.completion == Completion::Checks {
        text.push_str("\nThe run ends when the checks pass; no promise is needed.\n");
    }
    out.push_str(&text);
}

fn section(out: &mut String, title: &str, body: &str) {
    let body = body.trim();
    if !body.is_empty() {
        let _ = write!(out, "\n# {title}\n\n{body}\n");
    }
}

fn changes(state: &RunState) -> String {
    let mut text = String::new();
    if let Some(baseline) = &state.baseline {
        let branch = state.spec.branch.as_deref().or(baseline.branch.as_deref()).unwrap_or("a detached HEAD");
        let _ = writeln!(text, "Branch {branch}, started from commit {}.", baseline.head.short());
        if baseline.dirty_total > 0 {
            let _ = writeln!(
                text,
                "{} had changes of the user before the run; leave those alone unless the task needs them.",
                count(baseline.dirty_total, "file")
            );
        }
    }
    if state.touched.is_empty() {
        text.push_str("Nothing was changed in this run so far.\n");
    } else {
        let _ = writeln!(text, "Files changed in this run ({}):", state.touched.len());
        for path in state.touched.iter().take(FILES_MAX) {
            let _ = writeln!(text, "- {path}");
        }
        if state.touched.len() > FILES_MAX {
            let _ = writeln!(text, "- … and {} more (`git status`)", state.touched.len() - FILES_MAX);
        }
    }
    if let Some(last) = state.history.back() {
        let _ = writeln!(
            text,
            "The last session ({}) changed {}, +{} −{}; judged: {}. The whole diff: `.ralph/iterations/{}/git_diff.patch`.",
            last.agent,
            count(last.files, "file"),
            last.added,
            last.removed,
            last.verdict.words(),
            last.iteration
        );
        if !last.message.is_empty() {
            let _ = writeln!(text, "It said: {}", last.message);
        }
    }
    text
}

fn checks(state: &RunState, files: &Files) -> String {
    let mut text = String::new();
    for verifier in &state.spec.settings.verifiers {
        let required = if state.spec.settings.required_verifiers.contains(&verifier.name) {
            "required"
        } else {
            "optional"
        };
        let result = match state.checks.get(&verifier.name) {
            None => "not run yet".to_owned(),
            Some(r) => {
                let age = if Some(&r.tree) == state.tree.as_ref() {
                    ""
                } else {
                    " (on an earlier state of the files)"
                };
                let tests = r
                    .tests
                    .map_or_else(String::new, |t| format!(", {} passed, {} failed", t.passed, t.failed));
                match (&r.why, r.passed) {
                    (_, true) => format!("passed{tests}{age}"),
                    (Some(why), false) => format!("FAILED: {why}{tests}{age}"),
                    (None, false) => format!("FAILED{tests}{age}"),
                }
            }
        };
        let _ = writeln!(text, "- {} ({required}) `{}`: {result}", verifier.name, verifier.command_line());
    }
    if let Some(last) = state.history.back()
        && last.verdict == ralph_domain::event::Verdict::ProtectedChanged
    {
        text.push_str("\nNOT DONE: protected paths were changed. Bring them back to what they were at the start (`git diff` shows the difference).\n");
    }
    if let Some((_, failed)) = &state.disproved {
        let place =
            if state.spec.proves_clean() { "in a clean checkout of the recorded commit" } else { "in place" };
        let _ = writeln!(text, "\nNOT DONE: the final check {place} failed:");
        for line in failed.iter().take(20) {
            let _ = writeln!(text, "- {line}");
        }
        if state.spec.proves_clean() {
            text.push_str("Files that git ignores or that were never recorded do not exist there.\n");
        }
    }
    for (name, why, log, output) in &files.failing {
        let _ = write!(
            text,
            "\n## Output of {name} ({why}; whole log: `.ralph/runs/{}/{log}`)\n\n",
            state.spec.run_id
        );
        let output = tail(output, CHECK_MAX).trim_end();
        for line in output.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

fn standing(state: &RunState) -> String {
    let budgets = &state.spec.settings.budgets;
    let spent = state.spent();
    let mut text = format!(
        "Iteration {} of {}. Working time {} of {}.",
        state.iterations + 1,
        budgets.max_iterations,
        duration(Duration::from_secs(spent.time.as_secs())),
        duration(budgets.max_wall_time)
    );
    if spent.cost > ralph_domain::money::Usd::ZERO {
        let _ = write!(text, " Cost {} of {}.", spent.cost, budgets.max_cost);
    }
    text.push('\n');
    let scores: Vec<String> =
        state.history.iter().rev().take(8).rev().map(|i| format!("{:.1}", i.loop_score)).collect();
    if scores.iter().any(|s| s != "0.0") {
        let _ = writeln!(
            text,
            "Loop score of the last iterations (0 = moving, 0.7 = circling): {}.",
            scores.join(" ")
        );
    }
    text
}

/// A state file without its own title: the section has one.
fn untitled(text: &str) -> &str {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("# ") => rest,
        _ => text,
    }
}

fn recent_errors(errors: &str) -> String {
    let lines = tail(tail_lines(errors, ERROR_LINES), PART_MAX);
    if lines.len() == errors.len() {
        return lines.to_owned();
    }
    format!("[the beginning is cut; the whole text is in `.ralph/errors.log`]\n\n{lines}")
}

fn cut_head(text: &str, max: usize, path: &str) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("{}\n\n[cut here; the whole text is in `{path}`]", head(text, max))
}

fn cut_tail(text: &str, max: usize, path: &str) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("[the beginning is cut; the whole text is in `{path}`]\n\n{}", tail(text, max))
}
