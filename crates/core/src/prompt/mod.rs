//! The prompt of a session: fixed order, bounded, deterministic. What never changes stands first, then what changes
//! slowly, then what changes each time, so that providers can cache the beginning.

mod files;
mod parts;

pub use files::PromptFiles;

use ralph_domain::config::{AgentKind, Completion, Role};
use ralph_domain::dialect::Dialect;
use ralph_domain::dialect::template::{self, Vars};
use ralph_domain::redact::Redactor;
use ralph_domain::state::RunState;
use ralph_domain::text::{head, tail};
use std::fmt::Write as _;
use std::path::Path;

const TEMPLATE: &str = include_str!("../../templates/prompt_md.md");
const BOXES: &str = "- The engine ticks a box of the task file when its check passes. You may tick a box that has no \
                      `verify:` of its own when it is done; change nothing else in that file.\n";
const BOXES_CLAIMED: &str = "- The engine ticks a box of the task file when its check passes. Claim a box that has no \
                              `verify:` of its own by its id when it is done; leave the file itself alone.\n";
const STORIES: &str = "- Work on one story: the first by priority whose `dependsOn` all pass. When it is done, set its \
                        `passes` to true and say in its `notes` how it was checked. You may add, split and reorder \
                        stories; never remove acceptance criteria or change `verifyCommands`.\n";
const TASK_MAX: usize = 96 * 1024;
const PART_MAX: usize = 12 * 1024;
const CHECK_MAX: usize = 6 * 1024;

/// A session's prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The whole text.
    pub text: String,
    /// Where in it the parts end that stay the same: what never changes in a run, then what changes slowly.
    pub stable: Vec<usize>,
}

impl Prompt {
    /// The prompt without secrets.
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let mut text = String::with_capacity(self.text.len());
        let mut stable = Vec::with_capacity(self.stable.len());
        let mut from = 0;
        for end in self.stable {
            text.push_str(&redactor.text(&self.text[from..end]));
            stable.push(text.len());
            from = end;
        }
        text.push_str(&redactor.text(&self.text[from..]));
        Self { text, stable }
    }
}

/// The prompt for the next session of an agent of this kind, whose own words come first. Same state and files, same
/// bytes.
pub fn assemble(
    state: &RunState,
    files: &PromptFiles,
    kind: AgentKind,
    role: Option<Role>,
    preamble: &str,
) -> Prompt {
    let mut out = String::with_capacity(16 * 1024);
    if !preamble.is_empty() {
        out.push_str(preamble.trim_end());
        out.push_str("\n\n");
    }
    rules(&mut out, state, kind);
    let task = task_text(state);
    section(
        &mut out,
        &format!("Task (`{}`)", state.spec.task.source),
        &cut_head(&task, TASK_MAX, &state.spec.task.source),
    );
    for (name, text) in &files.context {
        section(&mut out, &format!("File `{name}`"), text);
    }
    let never_changes = out.len();
    section(&mut out, "Guardrails", &cut_tail(untitled(&files.guardrails), PART_MAX, ".ralph/guardrails.md"));
    section(
        &mut out,
        "Progress so far",
        &cut_head(untitled(&files.progress), PART_MAX, ".ralph/progress.md"),
    );
    section(&mut out, "Notes from people", &cut_tail(untitled(&files.notes), PART_MAX, ".ralph/notes.md"));
    if kind == AgentKind::Actions {
        section(&mut out, "Files of the workspace (the first 200)", &files.tree);
    }
    let changes_slowly = out.len();
    if let Some(role) = role {
        section(&mut out, "Your role", role.instruction());
        section(&mut out, "Findings of other sessions", &parts::findings(state));
    }
    section(&mut out, "Recent errors", &cut_tail(&files.errors, 2 * PART_MAX, ".ralph/errors.log"));
    section(&mut out, "What has changed", &parts::changes(state));
    if kind == AgentKind::Actions {
        section(&mut out, "What the last session's actions came to", &files.results);
    }
    section(&mut out, "Checks", &parts::checks(state, files));
    section(&mut out, "Where the run stands", &parts::standing(state));
    if !state.people.nudges.is_empty() {
        section(&mut out, "Read this first", &state.people.nudges.join("\n\n"));
    }
    Prompt { text: out, stable: vec![never_changes, changes_slowly] }
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
        .with("iteration", (state.iterations.count + 1).to_string())
        .with("max_iterations", state.spec.settings.budgets.max_iterations.to_string())
        .with("run_id", state.spec.run_id.as_str())
        .with("branch", state.spec.branch.as_deref().unwrap_or_default());
    template::fill(text, &vars).into()
}

fn rules(out: &mut String, state: &RunState, kind: AgentKind) {
    let settings = &state.spec.settings;
    let checks: Vec<String> = settings.required().map(|v| format!("`{}`", v.command_line())).collect();
    let mut protected: Vec<String> = settings.protected_paths.iter().map(|p| format!("`{p}`")).collect();
    protected.push(format!("`{}`", state.spec.task.source));
    protected.push("CI files".into());
    protected.push("scripts that the checks run".into());
    let promise = format!("<promise>{}</promise>", settings.completion_promise);
    let (run_checks, done) = match kind {
        AgentKind::Actions => (
            "Let your last actions run the checks",
            "end your actions with `stop_success`. It is a claim: the engine runs the checks itself."
                .to_owned(),
        ),
        AgentKind::Tools => (
            "Run the checks yourself before you stop",
            format!("call the tool `done`, or end your final message with this line, alone:\n\n{promise}"),
        ),
        AgentKind::Cli | AgentKind::Scripted => (
            "Run the checks yourself before you stop",
            format!("end your final message with this line, alone:\n\n{promise}"),
        ),
    };
    let mut text = TEMPLATE
        .replace("{{run_checks}}", run_checks)
        .replace("{{done}}", &done)
        .replace(
            "{{processes}}",
            match kind {
                AgentKind::Tools => "Start what must go on in the background with `startProcess` only.",
                _ => "Start no background process that outlives your session.",
            },
        )
        .replace("{{checks}}", &checks.join(", "))
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
        Dialect::RalphTaskMd if kind == AgentKind::Actions => BOXES_CLAIMED,
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

/// A state file without its own title: the section has one.
fn untitled(text: &str) -> &str {
    match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("# ") => rest,
        _ => text,
    }
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
