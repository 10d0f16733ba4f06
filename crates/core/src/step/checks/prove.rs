//! Prove: runs the checks on the exact commit in a clean checkout, then on the trees that
//! `ralph_loop_proof::state` asks for.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::surroundings;
use crate::step::checks::trees::TreeCheck;
use ralph_loop_domain::ports::{Baseline, ReleaseWhen};
use ralph_loop_domain::proof::{
    CLEAN_CHECKOUT, HarnessChange, Proof, ProofCheck, ProtectedEvidence, VERSION, Watching,
};
use ralph_loop_domain::repo::protect::ProtectedChange;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_proof::harness::Harness;
use ralph_loop_proof::state::{Next, ProofState, Tree, TreeRun, Verdict, next};
use ralph_loop_proof::suppressions;
use ralph_loop_protocol::event::{CheckResult, EventBody, FileChange, ProofApproved};
use ralph_loop_protocol::id::{CommitId, Digest, TreeId};
use std::path::PathBuf;
use std::time::Duration;

/// Bytes of the patch searched for suppression comments.
pub(in crate::step) const PATCH_MAX: usize = 8 * 1024 * 1024;
/// Size limit of the harness diff in the proof.
const DIFF_MAX: usize = 64 * 1024;
/// Size limit of a harness file.
const FILE_MAX: usize = 16 * 1024 * 1024;
/// Lines kept in the journal.
const LINES_MAX: usize = 20;

/// What is to be proven.
#[derive(Clone)]
pub(in crate::step) struct Subject {
    /// What is handed over.
    pub(in crate::step) commit: CommitId,
    /// What is checked out: the commit, possibly with your uncommitted changes.
    pub(in crate::step) checked: CommitId,
    /// The original tree.
    pub(in crate::step) start: CommitId,
    pub(in crate::step) tree: TreeId,
    pub(in crate::step) baseline: Baseline,
    pub(in crate::step) logs: PathBuf,
    /// Your uncommitted changes in it.
    pub(in crate::step) beside: Vec<String>,
}

/// A proof in progress.
pub(in crate::step) struct Finding {
    pub(in crate::step) state: ProofState,
    pub(in crate::step) harness: Harness,
    pub(in crate::step) verdict: Verdict,
    /// Output of failed checks.
    pub(in crate::step) output: String,
    /// What only you can fix.
    pub(in crate::step) hint: Option<String>,
    /// How long each tree took, with its setup.
    pub(in crate::step) took: Vec<(Tree, Duration)>,
    protected: Vec<ProtectedChange>,
}

impl Driver {
    pub(crate) fn prove(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("prove.before");
        // Agent processes must not touch the checkout.
        for agent in &self.agents {
            agent.release_resources(ReleaseWhen::Everything);
            self.ctx.note_resources(&**agent);
        }
        let state = &self.ctx.state;
        let (Some(baseline), Some(tree)) = (state.baseline.clone(), state.work.tree.clone()) else {
            return Ok(());
        };
        let commit = state.work.commit.clone().unwrap_or_else(|| baseline.head.clone());
        let start = self.original_commit(&baseline.head, &baseline.head)?;
        let started = self.ctx.clock.elapsed();
        self.ctx.record(EventBody::ProofStarted { commit: commit.clone(), clean: true })?;
        let logs = self.ctx.run.path().join("proof");
        let checked = commit.clone();
        let mut subject = Subject { commit, checked, start, tree, baseline, logs, beside: Vec::new() };
        let protected = self.workspace.protected_changes()?;
        let protected = self.take_claims(self.ctx.state.iterations.count, protected)?;
        // `None` if the run was stopped.
        let Some(mut found) = self.judge_subject(&subject, &protected)? else { return Ok(()) };
        if found.verdict.question.is_none()
            && let Some(beside) = self.include_uncommitted(&subject, &found.verdict)?
        {
            let Some(second) = self.judge_subject(&beside, &protected)? else { return Ok(()) };
            if second.verdict.failed.is_empty() {
                self.report_uncommitted(&beside)?;
                (subject, found) = (beside, second);
            }
        }
        self.ctx.boundary("prove.ran");
        if !found.output.is_empty() && !found.verdict.failed.is_empty() {
            self.explain(&subject, &mut found)?;
        }
        self.finish_proof(&subject, &found, started)
    }

    /// Runs the checks on each tree that is due until there is a result.
    pub(in crate::step) fn judge_subject(
        &mut self,
        subject: &Subject,
        protected: &[ProtectedChange],
    ) -> Result<Option<Finding>, DriveError> {
        let mut found = self.begin_finding(subject, protected)?;
        loop {
            match next(&found.state) {
                Next::Done(verdict) => {
                    found.verdict = *verdict;
                    return Ok(Some(found));
                }
                Next::RunChecks(tree) => {
                    let started = self.ctx.clock.elapsed();
                    match self.prove_tree(tree, subject, &mut found)? {
                        TreeCheck::Run(run) => drop(found.state.runs.insert(tree, run)),
                        TreeCheck::Stopped => return Ok(None),
                    }
                    found.took.push((tree, self.ctx.clock.elapsed().saturating_sub(started)));
                }
            }
        }
    }

    fn begin_finding(&self, subject: &Subject, protected: &[ProtectedChange]) -> Result<Finding, DriveError> {
        let state = &self.ctx.state;
        let settings = &state.spec.settings;
        let changes = self.workspace.changes(subject.start.as_str(), subject.checked.as_str())?;
        let is_work = |change: &FileChange| !self.is_engine_file(&change.path);
        let changes: Vec<FileChange> = changes.into_iter().filter(is_work).collect();
        // Your uncommitted changes belong to the original tree.
        let since_start = self.workspace.changes(subject.baseline.tree.as_str(), subject.tree.as_str())?;
        let harness = Harness {
            config: settings.harness.clone(),
            watched: self.baseline_trace().executed_or_read().map(str::to_owned).collect(),
            task: state.spec.task.words(),
        };
        let read = |commit: &CommitId, path: &str| {
            let bytes = self.workspace.file_at(commit, path).ok().flatten()?;
            (bytes.len() <= FILE_MAX).then(|| String::from_utf8_lossy(&bytes).into_owned())
        };
        let harness_changes = harness
            .changes(&changes, &|path| read(&subject.start, path), &|path| read(&subject.checked, path));
        let patch = self.workspace.patch(subject.start.as_str(), subject.checked.as_str(), PATCH_MAX)?;
        let mut suppressions = suppressions::added(&String::from_utf8_lossy(&patch));
        for one in &mut suppressions {
            one.text = self.ctx.redactor.text(&one.text).into_owned();
        }
        let (mut obstacles, mut hint) = (Vec::new(), None);
        for change in protected {
            obstacles.push(format!("protected path {} was {}", change.path, change.change.as_str()));
        }
        obstacles.extend(self.missing_from(subject)?);
        let replaced = surroundings::differences(&state.surroundings, &self.fingerprints());
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
            baseline: checks.map(|checks| self.comparable(subject, &harness, checks.results.clone())),
            red: checks.map(|checks| checks.red.iter().cloned().collect()).unwrap_or_default(),
            has_diff: !changes.is_empty() || since_start.iter().any(is_work),
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
        &self,
        subject: &Subject,
        harness: &Harness,
        mut results: Vec<CheckResult>,
    ) -> Vec<CheckResult> {
        let dirty = &subject.baseline.dirty;
        let tests_differ = subject.baseline.dirty_total > dirty.len()
            || dirty.iter().any(|path| path.ends_with(".rs") || harness.matched(path).is_some());
        if tests_differ && subject.beside.is_empty() && self.hands_over() {
            results.iter_mut().for_each(|result| result.tests = None);
        }
        results
    }

    /// Whether the engine writes a file: the task's marks, progress, and `.ralph/` except the configuration.
    pub(in crate::step) fn is_engine_file(&self, path: &str) -> bool {
        let task = &self.ctx.state.spec.task;
        path == task.source
            || crate::record::plan_progress::path(task).is_some_and(|progress| progress == path)
            || (path.starts_with(".ralph/") && path != ".ralph/config.json")
    }

    fn finish_proof(
        &mut self,
        subject: &Subject,
        found: &Finding,
        started: Duration,
    ) -> Result<(), DriveError> {
        let proof = self.proof_of(subject, found)?;
        let text = serde_json::to_vec_pretty(&proof).unwrap_or_default();
        artifacts::write_durable(&self.ctx.run.proof(), &text)?;
        if !proof.passed {
            let iteration = self.ctx.state.iterations.count;
            self.ctx.error_entry(
                &format!("iteration {iteration}: the final check failed"),
                &proof.failed.join("\n"),
            );
        }
        if let Some(hint) = &found.hint
            && self.ctx.state.result.setup_hint.is_none()
        {
            self.ctx.notice(hint.clone())?;
        }
        let refused = proof.checks.iter().map(|check| &check.result).filter(|result| !result.passed);
        self.ctx.record(EventBody::ProofFinished {
            commit: subject.commit.clone(),
            tree: subject.tree.clone(),
            passed: proof.passed,
            proof: Digest::of(&text),
            failed: proof.failed.clone(),
            duration_ms: (self.ctx.clock.elapsed() - started).as_millis() as u64,
            hint: found.hint.clone(),
            level: proof.level,
            level_reason: proof.reason.clone().filter(|_| proof.passed),
            difference: proof.difference.iter().take(LINES_MAX).map(|one| one.line()).collect(),
            watched: proof.watched,
            harness: proof.harness.iter().take(LINES_MAX).map(HarnessChange::line).collect(),
            refused: refused.cloned().collect(),
            question: proof.question.clone().map(Box::new),
        })?;
        self.ctx.flush()?;
        self.ctx.boundary("prove.after");
        Ok(())
    }

    /// Builds `proof.json`.
    pub(in crate::step) fn proof_of(&self, subject: &Subject, found: &Finding) -> Result<Proof, DriveError> {
        let state = &self.ctx.state;
        let command = |name: &str| {
            let verifier = state.spec.settings.verifiers.iter().find(|v| v.name == name);
            verifier.map(ralph_loop_task::config::VerifierConfig::command_line).unwrap_or_default()
        };
        let check = |result: &CheckResult| ProofCheck {
            command: self.ctx.redactor.text(&command(&result.name)).into_owned(),
            commit: Some(subject.checked.clone()),
            result: result.clone(),
        };
        let run =
            |tree: Tree| found.state.runs.get(&tree).map_or(&[][..], |run: &TreeRun| &run.results).to_vec();
        let again = run(Tree::OriginalTests);
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
            harness_diff: self.harness_diff(subject, &found.state.harness)?,
            suppressions: found.state.suppressions.clone(),
            baseline: state.baseline_checks.as_ref().map(|c| c.results.clone()).unwrap_or_default(),
            checks: run(Tree::Commit).iter().map(check).collect(),
            original_harness: if again.is_empty() { run(Tree::OriginalHarness) } else { again },
            original_product: run(Tree::OriginalProduct),
            question: verdict.question.clone(),
            approved_by: None,
            protected: ProtectedEvidence {
                patterns: crate::step::prepare::protected_patterns(&state.spec),
                changed: found.protected.clone(),
            },
            failed: verdict.failed.clone(),
            hint: found.hint.clone(),
            iterations: state.iterations.count,
            agents: state.agents.by_agent.clone(),
            tokens: state.spending.totals.tokens,
            cost: state.spending.totals.cost,
            loop_score: state.stuck.scores,
            at: self.ctx.clock.now(),
        })
    }

    /// The diff of the changed harness files.
    fn harness_diff(&self, subject: &Subject, changes: &[HarnessChange]) -> Result<String, DriveError> {
        if changes.is_empty() {
            return Ok(String::new());
        }
        let patch = self.workspace.patch(subject.start.as_str(), subject.checked.as_str(), PATCH_MAX)?;
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
        Ok(self.ctx.redactor.text(&diff).into_owned())
    }

    /// Checks that the commit contains what was judged: it may differ from the tree only in your own changes.
    fn missing_from(&self, subject: &Subject) -> Result<Option<String>, DriveError> {
        let baseline = &subject.baseline;
        if baseline.dirty_total > baseline.dirty.len() {
            return Ok(None);
        }
        let files = self.workspace.changes(subject.commit.as_str(), subject.tree.as_str())?;
        let missing: Vec<String> = files
            .into_iter()
            .map(|f| f.path)
            .filter(|path| !baseline.dirty.contains(path) && !path.starts_with(".ralph/"))
            .collect();
        Ok((!missing.is_empty())
            .then(|| format!("the commit doesn't hold the judged state of {}", missing.join(", "))))
    }

    /// Records your approval in the proof.
    pub(crate) fn approve_tests(&mut self) -> Result<(), DriveError> {
        let state = &self.ctx.state;
        let Some(by) = state.people.tests_approved_by.clone() else { return Ok(()) };
        let Some(facts) = state.result.proof.clone() else { return Ok(()) };
        let (path, asked) = (self.ctx.run.proof(), self.ctx.run.path().join("proof/asked.json"));
        // A killed process may have written only one of them.
        let found = [&path, &asked].into_iter().find_map(|path| {
            let text = std::fs::read(path).ok().filter(|text| Some(Digest::of(text)) == facts.proof)?;
            Proof::parse(&text).ok().map(|proof| (text, proof))
        });
        let Some((text, proof)) = found else {
            let reason = format!("`{}` isn't what was journaled", path.display());
            return self.ctx.record(EventBody::ProofVoided { reason }).map(|_| ());
        };
        artifacts::write_durable(&asked, &text)?;
        let text = serde_json::to_vec_pretty(&proof.approved(&by)).unwrap_or_default();
        artifacts::write_durable(&path, &text)?;
        self.ctx.boundary("approve.written");
        let approved = ProofApproved { commit: facts.commit, proof: Digest::of(&text), by };
        self.ctx.record(EventBody::ProofApproved(approved))?;
        self.ctx.flush()?;
        self.ctx.boundary("approve.after");
        Ok(())
    }
}
