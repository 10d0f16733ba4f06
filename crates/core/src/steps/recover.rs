//! Recover: helps a stuck run, and goes back to an earlier tree after a read-only session changed files, or after a change
//! made the metric worse.

use crate::error::DriveError;
use crate::run::Run;
use crate::steps::consult;
use ralph_loop_domain::decide::Help;
use ralph_loop_domain::ports::WriteMode;
use ralph_loop_domain::recovery::{self, Fallback};
use ralph_loop_protocol::event::{EventBody, Rung, WentBack};
use ralph_loop_protocol::id::{CommitId, TreeId};
use ralph_loop_protocol::outcome::HumanReason;
use ralph_loop_protocol::stuck::MeasuredNumber;
use std::path::Path;

/// Files named in a sentence.
const NAMES: usize = 5;

pub(crate) fn recover(run: &mut Run, help: Help) -> Result<(), DriveError> {
    match help {
        Help::Rung(rung) => mitigate(run, rung),
        Help::Doctor => consult::diagnose(run),
        Help::Critic => consult::criticise(run),
    }
}

fn mitigate(run: &mut Run, rung: Rung) -> Result<(), DriveError> {
    run.boundary("mitigate.before");
    let detail = recovery::words(&run.ledger.state, rung);
    let (mut benched, mut substitute) = (None, None);
    match rung {
        Rung::Nudge | Rung::Rotate => {}
        Rung::Fallback => match recovery::fallback(&run.ledger.state) {
            Some(Fallback::Model { agent, model }) => substitute = Some((agent, model)),
            Some(Fallback::Agent { benched: agent, .. }) => benched = Some(agent),
            None => {}
        },
        // Runs the doctor again if a crash interrupted it before its report was journaled.
        Rung::Doctor if run.state.stuck.diagnosed_at != Some(run.state.iterations.count) => {
            consult::diagnose(run)?
        }
        Rung::Doctor | Rung::Pause => {}
    }
    run.record(EventBody::Mitigated { rung, detail: detail.clone(), benched, substitute })?;
    if rung == Rung::Pause {
        let message = format!("stuck, and no recovery step helped: {detail}");
        run.record(EventBody::NeedsHuman { reason: HumanReason::Stuck, message })?;
    }
    run.flush()?;
    run.boundary("mitigate.after");
    Ok(())
}

/// Undoes changes of a session in a read-only role.
pub(crate) fn undo_reader(run: &mut Run) -> Result<(), DriveError> {
    let Some(before) = run.session.read_only_from.take() else { return Ok(()) };
    let Some(current) = &run.ledger.state.iterations.current else { return Ok(()) };
    let (iteration, role) = (current.iteration, current.role.map_or("agent", |role| role.as_str()));
    let files = go_back(run, &before)?;
    if files.is_empty() {
        return Ok(());
    }
    let why = format!("the {role} must not change files; its changes were undone: {}", names(&files));
    run.record(EventBody::WentBack(WentBack {
        iteration,
        tree: before,
        files: files.len(),
        why,
        hint: None,
    }))?;
    Ok(())
}

/// Restores `tree` and returns the restored files. The task file, the user's earlier changes and the
/// engine's files stay.
pub(crate) fn go_back(run: &mut Run, tree: &TreeId) -> Result<Vec<String>, DriveError> {
    let now = run.ports.workspace.tree()?;
    if now == *tree {
        return Ok(Vec::new());
    }
    let state = &run.ledger.state;
    let dirty = state.baseline.as_ref().map(|b| b.dirty.clone()).unwrap_or_default();
    let source = state.spec.task.source.clone();
    let mut done = Vec::new();
    for change in run.ports.workspace.changes(now.as_str(), tree.as_str())? {
        let path = change.path;
        if path == source || path.starts_with(".ralph/") || dirty.contains(&path) {
            continue;
        }
        // Any tree name works, not only commits.
        let wanted = run.ports.workspace.file_at(&CommitId::new(tree.as_str()), &path)?;
        match wanted {
            Some(bytes) => run.ports.sandbox.write(Path::new(&path), &bytes, WriteMode::Replace)?,
            None => run.ports.sandbox.remove(Path::new(&path))?,
        }
        done.push(path);
    }
    Ok(done)
}

/// Restores the files with the best metric if it got worse. Returns whether it did, so that they become
/// part of this iteration's record.
pub(crate) fn keep_best(
    run: &mut Run,
    iteration: u32,
    measured: Option<&MeasuredNumber>,
) -> Result<bool, DriveError> {
    if !run.state.spec.settings.keep_best {
        return Ok(false);
    }
    let Some(best) = run.state.work.best.clone() else { return Ok(false) };
    let shown = |thousandths: i64| thousandths as f64 / 1000.0;
    let worse = measured.is_none_or(|now| best.gain(now.value, now.noise) < 0);
    if !worse {
        return Ok(false);
    }
    let files = go_back(run, &best.tree)?;
    if files.is_empty() {
        return Ok(false);
    }
    let measured = measured.map_or_else(|| "nothing".to_owned(), |now| shown(now.value).to_string());
    let when = match best.iteration {
        0 => "at the start".to_owned(),
        iteration => format!("iteration {iteration}"),
    };
    let why = format!(
        "`{}` measures {measured}, and {} was the best ({when}): the files of then are back",
        best.label,
        shown(best.value),
    );
    let hint = format!(
        "The last change was taken back: {why}. Changed then: {}. Try something else.",
        names(&files)
    );
    let news = WentBack { iteration, tree: best.tree, files: files.len(), why, hint: Some(hint) };
    run.record(EventBody::WentBack(news))?;
    Ok(true)
}

fn names(files: &[String]) -> String {
    let shown: Vec<String> = files.iter().take(NAMES).map(|name| format!("`{name}`")).collect();
    let more = if files.len() > shown.len() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
