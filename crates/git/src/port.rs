//! Implements the `Workspace` port for [`GitWorkspace`].

use crate::agent_copy::copy_files;
use crate::checkout::clean;
use crate::checkout::submodule_edits;
use crate::diff;
use crate::error::Result;
use crate::hand_back::leftovers;
use crate::publish::push;
use crate::repo::Repo;
use crate::workspace::{GitWorkspace, not_begun};
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    Baseline, Checkpoint, CheckpointRequest, GitRemote, Leftovers, Outgoing, OutgoingPart, Publisher, Push,
    PushEnd, RecordsFor, StateFile, UserCheckout, Workspace, WorkspaceError,
};
use ralph_loop_domain::repo::protect::ProtectedChange;
use ralph_loop_protocol::event::{FileChange, RefMove};
use ralph_loop_protocol::id::{CommitId, RunId, TreeId};
use std::collections::BTreeMap;
use std::path::Path;

impl GitWorkspace {
    /// Compares a clean checkout with its commit; `safe_objects` as in [`clean::CheckoutFacts`].
    pub(crate) fn verify_with(
        &self,
        commit: &CommitId,
        folder: &Path,
        safe_objects: Option<&[u8]>,
    ) -> Result<Vec<String>, WorkspaceError> {
        let attributes = self.snapshot.attributes();
        let sparse = !self.options.sparse.is_empty();
        let (attributes, settings) = (attributes.as_deref(), &self.settings);
        let facts = clean::CheckoutFacts { sparse, attributes, settings, safe_objects };
        clean::verify(&self.repo.vars, commit.as_str(), folder, facts)
            .map_err(|e| e.during("read the clean checkout"))
    }

    /// `users` is the repo that knows the runs.
    pub(crate) fn leftovers_in(
        &mut self,
        users: &Repo,
        baseline: &Baseline,
        runs: &[RunId],
        at: Timestamp,
    ) -> Result<Option<Leftovers>, WorkspaceError> {
        let tree = leftovers::start_without(users, &self.repo, &self.run, baseline, runs);
        match tree.map_err(|e| e.during("read what earlier runs left"))? {
            Some((tree, files)) => {
                let start = self.unreferenced_commit(&tree, &baseline.start, at)?;
                Ok(start.map(|start| Leftovers { start, files }))
            }
            None => Ok(None),
        }
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

impl Workspace for GitWorkspace {
    fn begin(&mut self, protected: &[String]) -> Result<Baseline, WorkspaceError> {
        self.begin_run(protected).map_err(|e| e.during("take the start snapshot"))
    }

    fn reopen(&mut self, baseline: &Baseline) -> Result<(), WorkspaceError> {
        self.reopen_run(baseline).map_err(|e| e.during("continue in the workspace"))
    }

    fn checkpoint(&mut self, request: &CheckpointRequest<'_>) -> Result<Checkpoint, WorkspaceError> {
        self.record_checkpoint(request)
            .map_err(|e| e.during(&format!("record iteration {}", request.iteration)))
    }

    fn check_place(&self, on_branch: bool) -> Result<(), WorkspaceError> {
        let ready = self.check_branch(on_branch).map(drop);
        ready.map_err(|e| e.during("continue where the run was"))
    }

    fn tree(&mut self) -> Result<TreeId, WorkspaceError> {
        let state = self.now().map_err(|e| e.during("read the files"))?;
        Ok(TreeId::new(state.tree.to_string()))
    }

    fn moved_refs(&mut self) -> Result<Vec<RefMove>, WorkspaceError> {
        self.foreign_moves().map_err(|e| e.during("read the refs"))
    }

    fn accept_refs(&mut self) -> Result<(), WorkspaceError> {
        self.accept_moves().map_err(|e| e.during("accept the refs"))
    }

    fn protected_changes(&mut self) -> Result<Vec<ProtectedChange>, WorkspaceError> {
        self.changed_protected().map_err(|e| e.during("read the protected files"))
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

    fn changes(&self, from: &str, to: &str) -> Result<Vec<FileChange>, WorkspaceError> {
        diff::changes(&self.git, from, to).map_err(|e| e.during("list the changes"))
    }

    fn checkout_clean(&self, commit: &CommitId, into: &Path) -> Result<(), WorkspaceError> {
        let attributes = self.snapshot.attributes();
        let rules = clean::CheckoutRules {
            settings: &self.settings,
            sparse: &self.options.sparse,
            attributes: attributes.as_deref(),
        };
        clean::checkout(&self.repo, commit.as_str(), into, rules)
            .map_err(|e| e.during(&format!("check out {} cleanly", commit.short())))
    }

    fn verify_checkout(&self, commit: &CommitId, folder: &Path) -> Result<Vec<String>, WorkspaceError> {
        self.verify_with(commit, folder, None)
    }

    fn commit_in_checkout(&self, folder: &Path, paths: &[&str]) -> Result<(), WorkspaceError> {
        let made = clean::commit_files(&self.repo.vars, folder, paths);
        made.map_err(|e| e.during("record the files of the clean checkout"))
    }

    fn damage(&self) -> Option<String> {
        // The run's folder in there tells the repo from another one at the same path.
        let own = self.repo.run_folder(&self.run);
        let gone = [&self.repo.common_dir, &self.repo.git_dir, &own, &self.folder]
            .into_iter()
            .find(|dir| !dir.is_dir())?;
        Some(format!("`{}` was removed: the repository is another one than at the start", gone.display()))
    }

    fn unreferenced_commit(
        &mut self,
        tree: &TreeId,
        parent: &CommitId,
        at: Timestamp,
    ) -> Result<Option<CommitId>, WorkspaceError> {
        let (who, message) = (&self.options.identity, "The work, with changes that are not committed\n");
        let made = self.objects.commit(tree.as_str(), Some(parent.as_str()), who, at.as_second(), message);
        made.map(|id| Some(CommitId::new(id))).map_err(|e| e.during("record the files that are checked"))
    }

    fn leftovers_of_unproven_runs(
        &mut self,
        baseline: &Baseline,
        runs: &[RunId],
        at: Timestamp,
    ) -> Result<Option<Leftovers>, WorkspaceError> {
        let users = self.repo.clone();
        self.leftovers_in(&users, baseline, runs, at)
    }

    fn file_at(&self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, WorkspaceError> {
        diff::file_at(&self.git, commit.as_str(), path).map_err(|e| e.during(&format!("read `{path}`")))
    }

    fn branch_tip(&self, branch: &str) -> Result<Option<CommitId>, WorkspaceError> {
        let tip = self.refs.read(&format!("refs/heads/{branch}"));
        Ok(tip.map_err(|e| e.during(&format!("read the branch `{branch}`")))?.map(CommitId::new))
    }

    fn unrecorded(&self) -> Result<Vec<String>, WorkspaceError> {
        diff::unrecorded(&self.git).map_err(|e| e.during("list ignored files"))
    }

    fn copy_unrecorded(&self, path: &str, from: &Path, into: &Path) -> Result<bool, WorkspaceError> {
        copy_files::copy(&[path.as_bytes().to_vec()], from, into)
            .map(|left| left.too_much.is_empty())
            .map_err(|e| e.during(&format!("copy `{path}`")))
    }

    fn submodule_files(&self) -> Result<BTreeMap<String, String>, WorkspaceError> {
        let head = self.session().map(|session| session.record.baseline.head.as_str());
        head.and_then(|head| submodule_edits::edited(&self.repo, &self.run, head, &self.repo.top))
            .map_err(|e| e.during("look into the submodules"))
    }

    fn publisher(&mut self) -> &mut dyn Publisher {
        self
    }

    fn user_tree(&mut self) -> Option<&mut dyn UserCheckout> {
        None
    }

    fn records_for(&self) -> Option<RecordsFor<'_>> {
        Some(RecordsFor { run: &self.run, branch: self.options.branch.as_deref() })
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

    fn remote_commits(&self, remote: &GitRemote) -> Result<Result<Vec<CommitId>, PushEnd>, WorkspaceError> {
        push::remote_commits(&self.repo, remote).map_err(|e| e.during(&format!("look at {}", remote.url)))
    }

    fn outgoing(
        &self,
        asked: &Outgoing<'_>,
        each: &mut dyn FnMut(OutgoingPart<'_>),
    ) -> Result<(), WorkspaceError> {
        push::outgoing(&self.repo, asked, each).map_err(|e| e.during("read what would be pushed"))
    }

    fn remote_ref(&self, remote: &GitRemote, name: &str) -> Result<Option<CommitId>, WorkspaceError> {
        push::remote_ref(&self.repo.vars, remote, name)
            .map_err(|e| e.during(&format!("look at {}", remote.url)))
    }
}
