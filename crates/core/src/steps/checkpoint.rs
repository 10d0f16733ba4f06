//! Checkpoint: records the tree, commits it on the work ref, stores the diff, and detects moved refs and
//! changed protected paths.

use crate::error::DriveError;
use crate::handover::text;
use crate::run::Run;
use crate::steps::{claims, recover};
use ralph_loop_domain::decide::{Left, consequences};
use ralph_loop_domain::ports::CheckpointRequest;
use ralph_loop_domain::text::change_text::without_skip_marks;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::event::{CommitPart, EventBody, FileChange, Handed, SessionEnd};
use ralph_loop_protocol::id::CommitId;
use ralph_loop_protocol::money::Usage;
use std::path::Path;

/// Files named in the journal; the commit has them all.
const FILES_MAX: usize = 200;
/// Size limit of `git_diff.patch`.
const PATCH_MAX: usize = 1024 * 1024;

pub(crate) fn checkpoint(run: &mut Run, left: Left) -> Result<(), DriveError> {
    match left {
        Left::Work => record_tree(run),
        Left::Interruption => close_interrupted(run),
        Left::Void => void(run),
    }
}

/// Closes a session during which the engine died. Its cost is unknown; it doesn't count as an iteration.
fn close_interrupted(run: &mut Run) -> Result<(), DriveError> {
    let Some(current) = &run.ledger.state.iterations.current else { return Ok(()) };
    let iteration = current.iteration;
    run.record(EventBody::SessionEnded {
        iteration,
        end: SessionEnd::Interrupted,
        promised: false,
        message: String::new(),
        usage: Usage::unknown(),
        duration_ms: 0,
        exit_code: None,
        response: None,
        survivors: 0,
        claims: Vec::new(),
        ask: None,
        commit_message: None,
        commit_parts: Vec::new(),
        findings: None,
        denials: 0,
    })?;
    Ok(())
}

/// Handles a session that wasn't an iteration.
fn void(run: &mut Run) -> Result<(), DriveError> {
    run.boundary("void.before");
    let events = consequences(&run.ledger.state, run.clock.now());
    let rests = events.iter().any(|e| matches!(e, EventBody::CooldownSet { .. }));
    for body in events {
        run.record(body)?;
    }
    if rests {
        run.ledger.save_cooldowns()?;
    }
    run.flush()?;
    run.boundary("void.after");
    Ok(())
}

/// Records the tree, commits it and hands it back.
pub(crate) fn record_tree(run: &mut Run) -> Result<(), DriveError> {
    run.boundary("checkpoint.before");
    let Some(current) = &run.ledger.state.iterations.current else { return Ok(()) };
    let (iteration, agent) = (current.iteration, current.agent.clone());
    let wanted = current.session.as_ref().and_then(|s| s.commit_message.clone());
    let parts = current.session.as_ref().map(|s| s.commit_parts.clone()).unwrap_or_default();
    let again = current.change.is_some();
    let before = run.state.work.tree.clone();
    recover::undo_reader(run)?;
    if let Some(what) = run.ports.workspace.damage() {
        run.record(EventBody::Tampered { what })?;
        return Ok(());
    }
    // Check refs first: our own commit must not hide what the agent moved.
    let moves = run.ports.workspace.moved_refs()?;
    if !moves.is_empty() {
        run.record(EventBody::RefsMoved { moves, left_out: 0 })?;
    }
    let mut message = text::commit_message(&run.ledger.state, iteration, agent.as_str())
        .map(|text| without_trailers(&text))
        .unwrap_or_default();
    if let Some(wanted) = wanted {
        let wanted = without_skip_marks(&wanted);
        message = match run.state.spec.settings.handover.commit_template {
            Some(_) => format!("{message}\n\n{}", without_trailers(&wanted)),
            // The agent wrote this message for exactly this commit.
            None => without_trailers(&wanted),
        };
    }
    let message = run.ledger.redact_for_display(&message);
    let parts: Vec<CommitPart> = parts
        .into_iter()
        .map(|part| CommitPart {
            message: run.ledger.redact_for_display(&without_trailers(&without_skip_marks(&part.message))),
            paths: part.paths,
        })
        .filter(|part| !part.message.trim().is_empty())
        .collect();
    let cut = run.state.was_cut();
    let kept_out = cut && run.state.spec.hands_back();
    let on_branch = run.state.spec.commits_on_branch() && run.state.people.alarm.is_none() && !kept_out;
    let checkpoint = run.ports.workspace.checkpoint(&CheckpointRequest {
        iteration,
        agent: &agent,
        message: &message,
        parts: &parts,
        at: run.clock.now(),
        on_branch,
        redactor: Some(&run.ledger.redactor),
    })?;
    run.boundary("checkpoint.committed");
    match kept_out {
        true => push_refs_to_user_repo(run)?,
        false => hand_back(run, checkpoint.commit.clone())?,
    }
    let patch = match (&before, &checkpoint.commit) {
        (Some(before), Some(_)) => {
            run.ports.workspace.patch(before.as_str(), checkpoint.tree.as_str(), PATCH_MAX)?
        }
        _ => Vec::new(),
    };
    let folder = run.ledger.iteration_dir(iteration)?;
    let path = folder.join("git_diff.patch");
    let mut whole = match again {
        // Recorded again with the engine's own marks.
        true => std::fs::read(&path).unwrap_or_default(),
        false => Vec::new(),
    };
    whole.extend_from_slice(&run.ledger.redactor.bytes(&patch));
    artifacts::write(&path, &whole)?;
    let in_submodules = if again { Vec::new() } else { edits_in_submodules(run, iteration)? };
    let outside = if again { Vec::new() } else { outside_working_dir(run, &checkpoint.files) };
    let sum = |of: fn(&FileChange) -> Option<u64>| checkpoint.files.iter().filter_map(of).sum();
    let (added, removed) = (sum(|f| f.added), sum(|f| f.removed));
    let files_total = checkpoint.files.len();
    let mut files = checkpoint.files;
    files.truncate(FILES_MAX);
    run.boundary("checkpoint.kept");
    run.record(EventBody::Checkpointed {
        iteration,
        tree: checkpoint.tree,
        commit: checkpoint.commit,
        files,
        files_total,
        added,
        removed,
        dirty_touched: checkpoint.dirty_touched,
        in_submodules,
        again,
    })?;
    if kept_out && files_total > 0 {
        let run_id = run.state.spec.run_id.clone();
        run.notice(format!(
            "what the cut session had written is kept, and not put into your folder: `ralph diff {run_id}` shows it"
        ))?;
    }
    if let Some(folder) = run.state.spec.task.working_dir.clone().filter(|_| !outside.is_empty()) {
        let names: Vec<String> = outside.iter().take(5).map(|name| format!("`{name}`")).collect();
        let more = if outside.len() > names.len() { ", …" } else { "" };
        let told = format!("edits outside `{folder}`: {}{more}", names.join(", "));
        run.error_entry(&format!("iteration {iteration}: {told}"), "the task is about that folder alone");
        run.notice(told)?;
    }
    let changes = claims::take_claims(run, iteration, checkpoint.protected)?;
    if !changes.is_empty() {
        // The next prompt quotes the errors, so the agent learns what to restore.
        let mut list: Vec<String> =
            changes.iter().take(FILES_MAX).map(|c| format!("{} {}", c.path, c.change.as_str())).collect();
        if changes.len() > list.len() {
            list.push(format!("… and {} more", changes.len() - list.len()));
        }
        run.error_entry(&format!("iteration {iteration}: protected paths changed"), &list.join("\n"));
        run.record(EventBody::ProtectedChanged { iteration, changes, left_out: 0 })?;
    }
    run.boundary("checkpoint.after");
    Ok(())
}

/// Files the session wrote in submodules. They aren't recorded, so the next session is informed as well.
fn edits_in_submodules(run: &mut Run, iteration: u32) -> Result<Vec<String>, DriveError> {
    let Some(before) = run.session.submodules_before.take() else { return Ok(Vec::new()) };
    let now = run.ports.workspace.submodule_files()?;
    let mut edited: Vec<String> = now
        .iter()
        .filter(|(path, stamp)| before.get(*path) != Some(*stamp))
        .map(|(path, _)| path.clone())
        .collect();
    edited.extend(before.into_keys().filter(|path| !now.contains_key(path)));
    edited.truncate(FILES_MAX);
    if !edited.is_empty() {
        run.error_entry(
            &format!("iteration {iteration}: edits in a submodule are not part of the result"),
            &format!("a submodule is another repository, so its changes don't count: {}", edited.join(", ")),
        );
    }
    Ok(edited)
}

/// Changes outside the session's folder.
fn outside_working_dir(run: &Run, files: &[FileChange]) -> Vec<String> {
    let task = &run.ledger.state.spec.task;
    let Some(folder) = &task.working_dir else { return Vec::new() };
    let own = |path: &str| {
        Path::new(path).starts_with(folder) || path.starts_with(".ralph/") || path == task.source
    };
    files.iter().filter(|file| !own(&file.path)).map(|file| file.path.clone()).collect()
}

/// An agent's commit message without lines that look like the engine's trailers.
fn without_trailers(message: &str) -> String {
    let lines: Vec<&str> = message
        .trim()
        .lines()
        .filter(|line| !line.trim_start().to_ascii_lowercase().starts_with("ralph-"))
        .collect();
    lines.join("\n")
}

/// Before a session: brings the user's changes into the copy.
pub(crate) fn pull_user_edits(run: &mut Run) -> Result<(), DriveError> {
    if !run.state.spec.hands_back() {
        return Ok(());
    }
    let Some(user) = run.ports.workspace.user_tree() else { return Err(no_user_tree()) };
    let taken = user.pull_user_edits()?;
    run.boundary("takein.after");
    if !taken.is_empty() {
        run.ports.sandbox.folder_edited()?;
    }
    let told = match &run.ledger.state.spec.branch {
        Some(branch) => format!(", and is committed with its work on `{branch}`"),
        None => String::new(),
    };
    match taken.as_slice() {
        [] => Ok(()),
        [one] => run.notice(format!("your own change of `{one}` was brought to the agent{told}")),
        many => {
            let names: Vec<String> = many.iter().take(5).map(|name| format!("`{name}`")).collect();
            let more = if many.len() > names.len() { ", …" } else { "" };
            let files = count(many.len(), "file");
            run.notice(format!(
                "your own changes of {files} were brought to the agent ({}{more}){}",
                names.join(", "),
                told.replace("and is", "and are")
            ))
        }
    }
}

/// After the user ended the run: commits only. An interrupted session's work stays out of the user's tree
/// but can be inspected.
pub(crate) fn push_refs_to_user_repo(run: &mut Run) -> Result<(), DriveError> {
    if !run.state.spec.hands_back() || run.state.baseline.is_none() {
        return Ok(());
    }
    let now = run.clock.now();
    let Some(user) = run.ports.workspace.user_tree() else { return Err(no_user_tree()) };
    Ok(user.push_refs_to_user_repo(now)?)
}

/// After a checkpoint and at the end: copies the agent's changes to the user's tree. Idempotent.
pub(crate) fn hand_back(run: &mut Run, commit: Option<CommitId>) -> Result<(), DriveError> {
    if !run.state.spec.hands_back() || run.state.baseline.is_none() {
        return Ok(());
    }
    run.boundary("handback.before");
    let now = run.clock.now();
    let ledger = &mut run.ledger;
    let Some(user) = run.ports.workspace.user_tree() else {
        // A run that only publishes: its copy went when it ended, after everything in it was handed back.
        return if ledger.state.spec.workspace.exists() { Err(no_user_tree()) } else { Ok(()) };
    };
    let mut back = user.hand_back(now, &mut |place| ledger.boundary(place))?;
    run.boundary("handback.written");
    back.conflicts.truncate(FILES_MAX);
    let state = &run.ledger.state;
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
        run.record(EventBody::HandedBack(handed))?;
    }
    run.boundary("handback.after");
    Ok(())
}

/// The spec hands files back, but the workspace can't.
fn no_user_tree() -> DriveError {
    DriveError::Wiring(
        "the work of this run goes back to the user's own tree, but its workspace knows none".into(),
    )
}
