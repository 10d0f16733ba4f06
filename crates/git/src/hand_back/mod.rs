//! [`HandBack`]: the agent works on a copy of the user's tree, and its results are handed back. Both directions use
//! [`apply`] with what both sides last agreed on as base. Every step can be repeated after a crash.

pub(crate) mod agreed;
pub mod apply;
pub(crate) mod branch;
pub mod hooks;
pub(crate) mod leftovers;
pub(crate) mod merge;
pub mod restore;
pub mod result;
pub(crate) mod start_rules;

use self::agreed::{AgreedState, HANDED, PathText, with};
use self::apply::{Source, Target, Written};
use self::branch::{Branch, BranchMove, TwoRepos};
use self::start_rules::ignored_at_start;
use crate::agent_copy::copy_files::is_secret;
use crate::agent_copy::lent;
use crate::agent_copy::ralph_dir::RalphDirMirror;
use crate::agent_copy::{CopyDirs, OBJECTS};
use crate::checkout::submodule_edits;
use crate::error::{Error, Result};
use crate::objects::files;
use crate::objects::writer::Objects;
use crate::repo::Repo;
use crate::snapshot::FileStates;
use crate::snapshot::entry::{Difference, MODE_GITLINK, TreeEntry, differences, text};
use crate::snapshot::state_dir::PREFIX;
use crate::workspace::{GitWorkspace, WorkspaceOptions};
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    Baseline, Checkpoint, CheckpointRequest, HandedBack, Leftovers, Publisher, RecordsFor, UserCheckout,
    Workspace, WorkspaceError,
};
use ralph_loop_domain::repo::protect::ProtectedChange;
use ralph_loop_protocol::event::{FileChange, RefMove};
use ralph_loop_protocol::id::{CommitId, RunId, TreeId};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// A run whose agent works on a copy of the user's tree.
#[derive(Debug)]
pub struct HandBack {
    agent: GitWorkspace,
    user: GitWorkspace,
    mirror: RalphDirMirror,
    agreed: Option<Arc<Vec<TreeEntry>>>,
    handed: Option<AgreedState>,
}

impl HandBack {
    pub fn new(
        agent_copy: Repo,
        user: Repo,
        run: RunId,
        options: WorkspaceOptions,
        folders: &CopyDirs,
    ) -> Result<Self, WorkspaceError> {
        let own = WorkspaceOptions {
            state_top: Some(user.top.clone()),
            own_tree: true,
            folder: folders.agent.clone(),
            ..options.clone()
        };
        let options = WorkspaceOptions { folder: folders.user.clone(), agent_works_here: false, ..options };
        let mut user = GitWorkspace::new(user, run.clone(), options)?;
        let mirror = RalphDirMirror::new(&user.repo.vars, &user.repo.top, &agent_copy.top, &user.folder);
        // The agent can read the user's objects. New content of the user's stays out of them and is only compared.
        let objects = user.folder.join(OBJECTS);
        crate::agent_copy::borrow_objects(&user.repo, &objects)
            .map_err(|e| e.during("open the workspace"))?;
        user.snapshot.keep_objects_in(&objects);
        user.snapshot.secrets_stay = true;
        user.objects = Objects::new(user.repo.git().with_objects(objects), user.folder.clone());
        Ok(Self { agent: GitWorkspace::new(agent_copy, run, own)?, user, mirror, agreed: None, handed: None })
    }

    fn agreed(&mut self) -> Result<Arc<Vec<TreeEntry>>> {
        if let Some(agreed) = &self.agreed {
            return Ok(Arc::clone(agreed));
        }
        self.handed = files::load(&self.user.folder.join(HANDED))?;
        let start = &self.user.session()?.start.entries;
        let entries = match &self.handed {
            Some(handed) => Arc::new(handed.agreed(start)),
            None => Arc::clone(start),
        };
        self.agreed = Some(Arc::clone(&entries));
        Ok(entries)
    }

    fn agree(
        &mut self,
        changes: BTreeMap<Vec<u8>, Option<TreeEntry>>,
        branch: Option<String>,
        by_user: BTreeSet<PathText>,
    ) -> Result<()> {
        let old = self.agreed()?;
        if changes.is_empty() && self.handed.as_ref().is_some_and(|handed| handed.branch == branch) {
            return Ok(());
        }
        let new = with(&old, &changes);
        let mut taken = self.handed.as_ref().map(|handed| handed.taken.clone()).unwrap_or_default();
        taken.extend(by_user);
        let handed = AgreedState::new(&self.user.session()?.start.entries, &new, branch, taken);
        files::save(&self.user.folder.join(HANDED), &handed)?;
        self.agreed = Some(Arc::new(new));
        self.handed = Some(handed);
        Ok(())
    }

    /// The side that gets files. Git keeps its objects where no agent reads.
    fn target_in<'a>(&self, side: &GitWorkspace, repo: &'a Repo) -> Result<Target<'a>> {
        let users = self.user.folder.join(OBJECTS);
        let agents = self.agent.repo.common_dir.join("objects");
        let rules = (&self.user.settings, self.agent.snapshot.attributes());
        match side.options.own_tree {
            true => Target::new(repo, side.folder.join("room"), &agents, &users, rules),
            false => Target::new(repo, repo.run_folder(&side.run).join("room"), &users, &agents, rules),
        }
    }

    fn take_in_now(&mut self) -> Result<Vec<String>> {
        self.mirror.sync()?;
        let branch = self.agent.session()?.record.baseline.branch.clone();
        let elsewhere = self.user.refs.head()?.strip_prefix("refs/heads/").map(str::to_owned) != branch;
        if elsewhere {
            // The user is on another branch now, so their files aren't about this work.
            return Ok(Vec::new());
        }
        let agreed = self.agreed()?;
        let theirs = self.user.now()?;
        let protected = &self.agent.session()?.protected;
        let mut changes: Vec<Difference<'_>> = differences(&agreed, &theirs.entries)
            .into_iter()
            .filter(|change| !is_apart(change) && !protected.guards(&text(change.path)))
            .collect();
        // An agent can't get a file of the user's by removing its name from the ignore rules.
        let new = changes.iter().filter(|change| change.old.is_none()).map(|change| change.path);
        let start = &self.user.session()?.start.entries;
        let hidden = ignored_at_start(&self.user.repo, &self.user.folder, start, new)?;
        changes.retain(|change| {
            change.old.is_some()
                || !hidden.contains(change.path) && !is_secret(&self.user.repo.top, change.path)
        });
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let repo = self.agent.repo.clone();
        let target = self.target_in(&self.agent, &repo)?;
        let plan = target.plan(&changes)?;
        let mut settled = Settled::new(&changes, &plan.had);
        let (mut taken, mut by_user) = (Vec::new(), BTreeSet::new());
        target.write(&plan, Source::Folder(&self.user.repo.top), |path, written| {
            if written == Written::Done {
                settled.add(path);
                taken.push(text(path));
                by_user.insert(PathText::new(path));
            }
        })?;
        let branch = self.handed.as_ref().and_then(|handed| handed.branch.clone());
        self.agree(settled.files, branch, by_user)?;
        taken.sort();
        Ok(taken)
    }

    fn hand_back_now(&mut self, at: Timestamp, passes: &mut dyn FnMut(&'static str)) -> Result<HandedBack> {
        self.mirror.sync()?;
        let agreed = self.agreed()?;
        let now = self.agent.now()?;
        let changes: Vec<Difference<'_>> =
            differences(&agreed, &now.entries).into_iter().filter(|change| !is_apart(change)).collect();
        let mut back = HandedBack::default();
        let mut settled = Settled::new(&changes, &[]);
        let mut branch = None;
        if !changes.is_empty() {
            let repo = self.user.repo.clone();
            let target = self.target_in(&self.user, &repo)?;
            let plan = target.plan(&changes)?;
            settled = Settled::new(&changes, &plan.had);
            back.conflicts.extend(plan.conflicts.iter().map(|path| text(path)));
            if !plan.is_empty() {
                // Recorded before the first file is written, so that the repo knows they are the run's.
                branch = Some(self.record_commits(&now, at)?);
                passes("handback.recorded");
            }
            target.write(&plan, Source::Folder(&self.agent.repo.top), |path, written| {
                match written {
                    Written::Done => {
                        settled.add(path);
                        back.written.push(text(path));
                    }
                    Written::InTheWay => back.conflicts.push(text(path)),
                }
                passes("handback.file");
            })?;
            back.written.sort();
            back.conflicts.sort();
        }
        let branch = match branch {
            Some(branch) => branch,
            None => self.both().push_refs_to_user_repo(None)?,
        };
        let branch = self.both().hand_branch(branch, at)?;
        if let Branch::Kept(name) = &branch {
            back.branch_kept = Some(name.clone());
        }
        let left = match branch {
            Branch::At(tip) => Some(tip),
            _ => self.handed.as_ref().and_then(|handed| handed.branch.clone()),
        };
        self.agree(settled.files, left, BTreeSet::new())?;
        Ok(back)
    }

    /// Records the agent's files in the user's repo: the run's commits, and one more if those lack some of `now`.
    /// Returns the branch to move.
    fn record_commits(&mut self, now: &FileStates, at: Timestamp) -> Result<Option<BranchMove>> {
        let session = self.agent.session()?;
        let held = session.chain.last().is_some_and(|tip| tip.tree == now.tree.to_string());
        let parent = session.record.work.to.clone();
        let parent = parent.as_deref().unwrap_or(session.record.baseline.head.as_str());
        let mut extra = None;
        if !held {
            let (agent, tree) = (&self.agent, now.tree.to_string());
            let message = "ralph: the files that were handed back\n";
            let who = &agent.options.identity;
            extra = Some(agent.objects.commit(&tree, Some(parent), who, at.as_second(), message)?);
        }
        self.both().push_refs_to_user_repo(extra)
    }

    fn both(&mut self) -> TwoRepos<'_> {
        let left = self.handed.as_ref().and_then(|handed| handed.branch.clone());
        TwoRepos { agent: &self.agent, user: &mut self.user, left }
    }

    fn hand_refs_now(&mut self, at: Timestamp) -> Result<Branch> {
        self.agreed()?;
        let branch = self.both().push_refs_to_user_repo(None)?;
        self.both().hand_branch(branch, at)
    }

    /// Called before git reads the copy: nothing in its folder may make git run programs.
    fn seal(&self) -> Result<(), WorkspaceError> {
        crate::agent_copy::git_dir::seal(&self.agent.repo.top, &self.user.repo, &self.user.folder)
            .map_err(|e| e.during("read the agent's files"))
    }
}

/// The run's folder, which is synced separately, and repos within the tree.
fn is_apart(change: &Difference<'_>) -> bool {
    let nested = [change.old, change.new].into_iter().flatten().any(|entry| entry.mode == MODE_GITLINK);
    nested || change.path.starts_with(PREFIX) || change.path == b".ralph"
}

struct Settled<'a> {
    changes: &'a [Difference<'a>],
    files: BTreeMap<Vec<u8>, Option<TreeEntry>>,
}

impl<'a> Settled<'a> {
    fn new(changes: &'a [Difference<'a>], had: &[&[u8]]) -> Self {
        let mut settled = Self { changes, files: BTreeMap::new() };
        had.iter().for_each(|path| settled.add(path));
        settled
    }

    fn add(&mut self, path: &[u8]) {
        // Sorted by path, as `differences` lists them.
        if let Ok(at) = self.changes.binary_search_by(|change| change.path.cmp(path)) {
            self.files.insert(path.to_vec(), self.changes[at].new.cloned());
        }
    }
}

impl Workspace for HandBack {
    fn begin(&mut self, protected: &[String]) -> Result<Baseline, WorkspaceError> {
        self.seal()?;
        if self.user.refs.read(&self.user.own_ref("start")).ok().flatten().is_none() {
            let gone = Error::refused("the start of the run is gone from your repo", "start a new run");
            return Err(gone.during("continue"));
        }
        self.user.begin(&[])?;
        let begun = self.agent.begin(protected)?;
        self.agent.use_settings(&self.user.settings).map_err(|e| e.during("continue in the workspace"))?;
        Ok(begun)
    }

    fn reopen(&mut self, baseline: &Baseline) -> Result<(), WorkspaceError> {
        self.seal()?;
        self.user.reopen(baseline)?;
        self.agent.reopen(baseline)?;
        self.agent.use_settings(&self.user.settings).map_err(|e| e.during("continue in the workspace"))
    }

    fn checkpoint(&mut self, request: &CheckpointRequest<'_>) -> Result<Checkpoint, WorkspaceError> {
        self.seal()?;
        self.agent.checkpoint(request)
    }

    /// The copy's branch is the run's; the user's is checked when files are handed back.
    fn check_place(&self, _: bool) -> Result<(), WorkspaceError> {
        Ok(())
    }

    fn tree(&mut self) -> Result<TreeId, WorkspaceError> {
        self.seal()?;
        self.agent.tree()
    }

    fn moved_refs(&mut self) -> Result<Vec<RefMove>, WorkspaceError> {
        self.seal()?;
        self.agent.moved_refs()
    }

    fn accept_refs(&mut self) -> Result<(), WorkspaceError> {
        self.seal()?;
        self.agent.accept_refs()
    }

    fn protected_changes(&mut self) -> Result<Vec<ProtectedChange>, WorkspaceError> {
        self.seal()?;
        self.agent.protected_changes()
    }

    fn accept_protected(&mut self, path: &str) -> Result<(), WorkspaceError> {
        self.agent.accept_protected(path)
    }

    fn patch(&self, from: &str, to: &str, max: usize) -> Result<Vec<u8>, WorkspaceError> {
        self.agent.patch(from, to, max)
    }

    fn changes(&self, from: &str, to: &str) -> Result<Vec<FileChange>, WorkspaceError> {
        self.agent.changes(from, to)
    }

    fn checkout_clean(&self, commit: &CommitId, into: &Path) -> Result<(), WorkspaceError> {
        self.agent.checkout_clean(commit, into)
    }

    fn verify_checkout(&self, commit: &CommitId, folder: &Path) -> Result<Vec<String>, WorkspaceError> {
        // The sandbox shows the lent objects to the agent read-only.
        let safe = lent::lender(&self.user.repo, &self.user.folder).ok();
        self.agent.verify_with(commit, folder, safe.as_deref())
    }

    fn commit_in_checkout(&self, folder: &Path, paths: &[&str]) -> Result<(), WorkspaceError> {
        self.agent.commit_in_checkout(folder, paths)
    }

    fn damage(&self) -> Option<String> {
        self.user.damage().or_else(|| self.agent.damage())
    }

    fn unreferenced_commit(
        &mut self,
        tree: &TreeId,
        parent: &CommitId,
        at: Timestamp,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        self.seal()?;
        self.agent.unreferenced_commit(tree, parent, at)
    }

    fn leftovers_of_unproven_runs(
        &mut self,
        baseline: &Baseline,
        runs: &[RunId],
        at: Timestamp,
    ) -> Result<Option<Leftovers>, WorkspaceError> {
        self.seal()?;
        self.agent.leftovers_in(&self.user.repo, baseline, runs, at)
    }

    fn file_at(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        self.agent.file_at(commit, path)
    }

    fn branch_tip(&self, branch: &str) -> Result<Option<CommitId>, WorkspaceError> {
        self.user.branch_tip(branch)
    }

    fn unrecorded(&self) -> Result<Vec<String>, WorkspaceError> {
        self.agent.unrecorded()
    }

    fn copy_unrecorded(&self, path: &str, from: &Path, into: &Path) -> Result<bool, WorkspaceError> {
        self.agent.copy_unrecorded(path, from, into)
    }

    /// The agent can write the copy's git folder, so the user's repo says what is pinned.
    fn submodule_files(&self) -> Result<BTreeMap<String, String>, WorkspaceError> {
        let head = self.agent.session().map(|session| session.record.baseline.head.as_str());
        let (user, top) = (&self.user, &self.agent.repo.top);
        head.and_then(|head| submodule_edits::edited(&user.repo, &user.run, head, top))
            .map_err(|e| e.during("look into the submodules"))
    }

    fn publisher(&mut self) -> &mut dyn Publisher {
        &mut self.agent
    }

    fn user_tree(&mut self) -> Option<&mut dyn UserCheckout> {
        Some(self)
    }

    fn records_for(&self) -> Option<RecordsFor<'_>> {
        self.agent.records_for()
    }
}

impl UserCheckout for HandBack {
    fn pull_user_edits(&mut self) -> Result<Vec<String>, WorkspaceError> {
        self.seal()?;
        self.take_in_now().map_err(|e: Error| e.during("copy your own changes to the agent"))
    }

    fn hand_back(
        &mut self,
        at: Timestamp,
        passes: &mut dyn FnMut(&'static str),
    ) -> Result<HandedBack, WorkspaceError> {
        self.seal()?;
        self.hand_back_now(at, passes).map_err(|e| e.during("hand the agent's files back"))
    }

    fn push_refs_to_user_repo(&mut self, at: Timestamp) -> Result<(), WorkspaceError> {
        self.seal()?;
        self.hand_refs_now(at).map(drop).map_err(|e| e.during("hand the run's commits back"))
    }
}
