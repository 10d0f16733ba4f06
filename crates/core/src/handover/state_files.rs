//! The parts of `.ralph/` that are pushed with the branch: enough to continue elsewhere, redacted and
//! bounded.

use crate::error::DriveError;
use crate::ledger::Ledger;
use ralph_loop_domain::ports::StateFile;
use ralph_loop_journal::JournalError;
use std::path::Path;

/// Total size limit without the journal.
const REST_MAX: usize = 8 * 1024 * 1024;
/// Size limit of one log; its end is kept.
const LOG_MAX: usize = 256 * 1024;
/// Iterations whose receipts are included.
const RECEIPTS: u32 = 200;

/// The files by path below `.ralph/`. The journal is always complete.
pub(crate) fn collect(ledger: &Ledger) -> Result<Vec<StateFile>, DriveError> {
    let run = format!("runs/{}", ledger.state.spec.run_id);
    let events = ledger.record_dir.events();
    let journal = std::fs::read(&events).map_err(|e| JournalError::file("read", &events, e))?;
    // Only what is folded in; the last line may still be incomplete.
    let whole = journal.get(..ledger.journal.bytes() as usize).unwrap_or(&journal).to_vec();
    let mut files = vec![StateFile { path: format!("{run}/events.jsonl"), bytes: whole }];
    let mut left = REST_MAX;
    let read = |path: &Path| std::fs::read(path).ok();
    let mut add = |path: String, bytes: Option<Vec<u8>>, max: usize| {
        let Some(bytes) = bytes else { return };
        // Redact before cutting: the end of a secret isn't recognized.
        let clean = ledger.redactor.bytes(&bytes);
        let bytes = clean[clean.len().saturating_sub(max)..].to_vec();
        if bytes.len() <= left {
            left -= bytes.len();
            files.push(StateFile { path, bytes });
        }
    };
    add(format!("{run}/spec.json"), read(&ledger.record_dir.spec()), REST_MAX);
    add(format!("{run}/proof.json"), read(&ledger.record_dir.proof()), REST_MAX);
    add(format!("{run}/notes.md"), read(&ledger.record_dir.notes()), REST_MAX);
    add(
        format!("{run}/errors.log"),
        Some(errors_end(&ledger.record_dir.errors())).filter(|b| !b.is_empty()),
        LOG_MAX,
    );
    for version in 1..ledger.state.spec.spec_version {
        let name = format!("spec.v{version}.json");
        add(format!("{run}/{name}"), read(&ledger.record_dir.path().join(&name)), REST_MAX);
    }
    for name in ["guardrails.md", "progress.md", "notes.md", "cooldowns.json", "diagnostics.md"] {
        add(name.to_owned(), ledger.dir.read(name, REST_MAX as u64), REST_MAX);
    }
    for name in ["errors.log", "activity.log"] {
        add(
            name.to_owned(),
            Some(whole_lines(ledger.dir.read_end(name, LOG_MAX as u64).1)).filter(|b| !b.is_empty()),
            LOG_MAX,
        );
    }
    let last = ledger.state.iterations.count;
    for iteration in (last.saturating_sub(RECEIPTS) + 1..=last).rev() {
        for name in ["receipt.json", "metrics.json"] {
            let path = ledger.record_dir.iteration(iteration).join(name);
            add(format!("{run}/iterations/{iteration}/{name}"), read(&path), LOG_MAX);
        }
    }
    Ok(files)
}

fn errors_end(path: &Path) -> Vec<u8> {
    whole_lines(crate::record::log_tail::read_tail(path, LOG_MAX as u64))
}

/// The end of a log from a line start, because half a secret isn't recognized.
fn whole_lines(end: String) -> Vec<u8> {
    match end.len() >= LOG_MAX {
        true => end.split_once('\n').map_or_else(Vec::new, |(_, rest)| rest.as_bytes().to_vec()),
        false => end.into_bytes(),
    }
}
