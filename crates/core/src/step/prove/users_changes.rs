//! What of the user's own decides the final check without being in the commit: changes that are not committed, what git
//! ignores, what only a person can fix.

use super::{ProofFindings, ProofSubject};
use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::difference;
use ralph_domain::dialect::Publish;
use ralph_domain::id::CommitId;
use ralph_domain::setup;
use ralph_domain::spec::WorkspaceKind;

/// Names that are told and kept.
const TOLD: usize = 5;
const KEPT: usize = 200;

impl Driver {
    /// Where checks failed on the commit alone, and nothing leaves the user's folder: the same with the user's own changes
    /// that were there at the start, which is what stands in that folder. `None` where there are none.
    pub(super) fn with_users_changes(
        &mut self,
        subject: &ProofSubject,
        found: &ProofFindings,
    ) -> Result<Option<ProofSubject>, DriveError> {
        let spec = &self.ctx.state.spec;
        let stays_here = spec.place == WorkspaceKind::InPlace
            && spec.branch.is_none()
            && spec.settings.handover.publish == Publish::None;
        if !stays_here || subject.baseline.dirty.is_empty() || found.output.is_empty() {
            return Ok(None);
        }
        let files = self.workspace.changes(subject.commit.as_str(), subject.tree.as_str())?;
        let beside: Vec<String> = files.into_iter().map(|file| file.path).take(KEPT).collect();
        if beside.is_empty() {
            return Ok(None);
        }
        let now = self.ctx.clock.now();
        let made = self.workspace.loose_commit(&subject.tree, &subject.commit, now)?;
        let start = self.start_for_proof(&subject.baseline.start, &subject.baseline.head)?;
        Ok(made.map(|checked| ProofSubject { checked, start, beside, ..subject.clone() }))
    }

    /// What the result is held against: `start`, but where the run branched off from another what that one began with, and without
    /// what earlier runs left there that is neither proven nor approved.
    pub(super) fn start_for_proof(
        &mut self,
        start: &CommitId,
        head: &CommitId,
    ) -> Result<CommitId, DriveError> {
        let spec = &self.ctx.state.spec;
        if let Some(forked) = spec.forked_from.as_ref().and_then(|from| from.start.clone()) {
            return Ok(forked);
        }
        let left = spec.left_work.clone();
        let Some(last) = left.first() else { return Ok(start.clone()) };
        let Some(before) = self.workspace.without_left(start, head, &left, self.ctx.clock.now())? else {
            return Ok(start.clone());
        };
        if !std::mem::replace(&mut self.told_of_left_work, true) {
            self.ctx.notice(format!(
                "run {} left changes here that are neither proven nor approved; tests and checks are held against what was \
                 there before them (commit what of them is to stay)",
                last.run
            ))?;
        }
        Ok(before)
    }

    /// Says what the result stands on.
    pub(super) fn tell_users_changes(&mut self, subject: &ProofSubject) -> Result<(), DriveError> {
        let names: Vec<String> = subject.beside.iter().take(TOLD).map(|name| format!("`{name}`")).collect();
        let more = if subject.beside.len() > names.len() { ", …" } else { "" };
        self.ctx.notice(format!(
            "the checks pass together with your own changes of {}{more}, which are not committed: commit those, too",
            names.join(", ")
        ))
    }

    /// "Works on my machine": what the workspace has and the commit has not, and what only a person can fix.
    pub(super) fn explain(
        &self,
        subject: &ProofSubject,
        found: &mut ProofFindings,
    ) -> Result<(), DriveError> {
        let unrecorded = self.workspace.unrecorded()?;
        let files = self.workspace.changes(subject.commit.as_str(), subject.tree.as_str())?;
        let dirty: Vec<String> = files.into_iter().filter(|f| f.status != 'D').map(|f| f.path).collect();
        if let Some(line) = difference::line(&unrecorded, &dirty, &found.output) {
            found.fail(line);
        }
        let state = &self.ctx.state;
        let below = state.spec.task.working_dir.clone().unwrap_or_default();
        let has = |name: &str| {
            [state.spec.workspace.join(name), state.spec.workspace.join(&below).join(name)]
                .iter()
                .any(|path| path.is_file())
        };
        if state.spec.settings.setup_commands.is_empty()
            && let Some((folder, setup)) = setup::missing_setup(&unrecorded, has)
        {
            found.hint = Some(setup::setup_hint(&folder, setup.command));
            return Ok(());
        }
        let needed: Vec<&str> =
            dirty.iter().filter(|p| difference::is_named(p, &found.output)).map(String::as_str).collect();
        if !needed.is_empty() {
            found.hint = Some(setup::commit_hint(&needed));
        }
        Ok(())
    }
}
