//! `ralph convert`: a task in another dialect, and what the other dialect cannot say.

mod draft;
mod markdown;
mod to_plan;
mod to_prompt;
mod to_ralph_json;
mod to_ralph_task;

use self::draft::{ConversionLoss, TaskDraft};
use crate::error::CommandError;
use crate::output::{Out, Sign};
use ralph_app::{App, Environment, find, repo_file, task_source};
use ralph_domain::config::ConfigFile;
use ralph_domain::describe::Tone;
use ralph_domain::dialect::{self, Dialect, names};
use ralph_domain::text::count;
use ralph_git::Repo;
use ralph_journal::layout::RalphDir;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Reads a task and writes it in another dialect; the file names say which. What has no equivalent is listed with its
/// reason. The original stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph convert ralph.json ralph_task.md
  ralph convert PROMPT.md ralph/tasks.json      takes verifiers and budgets from `.ralph/config.json`
  ralph convert ralph_task.md PROMPT.md --force")]
pub struct ConvertArgs {
    /// The task to read.
    pub from: PathBuf,
    /// The file to write: `ralph_task.md`, `ralph.json`, `tasks.json` or `PROMPT.md`, in any folder.
    pub to: PathBuf,
    /// Replace files that are there.
    #[arg(long)]
    pub force: bool,
}

/// What a conversion writes.
#[derive(Debug, Default)]
struct ConvertedFile {
    /// Paths relative to the folder, and their texts.
    files: Vec<(PathBuf, String)>,
    /// A configuration, written only where there is none.
    config: Option<ConfigFile>,
}

/// Runs the command.
pub fn run(args: ConvertArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let source = task_source::find(folder, Some(&args.from))?;
    let to = dialect_of(&args.to)?;
    if source.dialect == to {
        return Err(CommandError::usage(format!("both are {}", to.as_str()))
            .hint("name a file of another dialect, or copy it"));
    }
    let task = dialect::parse(source.dialect, &source.files).map_err(|found| {
        let first = found.first();
        let message =
            first.map_or_else(String::new, |d| format!("{}:{}:{}: {}", d.file, d.line, d.column, d.message));
        CommandError::usage(message)
            .cause(format!("the task has {}", count(found.len(), "error")))
            .hint(format!("`ralph lint {}` shows all of them with their fixes", args.from.display()))
    })?;
    let mut draft = TaskDraft::new(app.environment(), task, &source)?;
    let written = match to {
        Dialect::RalphTaskMd => to_ralph_task::write(&mut draft, &args.to),
        Dialect::RalphJson => to_ralph_json::write(&mut draft, &args.to)?,
        Dialect::Plan => to_plan::write(&mut draft, &args.to, folder)?,
        Dialect::PromptMd => to_prompt::write(&mut draft, &args.to),
    };
    let names = save(written, &mut draft, app.environment(), folder, args.force)?;
    draft.lost.sort();
    draft.lost.dedup();
    let (errors, warnings) = lint_again(app.environment(), folder, &args.to);
    if out.json {
        out.value(&json!({
            "from": { "file": args.from, "dialect": source.dialect.as_str() },
            "to": { "file": args.to, "dialect": to.as_str() },
            "written": names,
            "no_equivalent": draft.lost,
            "lint": { "errors": errors, "warnings": warnings },
        }));
    } else {
        print_report(&names, &draft.lost, &args.to, errors, out);
    }
    Ok(0)
}

fn dialect_of(to: &Path) -> Result<Dialect, CommandError> {
    let shown = to.display().to_string();
    match names::base_name(&shown) {
        "ralph_task.md" => Ok(Dialect::RalphTaskMd),
        "ralph.json" => Ok(Dialect::RalphJson),
        "tasks.json" => Ok(Dialect::Plan),
        "PROMPT.md" => Ok(Dialect::PromptMd),
        _ => Err(CommandError::usage(format!("`{shown}` is the name of no dialect"))
            .hint("call it `ralph_task.md`, `ralph.json`, `ralph/tasks.json` or `PROMPT.md`")),
    }
}

/// Writes all files, or none where one is in the way.
fn save(
    written: ConvertedFile,
    draft: &mut TaskDraft,
    env: &Environment,
    folder: &Path,
    force: bool,
) -> Result<Vec<PathBuf>, CommandError> {
    let there: Vec<String> = written
        .files
        .iter()
        .filter(|(name, _)| folder.join(name).symlink_metadata().is_ok())
        .map(|(name, _)| format!("`{}`", name.display()))
        .collect();
    if !there.is_empty() && !force {
        let verb = if there.len() == 1 { "is" } else { "are" };
        return Err(CommandError::usage(format!(
            "{} {verb} there already; nothing was written",
            there.join(", ")
        ))
        .hint("`--force` replaces them"));
    }
    for (name, text) in &written.files {
        repo_file::write(&folder.join(name), text.as_bytes())?;
    }
    let mut names: Vec<PathBuf> = written.files.into_iter().map(|(name, _)| name).collect();
    if let Some(config) = written.config {
        let path = RalphDir::of(&find::top(folder)).config();
        if path.symlink_metadata().is_ok() {
            let there = repo_file::read_text(&path).unwrap_or_default();
            draft.keep_out_of_config(&config, &ConfigFile::parse(&there).unwrap_or_default());
        } else {
            let text = crate::task_files::pretty("config.json", &config)?;
            repo_file::write(&path, text.as_bytes())?;
            if let Ok(repo) = Repo::discover(env.vars(), folder) {
                repo.exclude_ralph_dir()?;
            }
            names.push(path);
        }
    }
    Ok(names)
}

/// How many errors and warnings the result has.
fn lint_again(env: &Environment, folder: &Path, to: &Path) -> (usize, usize) {
    let Ok(source) = task_source::find(folder, Some(to)) else { return (1, 0) };
    let report = ralph_app::lint::lint_task(env, &source, &[]);
    let errors = report.diagnostics.iter().filter(|d| d.is_error()).count();
    (errors, report.diagnostics.len() - errors)
}

fn print_report(names: &[PathBuf], lost: &[ConversionLoss], to: &Path, errors: usize, out: &Out) {
    if out.quiet {
        return;
    }
    for name in names {
        out.line(format!("{} wrote {}", out.out(Tone::Good, out.sign(Sign::Good)), name.display()));
    }
    if !lost.is_empty() {
        out.line(format!("{} without an equivalent, or not exactly the same:", count(lost.len(), "thing")));
        for lost in lost {
            out.line(format!("  {}: {}", lost.field, lost.reason));
        }
    }
    let how = match errors {
        0 => "`ralph lint` has no errors; read it through".to_owned(),
        n => format!("`ralph lint {}` shows {} to fix", to.display(), count(n, "error")),
    };
    out.line(format!("{} {how}", out.out(Tone::Plain, "next:")));
}
