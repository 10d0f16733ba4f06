//! `ralph restore`: undoes a run's file changes, after saving the current files.

use crate::confirm::{confirm, may_ask};
use crate::error::CommandError;
use crate::output::Out;
use crate::text::table::{Cell, Table, columns};
use ralph_loop_app::App;
use ralph_loop_app::start::locks;
use ralph_loop_git::Repo;
use ralph_loop_git::hand_back::restore::{
    RestoreAction, RestorePlan, RestoreScope, apply_restore, plan_restore,
};
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::spec::WorkspaceKind;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Files listed.
const SHOWN: usize = 50;
/// Kept files listed.
const NAMED: usize = 5;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph restore               show the latest run's changes, then ask
  ralph restore k3f9 --yes    undo them
The files before the restore stay in `refs/ralph/RUN/before-restore`.")]
pub struct RestoreArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Restore without asking
    #[arg(short, long)]
    pub yes: bool,
    /// Also undo your own edits since the start
    #[arg(long)]
    pub all: bool,
}

pub fn run(args: RestoreArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let RestoreArgs { run, yes, all } = args;
    let scope = if all { RestoreScope::Everything } else { RestoreScope::OfRun };
    let entry = app.open(folder, run.as_deref())?.entry;
    let id = &entry.run_id;
    // Includes every run driven in this folder, because its agent writes the same files.
    let home = app.environment().state_home()?;
    if let Some(driver) = locks::holder(&home, &entry.workspace) {
        let driven = &driver.run_id;
        return Err(CommandError::usage(format!(
            "run {driven} is running in this folder (process {}) and changes its files",
            driver.pid
        ))
        .hint(format!("`ralph cancel {driven}` ends it, then `ralph restore {id}`")));
    }
    if app.facts(folder, Some(id.as_str())).is_ok_and(|facts| facts.is_cleaned_up()) {
        return Err(CommandError::usage(format!(
            "run {id} was cleaned up: the files before it are not kept any more"
        ))
        .hint(format!("run `ralph show {id}` to see what it did")));
    }
    if !entry.workspace.is_dir() {
        return Err(CommandError::usage(format!(
            "the folder of run {id} is gone: `{}`",
            entry.workspace.display()
        ))
        .hint(format!(
            "`git log refs/ralph/{id}/work` in `{}` shows the work of the run",
            entry.origin.display()
        )));
    }
    let repo = Repo::discover(app.environment().vars(), &entry.workspace)?;
    let plan = plan_restore(&repo, id, entry.git_folder().as_deref(), scope).map_err(from_git)?;
    if !out.json {
        show(&plan, id, (&repo.top, yes), out);
    }
    let yes = yes || (!plan.changes.is_empty() && may_ask(out) && ask(plan.changes.len(), out));
    let kept_at = if yes && !plan.changes.is_empty() {
        Some(apply(&repo, &home, (&entry, scope), app, out)?)
    } else {
        None
    };
    if out.json {
        out.value(&object(id, &plan, kept_at.as_deref()));
    } else if kept_at.is_none() && !plan.changes.is_empty() {
        out.say(format!(
            "nothing was changed; {} `ralph restore {id} --yes{}` applies it",
            out.err(Tone::Plain, "next:"),
            if all { " --all" } else { "" }
        ));
    }
    Ok(0)
}

fn apply(
    repo: &Repo,
    home: &StateHome,
    (entry, scope): (&Registration, RestoreScope),
    app: &App,
    out: &Out,
) -> Result<String, CommandError> {
    let id = &entry.run_id;
    // Keeps runs from starting here during the restore.
    let _lock = locks::take(home, &entry.workspace, id, Duration::ZERO)?;
    let done = apply_restore(repo, id, entry.git_folder().as_deref(), scope).map_err(from_git)?;
    let kept = format!("refs/ralph/{id}/before-restore");
    out.say(format!(
        "restored {}; the state before is kept at {kept} ({})",
        count(done.plan.changes.len(), "file"),
        done.saved.short()
    ));
    out.say(format!("undo it: git restore --overlay --source={kept} -- :/"));
    // On the run's branch, old files would look like an edit that reverts its commits.
    if let Ok(state) = app.handle(entry).state()
        && let (Some(branch), Some(baseline)) = (&state.spec.branch, &state.baseline)
        && state.spec.place == WorkspaceKind::InPlace
        && let Some(back) = ralph_loop_git::checkout::leave_branch(repo, id, branch, baseline.head.as_str())
            .map_err(from_git)?
    {
        out.say(format!("back on the branch {back}; the run's commits stay on {branch}"));
    }
    Ok(kept)
}

fn from_git(error: ralph_loop_git::Error) -> CommandError {
    let hint = error.hint();
    let kind = match error {
        ralph_loop_git::Error::Refused { .. } => CommandError::usage(error.to_string()),
        other => CommandError::environment(other.to_string()),
    };
    CommandError { hint, ..kind }
}

fn word(action: RestoreAction) -> &'static str {
    match action {
        RestoreAction::Rewrite => "rewrite",
        RestoreAction::Delete => "delete",
        RestoreAction::Recreate => "recreate",
    }
}

/// Shows the changes; `yes` skips the question.
fn show(plan: &RestorePlan, id: &RunId, (top, yes): (&Path, bool), out: &Out) {
    if plan.changes.is_empty() && !plan.yours.is_empty() {
        out.line(format!("no file in {} is as the run left it: nothing to restore", top.display()));
    } else if plan.changes.is_empty() {
        out.line(format!("{} is as it was before the run: nothing to restore", top.display()));
    } else if yes {
        out.line(format!("restoring {} in {}:", count(plan.changes.len(), "file"), top.display()));
    } else {
        out.line(format!("{} in {} would change:", count(plan.changes.len(), "file"), top.display()));
    }
    let mut table = Table::new(1).indent(2);
    for change in plan.changes.iter().take(SHOWN) {
        let tone = if change.action == RestoreAction::Delete { Tone::Attention } else { Tone::Muted };
        let path = ralph_loop_protocol::display::text::one_line(&change.path.display().to_string(), 400);
        table.row([Cell::toned(tone, word(change.action)), path.into()]);
    }
    table.lines(columns(), out).iter().for_each(|l| out.line(l));
    if plan.changes.len() > SHOWN {
        out.line(format!("  … and {} more (`--json` lists all)", plan.changes.len() - SHOWN));
    }
    if !plan.yours.is_empty() {
        out.line(format!(
            "  yours, not touched: {} (changed since the run started, but not by the run; `ralph restore {id} --all` restores them as well)",
            some_of(&plan.yours)
        ));
    }
    if !plan.left_alone.is_empty() {
        out.line(format!(
            "  left alone: {} (ignored, too large, or a nested repo)",
            some_of(&plan.left_alone)
        ));
    }
}

/// The first of these names.
fn some_of(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .take(NAMED)
        .map(|path| ralph_loop_protocol::display::text::one_line(&path.display().to_string(), 400))
        .collect();
    let more = paths.len().saturating_sub(NAMED);
    if more == 0 { names.join(", ") } else { format!("{} and {more} more", names.join(", ")) }
}

fn ask(files: usize, out: &Out) -> bool {
    let what = if files == 1 { "this file".to_owned() } else { format!("these {files} files") };
    confirm(&format!("Restore {what}?"), out)
}

fn object(id: &RunId, plan: &RestorePlan, kept_at: Option<&str>) -> serde_json::Value {
    let changes: Vec<_> = plan
        .changes
        .iter()
        .map(|c| json!({ "path": c.path.to_string_lossy(), "action": word(c.action).replace(' ', "_") }))
        .collect();
    let names =
        |paths: &[PathBuf]| paths.iter().map(|p| p.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let (left, yours) = (names(&plan.left_alone), names(&plan.yours));
    json!({ "run_id": id, "changes": changes, "left_alone": left, "yours": yours, "applied": kept_at.is_some(), "kept_at": kept_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_git::hand_back::restore::RestoreChange;

    #[test]
    fn the_json_names_every_file_and_what_happens_to_it() {
        let change = |path: &str, action| RestoreChange { path: path.into(), action };
        let plan = RestorePlan {
            changes: vec![
                change("a.rs", RestoreAction::Rewrite),
                change("b.rs", RestoreAction::Delete),
                change("c.rs", RestoreAction::Recreate),
            ],
            left_alone: vec!["vendor".into()],
            yours: vec!["wip.txt".into()],
        };
        let id = RunId::from("20261115-143307-k3f9");
        insta::assert_json_snapshot!(object(&id, &plan, None), @r#"
        {
          "applied": false,
          "changes": [
            {
              "action": "rewrite",
              "path": "a.rs"
            },
            {
              "action": "delete",
              "path": "b.rs"
            },
            {
              "action": "recreate",
              "path": "c.rs"
            }
          ],
          "kept_at": null,
          "left_alone": [
            "vendor"
          ],
          "run_id": "20261115-143307-k3f9",
          "yours": [
            "wip.txt"
          ]
        }
        "#);
    }
}
