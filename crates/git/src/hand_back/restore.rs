//! Undoes a run's changes to the user's files. Saves the present state first; doesn't touch the user's edits, ignored
//! files, `HEAD`, branches and the user's index.

use crate::error::{Error, Result};
use crate::hand_back::agreed::handed_over;
use crate::hand_back::apply::{Source, Target, Written};
use crate::hand_back::merge::same;
use crate::objects::refs::Refs;
use crate::objects::writer::{CommitIdentity, Objects};
use crate::process::command::Git;
use crate::repo::Repo;
use crate::snapshot::entry::on_disk;
use crate::snapshot::entry::{Difference, MODE_GITLINK, TreeEntry, differences};
use crate::snapshot::record::EXCLUDE_AT_START;
use crate::snapshot::record::RefRecord;
use crate::snapshot::watch::{clock_of, stat_of};
use crate::snapshot::{FileStates, Snapshot, read_tree};
use crate::workspace::LARGE_FILE_LIMIT;
use ralph_loop_protocol::id::{CommitId, RunId};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreAction {
    Rewrite,
    Delete,
    Recreate,
}

/// One file that a restore brings back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreChange {
    pub path: PathBuf,
    pub action: RestoreAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreScope {
    OfRun,
    /// Every file that changed since the start, the user's edits included.
    Everything,
}

#[derive(Debug, Clone, Default)]
pub struct RestorePlan {
    /// The files it changes, in path order.
    pub changes: Vec<RestoreChange>,
    /// Differences that it leaves alone: nested repos, files that were ignored or too large at the start, and paths
    /// that something unknown to git occupies.
    pub left_alone: Vec<PathBuf>,
    /// Files that the user has changed since the start, which stay.
    pub yours: Vec<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct Restored {
    /// The commit with the files as they were just before, on `refs/ralph/<run>/before-restore`.
    pub saved: CommitId,
    pub plan: RestorePlan,
}

/// Lists what a restore of this run would change. `folder` holds the run's records of the repo, if that isn't the
/// repo's git folder.
pub fn plan_restore(
    repo: &Repo,
    run: &RunId,
    folder: Option<&Path>,
    scope: RestoreScope,
) -> Result<RestorePlan> {
    Restore::prepare(repo, run, folder, scope).map(|restore| restore.plan)
}

/// Saves the present state, then restores the files.
pub fn apply_restore(
    repo: &Repo,
    run: &RunId,
    folder: Option<&Path>,
    scope: RestoreScope,
) -> Result<Restored> {
    let mut restore = Restore::prepare(repo, run, folder, scope)?;
    let saved = restore.save_present()?;
    restore.write_back()?;
    Ok(Restored { saved: CommitId::new(saved), plan: restore.plan })
}

struct Restore<'a> {
    repo: &'a Repo,
    run: &'a RunId,
    git: Git,
    folder: PathBuf,
    start: String,
    now: FileStates,
    plan: RestorePlan,
}

struct DoneByRun {
    left: Vec<TreeEntry>,
    by_user: HashSet<Vec<u8>>,
    head: Vec<TreeEntry>,
}

impl DoneByRun {
    fn is(&self, change: &Difference<'_>) -> bool {
        let left = crate::snapshot::entry::find(&self.left, change.path);
        same(left, change.new) && !same(left, change.old) && !self.by_user.contains(change.path)
    }

    /// Whether the user has committed the present content, so that no edit can be lost.
    fn is_committed(&self, change: &Difference<'_>) -> bool {
        same(crate::snapshot::entry::find(&self.head, change.path), change.new)
    }
}

impl<'a> Restore<'a> {
    fn prepare(repo: &'a Repo, run: &'a RunId, folder: Option<&Path>, scope: RestoreScope) -> Result<Self> {
        let name = format!("refs/ralph/{run}/start");
        let folder = folder.map_or_else(|| repo.run_folder(run), Path::to_owned);
        let start = Refs::new(repo, &repo.run_folder(run)).read(&name)?.ok_or_else(|| {
            Error::refused(
                format!("the run {run} has no start snapshot (`{name}`)"),
                "`git for-each-ref refs/ralph` lists the runs of this repo",
            )
        })?;
        let git = repo.git();
        let entries = read_tree(&git, &start)?;
        // A fresh copy of the user's index: an old one may hold files that are ignored now.
        let _ = fs::remove_file(folder.join("restore-index"));
        let mut snapshot = Snapshot::open(repo, &folder, "restore-index", LARGE_FILE_LIMIT, false)?;
        let now = snapshot.refresh(&entries)?;
        let plan = RestorePlan::default();
        let mut restore = Self { repo, run, git, folder, start, now, plan };
        restore.make_plan(&entries, scope)?;
        Ok(restore)
    }

    fn make_plan(&mut self, start: &[TreeEntry], scope: RestoreScope) -> Result<()> {
        let record = RefRecord::load(&self.folder)?;
        let left_out: HashSet<String> =
            record.map(|r| r.baseline.left_out.into_iter().collect()).unwrap_or_default();
        let now = self.now.clone();
        let changes = differences(start, &now.entries);
        let run = self.done_by_run(start)?;
        let new: Vec<&[u8]> = changes.iter().filter(|c| c.old.is_none()).map(|c| c.path).collect();
        let ignored = self.ignored_at_start(start, &new)?;
        for change in &changes {
            // A restore never removes the run's folder.
            if change.path == b".ralph" || change.path.starts_with(b".ralph/") {
                continue;
            }
            let others = run.as_ref().filter(|run| !run.is(change));
            if others.is_some_and(|run| run.is_committed(change)) {
                continue;
            }
            let path = PathBuf::from(OsStr::from_bytes(change.path));
            let nested = [change.old, change.new].into_iter().flatten().any(|e| e.mode == MODE_GITLINK);
            let never_ours = change.old.is_none()
                && (ignored.contains(change.path)
                    || left_out.contains(&crate::snapshot::entry::text(change.path)));
            if nested || never_ours {
                self.plan.left_alone.push(path);
                continue;
            }
            if others.is_some() && scope == RestoreScope::OfRun {
                self.plan.yours.push(path);
                continue;
            }
            let action = match (change.old, change.new) {
                (None, _) => RestoreAction::Delete,
                (_, None) => RestoreAction::Recreate,
                _ => RestoreAction::Rewrite,
            };
            self.plan.changes.push(RestoreChange { path, action });
        }
        Ok(())
    }

    /// What the run changed; `None` if unknown.
    fn done_by_run(&self, start: &[TreeEntry]) -> Result<Option<DoneByRun>> {
        let refs = Refs::new(self.repo, &self.repo.run_folder(self.run));
        let Some(work) = refs.read(&format!("refs/ralph/{}/work", self.run))? else { return Ok(None) };
        let head = read_tree(&self.git, &self.repo.head)?;
        Ok(Some(match handed_over(&self.folder, start)? {
            Some(handed) => DoneByRun { left: handed.agreed, by_user: handed.by_user, head },
            None => DoneByRun { left: read_tree(&self.git, &work)?, by_user: HashSet::new(), head },
        }))
    }

    /// Which of these paths the original ignore rules ignore. Otherwise an agent could edit `.gitignore` to make a
    /// user's private file look like one created during the run.
    fn ignored_at_start(&self, start: &[TreeEntry], paths: &[&[u8]]) -> Result<HashSet<Vec<u8>>> {
        if paths.is_empty() {
            return Ok(HashSet::new());
        }
        let rules = self.folder.join("rules-at-start");
        let _ = fs::remove_dir_all(&rules);
        fs::create_dir_all(&rules).map_err(|e| Error::file("create", &rules, e))?;
        let wanted: Vec<&[u8]> = start
            .iter()
            .map(|e| &e.path[..])
            .filter(|p| p.rsplit(|b| *b == b'/').next() == Some(b".gitignore"))
            .collect();
        let index = self.folder.join("start-index");
        let _ = fs::remove_file(&index);
        self.git.call(["read-tree", &self.start]).index(&index).run()?;
        let mut prefix = rules.clone().into_os_string();
        prefix.push("/");
        let args = ["checkout-index", "-q", "-z", "--stdin", "--prefix"].map(OsStr::new);
        let call = self.git.call(args.into_iter().chain([prefix.as_os_str()]));
        if !wanted.is_empty() {
            call.index(&index).stdin(nul_list(&wanted)).run()?;
        }
        let git = self.git.clone().with_work_tree(&rules);
        let mut ignored = HashSet::new();
        let exclude = self.folder.join(EXCLUDE_AT_START);
        for with_old_exclude in [false, true] {
            let mut call = git.call(["check-ignore", "-z", "--no-index", "--stdin"]);
            if with_old_exclude {
                call = call.config(format!("core.excludesFile={}", exclude.display()));
            }
            let output = call.stdin(nul_list(paths)).accept(&[1]).run()?;
            ignored.extend(output.stdout.split(|b| *b == 0).filter(|p| !p.is_empty()).map(<[u8]>::to_vec));
        }
        let _ = fs::remove_dir_all(&rules);
        let _ = fs::remove_file(&index);
        Ok(ignored)
    }

    fn save_present(&mut self) -> Result<String> {
        let name = format!("refs/ralph/{}/before-restore", self.run);
        let refs = Refs::new(self.repo, &self.repo.run_folder(self.run));
        // Earlier saves stay reachable: each is a child of the one before.
        let earlier = refs.read(&name)?;
        let parent = earlier.as_deref().unwrap_or(&self.start);
        let at = stat_of(&clock_of(self.repo, &self.folder)).map_or(0, |stat| i64::from(stat.mtime.0));
        let who = CommitIdentity::new("Ralph", "ralph@localhost");
        let message = format!("ralph: state before the restore\n\nRalph-Run: {}\n", self.run);
        let objects = Objects::new(self.git.clone(), self.folder.clone());
        let commit = objects.commit(&self.now.tree.to_string(), Some(parent), &who, at, &message)?;
        refs.update(&name, &commit, earlier.as_deref())?;
        Ok(commit)
    }

    fn write_back(&mut self) -> Result<()> {
        let start = read_tree(&self.git, &self.start)?;
        let planned: HashSet<&[u8]> =
            self.plan.changes.iter().map(|change| change.path.as_os_str().as_bytes()).collect();
        let changes: Vec<Difference<'_>> = differences(&self.now.entries, &start)
            .into_iter()
            .filter(|change| planned.contains(change.path))
            .collect();
        let target = Target::of_user(self.repo, &self.repo.run_folder(self.run), &self.start)?;
        let plan = target.plan(&changes)?;
        let mut left: Vec<PathBuf> = plan.conflicts.iter().map(|path| on_disk(Path::new(""), path)).collect();
        target.write(&plan, Source::Objects, |path, written| {
            if written == Written::InTheWay {
                left.push(on_disk(Path::new(""), path));
            }
        })?;
        self.plan.changes.retain(|change| !left.contains(&change.path));
        self.plan.left_alone.extend(left);
        Ok(())
    }
}

fn nul_list(paths: &[&[u8]]) -> Vec<u8> {
    let mut list = Vec::new();
    for path in paths {
        list.extend_from_slice(path);
        list.push(0);
    }
    list
}
