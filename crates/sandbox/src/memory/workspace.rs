//! The history of a folder in memory, by the rules of the git one.

use super::{MemoryFiles, MemorySandbox, MemoryState, diff, lock};
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    Baseline, Checkpoint, CheckpointRequest, GitRemote, Lease, Leftovers, Outgoing, OutgoingPart,
    OutgoingSide, Publisher, Push, PushEnd, RecordsFor, StateFile, UserCheckout, Workspace, WorkspaceError,
};
use ralph_loop_domain::repo::protect::{ProtectedChange, ProtectedKind, covers};
use ralph_loop_protocol::event::{FileChange, RefMove};
use ralph_loop_protocol::id::{CommitId, Digest, RunId, TreeId};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The content of a repository; it outlives the workspaces over it, as a disk outlives a process.
#[derive(Debug, Default)]
pub(super) struct History {
    trees: BTreeMap<String, MemoryFiles>,
    commits: BTreeMap<String, Commit>,
    start: Option<Baseline>,
    work: Option<String>,
    remotes: BTreeMap<(String, String), CommitId>,
    protected: Vec<String>,
    accepted: BTreeMap<String, Option<Vec<u8>>>,
}

#[derive(Debug, Clone)]
struct Commit {
    parent: Option<String>,
    tree: String,
    iteration: u32,
}

/// The tree and history of a [`MemorySandbox`].
///
/// Trees are digests of all files, commits digests of their parent, tree and iteration: the same work gives the same
/// ids, in every process.
#[derive(Debug, Clone)]
pub struct MemoryWorkspace {
    root: PathBuf,
    state: Arc<Mutex<MemoryState>>,
}

impl MemoryWorkspace {
    /// The workspace of this sandbox's folder.
    pub fn new(sandbox: &MemorySandbox) -> Self {
        Self { root: sandbox.root.clone(), state: Arc::clone(&sandbox.state) }
    }

    fn with<R>(&self, work: impl FnOnce(&mut History, &MemoryFiles) -> R) -> R {
        let mut state = lock(&self.state);
        let state = &mut *state;
        work(&mut state.history, state.folders.entry(self.root.clone()).or_default())
    }
}

impl History {
    fn keep_tree(&mut self, files: &MemoryFiles) -> String {
        let id = files.digest();
        self.trees.entry(id.clone()).or_insert_with(|| files.clone());
        id
    }

    fn commit(&mut self, parent: Option<&str>, tree: &str, iteration: u32) -> String {
        let text = format!("{}\n{tree}\n{iteration}", parent.unwrap_or("-"));
        let id = Digest::of(text.as_bytes()).as_str().to_owned();
        let commit = Commit { parent: parent.map(str::to_owned), tree: tree.to_owned(), iteration };
        self.commits.insert(id.clone(), commit);
        id
    }

    fn files(&self, id: &str) -> Result<&MemoryFiles, WorkspaceError> {
        let tree = self.commits.get(id).map_or(id, |commit| &commit.tree);
        self.trees.get(tree).ok_or_else(|| error(&format!("find {id}"), "there is no such tree or commit"))
    }

    fn baseline(&self) -> Result<&Baseline, WorkspaceError> {
        self.start.as_ref().ok_or_else(|| error("continue", "the run has no start snapshot"))
    }

    fn wanted(&self, path: &str) -> Option<&[u8]> {
        if let Some(accepted) = self.accepted.get(path) {
            return accepted.as_deref();
        }
        let start = self.start.as_ref()?;
        self.trees.get(start.tree.as_str())?.get(path)
    }
}

fn error(what: &str, reason: &str) -> WorkspaceError {
    WorkspaceError { what: format!("cannot {what}"), reason: reason.to_owned(), hint: None }
}

impl Workspace for MemoryWorkspace {
    fn begin(&mut self, protected: &[String]) -> Result<Baseline, WorkspaceError> {
        self.with(|history, files| {
            if let Some(start) = &history.start {
                return Ok(start.clone());
            }
            let tree = history.keep_tree(files);
            let head = history.commit(None, &tree, 0);
            let start = history.commit(Some(&head), &tree, 0);
            let baseline = Baseline {
                head: CommitId::new(head),
                branch: Some("main".to_owned()),
                start: CommitId::new(start),
                tree: TreeId::new(tree),
                dirty: Vec::new(),
                dirty_total: 0,
                left_out: Vec::new(),
            };
            history.protected = protected.to_vec();
            history.start = Some(baseline.clone());
            Ok(baseline)
        })
    }

    fn reopen(&mut self, baseline: &Baseline) -> Result<(), WorkspaceError> {
        self.with(|history, _| {
            history.files(baseline.start.as_str())?;
            if history.baseline()? == baseline {
                Ok(())
            } else {
                Err(error("continue", "the start snapshot has changed"))
            }
        })
    }

    fn checkpoint(&mut self, request: &CheckpointRequest<'_>) -> Result<Checkpoint, WorkspaceError> {
        let protected = self.protected_changes()?;
        self.with(|history, files| {
            let start = history.baseline()?.start.as_str().to_owned();
            let tip = history.work.clone().unwrap_or_else(|| start.clone());
            let tree = history.keep_tree(files);
            let last = history.commits.get(&tip).cloned();
            let last = last.ok_or_else(|| error(&format!("find {tip}"), "the last commit is gone"))?;
            let same = last.tree == tree;
            let checkpoint = |commit: Option<String>, files, reused| Checkpoint {
                tree: TreeId::new(tree.clone()),
                commit: commit.map(CommitId::new),
                files,
                dirty_touched: Vec::new(),
                protected: protected.clone(),
                reused,
            };
            // The tip of an earlier process in this very iteration: nothing to add.
            if same && history.work.is_some() && last.iteration == request.iteration {
                let before = history.files(last.parent.as_deref().unwrap_or(&tip))?;
                return Ok(checkpoint(Some(tip), diff::changes(before, files), true));
            }
            // A truncated journal doesn't know commits of this iteration or later ones.
            let mut tip = tip;
            while let Some(commit) = history.commits.get(&tip)
                && tip != start
                && commit.iteration >= request.iteration
            {
                tip = commit.parent.clone().unwrap_or_else(|| start.clone());
            }
            history.work = (tip != start).then(|| tip.clone());
            let same = history.commits.get(&tip).is_some_and(|commit| commit.tree == tree);
            if same {
                return Ok(checkpoint(None, Vec::new(), false));
            }
            let changed = diff::changes(history.files(&tip)?, files);
            let commit = history.commit(Some(&tip), &tree, request.iteration);
            history.work = Some(commit.clone());
            Ok(checkpoint(Some(commit), changed, false))
        })
    }

    fn check_place(&self, _: bool) -> Result<(), WorkspaceError> {
        Ok(())
    }

    fn tree(&mut self) -> Result<TreeId, WorkspaceError> {
        Ok(self.with(|history, files| TreeId::new(history.keep_tree(files))))
    }

    fn moved_refs(&mut self) -> Result<Vec<RefMove>, WorkspaceError> {
        Ok(Vec::new())
    }

    fn accept_refs(&mut self) -> Result<(), WorkspaceError> {
        Ok(())
    }

    fn protected_changes(&mut self) -> Result<Vec<ProtectedChange>, WorkspaceError> {
        self.with(|history, files| {
            let start = history.files(history.baseline()?.tree.as_str())?;
            let paths: BTreeSet<&str> = start.iter().chain(files.iter()).map(|(path, _)| path).collect();
            let paths = paths.into_iter().chain(history.accepted.keys().map(String::as_str));
            let mut found = BTreeMap::new();
            for path in paths.filter(|path| covers(&history.protected, path)) {
                let change = match (history.wanted(path), files.get(path)) {
                    (None, Some(_)) => ProtectedKind::Added,
                    (Some(_), None) => ProtectedKind::Removed,
                    (wanted, now) if wanted != now => ProtectedKind::Changed,
                    _ => continue,
                };
                found.insert(path.to_owned(), change);
            }
            Ok(found.into_iter().map(|(path, change)| ProtectedChange { path, change }).collect())
        })
    }

    fn accept_protected(&mut self, path: &str) -> Result<(), WorkspaceError> {
        self.with(|history, files| {
            history.accepted.insert(path.to_owned(), files.get(path).map(<[u8]>::to_vec));
        });
        Ok(())
    }

    fn patch(&self, from: &str, to: &str, max: usize) -> Result<Vec<u8>, WorkspaceError> {
        self.with(|history, _| Ok(diff::patch(history.files(from)?, history.files(to)?, max)))
    }

    fn changes(&self, from: &str, to: &str) -> Result<Vec<FileChange>, WorkspaceError> {
        self.with(|history, _| Ok(diff::changes(history.files(from)?, history.files(to)?)))
    }

    fn checkout_clean(&self, commit: &CommitId, into: &Path) -> Result<(), WorkspaceError> {
        let mut state = lock(&self.state);
        let files = state.history.files(commit.as_str())?.clone();
        let folder = state.folders.entry(into.to_owned()).or_default();
        if !folder.is_empty() && *folder != files {
            return Err(error(&format!("check out into {}", into.display()), "the folder is not empty"));
        }
        *folder = files;
        Ok(())
    }

    /// Compared file by file, as there are no objects.
    fn verify_checkout(&self, commit: &CommitId, folder: &Path) -> Result<Vec<String>, WorkspaceError> {
        let state = lock(&self.state);
        let wanted = state.history.files(commit.as_str())?;
        let found = state.folders.get(folder);
        let found = found.ok_or_else(|| error("read the clean checkout", "there is none"))?;
        Ok(diff::changes(wanted, found)
            .into_iter()
            .map(|change| format!("`{}` differs", change.path))
            .collect())
    }

    /// In memory there is no git that checks could ask.
    fn commit_in_checkout(&self, _: &Path, _: &[&str]) -> Result<(), WorkspaceError> {
        Ok(())
    }

    fn unreferenced_commit(
        &mut self,
        _: &TreeId,
        _: &CommitId,
        _: Timestamp,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        Ok(None)
    }

    /// In memory there is only one run.
    fn leftovers_of_unproven_runs(
        &mut self,
        _: &Baseline,
        _: &[RunId],
        _: Timestamp,
    ) -> Result<Option<Leftovers>, WorkspaceError> {
        Ok(None)
    }

    /// A repository in memory can't be damaged.
    fn damage(&self) -> Option<String> {
        None
    }

    fn file_at(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        self.with(|history, _| Ok(history.files(commit.as_str())?.get(path).map(<[u8]>::to_vec)))
    }

    fn branch_tip(&self, _: &str) -> Result<Option<CommitId>, WorkspaceError> {
        Ok(None)
    }

    fn unrecorded(&self) -> Result<Vec<String>, WorkspaceError> {
        Ok(Vec::new())
    }

    fn copy_unrecorded(&self, _: &str, _: &Path, _: &Path) -> Result<bool, WorkspaceError> {
        Ok(false)
    }

    fn submodule_files(&self) -> Result<BTreeMap<String, String>, WorkspaceError> {
        Ok(BTreeMap::new())
    }

    fn publisher(&mut self) -> &mut dyn Publisher {
        self
    }

    fn user_tree(&mut self) -> Option<&mut dyn UserCheckout> {
        None
    }

    fn records_for(&self) -> Option<RecordsFor<'_>> {
        None
    }
}

impl Publisher for MemoryWorkspace {
    fn save_state(
        &mut self,
        files: &[StateFile],
        _message: &str,
        _at: Timestamp,
    ) -> Result<CommitId, WorkspaceError> {
        let all: Vec<u8> = files.iter().flat_map(|f| [f.path.as_bytes(), &f.bytes].concat()).collect();
        Ok(CommitId::new(Digest::of(&all).as_str()))
    }

    fn push(&mut self, remote: &GitRemote, pushes: &[Push]) -> Result<PushEnd, WorkspaceError> {
        self.with(|history, _| {
            let at = |name: &str| (remote.url.clone(), name.to_owned());
            let stale = pushes.iter().find(|push| {
                let there = history.remotes.get(&at(&push.name));
                there != Some(&push.commit)
                    && match &push.lease {
                        Lease::Absent => there.is_some(),
                        Lease::At(commit) => there != Some(commit),
                        Lease::FastForward => false,
                    }
            });
            if let Some(push) = stale {
                return Ok(PushEnd::Rejected { reason: format!("{} has moved", push.name) });
            }
            for push in pushes {
                history.remotes.insert(at(&push.name), push.commit.clone());
            }
            Ok(PushEnd::Pushed)
        })
    }

    fn owns(&self, commit: &CommitId) -> Result<bool, WorkspaceError> {
        Ok(self.with(|history, _| history.commits.contains_key(commit.as_str())))
    }

    fn remote_commits(&self, remote: &GitRemote) -> Result<Result<Vec<CommitId>, PushEnd>, WorkspaceError> {
        let there = |history: &mut History| {
            let refs = history.remotes.iter().filter(|((url, _), _)| *url == remote.url);
            refs.map(|(_, commit)| commit.clone()).collect()
        };
        Ok(Ok(self.with(|history, _| there(history))))
    }

    fn outgoing(
        &self,
        asked: &Outgoing<'_>,
        each: &mut dyn FnMut(OutgoingPart<'_>),
    ) -> Result<(), WorkspaceError> {
        self.with(|history, _| {
            for commit in asked.commits {
                let mut next = Some(commit.as_str().to_owned());
                while let Some(id) = next.filter(|id| history.commits.contains_key(id)) {
                    let known = asked.known.iter().any(|known| known.as_str() == id);
                    if known == (asked.side == OutgoingSide::Base) {
                        for (path, bytes) in history.files(&id)?.iter() {
                            each(OutgoingPart::Name(path.as_bytes()));
                            each(OutgoingPart::Content);
                            each(OutgoingPart::Bytes(bytes));
                        }
                    }
                    next =
                        history.commits.get(&id).and_then(|commit| commit.parent.clone()).filter(|_| !known);
                }
            }
            Ok(())
        })
    }

    fn remote_ref(&self, remote: &GitRemote, name: &str) -> Result<Option<CommitId>, WorkspaceError> {
        Ok(self.with(|history, _| history.remotes.get(&(remote.url.clone(), name.to_owned())).cloned()))
    }
}
