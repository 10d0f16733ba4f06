//! The port to the agent's tree and its history.

use crate::ports::GitRemote;
use crate::protect::ProtectedChange;
use jiff::Timestamp;
pub use ralph_loop_protocol::event::Baseline;
use ralph_loop_protocol::event::{FileChange, RefMove};
use ralph_loop_protocol::id::{AgentName, CommitId, RunId, TreeId};
use std::collections::BTreeMap;
use std::path::Path;

/// The agent's tree and its history: snapshots, commits, diffs and the refs that must not move.
///
/// An implementer guarantees: the user's index, stash, other branches and unrelated files are never changed; every
/// method can be repeated after a crash without doubling its effect. No method has a default: whoever wraps another
/// workspace must say for each what becomes of it, as "nothing found" is an answer that a proof relies on.
pub trait Workspace: Send {
    /// Takes the start snapshot (`refs/ralph/<run>/start`) unless it exists, and remembers refs and protected files.
    fn begin(&mut self, protected: &[String]) -> Result<Baseline, WorkspaceError>;
    /// Goes on from a baseline that an earlier process recorded.
    fn reopen(&mut self, baseline: &Baseline) -> Result<(), WorkspaceError>;
    /// Records the tree as it is now: tree, commit on `refs/ralph/<run>/work`, list of changes.
    fn checkpoint(&mut self, request: &CheckpointRequest<'_>) -> Result<Checkpoint, WorkspaceError>;
    /// Whether the next checkpoint can be made where the last one was: a person may have checked out something else.
    fn check_place(&self, on_branch: bool) -> Result<(), WorkspaceError>;
    /// The tree as it is now, without a commit. Cheap when nothing changed.
    fn tree(&mut self) -> Result<TreeId, WorkspaceError>;
    /// Refs that moved since they were last accepted, other than by this run.
    fn moved_refs(&mut self) -> Result<Vec<RefMove>, WorkspaceError>;
    /// Takes the refs as they are now for the new baseline (a person approved).
    fn accept_refs(&mut self) -> Result<(), WorkspaceError>;
    /// Protected paths that differ from the start of the run.
    fn protected_changes(&mut self) -> Result<Vec<ProtectedChange>, WorkspaceError>;
    /// Takes a protected path as it is now for its baseline (the engine itself or a person's journalled edit changed it).
    fn accept_protected(&mut self, path: &str) -> Result<(), WorkspaceError>;
    /// The patch between two trees or commits, at most `max` bytes.
    fn patch(&self, from: &str, to: &str, max: usize) -> Result<Vec<u8>, WorkspaceError>;
    /// The changes between two trees or commits.
    fn changes(&self, from: &str, to: &str) -> Result<Vec<FileChange>, WorkspaceError>;
    /// A clean checkout of `commit` in the empty folder `into`; ignored and untracked files are not there.
    fn checkout_clean(&self, commit: &CommitId, into: &Path) -> Result<(), WorkspaceError>;
    /// What the checkout that [`Workspace::checkout_clean`] has just made in `folder` holds and the commit does not.
    fn verify_checkout(&self, commit: &CommitId, folder: &Path) -> Result<Vec<String>, WorkspaceError>;
    /// What somebody did to the repository itself so that the run cannot go on in it; `None` where it is sound.
    fn damage(&self) -> Option<String>;
    /// A commit of `tree` upon `parent` that no ref names, for a checkout; `None` where nobody keeps more than it records.
    fn loose_commit(
        &mut self,
        tree: &TreeId,
        parent: &CommitId,
        at: Timestamp,
    ) -> Result<Option<CommitId>, WorkspaceError>;
    /// Files that earlier `runs` (newest first), neither proven nor approved, left here and that are among those of the
    /// baseline: each counts as what `HEAD` has. `None` if there are none. What somebody else has committed since is theirs.
    fn leftovers_of_unproven_runs(
        &mut self,
        baseline: &Baseline,
        runs: &[RunId],
        at: Timestamp,
    ) -> Result<Option<Leftovers>, WorkspaceError>;
    /// A file as a commit holds it; `None` where it has none.
    fn file_at(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError>;
    /// The commit that a branch of the repo that the result is for names; `None` where there is no such branch, or nobody
    /// keeps branches.
    fn branch_tip(&self, branch: &str) -> Result<Option<CommitId>, WorkspaceError>;
    /// Paths in the workspace that are never recorded (ignored ones); a whole folder ends with `/`. Bounded.
    fn unrecorded(&self) -> Result<Vec<String>, WorkspaceError>;
    /// Copies a folder that no commit holds from the tree at `from` to the one at `into`, as the agent's copy of the user's tree
    /// gets it. `false` where it is too much to copy; nothing is there then.
    fn copy_unrecorded(&self, path: &str, from: &Path, into: &Path) -> Result<bool, WorkspaceError>;
    /// Files in submodules that are not as those are pinned, which no checkpoint records, each with what tells whether it was
    /// written since. Bounded.
    fn submodule_files(&self) -> Result<BTreeMap<String, String>, WorkspaceError>;
    /// The way of its commits to others.
    fn publisher(&mut self) -> &mut dyn Publisher;
    /// The user's own tree, where the agent works on another one; `None` where it works in the user's.
    fn user_tree(&mut self) -> Option<&mut dyn UserTree>;
    /// The run that it records, where it was made for one.
    fn records_for(&self) -> Option<RecordsFor<'_>>;
}

/// A file that an earlier run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its path.
    pub path: String,
    /// The run that left it.
    pub run: RunId,
    /// What `HEAD` has there; `None` if it has no such file.
    pub head_blob: Option<String>,
}

/// What earlier runs left among the files that a run began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// A commit, which no ref names, of the start with those files as `HEAD` has them.
    pub start: CommitId,
    /// The files.
    pub files: Vec<Leftover>,
}

/// The run that a workspace was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordsFor<'a> {
    /// Its id, which stands in the names of its refs.
    pub run: &'a RunId,
    /// The branch that it commits on, where it does.
    pub branch: Option<&'a str>,
}

/// How commits of a run leave this machine.
///
/// An implementer guarantees: nothing is forced without a lease, no hook runs, and a push that was made already is not an
/// error.
pub trait Publisher {
    /// Records files of the engine as the next commit on `refs/ralph/<run>/state`; the last one again where nothing changed.
    fn save_state(
        &mut self,
        files: &[StateFile],
        message: &str,
        at: Timestamp,
    ) -> Result<CommitId, WorkspaceError>;
    /// Pushes refs, all or none. Never forces without a lease; no hook runs.
    fn push(&mut self, remote: &GitRemote, pushes: &[Push]) -> Result<PushEnd, WorkspaceError>;
    /// Whether a commit was made by this run; `false` where it is not known here at all.
    fn owns(&self, commit: &CommitId) -> Result<bool, WorkspaceError>;
    /// The commits that branches, tags and states on the remote name, or how asking for them ended.
    fn remote_commits(&self, remote: &GitRemote) -> Result<Result<Vec<CommitId>, PushEnd>, WorkspaceError>;
    /// Hands over what a push would show, piece by piece and without a bound: each commit as it stands (its message, its
    /// author), the whole path of each file, each content. An error where anything of it cannot be read: nobody knows then
    /// what it holds.
    fn outgoing(
        &self,
        asked: &Outgoing<'_>,
        each: &mut dyn FnMut(OutgoingPart<'_>),
    ) -> Result<(), WorkspaceError>;
    /// What a ref names on the remote; `None` where there is none.
    fn remote_ref(&self, remote: &GitRemote, name: &str) -> Result<Option<CommitId>, WorkspaceError>;
}

/// Which commits are looked through before a push.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    /// Those that are to be pushed.
    pub commits: &'a [CommitId],
    /// Those that the remote has; what is not known here bounds nothing.
    pub known: &'a [CommitId],
    /// Which side of the border is read.
    pub side: OutgoingSide,
}

/// A side of the border between what is pushed and what a remote has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutgoingSide {
    /// What the remote does not have yet.
    New,
    /// What it has right below that: the files of the commits that the new ones stand on.
    Base,
}

/// A piece of what a push would show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutgoingPart<'a> {
    /// A name begins so.
    Name(&'a [u8]),
    /// A commit or a content begins.
    Content,
    /// More of the name or the content that has begun.
    Bytes(&'a [u8]),
}

/// The user's own tree beside the agent's.
///
/// An implementer guarantees: what the user has changed is told and never overwritten; repeating either way changes nothing.
pub trait UserTree {
    /// Brings what the user has changed in their own tree meanwhile into the agent's. Returns the files. What both have
    /// changed stays as it is on both sides.
    fn take_in(&mut self) -> Result<Vec<String>, WorkspaceError>;
    /// Hands the agent's files as they are now back into the user's own tree. What the user has changed meanwhile is told
    /// and never overwritten. Before the first file is written, the user's repo records which they will be: `passes` is told the
    /// name of the place then, and behind every file.
    fn hand_back(
        &mut self,
        at: Timestamp,
        passes: &mut dyn FnMut(&'static str),
    ) -> Result<HandedBack, WorkspaceError>;
    /// Brings what the engine has recorded into the user's repo, and touches no file of theirs.
    fn hand_commits(&mut self, at: Timestamp) -> Result<(), WorkspaceError>;
}

/// One file of the engine's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFile {
    /// Path in the commit, with `/`.
    pub path: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// One ref to push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// What it is to name.
    pub commit: CommitId,
    /// The whole name on the remote: `refs/heads/…`.
    pub name: String,
    /// What it may replace.
    pub lease: Lease,
}

/// What a push may replace on the remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lease {
    /// Nothing: there must be no such ref yet.
    Absent,
    /// Exactly this commit.
    At(CommitId),
    /// Whatever is an ancestor.
    FastForward,
}

/// How a push ended, where git could talk to the remote at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushEnd {
    /// Every ref names what was asked for, now or already before.
    Pushed,
    /// The remote has something else: nothing was changed.
    Rejected {
        /// Git's words.
        reason: String,
    },
    /// The remote wants other credentials.
    Denied {
        /// Git's words.
        reason: String,
    },
    /// The remote cannot be reached or is broken at the moment.
    Unavailable {
        /// Git's words.
        reason: String,
    },
}

/// What a checkpoint is asked for.
#[derive(Debug, Clone)]
pub struct CheckpointRequest<'a> {
    /// The iteration it closes.
    pub iteration: u32,
    /// The agent who worked.
    pub agent: &'a AgentName,
    /// Commit message without trailers; where it is empty, the changed files make one.
    pub message: &'a str,
    /// When.
    pub at: Timestamp,
    /// Whether the run's branch moves with it, too.
    pub on_branch: bool,
    /// Takes secrets out of what files are called.
    pub redactor: Option<&'a crate::redact::Redactor>,
}

/// A recorded tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The tree of the workspace, user's unrelated changes included.
    pub tree: TreeId,
    /// The work commit; `None` where nothing has changed since the last one.
    pub commit: Option<CommitId>,
    /// Files changed since the previous checkpoint.
    pub files: Vec<FileChange>,
    /// Files that were dirty at the start and that the agent has edited.
    pub dirty_touched: Vec<String>,
    /// Protected paths that differ from the start of the run.
    pub protected: Vec<ProtectedChange>,
    /// Whether an earlier process had already made this commit.
    pub reused: bool,
}

/// What came of handing files back into the user's own tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandedBack {
    /// Files written or removed there just now.
    pub written: Vec<String>,
    /// Files that the user has changed, too: theirs stay, the agent's are in the work commit.
    pub conflicts: Vec<String>,
    /// The branch that did not move along, as the user has moved it meanwhile.
    pub branch_kept: Option<String>,
}

/// Git could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct WorkspaceError {
    /// What was tried.
    pub what: String,
    /// Why it failed, with git's last words.
    pub reason: String,
    /// What to do, where something can be done.
    pub hint: Option<String>,
}
