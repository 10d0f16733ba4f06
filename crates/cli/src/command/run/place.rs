//! Where a run works: the user's own tree, a worktree or a clone, and on which branch.

use super::RunArgs;
use super::task::Chosen;
use crate::error::CommandError;
use crate::host;
use ralph_domain::config::Settings;
use ralph_domain::id::RunId;
use ralph_domain::spec::Place;
use ralph_git::{Repo, place};
use ralph_journal::layout::StateHome;
use std::path::PathBuf;

/// The repo as seen from the branch that a task starts from, which may be one of another run (stacked work).
fn based_on(origin: &Repo, base: Option<&str>) -> Result<Repo, CommandError> {
    let Some(base) = base else { return Ok(origin.clone()) };
    let found = [format!("refs/heads/{base}"), format!("refs/remotes/origin/{base}")]
        .iter()
        .find_map(|name| origin.git().call(["rev-parse", "--verify", "--quiet", name]).run().ok());
    match found {
        Some(commit) => Ok(Repo { head: commit.text(), ..origin.clone() }),
        None => Err(CommandError::usage(format!(
            "the task starts from the branch `{base}`, which does not exist"
        ))
        .hint("correct `base_branch`, or make the branch")),
    }
}

pub fn make(
    args: &RunArgs,
    origin: &Repo,
    home: &StateHome,
    run_id: &RunId,
    settings: &Settings,
    chosen: &Chosen,
) -> Result<(Place, PathBuf, Option<String>), CommandError> {
    let task_branch = &chosen.branch;
    let own = || task_branch.clone().unwrap_or_else(|| format!("ralph/{run_id}"));
    if let Some(name) = &args.branch
        && origin.git().call(["check-ref-format", "--branch", name]).run().is_err()
    {
        return Err(CommandError::usage(format!("`{name}` is not a valid branch name"))
            .hint("use letters, digits, `-`, `_`, `.` and `/`, for example `--branch fix-router`"));
    }
    if args.worktree {
        let path = home.workspace(run_id);
        let branch = args.branch.clone().unwrap_or_else(own);
        let branch = place::free_branch_name(origin, &branch)?;
        let made = place::add_worktree(&based_on(origin, chosen.base.as_deref())?, &path, &branch)?;
        return Ok((Place::Worktree, made.top, Some(branch)));
    }
    if let Some(from) = &args.clone {
        let path = home.workspace(run_id);
        let branch = args.branch.clone().unwrap_or_else(own);
        let made = place::clone(from, &path, &branch)?;
        if let Some(base) = &chosen.base {
            // A fresh clone is ours alone: its new branch may start where the task says.
            let start = based_on(&made, Some(base))?.head;
            made.git()
                .call(["checkout", "-q", "-B", &branch, &start])
                .run()
                .map_err(ralph_git::Error::from)?;
        }
        // A URL may carry a password; the spec is written to disk.
        let from = host::redactor(&origin.top).text(from).into_owned();
        return Ok((Place::Clone { from }, made.top, Some(branch)));
    }
    if let Some(branch) = &args.branch {
        if origin.branch.as_deref() != Some(branch) {
            let free = place::free_branch_name(origin, branch)?;
            if free != *branch {
                return Err(CommandError::usage(format!(
                    "the branch `{branch}` exists already, or another branch is in its way"
                ))
                .hint(format!("choose another name, e.g. `--branch {free}`")));
            }
            place::create_branch_in_place(origin, branch)?;
        }
        return Ok((Place::InPlace, origin.top.clone(), Some(branch.clone())));
    }
    if let Some(base) = &chosen.base
        && based_on(origin, Some(base))?.head != origin.head
    {
        let here = origin.branch.as_deref().unwrap_or("a detached HEAD");
        return Err(CommandError::usage(format!(
            "the task starts from `{base}`, but the folder is on `{here}`"
        ))
        .hint(format!("`git switch {base}` first, or work beside your tree with `--worktree`")));
    }
    if let Some(branch) = task_branch {
        let branch = place::free_branch_name(origin, branch)?;
        place::create_branch_in_place(origin, &branch)?;
        return Ok((Place::InPlace, origin.top.clone(), Some(branch)));
    }
    let branch = match (settings.checkpoint_commits, &origin.branch) {
        (false, _) => None,
        (true, Some(branch)) => Some(branch.clone()),
        (true, None) => {
            return Err(CommandError::usage("`checkpoint_commits` needs a branch, but HEAD is detached")
                .hint("`--branch NAME` makes one, or `git switch BRANCH` first"));
        }
    };
    Ok((Place::InPlace, origin.top.clone(), branch))
}
