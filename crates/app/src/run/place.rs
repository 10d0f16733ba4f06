//! Where a run works: the user's own tree, a worktree or a clone, and on which branch.

use super::Plan;
use super::task::Chosen;
use crate::environment::Environment;
use crate::error::AppError;
use crate::request::{PlaceRequest, RunRequest};
use crate::{handover, locks, wiring};
use ralph_domain::config::{CloneConfig, Isolation, Settings};
use ralph_domain::id::RunId;
use ralph_domain::spec::Place;
use ralph_git::{Extent, LeftOut, Repo, place, sparse_folder, twin};
use ralph_journal::lock::RunLock;
use std::path::{Path, PathBuf};

/// The repo as seen from the branch that a task starts from, which may be one of another run (stacked work).
fn based_on(origin: &Repo, base: Option<&str>) -> Result<Repo, AppError> {
    let Some(base) = base else { return Ok(origin.clone()) };
    match place::commit_of_branch(origin, base)? {
        Some(head) => Ok(Repo { head, ..origin.clone() }),
        None => {
            Err(AppError::usage(format!("the task starts from the branch `{base}`, which does not exist"))
                .hint("correct `base_branch`, or make the branch"))
        }
    }
}

/// Where a run works.
pub struct Placed {
    pub place: Place,
    /// The folder of the agent's files.
    pub workspace: PathBuf,
    /// The branch that the run commits on.
    pub branch: Option<String>,
    /// The lock of the user's folder, where it had to be taken before anything was copied from it.
    pub lock: Option<RunLock>,
    /// What of the user's tree the agent does not get.
    pub left_out: LeftOut,
}

impl Placed {
    fn new(place: Place, workspace: PathBuf, branch: Option<String>) -> Self {
        Self { place, workspace, branch, lock: None, left_out: LeftOut::default() }
    }
}

/// How much of the repo a clone brings: flags, then the configuration. Folders that the task itself needs come along.
pub fn extent(
    request: &RunRequest,
    config: Option<&CloneConfig>,
    chosen: &Chosen,
) -> Result<Extent, AppError> {
    let (depth, sparse) = match &request.place {
        PlaceRequest::Clone { depth, sparse, .. } => (*depth, sparse.as_slice()),
        PlaceRequest::InPlace | PlaceRequest::Worktree => (None, &[][..]),
    };
    let named = match sparse {
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
    let depth = depth.or(config.and_then(|clone| clone.depth));
    Ok(Extent { depth, sparse, base: chosen.base.clone() })
}

/// The folder for the agent's files, made as the flags ask for it.
pub fn make(plan: &Plan, run_id: &RunId) -> Result<Placed, AppError> {
    let Plan { request, origin, home, settings, chosen, .. } = plan;
    if request.place != PlaceRequest::InPlace {
        return beside(plan, run_id);
    }
    // Nobody else may work on the tree from here on: its branch is switched, and it may be copied.
    origin.exclude_ralph_dir()?;
    let lock = locks::of_folder(home, &origin.top, run_id)?;
    let branch = in_place(request, origin, run_id, settings, chosen)?;
    if settings.isolation == Isolation::None {
        let placed = Placed::new(Place::InPlace, origin.top.clone(), branch);
        return Ok(Placed { lock: Some(lock), ..placed });
    }
    let here = Repo::discover(&origin.vars, &origin.top)?;
    let made = twin::make(
        &here,
        run_id,
        branch.clone(),
        &home.workspace(run_id),
        &wiring::git_folders(home, run_id),
    )?;
    let placed = Placed::new(Place::InPlace, made.repo.top, branch);
    Ok(Placed { lock: Some(lock), left_out: made.left_out, ..placed })
}

/// A worktree or a clone.
fn beside(plan: &Plan, run_id: &RunId) -> Result<Placed, AppError> {
    let Plan { env, request, origin, home, chosen, extent, .. } = plan;
    check_branch_name(request, origin)?;
    let own = || chosen.branch.clone().unwrap_or_else(|| format!("ralph/{run_id}"));
    let PlaceRequest::Clone { from, .. } = &request.place else {
        let path = home.workspace(run_id);
        let branch = request.branch.clone().unwrap_or_else(own);
        let base = based_on(origin, chosen.base.as_deref())?;
        let (made, branch) = place::add_worktree(&base, run_id, &path, &branch)?;
        return Ok(Placed::new(Place::Worktree, made.top, Some(branch)));
    };
    let path = home.workspace(run_id);
    let branch = request.branch.clone().unwrap_or_else(own);
    let made = place::clone_part(
        env.vars(),
        &from_here(env, &handover::clone_source(env, from)),
        &path,
        &branch,
        extent,
    )?;
    // A URL may carry a password; the spec is written to disk.
    let from = env.redactor(&origin.top).text(from).into_owned();
    Ok(Placed::new(Place::Clone { from, sparse: extent.sparse.clone() }, made.top, Some(branch)))
}

/// A relative path is meant from where the program was started.
fn from_here(env: &Environment, from: &str) -> String {
    match env.cwd() {
        Some(cwd) if !handover::is_elsewhere(from) => cwd.join(from).display().to_string(),
        _ => from.to_owned(),
    }
}

fn check_branch_name(request: &RunRequest, origin: &Repo) -> Result<(), AppError> {
    if let Some(name) = &request.branch
        && origin.git().call(["check-ref-format", "--branch", name]).run().is_err()
    {
        return Err(AppError::usage(format!("`{name}` is not a valid branch name"))
            .hint("use letters, digits, `-`, `_`, `.` and `/`, for example `--branch fix-router`"));
    }
    Ok(())
}

/// The branch of a run in the user's own folder, switched to where it is a new one.
fn in_place(
    request: &RunRequest,
    origin: &Repo,
    run_id: &RunId,
    settings: &Settings,
    chosen: &Chosen,
) -> Result<Option<String>, AppError> {
    check_branch_name(request, origin)?;
    if let Some(branch) = &request.branch {
        if origin.branch.as_deref() != Some(branch) {
            let free = place::free_branch_name(origin, branch)?;
            if free != *branch {
                return Err(AppError::usage(format!(
                    "the branch `{branch}` exists already, or another branch is in its way"
                ))
                .hint(format!("choose another name, e.g. `--branch {free}`")));
            }
            place::create_branch_in_place(origin, run_id, branch)?;
        }
        return Ok(Some(branch.clone()));
    }
    if let Some(base) = &chosen.base
        && based_on(origin, Some(base))?.head != origin.head
    {
        let here = origin.branch.as_deref().unwrap_or("a detached HEAD");
        return Err(AppError::usage(format!("the task starts from `{base}`, but the folder is on `{here}`"))
            .hint(format!("`git switch {base}` first, or work beside your tree with `--worktree`")));
    }
    if let Some(branch) = &chosen.branch {
        let branch = place::create_branch(origin, run_id, branch, &origin.head)?;
        place::switch_in_place(origin, run_id, &branch)?;
        return Ok(Some(branch));
    }
    match (settings.checkpoint_commits, &origin.branch) {
        (false, _) => Ok(None),
        (true, Some(branch)) => Ok(Some(branch.clone())),
        (true, None) => Err(AppError::usage("`checkpoint_commits` needs a branch, but HEAD is detached")
            .hint("`--branch NAME` makes one, or `git switch BRANCH` first")),
    }
}
