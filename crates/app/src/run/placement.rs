//! Creates the workspace of a registered run. The journal comes first, so a process killed in between leaves
//! a run that `resume` completes or `cancel` removes.

use super::{Plan, memory, place};
use crate::environment::Environment;
use crate::error::AppError;
use crate::report::Reporter;
use crate::request::Workplace;
use crate::start::handover;
use ralph_loop_core::RunWriter;
use ralph_loop_git::{CloneDepth, LeftOut, Repo};
use ralph_loop_journal::folder::layout::{RalphDir, StateHome};
use ralph_loop_journal::folder::{artifacts, shown};
use ralph_loop_protocol::event::Placed;
use ralph_loop_protocol::id::{CommitId, Digest, RunId};
use ralph_loop_task::dialect::template::{Vars, settled};
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

const TASK_MAX: u64 = 16 * 1024 * 1024;

/// The requested workspace, kept in the record until it is created.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PlacementRequest {
    /// The kind, and its source.
    pub place: Workplace,
    /// The branch the user named, which must be used.
    pub branch: Option<String>,
    /// The branch the task suggests, or a similar name.
    pub task_branch: Option<String>,
    /// The base branch.
    pub base: Option<String>,
    /// The start commit, if it is another run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The tree of that commit plus uncommitted changes, if there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    depth: Option<u32>,
    sparse: Vec<String>,
}

impl PlacementRequest {
    /// The workspace that a plan requests.
    pub fn of(plan: &Plan, run_id: &RunId) -> Self {
        let task = &plan.task;
        let known = Vars::new()
            .with("run_id", run_id.as_str())
            .with("task_id", task.id.as_deref().unwrap_or(run_id.as_str()))
            .with("ticket_id", task.ticket.as_deref().or(task.id.as_deref()).unwrap_or(run_id.as_str()));
        // Unknown template variables are removed from a branch name.
        let named = |branch: &Option<String>| branch.as_ref().map(|name| settled(name, &known));
        Self {
            place: plan.request.place.clone(),
            branch: named(&plan.request.branch),
            task_branch: named(&plan.chosen.branch).filter(|name| !name.is_empty()),
            base: plan.request.base.clone().or_else(|| plan.chosen.base.clone()),
            commit: plan.fork.as_ref().map(|fork| fork.commit.clone()),
            unfinished: plan.fork.as_ref().and_then(|fork| Some(fork.unfinished.as_ref()?.tree.clone())),
            depth: plan.extent.depth,
            sparse: plan.extent.sparse.clone(),
        }
    }

    /// How much of the repo a clone contains.
    pub fn extent(&self) -> CloneDepth {
        CloneDepth { depth: self.depth, sparse: self.sparse.clone(), base: self.base.clone() }
    }

    /// The place for the spec, which is written to disk: a password in the URL is removed.
    pub fn place(&self, env: &Environment, origin: &Repo) -> WorkspaceKind {
        match &self.place {
            Workplace::InPlace => WorkspaceKind::InPlace,
            Workplace::Worktree => WorkspaceKind::Worktree,
            Workplace::Clone { from, .. } => WorkspaceKind::Clone {
                from: env.redactor(&origin.top).text(from).into_owned(),
                sparse: self.sparse.clone(),
            },
        }
    }

    pub fn keep(&self, env: &Environment, home: &StateHome, run: &RunId) -> Result<(), AppError> {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        env.redactor(&PathBuf::new()).json(&mut value);
        let text = serde_json::to_vec_pretty(&value).unwrap_or_default();
        Ok(artifacts::write_atomic(&file(home, run), &text)?)
    }

    /// The request of a run without a workspace.
    pub fn of_run(home: &StateHome, run: &RunId) -> Option<Self> {
        serde_json::from_slice(&fs::read(file(home, run)).ok()?).ok()
    }
}

fn file(home: &StateHome, run: &RunId) -> PathBuf {
    home.record(run).path().join("place.json")
}

/// Creates and journals the workspace of a run that this process holds. Returns which parts of the user's
/// tree the agent doesn't get.
pub(crate) fn make(
    env: &Environment,
    home: &StateHome,
    writer: &mut RunWriter,
    request: &PlacementRequest,
    report: &dyn Reporter,
) -> Result<LeftOut, AppError> {
    let mut spec = writer.state().spec.clone();
    let mut watcher = report.observer();
    watcher.boundary("place.before");
    let origin = Repo::discover(env.vars(), &spec.origin)?;
    let placed = place::make(env, home, &origin, &spec, request, report)?;
    watcher.boundary("place.made");
    (spec.workspace, spec.branch) = (placed.workspace, placed.branch);
    let repo =
        if spec.place == WorkspaceKind::InPlace { origin } else { Repo::discover(env.vars(), spec.home())? };
    place::exclude_state(&repo, &spec)?;
    handover::name_branch(env, &mut spec, &repo, request.task_branch.as_deref(), report)?;
    memory::begin(env, home, &spec)?;
    copy_task(&spec)?;
    writer.placed(Placed {
        workspace: spec.workspace.clone(),
        branch: spec.branch.clone(),
        push_branch: spec.settings.handover.branch.clone(),
        config: if spec.place == WorkspaceKind::InPlace { None } else { tracked_config(&spec.workspace) },
    })?;
    let _ = fs::remove_file(file(home, &spec.run_id));
    watcher.boundary("place.after");
    Ok(placed.left_out)
}

/// Copies a task kept in the user's `.ralph/` into the workspace, where its boxes are ticked.
fn copy_task(spec: &RunSpec) -> Result<(), AppError> {
    let Some(name) = spec.task.source.strip_prefix(".ralph/") else { return Ok(()) };
    let from = RalphDir::of(&spec.origin);
    let (Some(text), true) = (from.read(name, TASK_MAX), spec.task.raw.is_some()) else { return Ok(()) };
    for folder in [spec.home(), &spec.workspace] {
        let dir = RalphDir::of(folder);
        if dir.read(name, 1).is_none() {
            dir.write(name, &text)?;
        }
    }
    Ok(())
}

/// The repo's configuration in a worktree or clone, before any agent works there.
fn tracked_config(workspace: &Path) -> Option<Digest> {
    RalphDir::of(workspace).config_digest()
}

/// Removes leftovers of a run that never had its workspace; there is no work to lose.
pub(crate) fn undo(env: &Environment, home: &StateHome, spec: &RunSpec) {
    let path = home.workspace(&spec.run_id);
    let Ok(origin) = Repo::discover(env.vars(), &spec.origin) else { return };
    super::remove_agent_copy(env.vars(), home, spec);
    match &spec.place {
        WorkspaceKind::InPlace => {}
        WorkspaceKind::Worktree => {
            let made = Repo::discover(env.vars(), &path).ok().and_then(|made| made.branch);
            let _ = ralph_loop_git::checkout::remove_worktree(&origin, &path);
            for branch in made.iter().chain(&spec.branch) {
                ralph_loop_git::checkout::remove_branch(&origin, &spec.run_id, branch);
            }
        }
        WorkspaceKind::Clone { .. } => {}
    }
    let made = [path, home.agent_copy(&spec.run_id)];
    for (made, suffix) in made.iter().flat_map(|made| ["", ".ralph-partial"].map(|suffix| (made, suffix))) {
        let mut name = made.clone().into_os_string();
        name.push(suffix);
        let folder = PathBuf::from(name);
        if folder.exists() {
            ralph_loop_git::checkout::kill_git_in(&folder);
            let _ = ralph_loop_safe_fs::remove_tree(&folder);
        }
    }
}

/// Removes all traces of a run that was rejected during creation.
pub(crate) fn forget(env: &Environment, home: &StateHome, spec: &RunSpec) {
    undo(env, home, spec);
    shown::unlink(&RalphDir::of(&spec.origin), &spec.run_id);
    remove_record(home, &spec.run_id);
}

fn remove_record(home: &StateHome, run: &RunId) {
    let _ = fs::remove_file(home.registration(run));
    for sealed in [home.seal(run), home.seal(run).with_extension("spec.json")] {
        let _ = fs::remove_file(sealed);
    }
    let _ = fs::remove_dir_all(home.record(run).path());
}

/// Handles unregistered records of killed processes: registers those with a journal, deletes the rest.
pub(crate) fn sweep(home: &StateHome) {
    for entry in fs::read_dir(home.registrations()).into_iter().flatten().flatten() {
        let Some(run) = entry.file_name().to_str().and_then(|name| RunId::parse(name).ok()) else { continue };
        let record = home.record(&run);
        if !record.path().is_dir() || home.registration(&run).exists() || is_young(record.path()) {
            continue;
        }
        if ralph_loop_journal::lock::holder(&record.lock()).is_some_and(|holder| holder.run_id == run) {
            continue;
        }
        let begun = fs::metadata(record.events()).is_ok_and(|meta| meta.len() > 0);
        match ralph_loop_journal::folder::snapshot::read_spec(&record) {
            Ok(spec) if begun => drop(crate::wiring::register(home, &spec)),
            _ => remove_record(home, &run),
        }
    }
}

/// Whether another process may be about to take its lock.
fn is_young(folder: &std::path::Path) -> bool {
    let age = fs::metadata(folder).and_then(|meta| meta.modified()).map(|at| at.elapsed());
    folder.join("lock").symlink_metadata().is_err()
        && age.is_ok_and(|age| age.is_ok_and(|age| age.as_secs() < 10))
}
