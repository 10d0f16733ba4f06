//! Detects changes to files that decide a run: journal, frozen spec, configuration. Without a sandbox, agents
//! can edit them, so they are compared after each session, before judging.

use crate::error::DriveError;
use crate::ledger::Ledger;
use crate::record::append_only::{self, AppendOnlyFiles};
use crate::record::file_stamp::FileStamp;
use crate::record::plan_progress;
use ralph_loop_journal::folder::{artifacts, snapshot};
use ralph_loop_journal::journal::Integrity;
use ralph_loop_protocol::event::EventBody;
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

/// Remembers the files before a session.
pub(crate) fn watch_files(ledger: &Ledger) -> WatchedRunFiles {
    WatchedRunFiles {
        spec: FileStamp::of(&ledger.record_dir.spec()),
        config: FileStamp::of(&ledger.dir.config()),
        grown: append_only::copy_append_only(ledger),
        progress: plan_progress::read(&ledger.state),
    }
}

/// Compares the files after a session or on resume. Restores missing ones; reports edited ones.
pub(crate) fn check_files(ledger: &mut Ledger, watch: &WatchedRunFiles) -> Result<(), DriveError> {
    match ledger.journal.integrity()? {
        Integrity::Sound => {}
        Integrity::Relinked(what) => {
            ledger.record(EventBody::Restored { what })?;
        }
        Integrity::Edited(what) => {
            ledger.record(EventBody::Tampered { what })?;
        }
    }
    append_only::check_append_only(ledger, &watch.grown)?;
    plan_progress::check_plan_progress(ledger, watch.progress.as_deref())?;
    check_spec(ledger, watch)?;
    check_config(ledger, watch)
}

fn check_spec(ledger: &mut Ledger, watch: &WatchedRunFiles) -> Result<(), DriveError> {
    let path = ledger.record_dir.spec();
    if watch.spec.is_some() && FileStamp::of(&path) == watch.spec {
        return Ok(());
    }
    let Some(digest) = ledger.state.spec_digest.clone() else { return Ok(()) };
    let found = std::fs::read(&path).ok();
    if found.as_ref().is_some_and(|text| Digest::of(text) == digest) {
        return Ok(());
    }
    // The state was folded from the spec that the journal names, or from the only one.
    let truth = snapshot::find_spec(ledger.journal.places(), &digest)
        .unwrap_or_else(|| serde_json::to_vec_pretty(&ledger.state.spec).unwrap_or_default());
    let Some(found) = found else {
        artifacts::write_atomic(&path, &truth)?;
        return ledger.record(EventBody::Restored { what: format!("`{}`", path.display()) }).map(|_| ());
    };
    let aside = ledger.record_dir.path().join("spec.edited.json");
    artifacts::write(&aside, &found)?;
    artifacts::write_atomic(&path, &truth)?;
    let what = format!("the frozen spec was edited; the edited file is kept as `{}`", aside.display());
    ledger.record(EventBody::Tampered { what }).map(|_| ())
}

fn check_config(ledger: &mut Ledger, watch: &WatchedRunFiles) -> Result<(), DriveError> {
    let path = ledger.dir.config();
    if FileStamp::of(&path) == watch.config && watch.config.is_some() {
        return Ok(());
    }
    let found = ledger.dir.config_digest();
    let frozen = ledger.state.spec.config_digest.clone();
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
    ledger.record(EventBody::Tampered { what }).map(|_| ())
}
