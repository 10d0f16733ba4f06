//! Removes what finished runs left behind: worktrees, clones, copies, refs, provider sandboxes, raw logs.
//! Journals, receipts and proof stay for lists, costs and `show`. Keeps everything of a run that is
//! unfinished, unseen, or holds the only copy of its work.

use crate::config::provider_calls;
use crate::config::provider_calls::Removal;
use crate::config::providers;
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::facts::RunSnapshot;
use crate::read::{find, seen};
use crate::start::handover;
use crate::task::hidden;
use jiff::Timestamp;
use ralph_loop_git::Repo;
use ralph_loop_git::checkout;
use ralph_loop_journal::folder::layout::{RalphDir, RunDir, StateHome};
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::spec::WorkspaceKind;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Small files of an iteration that costs are computed from.
const KEPT_FILES: &[&str] = &["receipt.json", "metrics.json"];
/// Entries counted for one size; beyond that it is a lower bound.
const WALK_MAX: usize = 500_000;

#[derive(Debug, Clone)]
pub struct CleanRequest {
    /// Only runs that ended before this.
    pub before: Timestamp,
    pub everywhere: bool,
    /// Also runs whose end the user hasn't seen.
    pub unseen: bool,
}

#[derive(Debug, Serialize)]
pub struct Reclaimable {
    pub run_id: RunId,
    pub title: String,
    pub ended_at: Timestamp,
    pub workspace: Option<PathBuf>,
    /// The copy of its worktree or clone that a sandboxed agent used.
    pub copy: Option<PathBuf>,
    pub workspace_bytes: u64,
    /// The run's branch, if its work is elsewhere.
    pub branch: Option<SpareBranch>,
    pub log_bytes: u64,
    /// Refs that `ralph` made in the user's repo.
    pub refs: Vec<String>,
    pub sandboxes: Vec<String>,
    /// Provider and id of each sandbox.
    #[serde(skip)]
    machines: Vec<(String, String)>,
    #[serde(skip)]
    entry: Registration,
    #[serde(skip)]
    kind: WorkspaceKind,
}

/// A branch to delete, as long as it is still at this commit.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct SpareBranch {
    pub name: String,
    #[serde(skip)]
    tip: String,
}

impl Reclaimable {
    fn is_nothing(&self) -> bool {
        self.workspace.is_none()
            && self.branch.is_none()
            && self.refs.is_empty()
            && self.sandboxes.is_empty()
            && self.log_bytes == 0
    }
}

/// A run that isn't cleaned up, and why.
#[derive(Debug, Serialize)]
pub struct LeftAlone {
    pub run_id: RunId,
    pub title: String,
    pub why: String,
}

#[derive(Debug, Default, Serialize)]
pub struct CleanPlan {
    /// Oldest first.
    pub remove: Vec<Reclaimable>,
    /// Old enough, but kept.
    pub keep: Vec<LeftAlone>,
    /// Checkouts of other repos (named by tasks or `--clone`) that no run uses. They are cloned again when
    /// needed.
    pub sources: Vec<OldSource>,
}

/// An unused checkout of another repo.
#[derive(Debug, Serialize)]
pub struct OldSource {
    pub path: PathBuf,
    pub bytes: u64,
}

impl CleanPlan {
    /// Bytes on this disk that the clean-up frees.
    pub fn bytes(&self) -> u64 {
        let runs = self.remove.iter().map(|left| left.workspace_bytes + left.log_bytes);
        runs.chain(self.sources.iter().map(|source| source.bytes)).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.sources.is_empty()
    }
}

pub fn plan(env: &Environment, folder: &Path, request: &CleanRequest) -> Result<CleanPlan, AppError> {
    let home = env.state_home()?;
    let entries =
        if request.everywhere { registry::all(&home) } else { find::runs_of(&home, &find::top(folder)) };
    let mut plan = CleanPlan::default();
    for entry in entries {
        let Ok(reading) = RunSnapshot::load(env, entry) else { continue };
        match judge(env, reading, request) {
            Some(Ok(left)) => plan.remove.push(left),
            Some(Err(alone)) => plan.keep.push(alone),
            None => {}
        }
    }
    plan.sources = old_sources(env, &home, request);
    Ok(plan)
}

/// Checkouts unused since then, from which no run with its own files was started.
fn old_sources(env: &Environment, home: &StateHome, request: &CleanRequest) -> Vec<OldSource> {
    let needed: BTreeSet<PathBuf> = registry::all(home)
        .into_iter()
        .filter(|entry| {
            let over =
                RunSnapshot::load(env, entry.clone()).is_ok_and(|run| run.state.result.finished.is_some());
            let own = home.workspace(&entry.run_id);
            !over || own.is_dir() || (entry.workspace != entry.origin && entry.workspace.is_dir())
        })
        .map(|entry| entry.origin)
        .collect();
    let all = home.path().join("sources");
    let named = handover::named_checkouts(env).ok();
    let folders = [Some(all), named].into_iter().flatten();
    let is_old = |path: &Path| {
        // Every update writes there.
        let used = fs::metadata(path.join(".git")).and_then(|meta| meta.modified());
        used.ok().and_then(|at| Timestamp::try_from(at).ok()).is_some_and(|at| at < request.before)
    };
    folders
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten())
        .map(|entry| entry.path())
        .filter(|path| !needed.contains(path) && is_old(path))
        .map(|path| OldSource { bytes: size(&path), path })
        .collect()
}

/// `None` if the run left nothing behind or is too recent.
fn judge(
    env: &Environment,
    reading: RunSnapshot,
    request: &CleanRequest,
) -> Option<Result<Reclaimable, LeftAlone>> {
    let (entry, spec) = (&reading.entry, &reading.state.spec);
    let alone = |why: &str| {
        let (run_id, title) = (entry.run_id.clone(), spec.task.title.clone());
        Some(Err(LeftAlone { run_id, title, why: why.to_owned() }))
    };
    let old = reading.last_event < request.before;
    let Some(end) = &reading.state.result.finished else {
        return if old {
            alone("unfinished: run `ralph resume` to continue it, or `ralph cancel` to end it")
        } else {
            None
        };
    };
    if !old || reading.driver.is_some() {
        return None;
    }
    let origin = Repo::discover(env.vars(), &spec.origin).ok();
    // A sandboxed run has two: its worktree or clone, and the agent's copy of it.
    let there = |path: &Path| (path != spec.origin && path.is_dir()).then(|| path.to_owned());
    let (tree, copy) = (there(spec.home()), there(&spec.workspace));
    let copy = copy.filter(|copy| tree.as_ref() != Some(copy));
    let (workspace, copy) = if tree.is_none() { (copy, None) } else { (tree, copy) };
    let branch = origin.as_ref().and_then(|repo| spare_branch(repo, &reading));
    let refs = origin.as_ref().map(|repo| run_refs(repo, &entry.run_id)).unwrap_or_default();
    let log_bytes = raw_logs(entry).iter().map(|path| size(path)).sum();
    let machines = machines(&reading);
    let sandboxes = machines.iter().map(|(_, id)| id.clone()).collect();
    let left = Reclaimable {
        run_id: entry.run_id.clone(),
        title: spec.task.title.clone(),
        ended_at: end.at,
        workspace_bytes: workspace.iter().chain(&copy).map(|path| size(path)).sum(),
        workspace,
        copy,
        branch,
        log_bytes,
        refs,
        sandboxes,
        machines,
        entry: entry.clone(),
        kind: spec.place.clone(),
    };
    if left.is_nothing() {
        return None;
    }
    if !request.unseen && !seen::is_marked(entry) {
        return alone(
            "you haven't seen how it ended; run `ralph show`, or pass `--unread` to clean it up anyway",
        );
    }
    if matches!(left.kind, WorkspaceKind::Clone { .. })
        && left.workspace.is_some()
        && is_only_there(&reading, origin.as_ref())
    {
        return alone("its work is only in its clone: `ralph apply` takes it home first");
    }
    Some(Ok(left))
}

/// Provider and id of the run's sandboxes that may still exist.
fn machines(reading: &RunSnapshot) -> Vec<(String, String)> {
    let removed = known_removed(&reading.entry);
    let all = reading.state.spending.compute.sandboxes.iter();
    let there = all.filter(|machine| !removed.contains(&machine.id));
    there.map(|machine| (machine.provider.clone(), machine.id.clone())).collect()
}

/// Whether a clone holds work that was neither pushed nor applied.
fn is_only_there(reading: &RunSnapshot, origin: Option<&Repo>) -> bool {
    let Some(commit) = &reading.state.work.commit else { return false };
    let pushed = reading.state.handover.pushed.is_some() || reading.state.handover.pr.is_some();
    let name = format!("{commit}^{{commit}}");
    let known = origin.is_some_and(|repo| {
        repo.git().call(["cat-file", "-e", &name]).accept(&[1, 128]).run().is_ok_and(|found| found.code == 0)
    });
    !pushed && !known
}

/// Removes what the plan lists and returns the failures.
pub fn apply(env: &Environment, plan: &CleanPlan) -> Result<Vec<String>, AppError> {
    let home = env.state_home()?;
    let mut problems = Vec::new();
    // Providers are slow, so their removal runs while this disk is cleaned.
    let removal = remove_sandboxes(env, plan, &mut problems);
    for left in &plan.remove {
        let entry = &left.entry;
        let origin = Repo::discover(env.vars(), &entry.origin).ok();
        let folders = left.workspace.iter().chain(&left.copy);
        for path in folders.filter(|path| path.starts_with(home.path())) {
            let is_tree = left.workspace.as_ref() == Some(path) && *path == home.workspace(&left.run_id);
            let removed = match (&left.kind, &origin) {
                (WorkspaceKind::Worktree, Some(repo)) if is_tree => {
                    checkout::remove_worktree(repo, path).map_err(|e| e.to_string())
                }
                _ => {
                    checkout::kill_git_in(path);
                    ralph_loop_safe_fs::remove_tree(path)
                        .map_err(|e| format!("cannot remove `{}`: {e}", path.display()))
                }
            };
            problems.extend(removed.err());
        }
        for path in raw_logs(entry).into_iter().chain([hidden::kept_at(&home, &left.run_id)]) {
            let _ = fs::remove_file(path);
        }
        if let Some(repo) = &origin {
            problems.extend(remove_refs(repo, left).err().map(|e| e.to_string()));
            if let Some(branch) = &left.branch {
                problems.extend(remove_spare(repo, branch).err().map(|e| e.to_string()));
            }
            let _ = fs::remove_dir_all(repo.run_folder(&left.run_id));
        }
        for folder in [entry.run_dir().git(), entry.run_dir().copy_git()] {
            let _ = fs::remove_dir_all(folder);
        }
    }
    for source in plan.sources.iter().filter(|source| source.path.starts_with(home.path())) {
        // A run that starts from it at this moment holds the lock, or clones it again.
        let _lock = ralph_loop_git::WaitLock::take(&source.path.with_extension("lock"));
        let removed = ralph_loop_safe_fs::remove_tree(&source.path);
        problems.extend(removed.err().map(|e| format!("cannot remove `{}`: {e}", source.path.display())));
    }
    let removed = removal.wait();
    for left in &plan.remove {
        note_removed(&left.entry, left.sandboxes.iter().filter(|id| removed.gone.contains(*id)));
    }
    problems.extend(removed.problems);
    Ok(problems)
}

/// File that lists sandboxes removed after the run ended, because a closed journal isn't appended to. A copied
/// record, which agents can write, has none.
fn removed_sandboxes(entry: &Registration) -> Option<PathBuf> {
    Some(entry.record.as_ref()?.join("removed-sandboxes"))
}

fn note_removed<'a>(entry: &Registration, gone: impl Iterator<Item = &'a String>) {
    let mut all = known_removed(entry);
    let before = all.len();
    all.extend(gone.cloned());
    let Some(path) = removed_sandboxes(entry).filter(|_| all.len() > before) else { return };
    let lines: Vec<String> = all.into_iter().collect();
    let _ = fs::write(path, lines.join("\n"));
}

fn known_removed(entry: &Registration) -> BTreeSet<String> {
    let text = removed_sandboxes(entry).and_then(|path| fs::read_to_string(path).ok());
    text.unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Has every provider remove its sandboxes of these runs.
fn remove_sandboxes(env: &Environment, plan: &CleanPlan, problems: &mut Vec<String>) -> Removal {
    let mut wanted: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (provider, id) in plan.remove.iter().flat_map(|left| &left.machines) {
        wanted.entry(provider).or_default().insert(id.clone());
    }
    let known = if wanted.is_empty() { Vec::new() } else { providers::providers(env) };
    let asked = known.into_iter().filter_map(|provider| {
        let ids = wanted.remove(provider.name())?;
        Some((provider, ids))
    });
    let removal = provider_calls::remove(asked.collect(), provider_calls::limit(env));
    for (provider, ids) in wanted {
        let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
        problems.push(format!("{} may still be there: {provider} is not configured here", ids.join(", ")));
    }
    removal
}

fn run_refs(repo: &Repo, run: &RunId) -> Vec<String> {
    let prefix = format!("refs/ralph/{run}/");
    let listed = repo.git().call(["for-each-ref", "--format=%(refname)", &prefix]).run();
    listed.map(|output| output.text().lines().map(str::to_owned).collect()).unwrap_or_default()
}

fn remove_refs(repo: &Repo, left: &Reclaimable) -> Result<(), ralph_loop_git::GitError> {
    if left.refs.is_empty() {
        return Ok(());
    }
    let lines: String = left.refs.iter().map(|name| format!("delete {name}\n")).collect();
    repo.git().call(["update-ref", "--stdin"]).stdin(lines).run().map(|_| ())
}

/// The branch named after a run, if its work is elsewhere: another branch contains all its commits, the branch that
/// is checked out contains its changes, or `ralph apply` committed them. If not, `ralph diff` and `ralph apply`
/// still need it.
fn spare_branch(repo: &Repo, reading: &RunSnapshot) -> Option<SpareBranch> {
    let spec = &reading.state.spec;
    let name = format!("ralph/{}", spec.run_id);
    if spec.branch.as_ref() != Some(&name) || repo.branch.as_ref() == Some(&name) {
        return None;
    }
    let found = repo.git().call(["rev-parse", "--verify", "--quiet", &format!("refs/heads/{name}")]);
    let found = found.accept(&[1, 128]).run().ok().filter(|found| found.code == 0)?;
    let branch = SpareBranch { name, tip: found.text() };
    // Commits of the user's own on it were never applied.
    let is_own = reading.state.work.commit.as_ref().is_some_and(|work| work.as_str() == branch.tip);
    let taken = is_own && seen::is_taken(&reading.entry);
    (taken || is_held_elsewhere(repo, &branch.name) || adds_nothing(repo, &branch.tip)).then_some(branch)
}

/// Whether merging a commit into the branch that is checked out would change nothing.
fn adds_nothing(repo: &Repo, commit: &str) -> bool {
    let merged = repo.git().call(["merge-tree", "--write-tree", "HEAD", commit]).accept(&[1, 128, 129]).run();
    let head = repo.git().call(["rev-parse", "HEAD^{tree}"]).accept(&[128]).run();
    match (merged, head) {
        (Ok(merged), Ok(head)) => merged.code == 0 && merged.text() == head.text(),
        _ => false,
    }
}

fn is_held_elsewhere(repo: &Repo, branch: &str) -> bool {
    let name = format!("refs/heads/{branch}");
    let args = ["for-each-ref", "--format=%(refname)", "--contains", &name, "refs/heads/"];
    let Ok(holding) = repo.git().call(args).accept(&[128, 129]).run() else { return false };
    holding.code == 0 && {
        let text = holding.text();
        let holds: Vec<&str> = text.lines().collect();
        holds.contains(&name.as_str()) && holds.len() > 1
    }
}

/// Deletes the branch unless it has moved.
fn remove_spare(repo: &Repo, branch: &SpareBranch) -> Result<(), ralph_loop_git::GitError> {
    let name = format!("refs/heads/{}", branch.name);
    repo.git().call(["update-ref", "-d", &name, &branch.tip]).run().map(|_| ())
}

/// Raw logs in the record and in the copy in the user's folder.
fn raw_logs(entry: &Registration) -> Vec<PathBuf> {
    let shown = RalphDir::of(&entry.origin).run(&entry.run_id);
    let is_link = fs::symlink_metadata(shown.path()).is_ok_and(|meta| meta.is_symlink());
    let places = [Some(entry.run_dir()), (!is_link).then_some(shown)];
    places.into_iter().flatten().flat_map(|run| logs_of(&run)).collect()
}

fn logs_of(run: &RunDir) -> Vec<PathBuf> {
    let folders = fs::read_dir(run.iterations()).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
    files
        .filter(|file| file.file_type().is_ok_and(|kind| kind.is_file()))
        .filter(|file| !KEPT_FILES.iter().any(|kept| file.file_name() == *kept))
        .map(|file| file.path())
        .collect()
}

/// Bytes below a path, without following links.
pub fn size(path: &Path) -> u64 {
    let (mut bytes, mut seen, mut open) = (0, 0, vec![path.to_owned()]);
    while let Some(path) = open.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        seen += 1;
        if seen > WALK_MAX {
            break;
        }
        bytes += meta.len();
        if meta.is_dir() {
            open.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    bytes
}
