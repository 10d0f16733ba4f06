//! [`GitWorkspace`]: the `Workspace` port for a folder on this machine.

use crate::checkpoint::LastPatch;
use crate::clean;
use crate::command::Git;
use crate::diff;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::guard::{RefGuard, Tree};
use crate::history::WorkCommit;
use crate::left_lock::LeftLocks;
use crate::object::{Identity, ObjectStore};
use crate::protected::Protected;
use crate::push;
use crate::record::{EXCLUDE_AT_START, Record};
use crate::refs::Refs;
use crate::repo::Repo;
use crate::snapshot::{Snapshot, State};
use jiff::Timestamp;
use ralph_domain::event::{FileChange, RefMove};
use ralph_domain::id::{CommitId, RunId, TreeId};
use ralph_domain::ports::{
    Baseline, Checkpoint, CheckpointRequest, GitRemote, Publisher, Push, PushEnd, StateFile, UserTree,
    Workspace, WorkspaceError,
};
use ralph_domain::protect::ProtectedChange;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Untracked files above this size are left out of snapshots unless told otherwise.
pub const LARGE_FILE_LIMIT: u64 = 100 * 1024 * 1024;

/// How a workspace records a run.
#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    /// Who signs the commits.
    pub identity: Identity,
    /// The branch that the run commits on, where it does.
    pub branch: Option<String>,
    /// Whether commits that the agent makes itself on the current branch are its way of handing over.
    pub allow_agent_commits: bool,
    /// Whether the tree is the run's own (a copy, worktree or clone), so that its branches are not the user's to mind.
    pub own_tree: bool,
    /// Whether `.ralph/` is part of the commits.
    pub commit_state: bool,
    /// Untracked files above this many bytes are left out.
    pub large_file_limit: u64,
    /// Where the run keeps what it remembers of the repo: private index, refs, protected files. Without one, in the repo's
    /// own git folder.
    pub folder: Option<PathBuf>,
    /// The folder whose `.ralph/` is the run's, where that is not the one of the files.
    pub state_top: Option<PathBuf>,
    /// The only folders that the workspace has, where it is a sparse clone; a clean checkout has the same.
    pub sparse: Vec<String>,
}

impl WorkspaceOptions {
    /// The usual: no branch, no agent commits, state not committed.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            branch: None,
            allow_agent_commits: false,
            own_tree: false,
            commit_state: false,
            large_file_limit: LARGE_FILE_LIMIT,
            folder: None,
            state_top: None,
            sparse: Vec::new(),
        }
    }

    pub(crate) fn tree(&self) -> Tree {
        if self.own_tree { Tree::Run } else { Tree::User }
    }
}

/// What is known once a run has begun or was reopened.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) record: Record,
    /// Files of `HEAD` at the start.
    pub(crate) head: Arc<Vec<Entry>>,
    /// Files of the start snapshot.
    pub(crate) start: State,
    /// The previous checkpoint.
    pub(crate) last: State,
    /// The run's commits, oldest first.
    pub(crate) chain: Vec<WorkCommit>,
    pub(crate) guard: RefGuard,
    pub(crate) protected: Protected,
    pub(crate) patch: Option<LastPatch>,
}

/// A run's workspace in a local git repo.
#[derive(Debug)]
pub struct GitWorkspace {
    pub(crate) repo: Repo,
    pub(crate) git: Git,
    pub(crate) run: RunId,
    pub(crate) options: WorkspaceOptions,
    pub(crate) folder: PathBuf,
    pub(crate) refs: Refs,
    pub(crate) left_locks: LeftLocks,
    pub(crate) objects: ObjectStore,
    pub(crate) snapshot: Snapshot,
    pub(crate) session: Option<Session>,
    /// What clean checkouts take over from the repo.
    pub(crate) settings: clean::Settings,
}

impl GitWorkspace {
    /// Opens the workspace of a run. Nothing of the user's is changed but `info/exclude`, and that only where the run's
    /// state is not to be committed.
    pub fn new(repo: Repo, run: RunId, options: WorkspaceOptions) -> Result<Self, WorkspaceError> {
        let what = "open the workspace";
        repo.exclude_ralph_dir().map_err(|e| e.during(what))?;
        let own = repo.run_folder(&run);
        std::fs::create_dir_all(&own).map_err(|e| Error::file("create", &own, e).during(what))?;
        let folder = options.folder.clone().unwrap_or_else(|| own.clone());
        let snapshot = Snapshot::open(&repo, &folder, "index", options.large_file_limit, true)
            .map_err(|e| e.during(what))?;
        let left_locks = LeftLocks::new(&repo, options.tree(), folder.join(EXCLUDE_AT_START));
        Ok(Self {
            git: repo.git(),
            // Locks are links, and so on the file system of what is locked.
            refs: Refs::new(&repo, &own).removing_left(left_locks.clone()),
            left_locks,
            objects: ObjectStore::new(repo.common_dir.join("objects"), repo.object_format),
            repo,
            run,
            options,
            folder,
            snapshot,
            session: None,
            settings: clean::Settings::default(),
        })
    }

    /// The repo.
    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    /// The patch of the last checkpoint that changed something, at most 4 MiB.
    pub fn last_patch(&self) -> Option<&[u8]> {
        self.session.as_ref()?.patch.as_ref().map(|p| p.bytes.as_slice())
    }

    /// `refs/ralph/<run>/<name>`.
    pub(crate) fn own_ref(&self, name: &str) -> String {
        format!("refs/ralph/{}/{name}", self.run)
    }

    /// The files as they are now.
    pub(crate) fn now(&mut self) -> Result<State> {
        let head = self.session.as_ref().map(|s| Arc::clone(&s.head)).unwrap_or_default();
        self.snapshot.refresh(&mut self.objects, &head)
    }

    /// The folder whose `.ralph/` is committed, where it is.
    pub(crate) fn state_top(&self) -> PathBuf {
        self.options.state_top.clone().unwrap_or_else(|| self.repo.top.clone())
    }

    pub(crate) fn session(&self) -> Result<&Session> {
        self.session.as_ref().ok_or_else(not_begun)
    }

    pub(crate) fn session_mut(&mut self) -> Result<&mut Session> {
        self.session.as_mut().ok_or_else(not_begun)
    }

    fn changed_protected(&mut self) -> Result<Vec<ProtectedChange>> {
        let now = self.now()?;
        let session = self.session()?;
        Ok(session.protected.changes(self.snapshot.top(), &session.start.entries, &now.entries))
    }

    fn take_protected(&mut self, path: &str) -> Result<()> {
        let now = self.now()?;
        let top = self.snapshot.top().to_owned();
        let session = self.session_mut()?;
        session.protected.accept(&top, path, &session.start.entries, &now.entries)
    }

    fn foreign_moves(&mut self) -> Result<Vec<RefMove>> {
        self.sweep_left_locks();
        let session = self.session.as_mut().ok_or_else(not_begun)?;
        session.guard.moves(&self.refs)
    }
}

fn not_begun() -> Error {
    Error::refused("the run has not begun in this workspace", "call `begin` or `reopen` first")
}

impl Workspace for GitWorkspace {
    fn begin(&mut self, protected: &[String]) -> Result<Baseline, WorkspaceError> {
        self.begin_run(protected).map_err(|e| e.during("take the start snapshot"))
    }

    fn reopen(&mut self, baseline: &Baseline) -> Result<(), WorkspaceError> {
        self.reopen_run(baseline).map_err(|e| e.during("go on in the workspace"))
    }

    fn checkpoint(&mut self, request: &CheckpointRequest<'_>) -> Result<Checkpoint, WorkspaceError> {
        self.record_checkpoint(request)
            .map_err(|e| e.during(&format!("record iteration {}", request.iteration)))
    }

    fn tree(&mut self) -> Result<TreeId, WorkspaceError> {
        let state = self.now().map_err(|e| e.during("read the files"))?;
        Ok(TreeId::new(state.tree.to_string()))
    }

    fn moved_refs(&mut self) -> Result<Vec<RefMove>, WorkspaceError> {
        self.foreign_moves().map_err(|e| e.during("look at the refs"))
    }

    fn accept_refs(&mut self) -> Result<(), WorkspaceError> {
        self.accept_moves().map_err(|e| e.during("accept the refs"))
    }

    fn protected_changes(&mut self) -> Result<Vec<ProtectedChange>, WorkspaceError> {
        self.changed_protected().map_err(|e| e.during("look at the protected files"))
    }

    fn accept_protected(&mut self, path: &str) -> Result<(), WorkspaceError> {
        self.take_protected(path).map_err(|e| e.during(&format!("accept `{path}`")))
    }

    fn patch(&self, from: &str, to: &str, max: usize) -> Result<Vec<u8>, WorkspaceError> {
        let kept = self.session.as_ref().and_then(|s| s.patch.as_ref());
        if let Some(patch) = kept.filter(|p| p.answers(from, to, max)) {
            return Ok(patch.bytes[..patch.bytes.len().min(max)].to_vec());
        }
        diff::patch(&self.git, from, to, max).map_err(|e| e.during("make the patch"))
    }

    fn patches(&self, from: &str, to: &str, max: usize) -> Result<Vec<u8>, WorkspaceError> {
        diff::patches(&self.git, from, to, max).map_err(|e| e.during("read the commits"))
    }

    fn changes(&self, from: &str, to: &str) -> Result<Vec<FileChange>, WorkspaceError> {
        diff::changes(&self.git, from, to).map_err(|e| e.during("list the changes"))
    }

    fn checkout_clean(&self, commit: &CommitId, into: &Path) -> Result<(), WorkspaceError> {
        clean::checkout(&self.repo, &self.settings, commit.as_str(), into, &self.options.sparse)
            .map_err(|e| e.during(&format!("check out {} cleanly", commit.short())))
    }

    fn verify_checkout(&self, commit: &CommitId, folder: &Path) -> Result<Vec<String>, WorkspaceError> {
        clean::verify(&self.repo.vars, commit.as_str(), folder, !self.options.sparse.is_empty())
            .map_err(|e| e.during("look at the clean checkout"))
    }

    fn damage(&self) -> Option<String> {
        // A folder of the run's own in there tells the repo from another one at the same place.
        let own = self.repo.run_folder(&self.run);
        let gone = [&self.repo.common_dir, &self.repo.git_dir, &own, &self.folder]
            .into_iter()
            .find(|dir| !dir.is_dir())?;
        Some(format!("`{}` was removed: the repository is another one than at the start", gone.display()))
    }

    fn file_at(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        diff::file_at(&self.git, commit.as_str(), path).map_err(|e| e.during(&format!("read `{path}`")))
    }

    fn unrecorded(&self) -> Result<Vec<String>, WorkspaceError> {
        diff::unrecorded(&self.git).map_err(|e| e.during("list ignored files"))
    }

    fn publisher(&mut self) -> &mut dyn Publisher {
        self
    }

    fn user_tree(&mut self) -> Option<&mut dyn UserTree> {
        None
    }
}

impl Publisher for GitWorkspace {
    fn save_state(
        &mut self,
        files: &[StateFile],
        message: &str,
        at: Timestamp,
    ) -> Result<CommitId, WorkspaceError> {
        self.record_state(files, message, at.as_second()).map_err(|e| e.during("record the run's state"))
    }

    fn push(&mut self, remote: &GitRemote, pushes: &[Push]) -> Result<PushEnd, WorkspaceError> {
        push::push(&self.repo, remote, pushes).map_err(|e| e.during(&format!("push to {}", remote.url)))
    }

    fn owns(&self, commit: &CommitId) -> Result<bool, WorkspaceError> {
        push::owns(&self.repo, &self.run, commit)
            .map_err(|e| e.during(&format!("look at {}", commit.short())))
    }

    fn remote_ref(&self, remote: &GitRemote, name: &str) -> Result<Option<CommitId>, WorkspaceError> {
        push::remote_ref(&self.repo.vars, remote, name)
            .map_err(|e| e.during(&format!("look at {}", remote.url)))
    }
}
