//! Detects changes to files that decide a run: journal, frozen spec, configuration. Without a sandbox, agents
//! can edit them, so they are compared after each session, before judging.

use crate::context::Context;
use crate::error::DriveError;
use crate::record::append_only::AppendOnlyFiles;
use crate::record::file_stamp::FileStamp;
use crate::record::plan_progress;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::snapshot;
use ralph_loop_journal::journal::Integrity;
use ralph_loop_protocol::event::{ApprovalApplied, EventBody};
use ralph_loop_protocol::id::Digest;

/// A run's files that sessions must not change, as they were before one.
#[derive(Debug, Default)]
pub(crate) struct WatchedRunFiles {
    spec: Option<FileStamp>,
    config: Option<FileStamp>,
    grown: AppendOnlyFiles,
    /// A plan's progress file.
    progress: Option<String>,
}

impl Context {
    /// Remembers the files before a session.
    pub fn watch_files(&self) -> WatchedRunFiles {
        WatchedRunFiles {
            spec: FileStamp::of(&self.run.spec()),
            config: FileStamp::of(&self.dir.config()),
            grown: self.copy_append_only(),
            progress: plan_progress::read(&self.state),
        }
    }

    /// Compares the files after a session or on resume. Restores missing ones; reports edited ones.
    pub fn check_files(&mut self, watch: &WatchedRunFiles) -> Result<(), DriveError> {
        match self.journal.integrity()? {
            Integrity::Sound => {}
            Integrity::Relinked(what) => {
                self.record(EventBody::Restored { what })?;
            }
            Integrity::Edited(what) => {
                self.record(EventBody::Tampered { what })?;
            }
        }
        self.check_append_only(&watch.grown)?;
        self.check_plan_progress(watch.progress.as_deref())?;
        self.check_spec(watch)?;
        self.check_config(watch)
    }

    fn check_spec(&mut self, watch: &WatchedRunFiles) -> Result<(), DriveError> {
        let path = self.run.spec();
        if watch.spec.is_some() && FileStamp::of(&path) == watch.spec {
            return Ok(());
        }
        let Some(digest) = self.state.spec_digest.clone() else { return Ok(()) };
        let found = std::fs::read(&path).ok();
        if found.as_ref().is_some_and(|text| Digest::of(text) == digest) {
            return Ok(());
        }
        // The state was folded from the spec that the journal names, or from the only one.
        let truth = snapshot::find_spec(self.journal.places(), &digest)
            .unwrap_or_else(|| serde_json::to_vec_pretty(&self.state.spec).unwrap_or_default());
        let Some(found) = found else {
            artifacts::write_atomic(&path, &truth)?;
            return self.record(EventBody::Restored { what: format!("`{}`", path.display()) }).map(|_| ());
        };
        let aside = self.run.path().join("spec.edited.json");
        artifacts::write(&aside, &found)?;
        artifacts::write_atomic(&path, &truth)?;
        let what = format!("the frozen spec was edited; the edited file is kept as `{}`", aside.display());
        self.record(EventBody::Tampered { what }).map(|_| ())
    }

    /// Accepts the current configuration as the baseline after an approval. Frozen settings stay.
    pub fn accept_config(&mut self) -> Result<(), DriveError> {
        let config = self.dir.config_digest();
        let mut spec = self.state.spec.clone();
        spec.config_digest.clone_from(&config);
        let spec = snapshot::write_spec(self.journal.places(), &spec)?;
        self.record(EventBody::ApprovalApplied(ApprovalApplied { config, spec })).map(|_| ())
    }

    fn check_config(&mut self, watch: &WatchedRunFiles) -> Result<(), DriveError> {
        let path = self.dir.config();
        if FileStamp::of(&path) == watch.config && watch.config.is_some() {
            return Ok(());
        }
        let found = self.dir.config_digest();
        let frozen = self.state.spec.config_digest.clone();
        if found == frozen || found.is_none() {
            // Removed with the folder (`git clean`): the run keeps its frozen settings.
            return Ok(());
        }
        // A worktree or clone has no untracked configuration, so the agent wrote it.
        let what = format!(
            "`{}` was {} during the run; the run keeps to the settings it was started with",
            path.display(),
            if frozen.is_some() { "edited" } else { "written" }
        );
        self.record(EventBody::Tampered { what }).map(|_| ())
    }
}
