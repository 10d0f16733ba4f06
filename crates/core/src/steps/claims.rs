//! Tick: reads the agent's claims in the task file and marks what is met. The engine's marks are
//! authoritative.

use crate::error::DriveError;
use crate::record::task_book;
use crate::run::Run;
use ralph_loop_domain::repo::protect::ProtectedChange;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::JournalError;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_safe_fs::{Links, SafeDir};
use std::collections::BTreeSet;

/// Bytes of a task file that are read.
const TASK_FILE_MAX: u64 = 16 * 1024 * 1024;

/// Removes claims from the changed protected paths and journals them.
pub(crate) fn take_claims(
    run: &mut Run,
    iteration: u32,
    mut changes: Vec<ProtectedChange>,
) -> Result<Vec<ProtectedChange>, DriveError> {
    let task = &run.ledger.state.spec.task;
    if !task_book::has_book(task) {
        let words = task_book::bounded(task, run.state.work.claimed_in_words.iter().cloned());
        if !words.is_empty() && words != run.state.work.claims {
            run.record(EventBody::Claimed { iteration, ids: words.into_iter().collect(), open: Vec::new() })?;
        }
        return Ok(changes);
    }
    let file = task_file(&run.ledger.state);
    // The spec holds the file redacted, so compare redacted text.
    match task_book::review(task, &run.ledger.redactor.text(&file)) {
        Ok(mut claims) => {
            // A claim in the agent's text counts like a mark for ids in the file.
            for id in &run.ledger.state.work.claimed_in_words {
                if claims.open.remove(id) {
                    claims.done.insert(id.clone());
                }
            }
            // Agents may add any number of stories.
            claims.done = task_book::bounded(task, claims.done);
            claims.open = task_book::bounded(task, claims.open);
            let source = task.source.clone();
            changes.retain(|c| c.path != source);
            let known = &run.ledger.state;
            if known.work.claims != claims.done || known.work.unclaimed != claims.open {
                run.record(EventBody::Claimed {
                    iteration,
                    ids: claims.done.into_iter().collect(),
                    open: claims.open.into_iter().collect(),
                })?;
            }
        }
        Err(what) => {
            let source = task.source.clone();
            let told: Vec<String> = what.iter().map(|why| format!("`{source}`: {why}")).collect();
            let heading = format!("iteration {iteration}: `{source}` may only be marked");
            run.error_entry(&heading, &told.join("\n"));
            // The final check looks again at the earlier claims.
            if run.state.iterations.current.is_none() {
                return Ok(changes);
            }
            let more = match told.len() {
                0 | 1 => String::new(),
                n => format!(" (and {} more)", n - 1),
            };
            let first = told.first().cloned().unwrap_or_default();
            run.notice(format!("{}{more}", ralph_loop_protocol::display::text::one_line(&first, 400)))?;
        }
    }
    Ok(changes)
}

/// Marks what is met in the task file. Returns whether it changed, so that it becomes part of this
/// iteration's commit.
pub(crate) fn mark_met(run: &mut Run, iteration: u32) -> Result<bool, DriveError> {
    let task = &run.ledger.state.spec.task;
    if !task_book::has_book(task) {
        return Ok(false);
    }
    let met = met(&run.ledger.state);
    let before = task_file(&run.ledger.state);
    let after = task_book::marked(task.dialect, &before, &met);
    if met != run.state.work.met {
        run.record(EventBody::Ticked { iteration, met: met.into_iter().collect() })?;
    }
    if after == before {
        return Ok(false);
    }
    let (workspace, source) = (&run.ledger.state.spec.workspace, &run.ledger.state.spec.task.source);
    let written = SafeDir::open(workspace).and_then(|top| top.write(source, after.as_bytes()));
    written.map_err(|e| JournalError::file("write", &workspace.join(source), e))?;
    Ok(true)
}

/// The task file as the agent left it; empty if it isn't a regular file.
fn task_file(state: &RunState) -> String {
    let read = SafeDir::open(&state.spec.workspace)
        .and_then(|top| top.read_text(&state.spec.task.source, Links::Inside, TASK_FILE_MAX));
    read.unwrap_or_default()
}

/// Criteria met on the current tree: by their own check, or claimed while every global check passes.
pub(super) fn met(state: &RunState) -> BTreeSet<String> {
    let task = &state.spec.task;
    let passes = |name: &str| {
        state.work.checks.get(name).is_some_and(|r| r.passed && Some(&r.tree) == state.work.tree.as_ref())
    };
    let own: BTreeSet<&str> =
        task.criteria.iter().filter(|c| c.check.is_own()).map(|c| c.id.as_str()).collect();
    let global = state.spec.settings.required_verifiers.iter().filter(|name| !own.contains(name.as_str()));
    let global_pass = global.clone().count() > 0 && global.clone().all(|name| passes(name));
    let mut met: BTreeSet<String> = own.iter().filter(|id| passes(id)).map(|id| (*id).to_owned()).collect();
    if global_pass {
        met.extend(state.work.claims.iter().filter(|id| !own.contains(id.as_str())).cloned());
    }
    met
}
