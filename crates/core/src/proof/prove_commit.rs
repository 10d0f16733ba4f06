//! Proves a commit that no run made: the baseline, trees and state machine of a run, without agents and
//! sessions.

use crate::error::DriveError;
use crate::ports::RunPorts;
use crate::resume::run_writer::RunWriter;
use crate::run::Run;
use crate::steps::checks::baseline_checks::{self, BaselineEnd};
use crate::steps::checks::check::{CheckOptions, CheckOutcome, CheckRuns, CheckTarget};
use crate::steps::checks::clean_checkout::{self, SetupEnd, make_dir};
use crate::steps::checks::installed;
use crate::steps::checks::subject::{Finding, Subject};
use crate::steps::prove::{self, PATCH_MAX};
use ralph_loop_domain::ports::{Baseline, Dismissal};
use ralph_loop_domain::proof::{Proof, ProofLevel};
use ralph_loop_domain::repo::protect::{ProtectedChange, ProtectedKind, covers};
use ralph_loop_journal::JournalError;
use ralph_loop_proof::hunks::{self, Hunk};
use ralph_loop_proof::state::Tree;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::{CommitId, TreeId};
use ralph_loop_safe_fs::SafeDir;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// A commit, and what it is compared with.
#[derive(Debug, Clone)]
pub struct CommitToProve {
    /// The original.
    pub base: CommitId,
    pub base_tree: TreeId,
    pub commit: CommitId,
    pub tree: TreeId,
    /// Whether each hunk is reverted in turn.
    pub hunks: Option<HunkLimits>,
}

/// Limits for reverting hunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkLimits {
    /// At most this many.
    pub count: usize,
    /// None is begun after this time.
    pub time: Duration,
}

/// The proof of a commit.
#[derive(Debug)]
pub struct CommitProof {
    pub proof: Proof,
    /// How long each tree took, with its setup.
    pub took: Vec<(Tree, Duration)>,
    /// Only if the checks pass on the commit.
    pub hunks: Option<HunkReport>,
}

/// What reverting the hunks showed.
#[derive(Debug, Default)]
pub struct HunkReport {
    /// Product hunks of the commit.
    pub total: usize,
    /// How many were reverted.
    pub reverted: usize,
    /// Those without which every check still passes.
    pub unnoticed: Vec<UnnoticedHunk>,
}

/// A hunk that no check notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnnoticedHunk {
    pub path: String,
    /// Its first changed line in the commit.
    pub line: usize,
    /// Added and removed lines.
    pub lines: usize,
    /// The first changed line.
    pub text: String,
}

/// Proves a commit in a record that is only used for this. `None` if it was canceled.
pub fn prove_commit(
    writer: RunWriter,
    ports: RunPorts,
    wanted: &CommitToProve,
) -> Result<Option<CommitProof>, DriveError> {
    let mut run = Run::new(writer, ports);
    let proven = judge_commit(&mut run, wanted);
    if let Some(keeper) = &run.ports.keeper {
        keeper.dismiss(Dismissal::Safe);
    }
    proven
}

fn judge_commit(run: &mut Run, wanted: &CommitToProve) -> Result<Option<CommitProof>, DriveError> {
    let baseline = Baseline {
        head: wanted.base.clone(),
        branch: None,
        start: wanted.base.clone(),
        tree: wanted.base_tree.clone(),
        dirty: Vec::new(),
        dirty_total: 0,
        left_out: Vec::new(),
    };
    let surroundings = installed::sealed_surroundings(run);
    let BaselineEnd::Known(checks) = baseline_checks::check_baseline(run, &baseline)? else {
        return Ok(None);
    };
    run.record(EventBody::Prepared { baseline: baseline.clone(), surroundings, checks })?;
    let setup = installed::missing_setup_hint(run)?;
    baseline_checks::report_setup_hint(run, setup)?;
    let subject = Subject {
        commit: wanted.commit.clone(),
        checked: wanted.commit.clone(),
        start: wanted.base.clone(),
        tree: wanted.tree.clone(),
        baseline,
        logs: run.record_dir.path().join("proof"),
        beside: Vec::new(),
        left: BTreeSet::new(),
    };
    let protected = protected_by(run, wanted)?;
    let Some(mut found) = prove::judge_subject(run, &subject, &protected)? else { return Ok(None) };
    if found.verdict.level == Some(ProofLevel::Unverified) && run.state.is_already_true() {
        found.verdict.level = Some(ProofLevel::AlreadyTrue);
        found.verdict.reason = Some("every criterion passed without the commit".to_owned());
    }
    let passes = found.state.runs.get(&Tree::Commit).is_some_and(|tree_run| {
        tree_run.problems.is_empty() && tree_run.results.iter().all(|result| result.passed)
    });
    let hunks = match wanted.hunks.filter(|_| passes) {
        None => None,
        Some(limits) => match revert_hunks(run, &subject, &found, limits)? {
            None => return Ok(None),
            report => report,
        },
    };
    Ok(Some(CommitProof { proof: prove::proof_of(run, &subject, &found)?, took: found.took, hunks }))
}

/// Protected paths that the commit changes.
fn protected_by(run: &Run, wanted: &CommitToProve) -> Result<Vec<ProtectedChange>, DriveError> {
    let patterns = &run.ledger.state.spec.settings.protected_paths;
    let changes = run.ports.workspace.changes(wanted.base.as_str(), wanted.commit.as_str())?;
    let protected = changes.into_iter().filter(|change| covers(patterns, &change.path));
    Ok(protected
        .map(|change| ProtectedChange {
            change: match change.status {
                'A' => ProtectedKind::Added,
                'D' => ProtectedKind::Removed,
                _ => ProtectedKind::Changed,
            },
            path: change.path,
        })
        .collect())
}

/// Runs the checks on the commit without each product hunk. `None` if it was canceled.
fn revert_hunks(
    run: &mut Run,
    subject: &Subject,
    found: &Finding,
    limits: HunkLimits,
) -> Result<Option<HunkReport>, DriveError> {
    let patch = run.ports.workspace.patch(subject.start.as_str(), subject.checked.as_str(), PATCH_MAX)?;
    let mut hunks = hunks::of_patch(&patch);
    hunks.retain(|hunk| {
        let is_tests = || {
            let file = run.ports.workspace.file_at(&subject.checked, &hunk.path).ok().flatten();
            file.is_some_and(|bytes| hunk.is_only_tests(&String::from_utf8_lossy(&bytes)))
        };
        !prove::is_engine_file(run, &hunk.path) && found.harness.matched(&hunk.path).is_none() && !is_tests()
    });
    let mut report = HunkReport { total: hunks.len(), ..HunkReport::default() };
    let started = run.clock.elapsed();
    for hunk in hunks.iter().take(limits.count) {
        if run.clock.elapsed().saturating_sub(started) >= limits.time {
            break;
        }
        let number = report.reverted + 1;
        let logs = subject.logs.join(format!("hunk-{number}"));
        let noticed = clean_checkout::in_clean_folder(run, |run, folder| {
            notices(run, hunk, folder, &logs, subject, found)
        })?;
        match noticed {
            None if run.ledger.ends_now() => return Ok(None),
            None => {}
            Some(noticed) => {
                report.reverted = number;
                if !noticed {
                    let text = run.redactor.text(&hunk.text).into_owned();
                    let (path, line, lines) = (hunk.path.clone(), hunk.line, hunk.lines);
                    report.unnoticed.push(UnnoticedHunk { path, line, lines, text });
                }
            }
        }
    }
    Ok(Some(report))
}

/// Whether a check fails without the hunk, or runs fewer tests. `None` if that couldn't be found out.
fn notices(
    run: &mut Run,
    hunk: &Hunk,
    folder: &Path,
    logs: &Path,
    subject: &Subject,
    found: &Finding,
) -> Result<Option<bool>, DriveError> {
    make_dir(logs)?;
    run.ports.workspace.checkout_clean(&subject.checked, folder)?;
    let reverted = SafeDir::open(folder).and_then(|top| hunk.revert_in(&top));
    if !reverted.map_err(|error| JournalError::file("revert a hunk of", &folder.join(&hunk.path), error))? {
        return Ok(None);
    }
    let checkout = installed::open_checkout(run, folder)?;
    match clean_checkout::run_setup(run, &checkout, logs)? {
        SetupEnd::Ready => {}
        SetupEnd::Stopped => return Ok(None),
        SetupEnd::Failed { .. } => return Ok(Some(true)),
    }
    let whole = found.state.runs.get(&Tree::Commit);
    let mut runs = CheckRuns::default();
    let verifiers: Vec<_> = run.state.spec.settings.required().cloned().collect();
    for verifier in verifiers {
        let log = logs.join(format!("check-{}.log", verifier.name));
        let how = CheckOptions { env: &checkout.env, watch: false };
        let place = CheckTarget { sandbox: &*checkout.sandbox, tree: &subject.tree, log: &log, how };
        let result = match runs.run(&mut run.ledger, &verifier, &place)? {
            CheckOutcome::Stopped => return Ok(None),
            CheckOutcome::Result(result, ..) => result,
        };
        let before =
            whole.into_iter().flat_map(|tree_run| &tree_run.results).find(|one| one.name == result.name);
        let executed = before.and_then(|one| one.tests).map_or(0, |tests| tests.executed());
        if !result.passed || result.tests.map_or(0, |tests| tests.executed()) < executed {
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
}
