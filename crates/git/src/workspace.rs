//! [`GitWorkspace`]: a run's workspace in a folder on this machine, and what is known of the run there.

use crate::checkout::clean;
use crate::diff::LastPatch;
use crate::error::{Error, Result};
use crate::locks::left_lock::LeftLocks;
use crate::objects::refs::Refs;
use crate::objects::writer::{CommitIdentity, ObjectStore};
use crate::process::command::Git;
use crate::repo::{Repo, Tree};
use crate::snapshot::entry::TreeEntry;
use crate::snapshot::history::WorkCommit;
use crate::snapshot::protected::Protected;
use crate::snapshot::record::{EXCLUDE_AT_START, RefRecord};
use crate::snapshot::ref_monitor::RefMonitor;
use crate::snapshot::{FileStates, Snapshot};
use ralph_loop_domain::ports::WorkspaceError;
use ralph_loop_protocol::id::RunId;
use std::path::PathBuf;
use std::sync::Arc;

/// Untracked files above this size are left out of snapshots unless told otherwise.
pub const LARGE_FILE_LIMIT: u64 = 100 * 1024 * 1024;

/// How a workspace records a run.
#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    /// Who signs the commits.
    pub identity: CommitIdentity,
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
    /// Whether an agent works in this tree, so that a repo that appears within it is not taken for the user's.
    pub agent_works_here: bool,
    /// The only folders that the workspace has, where it is a sparse clone; a clean checkout has the same.
    pub sparse: Vec<String>,
}

impl WorkspaceOptions {
    /// The usual: no branch, no agent commits, state not committed.
    pub fn new(identity: CommitIdentity) -> Self {
        Self {
            identity,
            branch: None,
            allow_agent_commits: false,
            own_tree: false,
            commit_state: false,
            large_file_limit: LARGE_FILE_LIMIT,
            folder: None,
            state_top: None,
            agent_works_here: true,
            sparse: Vec::new(),
        }
    }

    pub(crate) fn tree(&self) -> Tree {
        if self.own_tree { Tree::Run } else { Tree::User }
    }
}

/// What a workspace knows of its run once that has begun or was reopened.
#[derive(Debug)]
pub(crate) struct RunSession {
    pub(crate) record: RefRecord,
    /// Files of `HEAD` at the start.
    pub(crate) head: Arc<Vec<TreeEntry>>,
    /// Files of the start snapshot.
    pub(crate) start: FileStates,
    /// The previous checkpoint.
    pub(crate) last: FileStates,
    /// The run's commits, oldest first.
    pub(crate) chain: Vec<WorkCommit>,
    pub(crate) guard: RefMonitor,
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
    pub(crate) session: Option<RunSession>,
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

    /// `refs/ralph/<run>/<name>`.
    pub(crate) fn own_ref(&self, name: &str) -> String {
        format!("refs/ralph/{}/{name}", self.run)
    }

    /// The files as they are now.
    pub(crate) fn now(&mut self) -> Result<FileStates> {
        let head = self.session.as_ref().map(|s| Arc::clone(&s.head)).unwrap_or_default();
        self.snapshot.refresh(&mut self.objects, &head)
    }

    /// The folder whose `.ralph/` is committed, where it is.
    pub(crate) fn state_top(&self) -> PathBuf {
        self.options.state_top.clone().unwrap_or_else(|| self.repo.top.clone())
    }

    pub(crate) fn session(&self) -> Result<&RunSession> {
        self.session.as_ref().ok_or_else(not_begun)
    }

    pub(crate) fn session_mut(&mut self) -> Result<&mut RunSession> {
        self.session.as_mut().ok_or_else(not_begun)
    }
}

/// What is answered before the run has begun here.
pub(crate) fn not_begun() -> Error {
    Error::refused("the run has not begun in this workspace", "call `begin` or `reopen` first")
}
