//! A run's workspace (the user's tree, a worktree or a clone) and branch.

use super::placement::PlacementRequest;
use super::task::ChosenTask;
use crate::agents::agent_settings;
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::report::{Notice, Reporter};
use crate::request::{RunRequest, Workplace};
use crate::start::handover;
use crate::wiring;
use ralph_loop_agents::presets;
use ralph_loop_git::UserChanges;
use ralph_loop_git::{CloneDepth, LeftOut, Repo, agent_copy, checkout, sparse_folder};
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::snapshot;
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::outcome::ErrorCode;
use ralph_loop_task::config::{CloneConfig, Isolation};
use ralph_loop_task::spec::RunSpec;
use std::path::{Path, PathBuf};

/// The repo at the task's base branch, which may belong to another run (stacked work).
fn based_on(origin: &Repo, base: Option<&str>) -> Result<Repo, AppError> {
    let Some(base) = base else { return Ok(origin.clone()) };
    match checkout::commit_of_branch(origin, base)? {
        Some(head) => Ok(Repo { head, ..origin.clone() }),
        None => {
            Err(AppError::usage(format!("the task starts from the branch `{base}`, which does not exist"))
                .hint("correct `base_branch`, or make the branch"))
        }
    }
}

/// A created workspace.
pub(super) struct RunWorkspace {
    /// The agent's folder.
    pub workspace: PathBuf,
    /// The branch that the run commits to.
    pub branch: Option<String>,
    /// Parts of the user's tree that the agent doesn't get.
    pub left_out: LeftOut,
}

impl RunWorkspace {
    fn new(workspace: PathBuf, branch: Option<String>) -> Self {
        Self { workspace, branch, left_out: LeftOut::default() }
    }
}

/// How much of the repo a clone contains: flags, then the configuration, plus folders the task needs.
pub fn extent(
    request: &RunRequest,
    config: Option<&CloneConfig>,
    chosen: &ChosenTask,
) -> Result<CloneDepth, AppError> {
    let (depth, sparse) = match &request.place {
        Workplace::Clone { depth, sparse, .. } => (*depth, sparse.as_slice()),
        Workplace::InPlace | Workplace::Worktree => (None, &[][..]),
    };
    let named = match sparse {
        [] => config.map_or(&[][..], |clone| &clone.sparse),
        named => named,
    };
    let working_dir = chosen.task.working_dir.as_deref();
    // An empty name means the task's own folder.
    if named.iter().any(String::is_empty) && working_dir.is_none() {
        return Err(AppError::usage("the task names no `working_dir` to clone alone")
            .hint("name the folder: `--sparse FOLDER`"));
    }
    let folders = named.iter().filter(|folder| !folder.is_empty());
    let mut sparse = folders.map(|folder| sparse_folder(folder)).collect::<Result<Vec<_>, _>>()?;
    if !named.is_empty() {
        let source =
            Path::new(&chosen.task.source).parent().and_then(Path::to_str).filter(|dir| !dir.is_empty());
        let needed = working_dir.into_iter().chain(source);
        sparse.extend(needed.filter_map(|folder| sparse_folder(folder).ok()));
        sparse.sort();
        sparse.dedup();
    }
    let depth = depth.or(config.and_then(|clone| clone.depth));
    Ok(CloneDepth { depth, sparse, base: chosen.base.clone() })
}

/// Creates the requested workspace, or reuses the one an earlier process of this run created.
pub(super) fn make(
    env: &Environment,
    home: &StateHome,
    origin: &Repo,
    spec: &RunSpec,
    request: &PlacementRequest,
    report: &dyn Reporter,
) -> Result<RunWorkspace, AppError> {
    if request.place != Workplace::InPlace {
        let made = beside(env, home, origin, spec, request)?;
        pass_over_covered(env, spec, &made.workspace)?;
        return Ok(made);
    }
    let branch = in_place(origin, spec, request, report)?;
    if !spec.hands_back() {
        return Ok(RunWorkspace::new(origin.top.clone(), branch));
    }
    let switched = match branch {
        Some(_) => Some(Repo::discover(&origin.vars, &origin.top)?),
        None => None,
    };
    let made = copied(home, switched.as_ref().unwrap_or(origin), spec, branch)?;
    pass_over_covered(env, spec, &made.workspace)?;
    Ok(made)
}

/// Marks hidden settings as unchanged in the agent's tree, so that neither status nor commits show them as
/// deleted.
fn pass_over_covered(env: &Environment, spec: &RunSpec, tree: &Path) -> Result<(), AppError> {
    let settings = &spec.settings;
    if matches!(settings.isolation, Isolation::None | Isolation::Landlock)
        || settings.sandbox.provider().is_elsewhere()
    {
        return Ok(());
    }
    let clis: Vec<&str> =
        settings.agents.iter().filter_map(|agent| presets::preset_of(&agent.command_argv)).collect();
    let below = Path::new(spec.task.working_dir.as_deref().unwrap_or_default());
    let covered = agent_settings::covered(tree, below, &clis, &env.grants(&spec.origin));
    if covered.is_empty() {
        return Ok(());
    }
    let repo = Repo::discover(env.vars(), tree)?;
    let mut list = vec!["ls-files".to_owned(), "-z".to_owned(), "--".to_owned()];
    list.extend(covered.iter().map(|path| format!(":(literal){}", path.display())));
    let failed = |error: ralph_loop_git::GitError| {
        not_made(AppError::environment("the agent's tree could not be made ready").cause(error.to_string()))
    };
    let tracked = repo.git().call(list).run().map_err(failed)?.stdout;
    if !tracked.is_empty() {
        let mark = repo.git().call(["update-index", "-z", "--skip-worktree", "--stdin"]);
        mark.stdin(tracked).run().map_err(failed)?;
    }
    Ok(())
}

/// The agent's copy of a tree.
fn copied(
    home: &StateHome,
    tree: &Repo,
    spec: &RunSpec,
    branch: Option<String>,
) -> Result<RunWorkspace, AppError> {
    let (run, into) = (&spec.run_id, &spec.workspace);
    // No agent has worked in a leftover copy.
    let _ = ralph_loop_safe_fs::remove_tree(into);
    let (contents, folders) = (wiring::copy_contents(&spec.settings), wiring::git_folders(home, run));
    let made = agent_copy::make(tree, run, branch.clone(), into, (&contents, &folders)).map_err(not_made)?;
    Ok(RunWorkspace { left_out: made.left_out, ..RunWorkspace::new(made.top, branch) })
}

/// A worktree or a clone.
fn beside(
    env: &Environment,
    home: &StateHome,
    origin: &Repo,
    spec: &RunSpec,
    request: &PlacementRequest,
) -> Result<RunWorkspace, AppError> {
    check_branch_name(request, origin)?;
    let run_id = &spec.run_id;
    let path = home.workspace(run_id);
    let own = || request.task_branch.clone().unwrap_or_else(|| format!("ralph/{run_id}"));
    let branch = request.branch.clone().unwrap_or_else(own);
    let Workplace::Clone { from, .. } = &request.place else {
        let base = match &request.commit {
            Some(commit) => Repo { head: commit.to_string(), ..origin.clone() },
            None => based_on(origin, request.base.as_deref())?,
        };
        let (made, branch) = checkout::add_worktree(&base, run_id, &path, &branch).map_err(not_made)?;
        if let (Some(commit), Some(tree)) = (&request.commit, &request.unfinished) {
            UserChanges::write_to(&made, run_id, commit, tree).map_err(not_made)?;
        }
        return worktree_or_copy(home, made, spec, branch);
    };
    let source = from_here(env, &handover::clone_source(env, from, &origin.top));
    let made =
        checkout::clone_part(env.vars(), &source, &path, &branch, &request.extent()).map_err(not_made)?;
    worktree_or_copy(home, made, spec, branch)
}

/// A worktree or clone for the agent: itself, or a copy with a separate git folder.
fn worktree_or_copy(
    home: &StateHome,
    made: Repo,
    spec: &RunSpec,
    branch: String,
) -> Result<RunWorkspace, AppError> {
    if spec.handed_to.is_none() {
        return Ok(RunWorkspace::new(made.top, Some(branch)));
    }
    exclude_state(&made, spec)?;
    copied(home, &made, spec, Some(branch))
}

/// Excludes the run's state from commits.
pub(super) fn exclude_state(repo: &Repo, spec: &RunSpec) -> Result<(), AppError> {
    repo.exclude_ralph_dir()?;
    if let Some(folder) = &spec.task.working_dir {
        repo.exclude_ralph_dir_in(folder)?;
    }
    Ok(())
}

/// Wraps an error from creating a workspace.
fn not_made(error: impl Into<AppError>) -> AppError {
    error.into().code(ErrorCode::CloneFailed)
}

/// Relative paths start at the current folder.
pub(super) fn from_here(env: &Environment, from: &str) -> String {
    match env.cwd() {
        Some(cwd) if !handover::is_elsewhere(from) => cwd.join(from).display().to_string(),
        _ => from.to_owned(),
    }
}

fn check_branch_name(request: &PlacementRequest, origin: &Repo) -> Result<(), AppError> {
    if let Some(name) = &request.branch
        && (ralph_loop_task::dialect::names::branch_problem(name).is_some()
            || origin.git().call(["check-ref-format", "--branch", name]).run().is_err())
    {
        return Err(AppError::usage(format!("`{name}` is not a valid branch name"))
            .hint("use letters, digits, `-`, `_`, `.` and `/`, for example `--branch fix-router`"));
    }
    Ok(())
}

/// The branch of a run in the user's own folder; switches to it if it is new.
fn in_place(
    origin: &Repo,
    spec: &RunSpec,
    request: &PlacementRequest,
    report: &dyn Reporter,
) -> Result<Option<String>, AppError> {
    check_branch_name(request, origin)?;
    let run_id = &spec.run_id;
    let switching = |to: &str| {
        report.notice(&Notice::Switching { folder: &origin.top, from: origin.branch.as_deref(), to });
    };
    if let Some(branch) = &request.branch {
        if origin.branch.as_deref() != Some(branch) {
            switching(branch);
            checkout::create_branch_in_place(origin, run_id, branch)?;
        }
        return Ok(Some(branch.clone()));
    }
    if let Some(base) = &request.base
        && based_on(origin, Some(base))?.head != origin.head
    {
        let here = origin.branch.as_deref().unwrap_or("a detached HEAD");
        return Err(AppError::usage(format!("the task starts from `{base}`, but the folder is on `{here}`"))
            .hint(format!("run `git switch {base}` first, or pass `--worktree`")));
    }
    if let Some(branch) = &request.task_branch {
        refuse_unfinished(origin, branch)?;
        let branch = checkout::create_branch(origin, run_id, branch, &origin.head)?;
        switching(&branch);
        checkout::switch_in_place(origin, run_id, &branch)?;
        return Ok(Some(branch));
    }
    match (spec.settings.checkpoint_commits, &origin.branch) {
        (false, _) => Ok(None),
        (true, Some(branch)) => Ok(Some(branch.clone())),
        (true, None) => Err(AppError::usage("`checkpoint_commits` needs a branch, but HEAD is detached")
            .hint("`--branch NAME` makes one, or `git switch BRANCH` first")),
    }
}

/// Switches the user's checkout back after a rejected run.
pub(super) fn leave_run_branch(before: &Repo, spec: &RunSpec) {
    let (Ok(now), Some(own)) = (Repo::discover(&before.vars, &before.top), &before.branch) else { return };
    // Only a branch that this run created and that hasn't moved: no file differs.
    let Some(made) = now.branch.clone().filter(|made| made != own && now.head == before.head) else { return };
    if checkout::switch_in_place(&now, &spec.run_id, own).is_ok() {
        checkout::remove_branch(&now, &spec.run_id, &made);
    }
}

/// Rejects a task branch that would carry along uncommitted changes; naming the branch explicitly allows it.
fn refuse_unfinished(origin: &Repo, branch: &str) -> Result<(), AppError> {
    let args = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"];
    let changed = origin.git().call(args).run().map_err(ralph_loop_git::Error::from)?.text();
    let names: Vec<&str> = changed.lines().filter_map(|line| line.get(3..)).collect();
    let Some(first) = names.first() else { return Ok(()) };
    let what = match names.len() {
        1 => format!("`{first}`"),
        more => format!("`{first}` and {} more", count(more - 1, "file")),
    };
    Err(AppError::usage(format!(
        "the task works on the branch `{branch}`, but this folder has unfinished changes: {what}"
    ))
    .cause("switching your checkout would take them along")
    .hint(format!("commit them first, pass `--worktree`, or pass `--branch {branch}` to switch anyway")))
}

/// Whether an earlier run of this folder created the branch, so that another one may continue on it.
fn is_run_branch(home: &StateHome, origin: &Repo, branch: &str) -> bool {
    find::runs_of(home, &origin.top).iter().any(|entry| {
        snapshot::read_spec(&entry.run_dir())
            .is_ok_and(|spec| spec.branch.as_deref() == Some(branch) && !spec.settings.checkpoint_commits)
    })
}

/// Rejects a branch that can't be created in the user's folder, before anything is.
pub(super) fn check_free(
    home: &StateHome,
    origin: &Repo,
    request: &PlacementRequest,
) -> Result<(), AppError> {
    check_branch_name(request, origin)?;
    let Some(branch) = &request.branch else { return Ok(()) };
    if request.place != Workplace::InPlace {
        return Ok(());
    }
    let free = checkout::free_branch_name(origin, branch)?;
    if origin.branch.as_ref() == Some(branch) {
        if is_run_branch(home, origin, branch) {
            return Ok(());
        }
        return Err(AppError::usage(format!(
            "`--branch {branch}`: that is the branch that you are on, and the run would commit straight onto it"
        ))
        .cause("`--branch` makes a new branch for the commits of a run")
        .hint(format!(
            "choose another name, e.g. `--branch {free}`; or leave out `--branch`, review the result and commit it with `ralph apply --squash`"
        )));
    }
    match free == *branch {
        true => Ok(()),
        false => {
            let what = format!("the branch `{branch}` already exists, or conflicts with another branch");
            Err(AppError::usage(what).hint(format!("choose another name, e.g. `--branch {free}`")))
        }
    }
}
