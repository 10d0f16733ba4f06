//! [`GitWorkspace`]: a run's workspace in a local folder.

use crate::checkout::clean::Settings;
use crate::diff::LastPatch;
use crate::error::{Error, Result};
use crate::locks::left_lock::LeftLocks;
use crate::objects::refs::Refs;
use crate::objects::writer::{CommitIdentity, Objects};
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

/// Snapshots leave out untracked files above this size by default.
pub const LARGE_FILE_LIMIT: u64 = 100 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct WorkspaceOptions {
    pub identity: CommitIdentity,
    /// The branch that the run commits on, if any.
    pub branch: Option<String>,
    /// Whether the agent may commit on the current branch itself.
    pub allow_agent_commits: bool,
    /// Whether the tree is the run's copy, worktree or clone, so that its branches aren't the user's.
    pub own_tree: bool,
    /// Whether `.ralph/` is part of the commits.
    pub commit_state: bool,
    /// Snapshots leave out untracked files above this many bytes.
    pub large_file_limit: u64,
    /// Where the run keeps its records of the repo: private index, refs, protected files. By default the repo's git
    /// folder.
    pub folder: Option<PathBuf>,
    /// The folder that holds the run's `.ralph/`, if it isn't the folder of the files.
    pub state_top: Option<PathBuf>,
    /// Whether an agent works in this tree, so that a repo that appears within it isn't taken for the user's.
    pub agent_works_here: bool,
    /// The only folders of a sparse clone; a clean checkout has the same.
    pub sparse: Vec<String>,
}

impl WorkspaceOptions {
    /// The defaults: no branch, no agent commits, state not committed.
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

#[derive(Debug)]
pub(crate) struct RunSession {
    pub(crate) record: RefRecord,
    pub(crate) head: Arc<Vec<TreeEntry>>,
    pub(crate) start: FileStates,
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
    pub(crate) objects: Objects,
    pub(crate) snapshot: Snapshot,
    pub(crate) session: Option<RunSession>,
    pub(crate) settings: Arc<Settings>,
}

impl GitWorkspace {
    /// Opens the workspace of a run. The only file of the user's that may change is `info/exclude`.
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
            // Locks are hard links, so they must be on the file system of what they lock.
            refs: Refs::new(&repo, &own).removing_left(left_locks.clone()),
            left_locks,
            objects: Objects::new(repo.git(), folder.clone()),
            repo,
            run,
            options,
            folder,
            snapshot,
            session: None,
            settings: Arc::default(),
        })
    }

    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    pub(crate) fn own_ref(&self, name: &str) -> String {
        format!("refs/ralph/{}/{name}", self.run)
    }

    /// Uses the settings of the user's repo, whose copy this is.
    pub(crate) fn use_settings(&mut self, settings: &Arc<Settings>) -> Result<()> {
        let (start, nested) = (self.session()?.start.tree, self.snapshot.nested());
        self.settings = Arc::clone(settings);
        self.snapshot.begun_with(start, nested, settings);
        Ok(())
    }

    pub(crate) fn now(&mut self) -> Result<FileStates> {
        let head = self.session.as_ref().map(|s| Arc::clone(&s.head)).unwrap_or_default();
        self.snapshot.refresh(&head)
    }

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

pub(crate) fn not_begun() -> Error {
    Error::refused("the run has not begun in this workspace", "call `begin` or `reopen` first")
}
