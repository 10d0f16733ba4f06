//! Where a run works: the user's own tree, a worktree or a clone, and on which branch.

use super::RunArgs;
use super::task::Chosen;
use crate::error::CommandError;
use crate::host;
use ralph_domain::config::{CloneConfig, Settings};
use ralph_domain::id::RunId;
use ralph_domain::spec::Place;
use ralph_git::{Extent, Repo, place, sparse_folder};
use ralph_journal::layout::StateHome;
use std::path::{Path, PathBuf};

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

/// How much of the repo a clone brings: flags, then the configuration. Folders that the task itself needs come along.
pub fn extent(args: &RunArgs, config: Option<&CloneConfig>, chosen: &Chosen) -> Result<Extent, CommandError> {
    let named = match args.sparse.as_slice() {
        [] => config.map_or(&[][..], |clone| &clone.sparse),
        named => named,
    };
    let mut sparse = named.iter().map(|folder| sparse_folder(folder)).collect::<Result<Vec<_>, _>>()?;
    if !sparse.is_empty() {
        let source =
            Path::new(&chosen.task.source).parent().and_then(Path::to_str).filter(|dir| !dir.is_empty());
        let needed = chosen.task.working_dir.as_deref().into_iter().chain(source);
        sparse.extend(needed.filter_map(|folder| sparse_folder(folder).ok()));
        sparse.sort();
        sparse.dedup();
    }
    let depth = args.depth.or(config.and_then(|clone| clone.depth));
    Ok(Extent { depth, sparse, base: chosen.base.clone() })
}

pub fn make(
    args: &RunArgs,
    origin: &Repo,
    home: &StateHome,
    run_id: &RunId,
    settings: &Settings,
    chosen: &Chosen,
    extent: &Extent,
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
        let made = place::clone_part(from, &path, &branch, extent)?;
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
        return Ok((Place::Clone { from, sparse: extent.sparse.clone() }, made.top, Some(branch)));
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
