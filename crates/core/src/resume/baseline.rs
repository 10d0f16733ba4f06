//! Rechecks what a run relies on when it resumes or the user intervenes: spec, tree, evidence, refs,
//! cooldowns.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::record::task_book;
use ralph_loop_journal::folder::snapshot;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::Digest;

impl Driver {
    /// Accepts the current refs and configuration as the new baseline, after an approval.
    pub(crate) fn apply_approval(&mut self) -> Result<(), DriveError> {
        if !self.ctx.state.people.approval_pending || self.ctx.state.baseline.is_none() {
            return Ok(());
        }
        self.workspace.accept_refs()?;
        self.ctx.accept_config()
    }

    /// Records changed files first, because checks judge the recorded tree.
    pub(crate) fn check_tree(&mut self) -> Result<(), DriveError> {
        let recorded = self
            .ctx
            .state
            .iterations
            .current
            .as_ref()
            .is_some_and(|c| c.stage == ralph_loop_domain::state::Stage::Checkpointed);
        if recorded && Some(self.workspace.tree()?) != self.ctx.state.work.tree {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Discards evidence damaged by a power cut.
    pub(crate) fn check_evidence(&mut self) -> Result<(), DriveError> {
        let state = &self.ctx.state;
        let Some(digest) = state.result.proof.as_ref().filter(|p| p.passed).and_then(|p| p.proof.clone())
        else {
            return Ok(());
        };
        let path = self.ctx.run.proof();
        let sound = std::fs::read(&path).is_ok_and(|text| Digest::of(&text) == digest);
        if !sound && state.result.finished.is_none() {
            let reason = format!("`{}` isn't what was journaled", path.display());
            self.ctx.record(EventBody::ProofVoided { reason })?;
        }
        Ok(())
    }

    /// Accepts the task file that the user's edit names as its new baseline.
    pub(crate) fn take_edit(&mut self) -> Result<(), DriveError> {
        let spec = &self.ctx.state.spec;
        if self.spec_version == spec.spec_version || self.ctx.state.baseline.is_none() {
            return Ok(());
        }
        let since = std::mem::replace(&mut self.spec_version, spec.spec_version);
        let source = spec.task.source.clone();
        let path = spec.workspace.join(&source);
        let file = std::fs::read_to_string(&path).unwrap_or_default();
        let text = match &spec.task.raw {
            // Marks survive if the new text still has the item.
            Some(raw) => task_book::marked(spec.task.dialect, raw, &self.ctx.state.work.claims),
            None => spec.task.text.clone(),
        };
        let same =
            |file: &str| file.replace("\r\n", "\n").trim_end() == text.replace("\r\n", "\n").trim_end();
        if !same(&file) {
            // Writes the edit to the file, unless it changed since: then an agent did it.
            if !path.is_file() || !self.is_as_before(&file, since)? {
                return Ok(());
            }
            ralph_loop_journal::folder::artifacts::write_atomic(&path, text.as_bytes())?;
        }
        Ok(self.workspace.accept_protected(&source)?)
    }

    /// Whether the task file still matches one of the versions since `since`, ignoring marks: several edits
    /// may arrive in one session.
    fn is_as_before(&mut self, file: &str, since: u32) -> Result<bool, DriveError> {
        let spec = &self.ctx.state.spec;
        let before = |version: u32| {
            let path = self.ctx.run.path().join(format!("spec.v{version}.json"));
            let spec = std::fs::read(&path).ok().and_then(|text| snapshot::parse_spec(&path, &text).ok())?;
            Some(spec.task).filter(task_book::has_book)
        };
        let books: Vec<_> = (since.max(1)..spec.spec_version).filter_map(before).collect();
        if !books.is_empty() {
            let text = self.ctx.redactor.text(file);
            return Ok(books.iter().any(|task| task_book::review(task, &text).is_ok()));
        }
        let source = spec.task.source.clone();
        Ok(!self.workspace.protected_changes()?.iter().any(|c| c.path == source))
    }

    /// Keeps agents on the cooldowns of an earlier run in this folder.
    pub(crate) fn inherit_cooldowns(&mut self) -> Result<(), DriveError> {
        #[derive(serde::Deserialize)]
        struct Entry {
            cooldown_until: i64,
            reason: String,
        }
        let Ok(text) = std::fs::read(&self.ctx.cooldowns) else { return Ok(()) };
        let Ok(map) = serde_json::from_slice::<std::collections::BTreeMap<String, Entry>>(&text) else {
            return Ok(());
        };
        let now = self.ctx.clock.now();
        for (name, entry) in map {
            let agent = ralph_loop_protocol::id::AgentName::new(name);
            let until = jiff::Timestamp::from_second(entry.cooldown_until).unwrap_or(now);
            if until > now && self.ctx.state.spec.settings.agent(&agent).is_some() {
                self.ctx.record(EventBody::CooldownSet { agent, until, reason: entry.reason })?;
            }
        }
        Ok(())
    }
}
