//! The published state of a race: a file in `ralph`'s state folder, written by the process that runs the
//! race, plus the records of its runs. Decides nothing.

use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use jiff::Timestamp;
use ralph_loop_domain::best::best;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::lock::{self, LockHolder, RunLock};
use ralph_loop_protocol::display::race::{RaceBy, RaceRun, RaceView};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::{Cost, Usd};
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_protocol::proof::level::ProofLevel;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

const KEPT: usize = 200;
/// Races that may have been named within the same moment.
const NEAR: usize = 16;
const RECORD_MAX: u64 = 256 * 1024;
const DETAIL_MAX: usize = 240;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RaceRecord {
    pub(crate) id: RunId,
    pub(crate) by: RaceBy,
    pub(crate) budget: Usd,
    #[serde(default)]
    pub(crate) winner: Option<RunId>,
    #[serde(default)]
    pub(crate) ended: Option<String>,
    pub(crate) over: bool,
    pub(crate) lanes: Vec<LaneRecord>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LaneRecord {
    pub(crate) name: String,
    pub(crate) run_id: RunId,
    /// Exit code of its process, once it ended.
    #[serde(default)]
    pub(crate) code: Option<i32>,
    /// Its last output.
    #[serde(default)]
    pub(crate) said: String,
}

/// The record of a race that this process runs.
#[derive(Debug)]
pub(crate) struct RaceFile {
    path: PathBuf,
    written: Option<RaceRecord>,
    /// Held while this process runs the race.
    _lock: RunLock,
}

fn folder(home: &StateHome) -> PathBuf {
    home.path().join("races")
}

fn file(home: &StateHome, id: &RunId) -> PathBuf {
    folder(home).join(format!("{id}.json"))
}

fn lock_file(home: &StateHome, id: &RunId) -> PathBuf {
    folder(home).join(format!("{id}.lock"))
}

impl RaceFile {
    /// Starts a record; deletes the oldest ones.
    pub(crate) fn make(home: &StateHome, id: &RunId, now: Timestamp) -> Result<Self, AppError> {
        let holder = LockHolder::new(std::process::id(), id.clone(), now);
        let lock = RunLock::take(&lock_file(home, id), &holder, Duration::ZERO)
            .map_err(|e| AppError::environment(format!("can't record the race: {e}")))?;
        let known = ids(home);
        for old in known.iter().take(known.len().saturating_sub(KEPT)) {
            if lock::holder(&lock_file(home, old)).is_none() {
                let _ = std::fs::remove_file(file(home, old));
                let _ = std::fs::remove_file(lock_file(home, old));
            }
        }
        Ok(Self { path: file(home, id), written: None, _lock: lock })
    }

    /// Writes the record if it changed.
    pub(crate) fn write(&mut self, record: RaceRecord) -> Result<(), AppError> {
        if self.written.as_ref() != Some(&record) {
            artifacts::write_atomic(&self.path, &serde_json::to_vec(&record).unwrap_or_default())?;
            self.written = Some(record);
        }
        Ok(())
    }
}

fn ids(home: &StateHome) -> Vec<RunId> {
    let entries = std::fs::read_dir(folder(home)).into_iter().flatten().flatten();
    let mut ids: Vec<RunId> = entries
        .filter_map(|entry| RunId::parse(entry.file_name().to_string_lossy().strip_suffix(".json")?).ok())
        .collect();
    ids.sort();
    ids
}

pub(crate) fn read(home: &StateHome, id: &RunId) -> Option<RaceRecord> {
    let bytes = ralph_loop_safe_fs::read_plain(file(home, id), RECORD_MAX).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// The race that a run belongs to; `None` for a run outside a race.
pub fn of_run(env: &Environment, run: &RunId) -> Result<Option<RaceView>, AppError> {
    let home = env.state_home()?;
    let record = read(&home, run).or_else(|| {
        let of = |record: &RaceRecord| record.lanes.iter().any(|lane| lane.run_id == *run);
        // A race's runs are named right after its first one, so only the races just before can contain this
        // run.
        let before = ids(&home).into_iter().rev().filter(|id| id <= run).take(NEAR);
        before.filter_map(|id| read(&home, &id)).find(of)
    });
    Ok(record.map(|record| look(env, &home, &record)))
}

/// The latest races, newest first.
pub fn latest(env: &Environment, most: usize) -> Result<Vec<RaceView>, AppError> {
    let home = env.state_home()?;
    let records = ids(&home).into_iter().rev().take(most).filter_map(|id| read(&home, &id));
    Ok(records.map(|record| look(env, &home, &record)).collect())
}

fn look(env: &Environment, home: &StateHome, record: &RaceRecord) -> RaceView {
    let mut title = String::new();
    let mut states = Vec::new();
    for lane in &record.lanes {
        let entry = registry::find(home, &lane.run_id);
        if let Some(entry) = entry.as_ref().filter(|_| title.is_empty()) {
            title.clone_from(&entry.title);
        }
        states.push(entry.and_then(|entry| find::handle(env, &entry).state().ok()));
    }
    let looked_after = lock::holder(&lock_file(home, &record.id)).is_some();
    view(record, &states, title, looked_after)
}

/// A race's current view, from its record and the states of its runs.
pub(crate) fn view(
    record: &RaceRecord,
    states: &[Option<RunState>],
    title: String,
    looked_after: bool,
) -> RaceView {
    let lanes = record.lanes.iter().zip(states);
    let mut runs: Vec<RaceRun> = lanes.map(|(lane, state)| run_of(lane, state.as_ref())).collect();
    if record.by == RaceBy::Cost {
        for run in runs.iter_mut().filter(|run| run.proven && run.cost.whole().is_none()) {
            let detail = format!("can't win, its cost isn't fully known; {}", run.detail);
            run.detail = one_line(&detail, DETAIL_MAX);
        }
    }
    RaceView {
        id: record.id.clone(),
        title,
        by: record.by,
        budget_usd: record.budget,
        cost: runs.iter().map(|run| run.cost).sum(),
        winner: record.winner.clone(),
        ended: record.ended.clone(),
        over: record.over,
        looked_after,
        runs,
    }
}

fn run_of(lane: &LaneRecord, state: Option<&RunState>) -> RaceRun {
    let finished = state.and_then(|state| state.result.finished.as_ref());
    let iteration = state.map_or(0, |state| {
        state.iterations.current.as_ref().map_or(state.iterations.count, |current| current.iteration)
    });
    let max_iterations = state.map_or(0, |state| state.spec.settings.budgets.max_iterations);
    let best = state.and_then(best).map(|best| best.value);
    let status = match (lane.code, state) {
        (Some(0), _) => "done".to_owned(),
        (Some(130), _) => "stopped".to_owned(),
        (Some(3), _) => "needs you".to_owned(),
        (Some(_), _) => "failed".to_owned(),
        (None, Some(state)) => state.status().to_string(),
        (None, None) => "preparing".to_owned(),
    };
    let detail = match (finished, lane.code, state) {
        (Some(end), ..) => end.summary.clone(),
        (None, Some(_), _) => lane.said.clone(),
        (None, None, Some(_)) => {
            let best = best.map_or_else(String::new, |best| format!(", best {best}"));
            format!("iteration {iteration}/{max_iterations}{best}")
        }
        (None, None, None) => String::new(),
    };
    let proof = state.and_then(|state| state.result.proof.as_ref());
    let completed = finished.is_none_or(|end| end.reason == EndReason::Completed);
    RaceRun {
        name: lane.name.clone(),
        run_id: lane.run_id.clone(),
        begun: state.is_some(),
        status,
        detail: one_line(&detail, DETAIL_MAX),
        iteration,
        max_iterations,
        cost: state.map_or(Cost::UNKNOWN, |state| state.cost()),
        best,
        proven: completed
            && proof.is_none_or(|proof| proof.level.is_none_or(ProofLevel::is_proven))
            && (lane.code == Some(0) || (lane.code.is_none() && finished.is_some())),
        exit_code: lane.code,
    }
}
