//! Opens a run: creates or resumes it, and brings memory and disk to the journaled state.

use crate::error::DriveError;
use crate::inbox::{self, task_edit};
use crate::ports::RunPorts;
use crate::record::integrity::{self, WatchedRunFiles};
use crate::resume::run_writer::RunWriter;
use crate::run::Run;
use crate::steps::checkpoint;
use ralph_loop_domain::state::Stage;
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::spec::RunSpec;

impl Run {
    /// Creates a run: freezes the spec and opens the journal.
    pub fn create(spec: RunSpec, ports: RunPorts) -> Result<Self, DriveError> {
        Self::open(RunWriter::create(spec, &ports.writer_options())?, ports)
    }

    /// Continues a run from the journal of an earlier process.
    pub fn resume(ports: RunPorts) -> Result<Self, DriveError> {
        Self::open(RunWriter::open(&ports.writer_options())?, ports)
    }

    /// Opens a run that this process holds and that has a workspace.
    pub fn open(writer: RunWriter, ports: RunPorts) -> Result<Self, DriveError> {
        Self::try_open(writer, ports).map_err(|refused| refused.0)
    }

    /// Like [`Self::open`], but returns the ports on failure, so that the caller can retry.
    pub(crate) fn try_open(
        mut writer: RunWriter,
        ports: RunPorts,
    ) -> Result<Self, Box<(DriveError, RunPorts)>> {
        let (events, first, healed) = (std::mem::take(&mut writer.events), writer.first, writer.healed_bytes);
        let mut run = Self::new(writer, ports);
        match recover(&mut run, &events, first, healed) {
            Ok(()) => Ok(run),
            Err(error) => Err(Box::new((error, run.into_ports()))),
        }
    }
}

/// Brings memory and disk to the journaled state.
fn recover(run: &mut Run, events: &[Event], first: bool, healed: u64) -> Result<(), DriveError> {
    run.ledger.show_record();
    run.ledger.replay_events(events)?;
    if run.state.baseline.is_none() && run.state.agents.cooldowns.is_empty() {
        inherit_cooldowns(run)?;
    }
    if healed > 0 {
        run.notice(format!("{healed} bytes that the journal had lost were taken from its sealed copy"))?;
    }
    if let Some(baseline) = &run.ledger.state.baseline {
        run.ports.workspace.reopen(baseline)?;
    }
    if run.state.people.edit_pending {
        task_edit::new_spec_version(&mut run.ledger)?;
    }
    if !first {
        integrity::check_files(&mut run.ledger, &WatchedRunFiles::default())?;
        inbox::redo_controls(&mut run.ledger)?;
        check_evidence(run)?;
        check_tree(run)?;
    }
    run.flush()
}

/// Discards evidence damaged by a power cut.
fn check_evidence(run: &mut Run) -> Result<(), DriveError> {
    let state = &run.ledger.state;
    let Some(digest) = state.result.proof.as_ref().filter(|p| p.passed).and_then(|p| p.proof.clone()) else {
        return Ok(());
    };
    let path = run.record_dir.proof();
    let sound = std::fs::read(&path).is_ok_and(|text| Digest::of(&text) == digest);
    if !sound && state.result.finished.is_none() {
        let reason = format!("`{}` isn't what was journaled", path.display());
        run.record(EventBody::ProofVoided { reason })?;
    }
    Ok(())
}

/// Records changed files first, because checks judge the recorded tree.
fn check_tree(run: &mut Run) -> Result<(), DriveError> {
    let recorded = run.state.iterations.current.as_ref().is_some_and(|c| c.stage == Stage::Checkpointed);
    if recorded && Some(run.ports.workspace.tree()?) != run.state.work.tree {
        checkpoint::record_tree(run)?;
    }
    Ok(())
}

/// Keeps agents on the cooldowns of an earlier run in this folder.
fn inherit_cooldowns(run: &mut Run) -> Result<(), DriveError> {
    #[derive(serde::Deserialize)]
    struct Entry {
        cooldown_until: i64,
        reason: String,
    }
    let Ok(text) = std::fs::read(&run.ledger.cooldowns) else { return Ok(()) };
    let Ok(map) = serde_json::from_slice::<std::collections::BTreeMap<String, Entry>>(&text) else {
        return Ok(());
    };
    let now = run.clock.now();
    for (name, entry) in map {
        let agent = ralph_loop_protocol::id::AgentName::new(name);
        let until = jiff::Timestamp::from_second(entry.cooldown_until).unwrap_or(now);
        if until > now && run.state.spec.settings.agent(&agent).is_some() {
            run.record(EventBody::CooldownSet { agent, until, reason: entry.reason })?;
        }
    }
    Ok(())
}
