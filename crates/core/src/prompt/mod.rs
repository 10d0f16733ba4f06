//! Builds a session's prompt: fixed order, bounded, deterministic. Constant parts come first, changing parts
//! last, so that providers can cache the prefix.

mod files;
mod instructions;
mod parts;
mod plan;

pub use files::PromptFiles;

use crate::record::task_book;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::display::text::{head, tail};
use ralph_loop_task::config::{AgentKind, Completion, Role};
use ralph_loop_task::dialect::Dialect;
use ralph_loop_task::dialect::template::{self, Vars};
use std::fmt::Write as _;
use std::path::Path;

const TEMPLATE: &str = include_str!("../../templates/prompt_md.md");
const BOXES: &str =
    "- In the task file, only tick finished boxes without `verify:`; `ralph` ticks the rest.\n";
const BOXES_CLAIMED: &str = "- Claim finished boxes without `verify:` by id; `ralph` ticks the rest.\n";
const STORIES: &str = "- Do only \"The next story\" below. When it is done, set its `passes` in `{{source}}` to true and its `notes` to how \
                        you checked it. You may add, split and reorder stories; never remove acceptance criteria or change \
                        `verifyCommands`.\n- In `{{progress}}`, improve the top; below the dashes, only append.\n";
const STORIES_CLAIMED: &str = "- Do only \"The next story\" below. When it is done, set its `passes` in `{{source}}` to true, or claim its id.\n\
                                - In `{{progress}}`, improve the top; below the dashes, only append.\n";
const TASK_MAX: usize = 96 * 1024;
const PART_MAX: usize = 12 * 1024;
const CHECK_MAX: usize = 6 * 1024;
const INSTRUCTIONS: &str = "Instructions from the repository";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub text: String,
    /// Ends of the parts that stay the same: constant in a run, then slowly changing.
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

/// The prompt for the next session of this kind of agent, starting with the agent's own text. Same state and
/// files give the same bytes.
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
    let place = Place { state, kind };
    let task = task_text(state);
    section(
        &mut out,
        &format!("Task (`{}`)", state.spec.task.source),
        &cut_head(&task, TASK_MAX, &state.spec.task.source),
    );
    for (name, text) in &files.context {
        section(&mut out, &format!("File `{name}`"), text);
    }
    let (instructions, changed) = &files.instructions;
    if !changed {
        section(&mut out, INSTRUCTIONS, instructions);
    }
    let never_changes = out.len();
    let guardrails = place.path(".ralph/guardrails.md");
    section(&mut out, "Guardrails", &cut_tail(&rules_only(&files.guardrails), PART_MAX, &guardrails));
    let changes_slowly = out.len();
    let progress = place.progress_file();
    section(&mut out, "Progress so far", &cut_head(&content(&files.progress), 2 * PART_MAX, &progress));
    let notes = place.path(".ralph/notes.md");
    section(&mut out, "Notes", &cut_tail(&content(&files.notes), PART_MAX, &notes));
    match &state.spec.task.working_dir {
        Some(folder) => {
            section(&mut out, &format!("Files in `{folder}/` (first 200)"), &files.tree);
        }
        None if kind == AgentKind::Actions => {
            section(&mut out, "Workspace files (first 200)", &files.tree);
        }
        None => {}
    }
    if *changed {
        section(&mut out, INSTRUCTIONS, instructions);
    }
    for (name, text) in &files.changed_context {
        section(&mut out, &format!("File `{name}`"), text);
    }
    section(&mut out, "The next story", &files.story);
    if let Some(role) = role {
        section(&mut out, "Your role", role.instruction());
        section(&mut out, "Findings of other roles", &parts::findings(state));
    }
    let errors = place.path(".ralph/errors.log");
    section(&mut out, "Recent errors", &cut_tail(&files.errors, 2 * PART_MAX, &errors));
    section(&mut out, "Changes so far", &parts::changes(state, &place));
    if kind == AgentKind::Actions {
        section(&mut out, "Results of the last session's actions", &files.results);
    }
    section(&mut out, "Checks", &parts::checks(state, files, &place));
    section(&mut out, "Run budget", &parts::standing(state));
    if !state.people.nudges.is_empty() {
        section(&mut out, "Read this first", &state.people.nudges.join("\n\n"));
    }
    Prompt { text: out, stable: vec![never_changes, changes_slowly] }
}

/// Titles of those [`state_sections`] that come after all text by users and repos.
pub(crate) const STATE_TITLES: [(&str, &str); 4] = [
    ("what has changed", "Changes so far"),
    ("checks", "Checks"),
    ("where the run stands", "Run budget"),
    ("hints", "Read this first"),
];

/// Sections that depend only on the state and check logs, exactly as in the whole text; replays compare them.
pub fn state_sections(
    state: &RunState,
    files: &PromptFiles,
    kind: AgentKind,
    role: Option<Role>,
) -> Vec<(&'static str, String)> {
    let place = Place { state, kind };
    let titled = |title: &str, body: &str| {
        let mut out = String::new();
        section(&mut out, title, body);
        out
    };
    let mut how = String::new();
    rules(&mut how, state, kind);
    let source = &state.spec.task.source;
    let task = cut_head(&task_text(state), TASK_MAX, source);
    let mut all = vec![
        ("rules", how),
        ("task", titled(&format!("Task (`{source}`)"), &task)),
        ("what has changed", titled("Changes so far", &parts::changes(state, &place))),
        ("checks", titled("Checks", &parts::checks(state, files, &place))),
        ("where the run stands", titled("Run budget", &parts::standing(state))),
        ("hints", titled("Read this first", &state.people.nudges.join("\n\n"))),
    ];
    if let Some(role) = role {
        all.push(("role", titled("Your role", role.instruction())));
    }
    all.retain(|(_, text)| !text.is_empty());
    all
}

/// The session's folder, for the paths in its prompt.
pub(super) struct Place<'a> {
    state: &'a RunState,
    kind: AgentKind,
}

impl Place<'_> {
    /// A workspace path relative to the session's folder. File actions always start at the top.
    pub(super) fn path(&self, path: &str) -> String {
        let folder = self.state.spec.task.working_dir.as_deref().filter(|_| self.kind != AgentKind::Actions);
        let depth = folder.map_or(0, |folder| Path::new(folder).components().count());
        format!("{}{path}", "../".repeat(depth))
    }

    /// How this session claims to be done.
    pub(super) fn how_to_claim(&self) -> String {
        match self.kind {
            AgentKind::Actions => "end your actions with `stop_success`".to_owned(),
            _ => format!(
                "end your final message with `<promise>{}</promise>`, alone on its line",
                self.state.spec.settings.completion_promise
            ),
        }
    }

    /// Where sessions leave notes for each other; plans have a separate file.
    fn progress_file(&self) -> String {
        let own = crate::record::plan_progress::path(&self.state.spec.task);
        self.path(own.as_deref().unwrap_or(".ralph/progress.md"))
    }
}

/// The task in its own format: a `ralph_task.md` whole, with its current boxes; a plan's prompt with its names filled
/// in.
fn task_text(state: &RunState) -> std::borrow::Cow<'_, str> {
    let task = &state.spec.task;
    let text = &task.text;
    if task.dialect == Dialect::RalphTaskMd
        && let Some(raw) = &task.raw
    {
        return task_book::marked(task.dialect, raw, &state.work.met).into();
    }
    if task.dialect != Dialect::Plan {
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
    let (settings, place) = (&state.spec.settings, Place { state, kind });
    let mut checks: Vec<String> = settings
        .required()
        .filter(|v| parts::hidden_number(v).is_none())
        .map(|v| format!("`{}`", v.command_line()))
        .collect();
    keep_first_of_each(&mut checks);
    if checks.is_empty() {
        checks.push("the project's tests".to_owned());
    }
    let mut protected: Vec<String> = settings.protected_paths.iter().map(|p| format!("`{p}`")).collect();
    // For formats with marks in the file, the marking rule says what may change.
    let marked_there = match state.spec.task.dialect {
        Dialect::Plan => true,
        Dialect::RalphTaskMd => kind != AgentKind::Actions,
        Dialect::RalphJson | Dialect::PromptMd => false,
    };
    if !marked_there {
        protected.push(format!("`{}`", state.spec.task.source));
    }
    protected.extend([".ralph/runs", ".ralph/config.json", ".git"].map(|path| format!("`{path}`")));
    keep_first_of_each(&mut protected);
    let promise = format!("<promise>{}</promise>", settings.completion_promise);
    let (run_checks, done) = match kind {
        AgentKind::Actions => {
            ("In your last actions, run", "end your actions with `stop_success`.".to_owned())
        }
        AgentKind::Tools => (
            "Before you stop, run",
            format!("call the tool `done`, or end your final message with this line, alone:\n\n{promise}"),
        ),
        AgentKind::Cli | AgentKind::Scripted => {
            ("Before you stop, run", format!("end your final message with this line, alone:\n\n{promise}"))
        }
    };
    let mut text = TEMPLATE
        .replace("{{run_checks}}", run_checks)
        .replace("{{done}}", &done)
        .replace(
            "{{processes}}",
            match kind {
                AgentKind::Tools => "Start background processes only with `startProcess`.",
                _ => "Leave no background process running.",
            },
        )
        .replace("{{checks}}", &checks.join(", "))
        .replace("{{progress}}", &place.progress_file())
        .replace(
            "{{git}}",
            match settings.allow_agent_commits {
                true => "You may commit; never stash, reset or switch branches.",
                false => "Never commit, stash, reset or switch branches.",
            },
        )
        .replace("{{protected}}", &protected.join(", "));
    for rule in &state.spec.task.rules {
        let _ = writeln!(text, "- {}", rule.trim());
    }
    if let Some(folder) = &state.spec.task.working_dir {
        let _ = writeln!(
            text,
            "- Edit only `{folder}` and `{}`; `ralph` reports other edits.",
            place.progress_file()
        );
    }
    let own = match state.spec.task.dialect {
        Dialect::RalphTaskMd if kind == AgentKind::Actions => BOXES_CLAIMED,
        Dialect::RalphTaskMd => BOXES,
        Dialect::Plan if kind == AgentKind::Actions => STORIES_CLAIMED,
        Dialect::Plan => STORIES,
        Dialect::RalphJson | Dialect::PromptMd => "",
    };
    let source = place.path(&state.spec.task.source);
    text.push_str(&own.replace("{{source}}", &source).replace("{{progress}}", &place.progress_file()));
    if settings.completion == Completion::Checks {
        text.push_str("\nThe run ends when the checks pass, promise or not.\n");
    }
    out.push_str(&text);
}

fn keep_first_of_each(list: &mut Vec<String>) {
    let mut seen = std::collections::BTreeSet::new();
    list.retain(|one| seen.insert(one.clone()));
}

fn section(out: &mut String, title: &str, body: &str) {
    let body = body.trim();
    if !body.is_empty() {
        let _ = write!(out, "\n# {title}\n\n{body}\n");
    }
}

/// A state file without its title, comments and sections that say `(none)`.
fn content(text: &str) -> String {
    let untitled = match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("# ") => rest,
        _ => text,
    };
    let comment = |line: &str| line.starts_with("<!--") && line.ends_with("-->");
    let text = lines_without(untitled, comment);
    let says = |section: &&str| section.split_once('\n').is_none_or(|(_, body)| body.trim() != "(none)");
    text.split("\n## ").filter(says).collect::<Vec<_>>().join("\n## ")
}

/// Rules without where they come from: sessions need only what to do.
fn rules_only(text: &str) -> String {
    content(&lines_without(text, |line| {
        line.starts_with("- added_after:") || line.starts_with("- evidence:")
    }))
}

fn lines_without(text: &str, gone: impl Fn(&str) -> bool) -> String {
    text.lines().filter(|line| !gone(line.trim_end())).collect::<Vec<_>>().join("\n")
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
