//! The port for the agent's tree and its history.

use crate::ports::GitRemote;
use crate::repo::protect::ProtectedChange;
use jiff::Timestamp;
pub use ralph_loop_protocol::event::Baseline;
use ralph_loop_protocol::event::{CommitPart, FileChange, RefMove};
use ralph_loop_protocol::id::{AgentName, CommitId, RunId, TreeId};
use std::collections::BTreeMap;
use std::path::Path;

/// The agent's tree and its history: snapshots, commits, diffs and watched refs.
///
/// Implementations guarantee: the user's index, stash, other branches and unrelated files are never changed; every
/// method can be repeated after a crash without doubling its effect. No method has a default: a wrapper must decide
/// about each, because "nothing found" is an answer that a proof relies on.
pub trait Workspace: Send {
    /// Takes the start snapshot (`refs/ralph/<run>/start`) unless it exists, and records refs and protected files.
    fn begin(&mut self, protected: &[String]) -> Result<Baseline, WorkspaceError>;
    /// Resumes from a baseline that an earlier process recorded.
    fn reopen(&mut self, baseline: &Baseline) -> Result<(), WorkspaceError>;
    /// Records the present tree: tree, commit on `refs/ralph/<run>/work`, list of changes.
    fn checkpoint(&mut self, request: &CheckpointRequest<'_>) -> Result<Checkpoint, WorkspaceError>;
    /// Whether the next checkpoint can be made in the same place: the user may have checked out another branch.
    fn check_place(&self, on_branch: bool) -> Result<(), WorkspaceError>;
    /// The present tree, without a commit. Cheap if nothing changed.
    fn tree(&mut self) -> Result<TreeId, WorkspaceError>;
    /// Refs that others moved since they were last accepted.
    fn moved_refs(&mut self) -> Result<Vec<RefMove>, WorkspaceError>;
    /// Takes the present refs as the new baseline after the user's approval.
    fn accept_refs(&mut self) -> Result<(), WorkspaceError>;
    /// Protected paths that differ from the start of the run.
    fn protected_changes(&mut self) -> Result<Vec<ProtectedChange>, WorkspaceError>;
    /// Takes the present state of a protected path as its baseline (the engine or the user's journaled edit changed
    /// it).
    fn accept_protected(&mut self, path: &str) -> Result<(), WorkspaceError>;
    /// The patch between two trees or commits, at most `max` bytes.
    fn patch(&self, from: &str, to: &str, max: usize) -> Result<Vec<u8>, WorkspaceError>;
    /// The changes between two trees or commits.
    fn changes(&self, from: &str, to: &str) -> Result<Vec<FileChange>, WorkspaceError>;
    /// A clean checkout of `commit` in the empty folder `into`, without ignored and untracked files.
    fn checkout_clean(&self, commit: &CommitId, into: &Path) -> Result<(), WorkspaceError>;
    /// Files that the fresh checkout of [`Workspace::checkout_clean`] in `folder` has and the commit doesn't.
    fn verify_checkout(&self, commit: &CommitId, folder: &Path) -> Result<Vec<String>, WorkspaceError>;
    /// Commits the present state of `paths` in such a checkout, which has changed since.
    fn commit_in_checkout(&self, folder: &Path, paths: &[&str]) -> Result<(), WorkspaceError>;
    /// Damage to the repository that prevents the run from continuing; `None` if there is none.
    fn damage(&self) -> Option<String>;
    /// A commit of `tree` on `parent` without a ref, for a checkout; `None` if everything is recorded anyway.
    fn unreferenced_commit(
        &mut self,
        tree: &TreeId,
        parent: &CommitId,
        at: Timestamp,
    ) -> Result<Option<CommitId>, WorkspaceError>;
    /// Baseline files that earlier `runs` (newest first), neither proven nor approved, left here: each counts as what
    /// `HEAD` has. `None` if there are none. What the user has committed since is theirs.
    fn leftovers_of_unproven_runs(
        &mut self,
        baseline: &Baseline,
        runs: &[RunId],
        at: Timestamp,
    ) -> Result<Option<Leftovers>, WorkspaceError>;
    /// A file in a commit; `None` if it isn't there.
    fn file_at(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError>;
    /// The commit of a branch in the target repo; `None` without such a branch, or without branches.
    fn branch_tip(&self, branch: &str) -> Result<Option<CommitId>, WorkspaceError>;
    /// Paths in the workspace that are never recorded (ignored ones); a whole folder ends with `/`. Bounded.
    fn unrecorded(&self) -> Result<Vec<String>, WorkspaceError>;
    /// Copies a folder that no commit holds from the tree at `from` to the one at `into`, like for the agent's copy
    /// of the user's tree. `false` if it is too large; nothing is copied then.
    fn copy_unrecorded(&self, path: &str, from: &Path, into: &Path) -> Result<bool, WorkspaceError>;
    /// Files in submodules that differ from what is pinned, which no checkpoint records, each with a fingerprint that
    /// shows whether it was written since. Bounded.
    fn submodule_files(&self) -> Result<BTreeMap<String, String>, WorkspaceError>;
    fn publisher(&mut self) -> &mut dyn Publisher;
    /// The user's tree, if the agent works on another one.
    fn user_tree(&mut self) -> Option<&mut dyn UserCheckout>;
    /// The recorded run, if any.
    fn records_for(&self) -> Option<RecordsFor<'_>>;
}

/// A file that an earlier run left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    pub path: String,
    pub run: RunId,
    /// The file's blob in `HEAD`, if any.
    pub head_blob: Option<String>,
}

/// Leftovers of earlier runs among the files that a run began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// A commit without a ref: the files at the start, with the leftovers as `HEAD` has them.
    pub start: CommitId,
    pub files: Vec<Leftover>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordsFor<'a> {
    /// Its id, which is part of its ref names.
    pub run: &'a RunId,
    /// The branch that it commits on, if any.
    pub branch: Option<&'a str>,
}

/// Publishes a run's commits.
///
/// Implementations guarantee: nothing is forced without a lease, no hook runs, and repeating a push isn't an error.
pub trait Publisher {
    /// Records the engine's files as the next commit on `refs/ralph/<run>/state`; returns the last one if nothing
    /// changed.
    fn save_state(
        &mut self,
        files: &[StateFile],
        message: &str,
        at: Timestamp,
    ) -> Result<CommitId, WorkspaceError>;
    /// Pushes refs, all or none. Never forces without a lease; no hook runs.
    fn push(&mut self, remote: &GitRemote, pushes: &[Push]) -> Result<PushEnd, WorkspaceError>;
    /// Whether this run made a commit; `false` if it is unknown here.
    fn owns(&self, commit: &CommitId) -> Result<bool, WorkspaceError>;
    /// The commits that branches, tags and states on the remote name, or how the request ended.
    fn remote_commits(&self, remote: &GitRemote) -> Result<Result<Vec<CommitId>, PushEnd>, WorkspaceError>;
    /// Passes on what a push would show, piece by piece and without a limit: each commit (message, author), the full
    /// path of each file, each content. Fails if any of it can't be read, because its content is then unknown.
    fn outgoing(
        &self,
        asked: &Outgoing<'_>,
        each: &mut dyn FnMut(OutgoingPart<'_>),
    ) -> Result<(), WorkspaceError>;
    fn remote_ref(&self, remote: &GitRemote, name: &str) -> Result<Option<CommitId>, WorkspaceError>;
}

/// Which commits are searched before a push.
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    pub commits: &'a [CommitId],
    /// Those that the remote has; commits unknown here are ignored.
    pub known: &'a [CommitId],
    pub side: OutgoingSide,
}

/// The side of the boundary between what is pushed and what a remote has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutgoingSide {
    /// What the remote doesn't have yet.
    New,
    /// The files of the parents of the new commits, which the remote has.
    Base,
}

/// A piece of what a push would show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutgoingPart<'a> {
    Name(&'a [u8]),
    Content,
    /// More of the name or the content that has begun.
    Bytes(&'a [u8]),
}

/// The user's tree, next to the agent's.
///
/// Implementations guarantee: the user's changes are reported and never overwritten; repeating either direction
/// changes nothing.
pub trait UserCheckout {
    /// Copies the user's changes into the agent's tree. Returns the files. What both have changed stays on both
    /// sides.
    fn pull_user_edits(&mut self) -> Result<Vec<String>, WorkspaceError>;
    /// Hands the agent's present files back into the user's tree. The user's changes are reported and never
    /// overwritten. Before the first file is written, the user's repo records which they will be: then, and after
    /// every file, `passes` is called with a point's name.
    fn hand_back(
        &mut self,
        at: Timestamp,
        passes: &mut dyn FnMut(&'static str),
    ) -> Result<HandedBack, WorkspaceError>;
    /// Copies the recorded commits into the user's repo, without touching files.
    fn push_refs_to_user_repo(&mut self, at: Timestamp) -> Result<(), WorkspaceError>;
}

/// One file of the engine's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateFile {
    /// Path in the commit, with `/`.
    pub path: String,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    pub commit: CommitId,
    /// The full ref name on the remote: `refs/heads/…`.
    pub name: String,
    pub lease: Lease,
}

/// What a push may replace on the remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lease {
    /// Nothing: the ref must not exist yet.
    Absent,
    At(CommitId),
    FastForward,
}

/// How a push ended, if git could reach the remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushEnd {
    /// Every ref has its new value, now or already before.
    Pushed,
    /// The remote has another value: nothing was changed.
    Rejected {
        reason: String,
    },
    Denied {
        reason: String,
    },
    Unavailable {
        reason: String,
    },
}

#[derive(Debug, Clone)]
pub struct CheckpointRequest<'a> {
    pub iteration: u32,
    pub agent: &'a AgentName,
    /// Commit message without trailers; if empty, it is built from the changed files.
    pub message: &'a str,
    /// Commits of some of the changed files before it; a workspace without messages has no use for them.
    pub parts: &'a [CommitPart],
    pub at: Timestamp,
    /// Whether to move the run's branch as well.
    pub on_branch: bool,
    pub redactor: Option<&'a crate::redact::Redactor>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The tree of the workspace, including the user's unrelated changes.
    pub tree: TreeId,
    /// The work commit; `None` if nothing has changed.
    pub commit: Option<CommitId>,
    pub files: Vec<FileChange>,
    /// Files that were dirty at the start and that the agent has edited.
    pub dirty_touched: Vec<String>,
    /// Protected paths that differ from the start of the run.
    pub protected: Vec<ProtectedChange>,
    /// Whether an earlier process had already made this commit.
    pub reused: bool,
}

/// The result of handing files back into the user's tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandedBack {
    pub written: Vec<String>,
    /// Files that the user has changed as well: theirs stay, the agent's are in the work commit.
    pub conflicts: Vec<String>,
    /// The branch that stayed, because the user has moved it.
    pub branch_kept: Option<String>,
}

/// Git couldn't do what was requested.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct WorkspaceError {
    pub what: String,
    /// Why it failed, with git's last output.
    pub reason: String,
    /// What to do next, if known.
    pub hint: Option<String>,
}
