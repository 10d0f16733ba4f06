//! `ralph archive`: moves a finished plan into a dated folder and resets `ralph/`.

mod commit;
mod summary;

use self::summary::Summary;
use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::task_files::{NewTask, pretty};
use jiff::Timestamp;
use ralph_loop_app::read::find;
use ralph_loop_app::start::locks;
use ralph_loop_app::task::project::project_commands;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{App, Environment};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_git::Repo;
use ralph_loop_journal::lock::RunLock;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::dialect::names;
use ralph_loop_task::dialect::plan::prd_tasks;
use ralph_loop_task::dialect::plan::prd_tasks::TasksJson;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files moved to the archive; `prompt.md` is copied.
const MOVED: [&str; 3] = ["prd.md", "tasks.json", "progress.txt"];

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph archive                      move the plan to ralph-archive/, start a new one
  ralph archive --label 'sign in'    name the archive")]
pub struct ArchiveArgs {
    /// Name of the archive [default: the plan's branch]
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    /// Folder of the plan [default: ralph]
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
}

impl ArchiveArgs {
    /// The folder of the plan, relative to the top of the repo.
    fn plan_dir(&self, top: &Path, folder: &Path) -> Result<PathBuf, CommandError> {
        let Some(dir) = &self.ralph_dir else { return Ok(PathBuf::from("ralph")) };
        let path = folder.join(dir);
        let path = path.canonicalize().unwrap_or(path);
        let top = top.canonicalize().unwrap_or_else(|_| top.to_owned());
        let below = path.strip_prefix(&top).ok().filter(|below| !below.as_os_str().is_empty());
        below.map(Path::to_owned).ok_or_else(|| {
            CommandError::usage(format!(
                "`{}` is not a folder below the repo `{}`",
                dir.display(),
                top.display()
            ))
            .hint("name the folder that holds the plan's tasks.json")
        })
    }
}

pub fn run(args: ArchiveArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let env = app.environment();
    let repo = Repo::discover(env.vars(), folder)?;
    let top = repo.top.clone();
    refuse_driven(env, &top)?;
    commit::refuse_half_done(&repo)?;
    let now = SystemClock::default().now();
    let dir = &args.plan_dir(&top, folder)?;
    let (tasks, text) = plan(&top, dir)?;
    let _lock = lock(env, &top)?;

    let progress = repo_file::read_text(&top.join(dir).join("progress.txt")).unwrap_or_default();
    let summary = Summary::of(env, &tasks, &progress, (&top, dir), now)?;
    let name = free_name(&top, &base_name(&args, &tasks, now));
    let paths = move_files(&top, dir, &name, &text, &summary)?;
    reset(&top, dir, &tasks, now)?;
    let message = format!("archive the plan {} ({} of {} stories done)", name, summary.done, summary.total);
    let done = commit::commit(&repo, &paths, &message).map_err(|error| {
        error.hint(format!("the files are in `ralph-archive/{name}`; commit them yourself"))
    })?;
    print_report(&name, dir, &summary, &done, out);
    Ok(0)
}

/// Refuses to move files while an agent works here or in another workspace of a run from this folder.
fn refuse_driven(env: &Environment, top: &Path) -> Result<(), CommandError> {
    let home = env.state_home()?;
    let elsewhere = find::runs_of(&home, top).into_iter().map(|run| run.workspace);
    for folder in std::iter::once(top.to_owned()).chain(elsewhere) {
        if let Some(driver) = locks::holder(&home, &folder) {
            let id = &driver.run_id;
            return Err(CommandError::usage(format!("run {id} is running now (process {})", driver.pid))
                .cause("its agents work on this plan")
                .hint(format!("`ralph stop {id}` ends it after its session; then `ralph archive`")));
        }
    }
    Ok(())
}

/// Keeps runs from starting meanwhile.
fn lock(env: &Environment, top: &Path) -> Result<RunLock, CommandError> {
    Ok(locks::take(&env.state_home()?, top, &RunId::from("archive"), Duration::ZERO)?)
}

fn plan(top: &Path, dir: &Path) -> Result<(TasksJson, String), CommandError> {
    let name = dir.join("tasks.json");
    let name = name.display();
    let path = top.join(dir).join("tasks.json");
    let text = repo_file::read_text(&path).map_err(|e| {
        CommandError::usage(format!("no plan to archive in `{}`: {e}", path.display()))
            .hint(repo_file::remedy(&e).unwrap_or("`ralph init --plan` writes one"))
    })?;
    let tasks = prd_tasks::parse_text(&text).map_err(|message| {
        CommandError::usage(format!("`{name}` cannot be read: {message}"))
            .hint(format!("run `ralph lint {name}`"))
    })?;
    let template = new_task(&Default::default(), Timestamp::UNIX_EPOCH).tasks_json()?;
    let empty = prd_tasks::parse_text(&template).map(|t| t.user_stories).unwrap_or_default();
    if tasks.user_stories == empty {
        return Err(CommandError::usage("the plan is still the empty template; nothing to archive"));
    }
    Ok((tasks, text))
}

fn new_task(commands: &ralph_loop_app::task::project::ProjectCommands, now: Timestamp) -> NewTask<'_> {
    NewTask { title: "New plan", base_branch: None, commands, now }
}

/// `DATE-NAME`: the label, else the branch, else the project.
fn base_name(args: &ArchiveArgs, tasks: &TasksJson, now: Timestamp) -> String {
    let given = args.label.as_deref().into_iter().chain([tasks.branch_name.as_str(), tasks.project.as_str()]);
    let name = given.map(str::trim).find(|name| !name.is_empty()).unwrap_or("plan");
    format!("{}-{}", now.strftime("%Y-%m-%d"), names::slug(name))
}

/// The name, with a number if taken.
fn free_name(top: &Path, base: &str) -> String {
    let is_free = |name: &String| top.join("ralph-archive").join(name).symlink_metadata().is_err();
    let mut names = std::iter::once(base.to_owned()).chain((2..).map(|n| format!("{base}-{n}")));
    names.find(is_free).unwrap_or_else(|| base.to_owned())
}

/// Archives everything and returns the paths to commit, relative to the top.
fn move_files(
    top: &Path,
    dir: &Path,
    name: &str,
    tasks: &str,
    summary: &Summary,
) -> Result<Vec<PathBuf>, CommandError> {
    let failed = |path: &Path, e: std::io::Error| {
        CommandError::environment(format!("cannot move `{}`: {e}", path.display()))
    };
    let to = Path::new("ralph-archive").join(name);
    // First, because it creates the folder.
    repo_file::write(&top.join(to.join("summary.md")), summary.markdown().as_bytes())?;
    let mut paths = vec![to.join("summary.md")];
    for file in MOVED {
        let from = dir.join(file);
        if file == "tasks.json" {
            // Copied, so that there is always a list of stories.
            repo_file::write(&top.join(to.join(file)), tasks.as_bytes())?;
        } else if repo_file::is_file(&top.join(&from)) {
            repo_file::rename(top, &from, &to.join(file)).map_err(|e| failed(&from, e))?;
        } else {
            paths.push(from);
            continue;
        }
        paths.extend([to.join(file), from]);
    }
    if let Ok(prompt) = repo_file::read(&top.join(dir).join("prompt.md")) {
        repo_file::write(&top.join(to.join("prompt.md")), &prompt)?;
        paths.push(to.join("prompt.md"));
    }
    Ok(paths)
}

/// Fresh files for the next plan, with the last one's checks.
fn reset(top: &Path, dir: &Path, old: &TasksJson, now: Timestamp) -> Result<(), CommandError> {
    let commands = project_commands(top);
    let new = new_task(&commands, now);
    let text = new.tasks_json()?;
    let text = match prd_tasks::parse_text(&text) {
        Ok(tasks) if !old.verify_commands.is_empty() => {
            pretty("tasks.json", &TasksJson { verify_commands: old.verify_commands.clone(), ..tasks })?
        }
        _ => text,
    };
    for (file, text) in [("prd.md", new.prd()), ("tasks.json", text), ("progress.txt", new.progress())] {
        repo_file::write(&top.join(dir).join(file), text.as_bytes())?;
    }
    Ok(())
}

fn print_report(name: &str, dir: &Path, summary: &Summary, done: &commit::Committed, out: &Out) {
    if out.json {
        out.value(&json!({
            "archived": format!("ralph-archive/{name}"),
            "done": summary.done,
            "total": summary.total,
            "started": summary.started,
            "archived_at": summary.archived,
            "runs": summary.runs,
            "iterations": summary.iterations,
            "cost_usd": summary.cost.known(),
            "cost_basis": summary.cost.basis(),
            "commit": done.commit,
            "ignored": done.ignored,
        }));
        return;
    }
    if out.quiet {
        return;
    }
    out.line(format!(
        "{} archived {} of {} stories in ralph-archive/{name}",
        out.out(Tone::Good, out.sign(Sign::Good)),
        summary.done,
        summary.total
    ));
    match &done.commit {
        Some(commit) => out.line(format!("  committed as {}", commit.get(..12).unwrap_or(commit))),
        None => out.line("  not committed: git ignores these files"),
    }
    out.line(format!(
        "{} write the next plan into `{1}/prd.md` and `{1}/tasks.json`; `ralph lint{2}` checks it",
        out.out(Tone::Plain, "next:"),
        dir.display(),
        if dir == Path::new("ralph") { String::new() } else { format!(" --ralph-dir {}", dir.display()) }
    ));
}
