//! Prove: runs the checks on the exact commit in a clean checkout, then on the trees that
//! `ralph_loop_proof::state` asks for.

use crate::error::DriveError;
use crate::proof::surroundings;
use crate::record::resources;
use crate::run::Run;
use crate::steps::checks::subject::{Finding, Subject};
use crate::steps::checks::trees::{self, TreeCheck};
use crate::steps::checks::{baseline_checks, installed, uncommitted};
use crate::steps::{claims, prepare, stuck_signals};
use ralph_loop_domain::ports::ReleaseWhen;
use ralph_loop_domain::proof::{
    CLEAN_CHECKOUT, HarnessChange, Proof, ProofCheck, ProtectedEvidence, VERSION, Watching,
};
use ralph_loop_domain::repo::protect::ProtectedChange;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_proof::harness::Harness;
use ralph_loop_proof::state::{Next, ProofState, Tree, TreeRun, Verdict, next};
use ralph_loop_proof::suppressions;
use ralph_loop_protocol::event::{CheckResult, EventBody, FileChange};
use ralph_loop_protocol::id::{CommitId, Digest};
use ralph_loop_protocol::proof::ProofCriterion;
use ralph_loop_task::criterion::Criterion;
use std::time::Duration;

/// Bytes of the patch searched for suppression comments.
pub(crate) const PATCH_MAX: usize = 8 * 1024 * 1024;
/// Size limit of the harness diff in the proof.
const DIFF_MAX: usize = 64 * 1024;
/// Size limit of a harness file.
const FILE_MAX: usize = 16 * 1024 * 1024;
/// Lines kept in the journal.
const LINES_MAX: usize = 20;

pub(crate) fn prove(run: &mut Run) -> Result<(), DriveError> {
    run.boundary("prove.before");
    // Agent processes must not touch the checkout.
    for agent in &run.ports.agents {
        agent.release_resources(ReleaseWhen::Everything);
        resources::note_resources(&mut run.ledger, &**agent);
    }
    let state = &run.ledger.state;
    let (Some(baseline), Some(tree)) = (state.baseline.clone(), state.work.tree.clone()) else {
        return Ok(());
    };
    let commit = state.work.commit.clone().unwrap_or_else(|| baseline.head.clone());
    let (start, left) = uncommitted::original_commit(run, &baseline.head, &baseline.head)?;
    let started = run.clock.elapsed();
    run.record(EventBody::ProofStarted { commit: commit.clone(), clean: true })?;
    let logs = run.record_dir.path().join("proof");
    let checked = commit.clone();
    let mut subject = Subject { commit, checked, start, tree, baseline, logs, beside: Vec::new(), left };
    let protected = run.ports.workspace.protected_changes()?;
    let iteration = run.state.iterations.count;
    let protected = claims::take_claims(run, iteration, protected)?;
    // `None` if the run was stopped.
    let Some(mut found) = judge_subject(run, &subject, &protected)? else { return Ok(()) };
    if found.verdict.question.is_none()
        && let Some(beside) = uncommitted::include_uncommitted(run, &subject, &found.verdict)?
    {
        let Some(second) = judge_subject(run, &beside, &protected)? else { return Ok(()) };
        if second.verdict.failed.is_empty() {
            uncommitted::report_uncommitted(run, &beside)?;
            (subject, found) = (beside, second);
        }
    }
    run.boundary("prove.ran");
    if !found.output.is_empty() && !found.verdict.failed.is_empty() {
        uncommitted::explain(run, &subject, &mut found)?;
    }
    finish_proof(run, &subject, &found, started)?;
    stuck_signals::notice_refused_work(run)
}

/// Runs the checks on each tree that is due until there is a result.
pub(crate) fn judge_subject(
    run: &mut Run,
    subject: &Subject,
    protected: &[ProtectedChange],
) -> Result<Option<Finding>, DriveError> {
    let mut found = begin_finding(run, subject, protected)?;
    loop {
        match next(&found.state) {
            Next::Done(verdict) => {
                found.verdict = *verdict;
                return Ok(Some(found));
            }
            Next::RunChecks(tree) => {
                let started = run.clock.elapsed();
                match trees::prove_tree(run, tree, subject, &mut found)? {
                    TreeCheck::Run(tree_run) => drop(found.state.runs.insert(tree, tree_run)),
                    TreeCheck::Stopped => return Ok(None),
                }
                found.took.push((tree, run.clock.elapsed().saturating_sub(started)));
            }
        }
    }
}

fn begin_finding(run: &Run, subject: &Subject, protected: &[ProtectedChange]) -> Result<Finding, DriveError> {
    let state = &run.ledger.state;
    let settings = &state.spec.settings;
    let changes = run.ports.workspace.changes(subject.start.as_str(), subject.checked.as_str())?;
    let is_work = |change: &FileChange| !is_engine_file(run, &change.path);
    let changes: Vec<FileChange> = changes.into_iter().filter(is_work).collect();
    // Your uncommitted changes belong to the original tree.
    let since_start = run.ports.workspace.changes(subject.baseline.tree.as_str(), subject.tree.as_str())?;
    let harness = Harness {
        config: settings.harness.clone(),
        watched: baseline_checks::baseline_trace(run).executed_or_read().map(str::to_owned).collect(),
        task: state.spec.task.words(),
    };
    let read = |commit: &CommitId, path: &str| {
        let bytes = run.ports.workspace.file_at(commit, path).ok().flatten()?;
        (bytes.len() <= FILE_MAX).then(|| String::from_utf8_lossy(&bytes).into_owned())
    };
    let harness_changes =
        harness.changes(&changes, &|path| read(&subject.start, path), &|path| read(&subject.checked, path));
    let patch = run.ports.workspace.patch(subject.start.as_str(), subject.checked.as_str(), PATCH_MAX)?;
    let mut suppressions = suppressions::added(&String::from_utf8_lossy(&patch));
    for one in &mut suppressions {
        one.text = run.redactor.text(&one.text).into_owned();
    }
    let (mut obstacles, mut hint) = (Vec::new(), None);
    for change in protected {
        obstacles.push(format!("protected path {} was {}", change.path, change.change.as_str()));
    }
    obstacles.extend(missing_from(run, subject)?);
    let replaced = surroundings::differences(&state.surroundings, &installed::fingerprints(run));
    if !state.surroundings.is_empty() && !replaced.is_empty() {
        hint = Some(
            "programs or settings that the checks use changed on this machine: review them, and start a new run (`--new`) if you changed them"
                .to_owned(),
        );
        obstacles.extend(replaced);
    }
    let checks = state.baseline_checks.as_ref().filter(|checks| checks.setup_failed.is_none());
    let proof = ProofState {
        policy: settings.tests,
        require: settings.require_proof,
        required: settings.required_verifiers.clone(),
        baseline: checks.map(|checks| comparable(run, subject, &harness, checks.results.clone())),
        red: checks.map(|checks| checks.red.iter().cloned().collect()).unwrap_or_default(),
        has_diff: !changes.is_empty() || since_start.iter().any(is_work),
        changed: changes.iter().map(|change| change.path.clone()).collect(),
        harness: harness_changes,
        suppressions,
        obstacles,
        runs: Default::default(),
    };
    Ok(Finding {
        state: proof,
        harness,
        verdict: Verdict::default(),
        output: String::new(),
        hint,
        took: Vec::new(),
        protected: protected.to_vec(),
    })
}

/// The baseline, without test counts if uncommitted tests of yours ran there that aren't handed over.
fn comparable(
    run: &Run,
    subject: &Subject,
    harness: &Harness,
    mut results: Vec<CheckResult>,
) -> Vec<CheckResult> {
    let dirty = &subject.baseline.dirty;
    let tests_differ = subject.baseline.dirty_total > dirty.len()
        || dirty.iter().any(|path| path.ends_with(".rs") || harness.matched(path).is_some());
    if tests_differ && subject.beside.is_empty() && uncommitted::hands_over(run) {
        results.iter_mut().for_each(|result| result.tests = None);
    }
    results
}

/// Whether the engine writes a file: the task's marks, progress, and `.ralph/` except the configuration.
pub(crate) fn is_engine_file(run: &Run, path: &str) -> bool {
    let task = &run.ledger.state.spec.task;
    path == task.source
        || crate::record::plan_progress::path(task).is_some_and(|progress| progress == path)
        || (path.starts_with(".ralph/") && path != ".ralph/config.json")
}

fn finish_proof(
    run: &mut Run,
    subject: &Subject,
    found: &Finding,
    started: Duration,
) -> Result<(), DriveError> {
    let proof = proof_of(run, subject, found)?;
    let text = serde_json::to_vec_pretty(&proof).unwrap_or_default();
    artifacts::write_durable(&run.ledger.record_dir.proof(), &text)?;
    if !proof.passed {
        let iteration = run.state.iterations.count;
        run.error_entry(&format!("iteration {iteration}: the final check failed"), &proof.failed.join("\n"));
    }
    if let Some(hint) = &found.hint
        && run.state.result.setup_hint.is_none()
    {
        run.notice(hint.clone())?;
    }
    let refused = proof.checks.iter().map(|check| &check.result).filter(|result| !result.passed);
    run.record(EventBody::ProofFinished {
        commit: subject.commit.clone(),
        tree: subject.tree.clone(),
        passed: proof.passed,
        proof: Digest::of(&text),
        failed: proof.failed.clone(),
        duration_ms: (run.clock.elapsed() - started).as_millis() as u64,
        hint: found.hint.clone(),
        level: proof.level,
        level_reason: proof.reason.clone().filter(|_| proof.passed),
        difference: proof.difference.iter().take(LINES_MAX).map(|one| one.line()).collect(),
        watched: proof.watched,
        harness: proof.harness.iter().take(LINES_MAX).map(HarnessChange::line).collect(),
        refused: refused.cloned().collect(),
        question: proof.question.clone().map(Box::new),
    })?;
    run.flush()?;
    run.boundary("prove.after");
    Ok(())
}

/// Builds `proof.json`.
pub(crate) fn proof_of(run: &Run, subject: &Subject, found: &Finding) -> Result<Proof, DriveError> {
    let state = &run.ledger.state;
    let command = |name: &str| {
        let verifier = state.spec.settings.verifiers.iter().find(|v| v.name == name);
        verifier.map(ralph_loop_task::config::VerifierConfig::command_line).unwrap_or_default()
    };
    let check = |result: &CheckResult| ProofCheck {
        command: run.redactor.text(&command(&result.name)).into_owned(),
        commit: Some(subject.checked.clone()),
        result: result.clone(),
    };
    let results = |tree: Tree| {
        found.state.runs.get(&tree).map_or(&[][..], |tree_run: &TreeRun| &tree_run.results).to_vec()
    };
    let again = results(Tree::OriginalTests);
    let verdict = &found.verdict;
    let passed = verdict.failed.is_empty();
    Ok(Proof {
        version: VERSION,
        run_id: state.spec.run_id.clone(),
        passed,
        commit: subject.commit.clone(),
        tree: subject.tree.clone(),
        base: subject.baseline.head.clone(),
        place: CLEAN_CHECKOUT.to_owned(),
        beside: subject.beside.clone(),
        level: verdict.level.filter(|_| passed),
        reason: verdict.reason.clone(),
        difference: verdict.difference.clone(),
        watched: state.baseline_checks.as_ref().map_or(Watching::NotWatched, |checks| checks.watched),
        harness: found.state.harness.clone(),
        harness_diff: harness_diff(run, subject, &found.state.harness)?,
        suppressions: found.state.suppressions.clone(),
        baseline: state.baseline_checks.as_ref().map(|c| c.results.clone()).unwrap_or_default(),
        criteria: criteria(run, &results(Tree::Commit), passed),
        checks: results(Tree::Commit).iter().map(check).collect(),
        original_harness: if again.is_empty() { results(Tree::OriginalHarness) } else { again },
        original_product: results(Tree::OriginalProduct),
        question: verdict.question.clone(),
        approved_by: None,
        protected: ProtectedEvidence {
            patterns: prepare::protected_patterns(&state.spec),
            changed: found.protected.clone(),
        },
        failed: verdict.failed.clone(),
        hint: found.hint.clone(),
        iterations: state.iterations.count,
        agents: state.agents.by_agent.clone(),
        tokens: state.spending.totals.tokens,
        cost: state.spending.totals.cost,
        loop_score: state.stuck.scores,
        at: run.clock.now(),
    })
}

/// The criteria of the task, and how each is decided.
fn criteria(run: &Run, results: &[CheckResult], passed: bool) -> Vec<ProofCriterion> {
    let state = &run.ledger.state;
    let of = |criterion: &Criterion| ProofCriterion {
        id: criterion.id.clone(),
        text: run.redactor.text(&criterion.text).into_owned(),
        decided_by: run.redactor.text(&criterion.check.describe()).into_owned(),
        met: match criterion.check.is_own() {
            true => results.iter().any(|result| result.name == criterion.id && result.passed),
            false => passed && state.work.met.contains(&criterion.id),
        },
    };
    state.spec.task.criteria.iter().map(of).collect()
}

/// The diff of the changed harness files.
fn harness_diff(run: &Run, subject: &Subject, changes: &[HarnessChange]) -> Result<String, DriveError> {
    if changes.is_empty() {
        return Ok(String::new());
    }
    let patch = run.ports.workspace.patch(subject.start.as_str(), subject.checked.as_str(), PATCH_MAX)?;
    let patch = String::from_utf8_lossy(&patch);
    let mut diff = String::new();
    for part in patch.split_inclusive("\ndiff --git ") {
        let file = part.lines().next().unwrap_or_default().rsplit(" b/").next().unwrap_or_default();
        if changes.iter().any(|change| change.path == file) && diff.len() + part.len() <= DIFF_MAX {
            diff.push_str("diff --git ");
            let part = part.strip_prefix("diff --git ").unwrap_or(part);
            diff.push_str(part.strip_suffix("diff --git ").unwrap_or(part));
        }
    }
    Ok(run.redactor.text(&diff).into_owned())
}

/// Checks that the commit contains what was judged: it may differ from the tree only in your own changes.
fn missing_from(run: &Run, subject: &Subject) -> Result<Option<String>, DriveError> {
    let baseline = &subject.baseline;
    if baseline.dirty_total > baseline.dirty.len() {
        return Ok(None);
    }
    let files = run.ports.workspace.changes(subject.commit.as_str(), subject.tree.as_str())?;
    let missing: Vec<String> = files
        .into_iter()
        .map(|f| f.path)
        .filter(|path| !baseline.dirty.contains(path) && !path.starts_with(".ralph/"))
        .collect();
    Ok((!missing.is_empty())
        .then(|| format!("the commit doesn't hold the judged state of {}", missing.join(", "))))
}
