//! From a run that exists to one that has its place. The journal is there first, so a process that is killed in between leaves a
//! run that `resume` places, or `cancel` takes away again.

use super::{Plan, memory, place};
use crate::environment::Environment;
use crate::error::AppError;
use crate::handover;
use crate::report::Reporter;
use crate::request::PlaceRequest;
use ralph_loop_core::RunWriter;
use ralph_loop_git::{CloneDepth, LeftOut, Repo};
use ralph_loop_journal::layout::{RalphDir, StateHome};
use ralph_loop_journal::{artifacts, shown};
use ralph_loop_protocol::event::Placed;
use ralph_loop_protocol::id::{CommitId, Digest, RunId};
use ralph_loop_task::dialect::template::{Vars, settled};
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of a task file.
const TASK_MAX: u64 = 16 * 1024 * 1024;

/// The workspace that a run asks for; a file in its record until that is made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PlacementRequest {
    /// What kind, and from where.
    pub place: PlaceRequest,
    /// The branch that a person named: this one or none.
    pub branch: Option<String>,
    /// The branch that the task names, or one like it.
    pub task_branch: Option<String>,
    /// The branch to start from.
    pub base: Option<String>,
    /// The commit to start from, where it is another run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitId>,
    /// The tree of that commit with what the user had not committed beside it, where there was something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    depth: Option<u32>,
    sparse: Vec<String>,
}

impl PlacementRequest {
    /// What a plan wishes for.
    pub fn of(plan: &Plan, run_id: &RunId) -> Self {
        let task = &plan.task;
        let known = Vars::new()
            .with("run_id", run_id.as_str())
            .with("task_id", task.id.as_deref().unwrap_or(run_id.as_str()))
            .with("ticket_id", task.ticket.as_deref().or(task.id.as_deref()).unwrap_or(run_id.as_str()));
        // No template stays in a name: what nobody knows goes.
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

    /// How much of the repo a clone brings.
    pub fn extent(&self) -> CloneDepth {
        CloneDepth { depth: self.depth, sparse: self.sparse.clone(), base: self.base.clone() }
    }

    /// The place as the spec names it. An address may carry a password; the spec is written to disk.
    pub fn place(&self, env: &Environment, origin: &Repo) -> WorkspaceKind {
        match &self.place {
            PlaceRequest::InPlace => WorkspaceKind::InPlace,
            PlaceRequest::Worktree => WorkspaceKind::Worktree,
            PlaceRequest::Clone { from, .. } => WorkspaceKind::Clone {
                from: env.redactor(&origin.top).text(from).into_owned(),
                sparse: self.sparse.clone(),
            },
        }
    }

    /// Keeps the wish with its run.
    pub fn keep(&self, env: &Environment, home: &StateHome, run: &RunId) -> Result<(), AppError> {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        env.redactor(&PathBuf::new()).json(&mut value);
        let text = serde_json::to_vec_pretty(&value).unwrap_or_default();
        Ok(artifacts::write_atomic(&file(home, run), &text)?)
    }

    /// The wish of a run that has no place yet.
    pub fn of_run(home: &StateHome, run: &RunId) -> Option<Self> {
        serde_json::from_slice(&fs::read(file(home, run)).ok()?).ok()
    }
}

fn file(home: &StateHome, run: &RunId) -> PathBuf {
    home.record(run).path().join("place.json")
}

/// Makes the place of a run that this process has a hold on, and journals what it became. Says what of the user's tree the
/// agent does not get.
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
    bring_task(&spec)?;
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

/// A task that is kept below `.ralph/` of the user's folder is brought to the workspace: its boxes are ticked there.
fn bring_task(spec: &RunSpec) -> Result<(), AppError> {
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

/// The configuration that a repo brings into a worktree or clone, as it is before any agent works there.
fn tracked_config(workspace: &Path) -> Option<Digest> {
    RalphDir::of(workspace).config_digest()
}

/// Takes away what was made for a run that never had its place: it holds no work.
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

/// Forgets a run that was refused while it was made, as if it had never been.
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

/// Looks at records that no entry of the registry names: their process was killed before the run was registered. One that has
/// begun its journal is a run; what is less was none.
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
        match ralph_loop_journal::snapshot::read_spec(&record) {
            Ok(spec) if begun => drop(crate::wiring::register(home, &spec)),
            _ => remove_record(home, &run),
        }
    }
}

/// Whether somebody may be about to take its lock.
fn is_young(folder: &std::path::Path) -> bool {
    let age = fs::metadata(folder).and_then(|meta| meta.modified()).map(|at| at.elapsed());
    folder.join("lock").symlink_metadata().is_err()
        && age.is_ok_and(|age| age.is_ok_and(|age| age.as_secs() < 10))
}
