//! `state.json`: the state of the current run with its position in the journal, so that `status` reads only a tail. A
//! lost or damaged snapshot is rebuilt from the journal.

use crate::error::JournalError;
use crate::folder::artifacts::{write_atomic, write_durable};
use crate::folder::layout::{RalphDir, RunDir};
use crate::folder::plain;
use crate::journal::places::RunPaths;
use crate::journal::read::read_known;
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::{Digest, Seq};
use ralph_loop_task::spec::{RunSpec, VERSION};
use serde::{Deserialize, Serialize};
use std::path::Path;

const SPEC_MAX: u64 = 64 * 1024 * 1024;

/// The content of `state.json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct Snapshot {
    pub version: u32,
    pub status: String,
    /// How many event kinds its writer knew. A newer one may have folded unknown events.
    #[serde(default)]
    pub kinds: usize,
    pub journal_bytes: u64,
    pub state: RunState,
}

/// Writes `state.json` into the record, and a copy for users into `.ralph/`.
pub fn save(dir: &RalphDir, run: &RunDir, state: &RunState, journal_bytes: u64) -> Result<(), JournalError> {
    #[derive(Serialize)]
    struct Borrowed<'a> {
        version: u32,
        status: &'a str,
        kinds: usize,
        journal_bytes: u64,
        state: &'a RunState,
    }
    let snapshot = Borrowed {
        version: 1,
        status: state.status().as_str(),
        kinds: EventBody::KINDS,
        journal_bytes,
        state,
    };
    let text = serde_json::to_vec(&snapshot).unwrap_or_default();
    if run.ralph_dir().is_none() {
        let path = run.state();
        let spare = path.with_extension("json.tmp");
        ralph_loop_safe_fs::replace_with_spare(&path, &spare, &text)
            .map_err(|e| JournalError::file("write", &path, e))?;
        // Of a finished run, only the state itself stays.
        if state.result.finished.is_some() {
            let _ = std::fs::remove_file(&spare);
        }
    }
    dir.write("state.json", &text)
}

/// The state of a run for a reader: the run's snapshot, if any, then the tail of the journal.
pub fn load(run: &RunDir) -> Result<RunState, JournalError> {
    let spec = read_spec(run)?;
    let path = run.ralph_dir().map_or_else(|| run.state(), |dir| dir.state());
    let snapshot = std::fs::read(path)
        .ok()
        .and_then(|text| serde_json::from_slice::<Snapshot>(&text).ok())
        .filter(|s| s.version == 1 && s.kinds <= EventBody::KINDS && s.state.spec.run_id == spec.run_id)
        .filter(|s| std::fs::metadata(run.events()).is_ok_and(|m| m.len() >= s.journal_bytes));
    if let Some(snapshot) = snapshot {
        let mut state = snapshot.state;
        let mut continues = true;
        read_known(&run.events(), snapshot.journal_bytes, &mut |event| {
            continues &= event.seq == state.seq.next();
            state.apply(&event);
        })?;
        // A snapshot that doesn't match its journal isn't used.
        if continues {
            return Ok(state);
        }
    }
    replay(run, spec)
}

pub fn replay(run: &RunDir, spec: RunSpec) -> Result<RunState, JournalError> {
    replay_to(run, spec, Seq(u64::MAX))
}

/// The state after the event `last`: where a forked run starts.
pub fn replay_to(run: &RunDir, spec: RunSpec, last: Seq) -> Result<RunState, JournalError> {
    let mut state = RunState::new(spec);
    read_known(&run.events(), 0, &mut |event| {
        if event.seq <= last {
            state.apply(&event);
        }
    })?;
    Ok(state)
}

/// Writes the frozen spec, the sealed copy first. Returns its digest.
pub fn write_spec(places: &RunPaths, spec: &RunSpec) -> Result<Digest, JournalError> {
    let text = serde_json::to_vec_pretty(spec).unwrap_or_default();
    if let Some(elsewhere) = &places.elsewhere {
        elsewhere.keep_spec(&text).map_err(|e| JournalError::file("seal", &places.dir.spec(), e))?;
    } else if let Some(sealed) = places.sealed_spec() {
        // Optional on machines without a path for it.
        let _ = write_atomic(&sealed, &text);
    }
    write_durable(&places.dir.spec(), &text)?;
    Ok(Digest::of(&text))
}

/// The sealed copy of the frozen spec, if readable.
pub fn sealed_spec(places: &RunPaths) -> Option<RunSpec> {
    let path = places.sealed_spec()?;
    parse_spec(&path, &std::fs::read(&path).ok()?).ok()
}

/// The frozen spec that was journaled with `digest`, from any copy; `None` if there is none.
pub fn find_spec(places: &RunPaths, digest: &Digest) -> Option<Vec<u8>> {
    let kept = || places.elsewhere.as_ref().and_then(|elsewhere| elsewhere.spec().ok().flatten());
    [Some(places.dir.spec()), places.sealed_spec()]
        .into_iter()
        .flatten()
        .filter_map(|path| std::fs::read(path).ok())
        .chain(std::iter::once_with(kept).flatten())
        .find(|text| Digest::of(text) == *digest)
}

pub fn read_spec(run: &RunDir) -> Result<RunSpec, JournalError> {
    let path = run.spec();
    let text = match plain::read_bounded(&path, SPEC_MAX) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(JournalError::NoRun(run.path().to_owned()));
        }
        Err(e) => return Err(JournalError::file("read", &path, e)),
    };
    parse_spec(&path, &text)
}

/// Parses `spec.json`.
pub fn parse_spec(path: &Path, text: &[u8]) -> Result<RunSpec, JournalError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u32,
    }
    // The version first: a newer format may differ in anything else.
    if let Ok(Versioned { version }) = serde_json::from_slice(text)
        && version > VERSION
    {
        let found = format!("version {version} of the format (up to {VERSION} is known)");
        return Err(JournalError::Newer { path: path.to_owned(), line: 1, found });
    }
    serde_json::from_slice(text).map_err(|e| JournalError::Corrupt {
        path: path.to_owned(),
        line: e.line() as u64,
        reason: e.to_string(),
    })
}
