//! [`HandBack`]: the agent works on a copy of the user's tree, and what comes of it is handed back.
//! Three states of every file decide: what both sides last agreed on, what the agent has now, and what the user has now.
//! The side that hasn't changed a file gets the other's; what both have changed stays on both sides, and is reported.
//! Every step can be repeated after a crash.

use crate::agent_copy::{CopyFolders, OBJECTS};
use crate::agent_copy_refs::{Branch, BranchMove, TwoRepos};
use crate::agent_git_dir;
use crate::agreed::{AgreedState, HANDED, PathText, with};
use crate::entry::{MODE_GITLINK, TreeEntry, differences, find};
use crate::error::{Error, Result};
use crate::left_over::is_secret;
use crate::mirror::RalphDirMirror;
use crate::object::{ObjectStore, commit_body};
use crate::oid::oid;
use crate::one_file::{CopyOutcome, bring, stat_of_file};
use crate::repo::Repo;
use crate::snapshot::FileStates;
use crate::state_dir::PREFIX;
use crate::store;
use crate::submodule_edits;
use crate::workspace::{GitWorkspace, WorkspaceOptions};
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    Baseline, Checkpoint, CheckpointRequest, HandedBack, Publisher, RecordsFor, UserTree, Workspace,
    WorkspaceError,
};
use ralph_loop_domain::protect::ProtectedChange;
use ralph_loop_protocol::event::{FileChange, RefMove};
use ralph_loop_protocol::id::{CommitId, RunId, TreeId};
use ralph_loop_task::spec::LeftWork;
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

/// One path that is copied from one side to the other.
struct PathTransfer<'a> {
    path: &'a [u8],
    to: Option<&'a TreeEntry>,
}

impl HandBack {
    /// Opens both sides of a run.
    pub fn new(
        agent_copy: Repo,
        user: Repo,
        run: RunId,
        options: WorkspaceOptions,
        folders: &CopyFolders,
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
        // The agent can read the user's objects. What the user writes from now on is none of them, and is only compared.
        let objects = user.folder.join(OBJECTS);
        crate::agent_copy::borrow_objects(&user.repo, &objects)
            .map_err(|e| e.during("open the workspace"))?;
        user.snapshot.keep_objects_in(&objects);
        user.snapshot.secrets_stay = true;
        user.objects = ObjectStore::new(objects, user.repo.object_format);
        Ok(Self { agent: GitWorkspace::new(agent_copy, run, own)?, user, mirror, agreed: None, handed: None })
    }

    /// What both sides last agreed on: the start, where nothing was handed back yet.
    fn agreed(&mut self) -> Result<Arc<Vec<TreeEntry>>> {
        if let Some(agreed) = &self.agreed {
            return Ok(Arc::clone(agreed));
        }
        self.handed = store::load(&self.user.folder.join(HANDED))?;
        let start = &self.user.session()?.start.entries;
        let entries = match &self.handed {
            Some(handed) => Arc::new(handed.agreed(start)),
            None => Arc::clone(start),
        };
        self.agreed = Some(Arc::clone(&entries));
        Ok(entries)
    }

    /// Remembers what both sides agree on now.
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
        store::save(&self.user.folder.join(HANDED), &handed)?;
        self.agreed = Some(Arc::new(new));
        self.handed = Some(handed);
        Ok(())
    }

    fn take_in_now(&mut self) -> Result<Vec<String>> {
        self.mirror.sync()?;
        let branch = self.agent.session()?.record.baseline.branch.clone();
        let elsewhere = self.user.refs.head()?.strip_prefix("refs/heads/").map(str::to_owned) != branch;
        if elsewhere {
            // The user works on another branch by now: their files are no longer about this work.
            return Ok(Vec::new());
        }
        let agreed = self.agreed()?;
        let theirs = self.user.now()?;
        let wanted = differences(&agreed, &theirs.entries);
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let now = self.agent.now()?;
        let mut changes = BTreeMap::new();
        let mut ways = Vec::new();
        for change in wanted {
            let guarded = self.agent.session()?.protected.guards(&crate::entry::text(change.path));
            let ours = find(&now.entries, change.path);
            if is_apart(change.path) || guarded || is_nested(change.old, change.new) {
                continue;
            }
            // An agent that takes a name out of the ignore rules does not get the user's secret for it.
            if change.old.is_none() && is_secret(&self.user.repo.top, change.path) {
                continue;
            }
            if same(ours, change.new) {
                changes.insert(change.path.to_vec(), change.new.cloned());
            } else if same(ours, change.old) {
                ways.push(PathTransfer { path: change.path, to: change.new });
            }
        }
        let (user, agent) = (self.user.repo.top.clone(), self.agent.repo.top.clone());
        let seen: Vec<_> = ways.iter().map(|way| stat_of_file(&agent, way.path)).collect();
        let room = self.agent.folder.join("room");
        let recorded = self.user.recorded();
        let (mut taken, mut by_user) = (Vec::new(), BTreeSet::new());
        for (way, seen) in in_order(&ways, &seen) {
            let hidden = seen.is_some() && find(&now.entries, way.path).is_none();
            if hidden {
                continue;
            }
            if bring(way.path, way.to, (&user, &agent), seen, &room, &recorded)? == CopyOutcome::Done {
                changes.insert(way.path.to_vec(), way.to.cloned());
                taken.push(crate::entry::text(way.path));
                by_user.insert(PathText::new(way.path));
            }
        }
        let branch = self.handed.as_ref().and_then(|handed| handed.branch.clone());
        self.agree(changes, branch, by_user)?;
        taken.sort();
        Ok(taken)
    }

    fn hand_back_now(&mut self, at: Timestamp, passes: &mut dyn FnMut(&'static str)) -> Result<HandedBack> {
        self.mirror.sync()?;
        let agreed = self.agreed()?;
        let now = self.agent.now()?;
        let mut back = HandedBack::default();
        let mut changes = BTreeMap::new();
        let wanted: Vec<_> = differences(&agreed, &now.entries)
            .into_iter()
            .filter(|change| !is_apart(change.path) && !is_nested(change.old, change.new))
            .collect();
        let (user, agent) = (self.user.repo.top.clone(), self.agent.repo.top.clone());
        let mut branch = None;
        if !wanted.is_empty() {
            // How the files look is taken first: what changes after git has read them is seen.
            let looks: BTreeMap<&[u8], _> =
                wanted.iter().map(|change| (change.path, stat_of_file(&user, change.path))).collect();
            let theirs = self.user.now()?;
            let mut ways = Vec::new();
            for change in &wanted {
                let their = find(&theirs.entries, change.path);
                let hidden = their.is_none() && looks.get(change.path).is_some_and(Option::is_some);
                if same(their, change.new) && !hidden {
                    changes.insert(change.path.to_vec(), change.new.cloned());
                } else if same(their, change.old) && !hidden {
                    ways.push(PathTransfer { path: change.path, to: change.new });
                } else {
                    back.conflicts.push(crate::entry::text(change.path));
                }
            }
            let seen: Vec<_> = ways.iter().map(|way| looks.get(way.path).copied().flatten()).collect();
            if !ways.is_empty() {
                // What will stand in the user's tree is known to be the run's before the first file of it does.
                branch = Some(self.record_commits(&now, at)?);
                passes("handback.recorded");
            }
            let room = self.user.repo.run_folder(&self.user.run).join("room");
            let recorded = self.agent.recorded();
            for (way, seen) in in_order(&ways, &seen) {
                let name = crate::entry::text(way.path);
                match bring(way.path, way.to, (&agent, &user), seen, &room, &recorded)? {
                    CopyOutcome::Done => {
                        changes.insert(way.path.to_vec(), way.to.cloned());
                        back.written.push(name);
                    }
                    CopyOutcome::InTheWay => back.conflicts.push(name),
                }
                passes("handback.file");
            }
            back.written.sort();
            back.conflicts.sort();
        }
        let branch = match branch {
            Some(branch) => branch,
            None => self.both().hand_commits(None)?,
        };
        let branch = self.both().hand_branch(branch, at)?;
        if let Branch::Kept(name) = &branch {
            back.branch_kept = Some(name.clone());
        }
        let left = match branch {
            Branch::At(tip) => Some(tip),
            _ => self.handed.as_ref().and_then(|handed| handed.branch.clone()),
        };
        self.agree(changes, left, BTreeSet::new())?;
        Ok(back)
    }

    /// Records in the user's repo what the files of the agent are: the run's commits, and one more where those do not hold all of
    /// `now`. Returns the branch that is to be moved.
    fn record_commits(&mut self, now: &FileStates, at: Timestamp) -> Result<Option<BranchMove>> {
        let session = self.agent.session()?;
        let held = session.chain.last().is_some_and(|tip| tip.tree == now.tree.to_string());
        let parent = session.record.work.to.clone();
        let parent = oid(parent.as_deref().unwrap_or(session.record.baseline.head.as_str()))?;
        let mut beside = None;
        if !held {
            let identity = &self.agent.options.identity;
            let message = "ralph: the files that were handed back\n";
            let body = commit_body(&now.tree, &[parent], identity, at.as_second(), message);
            beside = Some(self.agent.objects.write("commit", &body)?.to_string());
        }
        self.both().hand_commits(beside)
    }

    fn both(&mut self) -> TwoRepos<'_> {
        let left = self.handed.as_ref().and_then(|handed| handed.branch.clone());
        TwoRepos { agent: &self.agent, user: &mut self.user, left }
    }

    /// Refs only: the run's own, and its branch.
    fn hand_refs_now(&mut self, at: Timestamp) -> Result<Branch> {
        self.agreed()?;
        let branch = self.both().hand_commits(None)?;
        self.both().hand_branch(branch, at)
    }

    /// Before git looks at the copy: nothing in its folder may make git run programs.
    fn seal(&self) -> Result<(), WorkspaceError> {
        crate::agent_git_dir::seal(&self.agent.repo.top, &self.user.repo, &self.user.folder)
            .map_err(|e| e.during("look at the agent's files"))
    }
}

/// Removals first, so that a file can take the place of a folder and the other way round.
fn in_order<'a, T: Copy>(
    ways: &'a [PathTransfer<'a>],
    seen: &'a [T],
) -> impl Iterator<Item = (&'a PathTransfer<'a>, T)> {
    let pick =
        |gone: bool| ways.iter().zip(seen.iter().copied()).filter(move |(way, _)| way.to.is_none() == gone);
    pick(true).chain(pick(false))
}

/// The run's own folder goes its own way.
fn is_apart(path: &[u8]) -> bool {
    path.starts_with(PREFIX) || path == b".ralph"
}

fn is_nested(old: Option<&TreeEntry>, new: Option<&TreeEntry>) -> bool {
    [old, new].into_iter().flatten().any(|entry| entry.mode == MODE_GITLINK)
}

fn same(a: Option<&TreeEntry>, b: Option<&TreeEntry>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.same_file(b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

impl Workspace for HandBack {
    fn begin(&mut self, protected: &[String]) -> Result<Baseline, WorkspaceError> {
        self.seal()?;
        if self.user.refs.read(&self.user.own_ref("start")).ok().flatten().is_none() {
            let gone = Error::refused("the start of the run is gone from your repo", "start a new run");
            return Err(gone.during("go on"));
        }
        self.user.begin(&[])?;
        self.agent.begin(protected)
    }

    fn reopen(&mut self, baseline: &Baseline) -> Result<(), WorkspaceError> {
        self.seal()?;
        self.user.reopen(baseline)?;
        self.agent.reopen(baseline)
    }

    fn checkpoint(&mut self, request: &CheckpointRequest<'_>) -> Result<Checkpoint, WorkspaceError> {
        self.seal()?;
        self.agent.checkpoint(request)
    }

    /// The copy's branch is its own; that of the user is looked at when files are handed back.
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
        // What the user's repo holds, the sandbox shows to the agent for reading only.
        let safe = agent_git_dir::alternates(&self.user.repo).ok();
        self.agent.verify_with(commit, folder, safe.as_deref())
    }

    fn damage(&self) -> Option<String> {
        self.user.damage().or_else(|| self.agent.damage())
    }

    fn loose_commit(
        &mut self,
        tree: &TreeId,
        parent: &CommitId,
        at: Timestamp,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        self.seal()?;
        self.agent.loose_commit(tree, parent, at)
    }

    fn without_left(
        &mut self,
        of: &CommitId,
        head: &CommitId,
        left: &[LeftWork],
        at: Timestamp,
    ) -> Result<Option<(CommitId, Vec<String>)>, WorkspaceError> {
        self.seal()?;
        self.agent.without_left(of, head, left, at)
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

    /// The copy's own git folder is the agent's to write: the user's repo says what is pinned.
    fn submodule_files(&self) -> Result<BTreeMap<String, String>, WorkspaceError> {
        let head = self.agent.session().map(|session| session.record.baseline.head.as_str());
        let (user, top) = (&self.user, &self.agent.repo.top);
        head.and_then(|head| submodule_edits::edited(&user.repo, &user.run, head, top))
            .map_err(|e| e.during("look into the submodules"))
    }

    fn publisher(&mut self) -> &mut dyn Publisher {
        &mut self.agent
    }

    fn user_tree(&mut self) -> Option<&mut dyn UserTree> {
        Some(self)
    }

    fn records_for(&self) -> Option<RecordsFor<'_>> {
        self.agent.records_for()
    }
}

impl UserTree for HandBack {
    fn take_in(&mut self) -> Result<Vec<String>, WorkspaceError> {
        self.seal()?;
        self.take_in_now().map_err(|e: Error| e.during("bring your own changes to the agent"))
    }

    fn hand_back(
        &mut self,
        at: Timestamp,
        passes: &mut dyn FnMut(&'static str),
    ) -> Result<HandedBack, WorkspaceError> {
        self.seal()?;
        self.hand_back_now(at, passes).map_err(|e| e.during("hand the agent's files back"))
    }

    fn hand_commits(&mut self, at: Timestamp) -> Result<(), WorkspaceError> {
        self.seal()?;
        self.hand_refs_now(at).map(drop).map_err(|e| e.during("hand the run's commits back"))
    }
}
