//! Hand back: copies the agent's changes to the user's tree, and the user's changes to the agent's copy. Does
//! nothing if the agent works in the user's tree.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::event::{EventBody, Handed};
use ralph_loop_protocol::id::CommitId;

const FILES_MAX: usize = 200;

impl Driver {
    /// Before a session: brings the user's changes into the copy.
    pub(crate) fn pull_user_edits(&mut self) -> Result<(), DriveError> {
        if !self.ctx.state.spec.hands_back() {
            return Ok(());
        }
        let Some(user) = self.workspace.user_tree() else { return Err(no_user_tree()) };
        let taken = user.pull_user_edits()?;
        self.ctx.boundary("takein.after");
        if !taken.is_empty() {
            self.sandbox.folder_edited()?;
        }
        let told = match &self.ctx.state.spec.branch {
            Some(branch) => format!(", and is committed with its work on `{branch}`"),
            None => String::new(),
        };
        match taken.as_slice() {
            [] => Ok(()),
            [one] => self.ctx.notice(format!("your own change of `{one}` was brought to the agent{told}")),
            many => {
                let names: Vec<String> = many.iter().take(5).map(|name| format!("`{name}`")).collect();
                let more = if many.len() > names.len() { ", …" } else { "" };
                let files = count(many.len(), "file");
                self.ctx.notice(format!(
                    "your own changes of {files} were brought to the agent ({}{more}){}",
                    names.join(", "),
                    told.replace("and is", "and are")
                ))
            }
        }
    }

    /// After the user ended the run: commits only. An interrupted session's work stays out of the user's tree
    /// but can be inspected.
    pub(crate) fn push_refs_to_user_repo(&mut self) -> Result<(), DriveError> {
        if !self.ctx.state.spec.hands_back() || self.ctx.state.baseline.is_none() {
            return Ok(());
        }
        let now = self.ctx.clock.now();
        let Some(user) = self.workspace.user_tree() else { return Err(no_user_tree()) };
        Ok(user.push_refs_to_user_repo(now)?)
    }

    /// After a checkpoint and at the end: copies the agent's changes to the user's tree. Idempotent.
    pub(crate) fn hand_back(&mut self, commit: Option<CommitId>) -> Result<(), DriveError> {
        if !self.ctx.state.spec.hands_back() || self.ctx.state.baseline.is_none() {
            return Ok(());
        }
        self.ctx.boundary("handback.before");
        let now = self.ctx.clock.now();
        let ctx = &mut self.ctx;
        let Some(user) = self.workspace.user_tree() else { return Err(no_user_tree()) };
        let mut back = user.hand_back(now, &mut |place| ctx.boundary(place))?;
        self.ctx.boundary("handback.written");
        back.conflicts.truncate(FILES_MAX);
        let state = &self.ctx.state;
        let known = back.conflicts == state.work.kept_back && back.branch_kept == state.work.branch_kept;
        if !back.written.is_empty() || !known {
            let iteration =
                state.iterations.current.as_ref().map_or(state.iterations.count, |current| current.iteration);
            let handed = Handed {
                iteration,
                written: back.written.len(),
                conflicts: back.conflicts,
                branch_kept: back.branch_kept,
                commit: commit.or_else(|| state.work.commit.clone()),
            };
            self.ctx.record(EventBody::HandedBack(handed))?;
        }
        self.ctx.boundary("handback.after");
        Ok(())
    }
}

/// The spec hands files back, but the workspace can't.
fn no_user_tree() -> DriveError {
    DriveError::Wiring(
        "the work of this run goes back to the user's own tree, but its workspace knows none".into(),
    )
}
