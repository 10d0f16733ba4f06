//! Writes a new task: all its files, or none if one exists.

use super::{InitArgs, draft, print_next, set_up_state, write_config};
use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::task_files::{self, NewTask};
use ralph_loop_app::Environment;
use ralph_loop_app::task::project::project_commands;
use ralph_loop_app::task::task_source;
use ralph_loop_app::trust::repo_file;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_task::config::join_argv;
use ralph_loop_task::dialect::Dialect;
use serde_json::json;
use std::path::Path;

/// Initial limit for plans: stories are small, and plans are reviewed in between.
const PLAN_ITERATIONS: u32 = 10;

/// Writes a new task's files, and a configuration if there is none.
pub fn write(
    env: &Environment,
    dialect: Dialect,
    args: &InitArgs,
    top: &Path,
    repo: Option<&Repo>,
    out: &Out,
) -> Result<u8, CommandError> {
    let commands = project_commands(top);
    let title =
        args.name.as_deref().map(str::trim).filter(|name| !name.is_empty()).unwrap_or(task_files::UNNAMED);
    let title = ralph_loop_protocol::display::text::one_line(title, 80);
    let task = NewTask {
        title: &title,
        base_branch: repo.and_then(|repo| repo.branch.as_deref()),
        commands: &commands,
        now: SystemClock::default().now(),
    };
    let template = args.template();
    let files = match template {
        Some(template) => task_files::templated(template, &task),
        None => task_files::files(dialect, &task)?,
    };
    refuse_other_kinds(&files, top)?;
    if !args.force {
        refuse_existing(&files, top)?;
        refuse_other_task(dialect, top)?;
    }
    let config = RalphDir::of(top).config();
    let has_config = config.symlink_metadata().is_ok();
    // Everything is validated before the first write.
    let draft = if has_config { None } else { Some(draft(env, args.profile, top)?) };
    for (name, text) in &files {
        repo_file::write(&top.join(name), text.as_bytes())?;
    }
    let mut written: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    match draft {
        Some(mut draft) => {
            if dialect == Dialect::Plan && draft.imported.is_none() {
                draft.file.max_iterations = Some(PLAN_ITERATIONS);
            }
            // These formats name the test command in their own files.
            let names_tests =
                matches!(dialect, Dialect::Plan | Dialect::RalphJson) && !commands.tests.is_empty();
            if names_tests && draft.imported.is_none() {
                draft.file.verifiers = None;
            }
            write_config(&draft.file, &config, top, repo)?;
            written.push(".ralph/config.json");
        }
        None => set_up_state(top, repo)?,
    }
    let is_metric = template.is_some_and(|template| template.name == "metric");
    let next = next_steps(dialect, is_metric, commands.tests.is_empty(), repo.is_some());
    if out.json {
        out.value(&json!({
            "dialect": dialect.as_str(),
            "written": written.iter().map(|name| top.join(name)).collect::<Vec<_>>(),
            "config_kept": has_config,
            "commands": {
                "test": commands.tests.first().map(|c| join_argv(&c.argv)),
                "lint": commands.lints.first().map(|c| join_argv(&c.argv)),
                "typecheck": commands.typechecks.first().map(|c| join_argv(&c.argv)),
            },
            "next": next,
        }));
    } else if !out.quiet {
        for name in &written {
            out.line(format!("{} wrote {name}", out.out(Tone::Good, out.sign(Sign::Good))));
        }
        if has_config {
            out.line(format!("{} .ralph/config.json is unchanged", out.sign(Sign::Note)));
        }
        print_next(&next, out);
    }
    Ok(0)
}

/// Conflicts that can't be forced: a folder of that name, or a file where a folder should be.
fn refuse_other_kinds(files: &[(&str, String)], top: &Path) -> Result<(), CommandError> {
    let refused = |name: &str, what: &str| {
        CommandError::usage(format!("`{name}` is {what}; nothing was written"))
            .hint(format!("move it away: `mv {name} {name}.old`"))
    };
    let names = files.iter().map(|(name, _)| *name).chain([".ralph/config.json"]);
    for name in names {
        if top.join(name).is_dir() {
            return Err(refused(name, "a folder, but a file of that name is needed"));
        }
        let parent = Path::new(name).parent().and_then(Path::to_str).filter(|parent| !parent.is_empty());
        if let Some(parent) =
            parent.filter(|parent| top.join(parent).symlink_metadata().is_ok_and(|m| !m.is_dir()))
        {
            return Err(refused(parent, "not a folder, but files must be written into it"));
        }
    }
    Ok(())
}

/// Refuses a second task format, because every run would then have to name one.
fn refuse_other_task(dialect: Dialect, top: &Path) -> Result<(), CommandError> {
    let others: Vec<&str> = task_source::candidates(top)
        .into_iter()
        .filter(|other| *other != dialect)
        .map(Dialect::main_file)
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(CommandError::usage(format!(
        "a task in another format already exists: `{}`; nothing was written",
        others.join("`, `")
    ))
    .hint(format!("pass `--force` to add `{}`; then name the task file in `ralph run`", dialect.main_file())))
}

fn refuse_existing(files: &[(&str, String)], top: &Path) -> Result<(), CommandError> {
    // A dangling link also counts.
    let is_there = |name: &str| top.join(name).symlink_metadata().is_ok();
    let there: Vec<String> =
        files.iter().filter(|(name, _)| is_there(name)).map(|(name, _)| format!("`{name}`")).collect();
    if there.is_empty() {
        return Ok(());
    }
    let verb = if there.len() == 1 { "exists" } else { "exist" };
    Err(CommandError::usage(format!("{} already {verb}; nothing was written", there.join(", ")))
        .hint("run `ralph lint` to check them, or pass `--force` to replace them"))
}

fn next_steps(dialect: Dialect, is_metric: bool, no_tests: bool, has_commit: bool) -> Vec<String> {
    let mut steps = Vec::new();
    if no_tests {
        let place = match dialect {
            Dialect::RalphTaskMd => "`test_command` and the `verify:` items in `ralph_task.md`",
            Dialect::RalphJson => "the first of `acceptance_criteria` in `ralph.json`",
            Dialect::Plan => "`verifyCommands` in `ralph/tasks.json`",
            Dialect::PromptMd => "`verifiers` in `.ralph/config.json`, and `PROMPT.md`",
        };
        steps.push(format!("no test command found: set yours in {place}"));
    }
    steps.push(match dialect {
        Dialect::RalphTaskMd if is_metric => {
            "set the measuring command, the pattern of its number and the target under `metric` in `ralph_task.md`"
                .into()
        }
        Dialect::RalphTaskMd => {
            "describe the task in `ralph_task.md`, with a checkbox for each result".into()
        }
        Dialect::RalphJson => {
            "describe the task in `ralph.json`, with a criterion for each result".into()
        }
        Dialect::Plan => {
            "describe the feature in `ralph/prd.md`, then write the stories to `ralph/tasks.json`".into()
        }
        Dialect::PromptMd => "describe in `PROMPT.md` the task and when it is done".to_owned(),
    });
    steps.push("`ralph lint` checks it".into());
    steps.push(if has_commit {
        "commit it, then `ralph run` starts the loop".into()
    } else {
        "make a first commit (`git add -A && git commit --allow-empty -m start`), then `ralph run`".into()
    });
    steps
}
