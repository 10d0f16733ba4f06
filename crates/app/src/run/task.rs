//! Selects, reads and lints the task of a run.

use crate::environment::Environment;
use crate::error::AppError;
use crate::request::{RunRequest, TaskInput};
use crate::task::lint::checks::WrittenChecks;
use crate::task::lint::lint_task;
use crate::task::task_source;
use crate::trust::repo_file;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::config::ConfigFile;
use ralph_loop_task::dialect::{self, Dialect, ModelChoice, PrChoice, TaskFile, TaskTexts, adopt};
use ralph_loop_task::lint::{self, Diagnostic};
use ralph_loop_task::spec::Task;
use std::path::{Path, PathBuf};

pub struct ChosenTask {
    /// For the spec.
    pub task: Task,
    /// Settings in the task file; they override the repo's configuration, flags override them.
    pub settings: ConfigFile,
    /// The task's branch.
    pub branch: Option<String>,
    /// Its base branch.
    pub base: Option<String>,
    /// Its model profiles.
    pub model: ModelChoice,
    pub repo_url: Option<String>,
    /// The positions of its checks.
    pub checks: WrittenChecks,
    /// Whether its file asks for a pull request, beyond what its format does by default.
    pub asks_pr: bool,
}

impl ChosenTask {
    /// Whether its file says that results are published. A `ralph_task.md` only says how.
    pub fn asks_to_publish(&self) -> bool {
        self.asks_pr && self.task.dialect != Dialect::RalphTaskMd
    }

    /// Its file, unless the task is the user's own text.
    pub fn source(&self, request: &RunRequest) -> Option<&str> {
        let own = matches!(request.task, TaskInput::Text(_) | TaskInput::Value(_));
        (!own).then_some(self.task.source.as_str())
    }
}

/// The task of a request; `issue` is the fetched issue.
pub(super) fn of_request(
    env: &Environment,
    request: &RunRequest,
    top: &Path,
    issue: Option<&super::issue::Issue>,
) -> Result<ChosenTask, AppError> {
    let ticket = request.ticket.clone().or_else(|| issue.map(|issue| issue.number.to_string()));
    let choose = |folder: &Path, named: Option<&Path>| choose(env, folder, top, named, ticket.as_deref());
    match &request.task {
        TaskInput::Found => choose(&request.folder, None),
        TaskInput::File(file) => choose(&request.folder, Some(file)),
        // Anyone may write an issue: its commands never decide.
        TaskInput::Issue(_) => {
            let chosen = choose(&request.folder, issue.map(|issue| issue.file.as_path()))?;
            Ok(if chosen.task.dialect == Dialect::PromptMd { plain(chosen.task) } else { chosen })
        }
        TaskInput::Text(text) => {
            refuse_placeholders("the sentence", text)?;
            // Before anything is written there, so that a killed process leaves nothing for git to list.
            if let Ok(repo) = ralph_loop_git::Repo::discover(env.vars(), top) {
                repo.exclude_ralph_dir()?;
            }
            choose(top, Some(&save_text_task(top, text)?))
        }
        TaskInput::Value(task) => Ok(plain((**task).clone())),
    }
}

/// Rejects a task with template placeholders: a run would waste money on it.
fn refuse_placeholders(shown: &str, text: &str) -> Result<(), AppError> {
    let found = lint::placeholders(text);
    let lines: Vec<String> =
        found.iter().take(10).map(|place| format!("{shown}:{}: {}", place.line, place.message())).collect();
    match lines.as_slice() {
        [] => Ok(()),
        [first, more @ ..] => {
            let error = AppError::usage(first.clone()).hint(lint::template_fix(Dialect::PromptMd));
            Err(if more.is_empty() { error } else { error.cause(more.join("\n")) })
        }
    }
}

/// The task in `folder`: `named`, or the only one there.
///
/// `ticket` fills `{{ticket_id}}`, overriding the file.
pub fn choose(
    env: &Environment,
    folder: &Path,
    top: &Path,
    named: Option<&Path>,
    ticket: Option<&str>,
) -> Result<ChosenTask, AppError> {
    let mut chosen = read_chosen(env, folder, named, ticket)?;
    // Paths are stored relative to the top of the repo.
    if let Some(below) = folder.strip_prefix(top).ok().filter(|p| !p.as_os_str().is_empty()) {
        let from_top = |path: &str| below.join(path).display().to_string();
        chosen.task.source = from_top(&chosen.task.source);
        chosen.checks.file.clone_from(&chosen.task.source);
        for path in chosen.settings.protected_paths.iter_mut().flatten() {
            *path = from_top(path);
        }
    }
    Ok(chosen)
}

fn read_chosen(
    env: &Environment,
    folder: &Path,
    named: Option<&Path>,
    ticket: Option<&str>,
) -> Result<ChosenTask, AppError> {
    let name = match named {
        Some(name) => name.to_owned(),
        None => find(folder)?,
    };
    let text = read(folder, &name)?;
    let shown = name.display().to_string();
    let dialect = dialect::detect_text(&shown, &text);
    if dialect == Dialect::PromptMd {
        let mut task = Task::from_prompt(&text, &shown).map_err(|message| {
            AppError::usage(message).hint(format!("describe the task in `{}`", folder.join(&name).display()))
        })?;
        refuse_placeholders(&shown, &text)?;
        task.ticket = ticket.map(str::to_owned);
        let file = dialect::parse(dialect, &TaskTexts::new(&shown, text)).map_err(|found| refused(&found))?;
        return Ok(ChosenTask {
            settings: adopt::checks(&file),
            checks: WrittenChecks::of(&file),
            ..plain(task)
        });
    }
    let source = task_source::with_side_files(folder, dialect, &shown, text.clone())?;
    let report = lint_task(env, &source).report;
    if report.refuses() {
        return Err(refused(&report.diagnostics));
    }
    let file = report.task.ok_or_else(|| refused(&report.diagnostics))?;
    let file = match ticket {
        Some(ticket) => TaskFile { ticket_id: Some(ticket.to_owned()), ..file },
        None => file,
    };
    let vars = file.vars();
    Ok(chosen(file.filled(&vars), &text))
}

/// A task without settings.
pub fn plain(task: Task) -> ChosenTask {
    let settings = ConfigFile::default();
    ChosenTask {
        task,
        settings,
        branch: None,
        base: None,
        model: ModelChoice::default(),
        repo_url: None,
        checks: WrittenChecks::default(),
        asks_pr: false,
    }
}

/// Writes a text as a task file below the repo's `.ralph/` and returns its path.
pub fn save_text_task(top: &Path, text: &str) -> Result<PathBuf, AppError> {
    let kind = if text.trim_start().starts_with('{') { "json" } else { "md" };
    let file = format!("tasks/{}.{kind}", Digest::of(text.as_bytes()).short());
    RalphDir::of(top).write(&file, text.as_bytes())?;
    Ok(Path::new(".ralph").join(file))
}

/// The only task file of a folder.
pub(super) fn find(folder: &Path) -> Result<PathBuf, AppError> {
    let names: Vec<&str> = task_source::candidates(folder).into_iter().map(Dialect::main_file).collect();
    match names.as_slice() {
        [] => Ok(PathBuf::from(Dialect::PromptMd.main_file())),
        [one] => Ok(PathBuf::from(one)),
        many => Err(AppError::usage(format!("there is more than one task here: {}", many.join(", ")))
            .hint(format!("name one of them, for example `ralph run {}`", many[0]))),
    }
}

fn read(folder: &Path, name: &Path) -> Result<String, AppError> {
    let path = folder.join(name);
    let bytes = repo_file::read(&path).map_err(|e| {
        AppError::usage(format!("cannot read the task file `{}`: {e}", path.display()))
            .hint(repo_file::remedy(&e).unwrap_or("write the task and its checks to `PROMPT.md`, name a file with `ralph run FILE`, or run `ralph run -p \"Fix the failing tests\"`"))
    })?;
    String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
        AppError::usage(format!("{}:{line}: the task file is not UTF-8 text", path.display()))
            .hint("save it as UTF-8")
    })
}

/// The first problem, with the others below it.
fn refused(found: &[Diagnostic]) -> AppError {
    let errors: Vec<&Diagnostic> = found.iter().filter(|d| d.is_error()).collect();
    let line = |d: &Diagnostic| format!("{}:{}:{}: {}", d.file, d.line, d.column, d.message);
    let Some(first) = errors.first() else { return AppError::usage("can't read the task") };
    let error = AppError::usage(line(first)).hint(format!("{}; `ralph lint` shows everything", first.fix));
    match errors[1..].iter().map(|d| line(d)).collect::<Vec<_>>() {
        rest if rest.is_empty() => error,
        rest => error.cause(rest.join("\n")),
    }
}

fn chosen(file: TaskFile, text: &str) -> ChosenTask {
    let (branch, base) = (file.git.branch.clone(), file.git.base_branch.clone());
    let (model, repo_url) = (file.model.clone(), file.git.repo_url.clone());
    let checks = WrittenChecks::of(&file);
    let asks_pr = match file.dialect {
        Dialect::RalphJson => file.git.create_pr == Some(true),
        _ => file.pr != PrChoice::default(),
    };
    let (task, settings) = adopt::adopt(file, text);
    ChosenTask { task, settings, branch, base, model, repo_url, checks, asks_pr }
}
