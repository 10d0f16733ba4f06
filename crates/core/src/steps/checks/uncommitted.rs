//! What the final check depends on outside the commit: your uncommitted changes, and ignored files.

use crate::error::DriveError;
use crate::proof::unrecorded;
use crate::run::Run;
use crate::steps::checks::installed;
use crate::steps::checks::subject::{Finding, Subject};
use ralph_loop_domain::repo::setup;
use ralph_loop_proof::state::Verdict;
use ralph_loop_protocol::id::CommitId;
use ralph_loop_task::dialect::Publish;
use ralph_loop_task::spec::WorkspaceKind;
use std::collections::BTreeSet;

const TOLD: usize = 5;
const KEPT: usize = 200;

fn some_names(names: &[String]) -> String {
    let told: Vec<String> = names.iter().take(TOLD).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > told.len() { ", …" } else { "" };
    format!("{}{more}", told.join(", "))
}

/// Repeats failed checks with your original uncommitted changes, if the result stays in your folder.
/// `None` if there are none.
pub(crate) fn include_uncommitted(
    run: &mut Run,
    subject: &Subject,
    verdict: &Verdict,
) -> Result<Option<Subject>, DriveError> {
    if hands_over(run) || subject.baseline.dirty.is_empty() || verdict.failed.is_empty() {
        return Ok(None);
    }
    let files = run.ports.workspace.changes(subject.commit.as_str(), subject.tree.as_str())?;
    let beside: Vec<String> = files.into_iter().map(|file| file.path).take(KEPT).collect();
    if beside.is_empty() {
        return Ok(None);
    }
    let now = run.clock.now();
    let made = run.ports.workspace.unreferenced_commit(&subject.tree, &subject.commit, now)?;
    let (start, _) = original_commit(run, &subject.baseline.start, &subject.baseline.head)?;
    Ok(made.map(|checked| Subject { checked, start, beside, ..subject.clone() }))
}

/// Whether the result leaves the user's folder as a commit without the user's own changes.
pub(crate) fn hands_over(run: &Run) -> bool {
    let spec = &run.ledger.state.spec;
    let in_folder = spec.place == WorkspaceKind::InPlace && spec.branch.is_none();
    // The first run's uncommitted changes came along, and are in the folder that gets the fork's result.
    let forked = spec.forked_from.as_ref().is_some_and(|from| from.snapshot.is_some());
    !(in_folder || forked) || spec.settings.handover.publish != Publish::None
}

/// What the result is compared with: `start`, or for a fork the first run's start, minus files that
/// earlier runs left neither proven nor approved; and those files.
pub(crate) fn original_commit(
    run: &mut Run,
    start: &CommitId,
    head: &CommitId,
) -> Result<(CommitId, BTreeSet<String>), DriveError> {
    let spec = &run.ledger.state.spec;
    if let Some(from) = &spec.forked_from {
        let with_users = from.snapshot.clone().filter(|_| start != head);
        if let Some(began) = with_users.or_else(|| from.start.clone()) {
            return Ok((began, BTreeSet::new()));
        }
    }
    let none = || (start.clone(), BTreeSet::new());
    let Some(baseline) = run.state.baseline.clone() else { return Ok(none()) };
    let runs = spec.unproven_runs.clone();
    let left = run.ports.workspace.leftovers_of_unproven_runs(&baseline, &runs, run.ledger.clock.now())?;
    let Some(left) = left else { return Ok(none()) };
    let paths: Vec<String> = left.files.iter().map(|file| file.path.clone()).collect();
    // Once, before the first final check.
    if run.state.result.proof.is_none() {
        run.notice(format!(
            "from run {}, not proven: {}; tests and checks are compared with `HEAD` (commit what should stay)",
            left.files.first().map_or("", |file| file.run.as_str()),
            some_names(&paths)
        ))?;
    }
    Ok((left.start, paths.into_iter().collect()))
}

/// Reports which uncommitted files the result depends on.
pub(crate) fn report_uncommitted(run: &mut Run, subject: &Subject) -> Result<(), DriveError> {
    let own: Vec<String> =
        subject.beside.iter().filter(|path| !subject.left.contains(*path)).cloned().collect();
    if own.is_empty() {
        return Ok(());
    }
    run.notice(format!(
        "the checks pass together with your own changes of {}, which are not committed: commit those, too",
        some_names(&own)
    ))
}

/// "Works on my machine": what the workspace has and the commit lacks, and what only the user can fix.
pub(crate) fn explain(run: &mut Run, subject: &Subject, found: &mut Finding) -> Result<(), DriveError> {
    let mut unrecorded = run.ports.workspace.unrecorded()?;
    let installed = installed::usable_installed(run);
    unrecorded.retain(|path| !installed.iter().any(|one| path.trim_end_matches('/') == one.at));
    let files = run.ports.workspace.changes(subject.commit.as_str(), subject.tree.as_str())?;
    let dirty: Vec<String> = files.into_iter().filter(|f| f.status != 'D').map(|f| f.path).collect();
    if let Some(line) = unrecorded::line(&unrecorded, &dirty, &found.output) {
        found.verdict.failed.push(line);
    }
    if let Some(hint) = installed::missing_setup_hint(run)? {
        found.hint = Some(hint);
        return Ok(());
    }
    let needed: Vec<&str> =
        dirty.iter().filter(|p| unrecorded::is_named(p, &found.output)).map(String::as_str).collect();
    let (left, own): (Vec<&str>, Vec<&str>) =
        needed.into_iter().partition(|path| subject.left.contains(*path));
    if let Some(path) = left.first() {
        found.hint = Some(format!(
            "`{path}` is as an earlier run left it, neither proven nor approved: look at it, then commit it or take it \
             back (`git checkout -- {path}`)"
        ));
    } else if !own.is_empty() {
        found.hint = Some(setup::commit_hint(&own));
    }
    Ok(())
}
