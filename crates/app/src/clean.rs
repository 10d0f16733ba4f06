//! What runs that are over have left behind, and removing it: worktrees, clones and copies, refs of the engine's own, sandboxes
//! of providers, raw logs. Journal, receipts and proof stay, so that lists, costs and `show` still know every run. A run that
//! is not finished, or whose end nobody has seen, or whose work is nowhere else, is left as it is.

use crate::environment::Environment;
use crate::error::AppError;
use crate::facts::RunReading;
use crate::provider_calls::{self, Removal};
use crate::providers;
use crate::{find, handover, seen};
use jiff::Timestamp;
use ralph_loop_git::Repo;
use ralph_loop_git::checkout;
use ralph_loop_journal::layout::{RalphDir, RunDir, StateHome};
use ralph_loop_journal::registry::{self, Registration};
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Files of an iteration that stay: they are small, and costs are counted from them.
const KEPT_FILES: &[&str] = &["receipt.json", "metrics.json"];
/// Entries that are looked at for one size: beyond them it is "at least".
const WALK_MAX: usize = 500_000;

/// Which runs are cleaned up.
#[derive(Debug, Clone)]
pub struct CleanRequest {
    /// Only those that ended before this.
    pub before: Timestamp,
    /// Runs of every folder, not only of this one.
    pub everywhere: bool,
    /// Also runs whose end nobody has seen.
    pub unseen: bool,
}

/// What one run has left behind.
#[derive(Debug, Serialize)]
pub struct LeftBehind {
    /// The run.
    pub run_id: RunId,
    /// Its task.
    pub title: String,
    /// When it ended.
    pub ended_at: Timestamp,
    /// Its worktree, clone or copy.
    pub workspace: Option<PathBuf>,
    /// The copy of its worktree or clone that a sandboxed agent worked on.
    pub copy: Option<PathBuf>,
    /// Bytes of both.
    pub workspace_bytes: u64,
    /// The branch that was made for it, where another branch holds its commits too.
    pub branch: Option<String>,
    /// Bytes of raw logs.
    pub log_bytes: u64,
    /// Refs of the engine's own in the user's repo.
    pub refs: Vec<String>,
    /// Sandboxes of providers.
    pub sandboxes: Vec<String>,
    /// The same, with who has each.
    #[serde(skip)]
    machines: Vec<(String, String)>,
    #[serde(skip)]
    entry: Registration,
    #[serde(skip)]
    kind: WorkspaceKind,
}

impl LeftBehind {
    fn is_nothing(&self) -> bool {
        self.workspace.is_none()
            && self.branch.is_none()
            && self.refs.is_empty()
            && self.sandboxes.is_empty()
            && self.log_bytes == 0
    }
}

/// A run that is left as it is, and why.
#[derive(Debug, Serialize)]
pub struct LeftAlone {
    /// The run.
    pub run_id: RunId,
    /// Its task.
    pub title: String,
    /// Why.
    pub why: String,
}

/// What a clean-up would do.
#[derive(Debug, Default, Serialize)]
pub struct CleanPlan {
    /// What goes, oldest first.
    pub remove: Vec<LeftBehind>,
    /// What stays although it is old enough.
    pub keep: Vec<LeftAlone>,
    /// Checkouts of repos that tasks and `--clone` named, which no run works for any more: they are made again when needed.
    pub sources: Vec<OldSource>,
}

/// A checkout of another repo that nobody needs now.
#[derive(Debug, Serialize)]
pub struct OldSource {
    /// Where it is.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
}

impl CleanPlan {
    /// Bytes on this disk that a clean-up frees.
    pub fn bytes(&self) -> u64 {
        let runs = self.remove.iter().map(|left| left.workspace_bytes + left.log_bytes);
        runs.chain(self.sources.iter().map(|source| source.bytes)).sum()
    }

    /// Whether nothing goes.
    pub fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.sources.is_empty()
    }
}

/// Looks for what can go.
pub fn plan(env: &Environment, folder: &Path, request: &CleanRequest) -> Result<CleanPlan, AppError> {
    let home = env.state_home()?;
    let entries =
        if request.everywhere { registry::all(&home) } else { find::runs_of(&home, &find::top(folder)) };
    let mut plan = CleanPlan::default();
    for entry in entries {
        let Ok(reading) = RunReading::load(env, entry) else { continue };
        match judge(env, reading, request) {
            Some(Ok(left)) => plan.remove.push(left),
            Some(Err(alone)) => plan.keep.push(alone),
            None => {}
        }
    }
    plan.sources = old_sources(env, &home, request);
    Ok(plan)
}

/// Checkouts of other repos that were not used since, and that no run with files of its own was started from.
fn old_sources(env: &Environment, home: &StateHome, request: &CleanRequest) -> Vec<OldSource> {
    let needed: BTreeSet<PathBuf> = registry::all(home)
        .into_iter()
        .filter(|entry| {
            let over =
                RunReading::load(env, entry.clone()).is_ok_and(|run| run.state.result.finished.is_some());
            let own = home.workspace(&entry.run_id);
            !over || own.is_dir() || (entry.workspace != entry.origin && entry.workspace.is_dir())
        })
        .map(|entry| entry.origin)
        .collect();
    let all = home.path().join("sources");
    let named = handover::named_checkouts(env).ok();
    let folders = [Some(all), named].into_iter().flatten();
    let is_old = |path: &Path| {
        // Bringing it up to date writes there.
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

/// Nothing where a run has left nothing, or is too young to be spoken of.
fn judge(
    env: &Environment,
    reading: RunReading,
    request: &CleanRequest,
) -> Option<Result<LeftBehind, LeftAlone>> {
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
    // Of a sandboxed run there are two: its worktree or clone, and the copy of it that the agent worked on.
    let there = |path: &Path| (path != spec.origin && path.is_dir()).then(|| path.to_owned());
    let (tree, copy) = (there(spec.home()), there(&spec.workspace));
    let copy = copy.filter(|copy| tree.as_ref() != Some(copy));
    let (workspace, copy) = if tree.is_none() { (copy, None) } else { (tree, copy) };
    let branch = origin.as_ref().and_then(|repo| spare_branch(repo, spec));
    let refs = origin.as_ref().map(|repo| run_refs(repo, &entry.run_id)).unwrap_or_default();
    let log_bytes = raw_logs(entry).iter().map(|path| size(path)).sum();
    let machines = machines(&reading);
    let sandboxes = machines.iter().map(|(_, id)| id.clone()).collect();
    let left = LeftBehind {
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

/// The sandboxes of a run that are still there, as far as is known: who has each, and its id.
fn machines(reading: &RunReading) -> Vec<(String, String)> {
    let removed = known_removed(&reading.entry);
    let all = reading.state.spending.compute.sandboxes.iter();
    let there = all.filter(|machine| !removed.contains(&machine.id));
    there.map(|machine| (machine.provider.clone(), machine.id.clone())).collect()
}

/// Whether a clone holds work that was neither pushed nor taken into the user's repo.
fn is_only_there(reading: &RunReading, origin: Option<&Repo>) -> bool {
    let Some(commit) = &reading.state.work.commit else { return false };
    let pushed = reading.state.handover.pushed.is_some() || reading.state.handover.pr.is_some();
    let name = format!("{commit}^{{commit}}");
    let known = origin.is_some_and(|repo| {
        repo.git().call(["cat-file", "-e", &name]).accept(&[1, 128]).run().is_ok_and(|found| found.code == 0)
    });
    !pushed && !known
}

/// Removes what a plan lists. What could not be removed is returned, with the reason.
pub fn apply(env: &Environment, plan: &CleanPlan) -> Result<Vec<String>, AppError> {
    let home = env.state_home()?;
    let mut problems = Vec::new();
    // Providers take their time: meanwhile this disk is cleaned up.
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
        for path in raw_logs(entry) {
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
        // A run that is being started from it comes first, or makes it anew.
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

/// Where it is kept which sandboxes of a run were removed after its end: nothing is added to a journal that is closed.
/// A record in an old layout lies where agents write, and has none.
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

/// Asks every provider that has sandboxes of these runs to remove them.
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

fn remove_refs(repo: &Repo, left: &LeftBehind) -> Result<(), ralph_loop_git::GitError> {
    if left.refs.is_empty() {
        return Ok(());
    }
    let lines: String = left.refs.iter().map(|name| format!("delete {name}\n")).collect();
    repo.git().call(["update-ref", "--stdin"]).stdin(lines).run().map(|_| ())
}

/// The branch that was named after a run, where the checkout or another branch holds all of its commits: it is needed by nobody.
/// One that alone holds the work stays, and `ralph diff` and `ralph apply` read from it.
fn spare_branch(repo: &Repo, spec: &RunSpec) -> Option<String> {
    let own = format!("ralph/{}", spec.run_id);
    if spec.branch.as_ref() != Some(&own) || repo.branch.as_ref() == Some(&own) {
        return None;
    }
    is_held_elsewhere(repo, &own).then_some(own)
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

/// Removes such a branch, unless it has gone on meanwhile.
fn remove_spare(repo: &Repo, branch: &str) -> Result<(), ralph_loop_git::GitError> {
    if !is_held_elsewhere(repo, branch) {
        return Ok(());
    }
    let name = format!("refs/heads/{branch}");
    let tip = repo.git().call(["rev-parse", "--verify", &name]).run()?.text();
    repo.git().call(["update-ref", "-d", &name, &tip]).run().map(|_| ())
}

/// Raw logs of a run, in its record and in what is shown of it in the user's folder.
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

/// Bytes below a path, links not followed.
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
