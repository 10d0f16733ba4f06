//! Prove: the final check of the exact work commit, in a clean checkout and a sandbox of its own. What passes only in the
//! workspace does not pass here, and the agent is told what differs.

mod users_changes;

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::findings::HarnessFindings;
use crate::proof::results::without_result;
use crate::proof::surroundings;
use crate::proof::watched::Watched;
use crate::step::clean_checkout::{SetupEnd, make_dir};
use crate::step::final_checks::CheckRun;
use ralph_loop_domain::ports::{Baseline, ExecTrace, ReleaseWhen};
use ralph_loop_domain::proof::{
    CLEAN_CHECKOUT, HarnessChange, Proof, ProofCheck, ProofLevel, ProtectedEvidence, TestsQuestion, VERSION,
    Watching,
};
use ralph_loop_domain::protect::ProtectedChange;
use ralph_loop_evidence::weakened::{self, Finding};
use ralph_loop_journal::artifacts;
use ralph_loop_protocol::event::{CheckResult, EventBody};
use ralph_loop_protocol::id::{CommitId, TreeId};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of the patch in which weakened tests are looked for.
const PATCH_MAX: usize = 8 * 1024 * 1024;
/// Reasons that are kept.
const FAILED_MAX: usize = 40;
/// Changes to what decides that the journal tells.
const TOLD_MAX: usize = 20;

/// What is to be proven.
#[derive(Clone)]
pub(super) struct ProofSubject {
    /// What is handed over.
    pub(super) commit: CommitId,
    /// What is checked out: the same, or with it the user's own changes that are not committed.
    pub(super) checked: CommitId,
    /// What that is compared with.
    pub(super) start: CommitId,
    pub(super) tree: TreeId,
    pub(super) baseline: Baseline,
    pub(super) logs: PathBuf,
    /// The user's own changes in it.
    beside: Vec<String>,
}

/// What a proof found so far.
#[derive(Default)]
pub(super) struct ProofFindings {
    pub(super) results: Vec<CheckResult>,
    protected: Vec<ProtectedChange>,
    pub(super) weakened: Vec<Finding>,
    pub(super) failed: Vec<String>,
    /// What the failed checks printed.
    pub(super) output: String,
    hint: Option<String>,
    /// What decides, and is not as it was.
    pub(super) judged: Option<HarnessFindings>,
    /// Whether changed tests explain another number of them.
    pub(super) explained: bool,
    pub(super) level: Option<ProofLevel>,
    watched: Watching,
    pub(super) harness: Vec<HarnessChange>,
    /// How the checks ended with what decides as it was at the start.
    pub(super) start: Vec<CheckResult>,
    /// What a person is asked, where only that is in the way of a pass.
    pub(super) question: Option<TestsQuestion>,
}

impl ProofFindings {
    pub(super) fn fail(&mut self, why: impl Into<String>) {
        let why = why.into();
        if self.failed.len() < FAILED_MAX && !self.failed.contains(&why) {
            self.failed.push(why);
        }
    }
}

impl Driver {
    pub(crate) fn prove(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("prove.before");
        // Nothing of an agent lives while its work is proven: a process of its could meddle with the checkout.
        for agent in &self.agents {
            agent.release_resources(ReleaseWhen::Everything);
            self.ctx.note_resources(&**agent);
        }
        let state = &self.ctx.state;
        let (Some(baseline), Some(tree)) = (state.baseline.clone(), state.work.tree.clone()) else {
            return Ok(());
        };
        // Nothing was changed and yet everything passes: the start itself is what is proven.
        let commit = state.work.commit.clone().unwrap_or_else(|| baseline.head.clone());
        let start = self.start_for_proof(&baseline.head, &baseline.head)?;
        let started = self.ctx.clock.elapsed();
        self.ctx.record(EventBody::ProofStarted { commit: commit.clone(), clean: true })?;
        let logs = self.ctx.run.path().join("proof");
        make_dir(&logs)?;
        let checked = commit.clone();
        let mut subject = ProofSubject { commit, checked, start, tree, baseline, logs, beside: Vec::new() };
        let protected = self.workspace.protected_changes()?;
        let protected = self.take_claims(self.ctx.state.iterations.count, protected)?;
        // `None` where the run was stopped meanwhile.
        let Some(mut found) = self.look_at(&subject, &protected)? else { return Ok(()) };
        if let Some(beside) = self.with_users_changes(&subject, &found)? {
            let Some(second) = self.look_at(&beside, &protected)? else { return Ok(()) };
            if second.failed.is_empty() {
                self.tell_users_changes(&beside)?;
                (subject, found) = (beside, second);
            }
        }
        if !self.hold_counts(&subject, &mut found)? || !self.check_as_at_start(&subject, &mut found)? {
            return Ok(());
        }
        self.ctx.boundary("prove.ran");
        if !found.output.is_empty() {
            self.explain(&subject, &mut found)?;
        }
        self.finish_proof(&subject, &found, started)
    }

    /// Everything that is to be found out of a subject; `None` where the run was stopped meanwhile.
    fn look_at(
        &mut self,
        subject: &ProofSubject,
        protected: &[ProtectedChange],
    ) -> Result<Option<ProofFindings>, DriveError> {
        let mut found = ProofFindings { protected: protected.to_vec(), ..ProofFindings::default() };
        for change in protected {
            found.fail(format!("protected path {} was {}", change.path, change.change.as_str()));
        }
        for missing in self.missing_from(subject)? {
            found.fail(missing);
        }
        found.weakened = self.weakened(subject)?;
        self.check_environment(&mut found);
        if !self.in_clean_folder(|driver, folder| driver.prove_in(folder, subject, &mut found))? {
            return Ok(None);
        }
        if found.results.iter().any(|result| !result.passed) {
            let changes = self.workspace.changes(subject.start.as_str(), subject.checked.as_str())?;
            if self.installs_after(&changes)? {
                return self.look_at(subject, protected);
            }
        }
        for result in found.results.clone().iter().filter(|r| !r.passed) {
            let why = result.why.as_deref().unwrap_or("failed");
            found.fail(format!("{}: {why}", result.name));
        }
        // A required check that did not run has not passed. Where something else failed, that is why it did not.
        if found.failed.is_empty() {
            let required = &self.ctx.state.spec.settings.required_verifiers;
            without_result(required, &found.results).into_iter().for_each(|why| found.fail(why));
        }
        Ok(Some(found))
    }

    /// Whether the check itself is still the one from the start: programs of this machine, and what turns a failure into
    /// a success.
    fn check_environment(&self, found: &mut ProofFindings) {
        let state = &self.ctx.state;
        if !state.surroundings.is_empty() {
            let now = self.fingerprints();
            let changed = surroundings::differences(&state.surroundings, &now);
            if !changed.is_empty() {
                found.hint = Some(
                    "programs or settings that the checks use changed on this machine: look at them, and start a new run (`--new`) if they are yours"
                        .to_owned(),
                );
            }
            changed.into_iter().for_each(|why| found.fail(why));
        }
        for finding in found.weakened.clone().iter().filter(|f| weakened::decides_failure(f)) {
            let line = finding.line.map_or_else(String::new, |n| format!(":{n}"));
            found.fail(format!("{}{line} swallows failures of tests: `{}`", finding.path, finding.excerpt));
        }
    }

    /// What the run's whole change does to tests.
    fn weakened(&self, subject: &ProofSubject) -> Result<Vec<Finding>, DriveError> {
        let patch = self.workspace.patch(subject.start.as_str(), subject.checked.as_str(), PATCH_MAX)?;
        let mut found = weakened::findings(&String::from_utf8_lossy(&patch));
        for finding in &mut found {
            finding.excerpt = self.ctx.redactor.text(&finding.excerpt).into_owned();
        }
        Ok(found)
    }

    fn finish_proof(
        &mut self,
        subject: &ProofSubject,
        found: &ProofFindings,
        started: Duration,
    ) -> Result<(), DriveError> {
        let proof = self.record_of(subject, found)?;
        let passed = proof.passed;
        let text = serde_json::to_vec_pretty(&proof).unwrap_or_default();
        artifacts::write_durable(&self.ctx.run.proof(), &text)?;
        if !passed {
            let list = found.failed.join("\n");
            self.ctx.error_entry(
                &format!("iteration {}: the final check failed", self.ctx.state.iterations.count),
                &list,
            );
        }
        if let Some(hint) = &found.hint
            && self.ctx.state.result.setup_hint.is_none()
        {
            self.ctx.notice(hint.clone())?;
        }
        self.ctx.record(EventBody::ProofFinished {
            commit: subject.commit.clone(),
            tree: subject.tree.clone(),
            passed,
            proof: ralph_loop_protocol::id::Digest::of(&text),
            failed: found.failed.clone(),
            duration_ms: (self.ctx.clock.elapsed() - started).as_millis() as u64,
            weakened: found.weakened.len() as u32,
            hint: found.hint.clone(),
            level: found.level.filter(|_| passed),
            watched: found.watched,
            harness: found.harness.iter().take(TOLD_MAX).map(HarnessChange::line).collect(),
            refused: found.results.iter().filter(|result| !result.passed).cloned().collect(),
            question: found.question.clone().map(Box::new),
        })?;
        self.ctx.flush()?;
        self.ctx.boundary("prove.after");
        Ok(())
    }

    /// `proof.json`.
    fn record_of(&self, subject: &ProofSubject, found: &ProofFindings) -> Result<Proof, DriveError> {
        let state = &self.ctx.state;
        let command = |name: &str| {
            let verifier = state.spec.settings.verifiers.iter().find(|v| v.name == name);
            verifier.map(ralph_loop_task::config::VerifierConfig::command_line).unwrap_or_default()
        };
        let passed = found.failed.is_empty() && !found.results.is_empty();
        let check = |result: &CheckResult| ProofCheck {
            command: self.ctx.redactor.text(&command(&result.name)).into_owned(),
            commit: Some(subject.checked.clone()),
            result: result.clone(),
        };
        Ok(Proof {
            version: VERSION,
            run_id: state.spec.run_id.clone(),
            passed,
            commit: subject.commit.clone(),
            tree: subject.tree.clone(),
            base: subject.baseline.head.clone(),
            place: CLEAN_CHECKOUT.to_owned(),
            beside: subject.beside.clone(),
            level: found.level.filter(|_| passed),
            watched: found.watched,
            harness: found.harness.clone(),
            baseline: state.baseline_checks.as_ref().map(|c| c.results.clone()).unwrap_or_default(),
            checks: found.results.iter().map(check).collect(),
            start: found.start.clone(),
            question: found.question.clone(),
            approved_by: None,
            protected: ProtectedEvidence {
                patterns: self.protected_now(subject)?,
                changed: found.protected.clone(),
            },
            weakened: found.weakened.clone(),
            failed: found.failed.clone(),
            hint: found.hint.clone(),
            iterations: state.iterations.count,
            agents: state.agents.by_agent.clone(),
            tokens: state.spending.totals.tokens,
            cost: state.spending.totals.cost,
            loop_score: state.stuck.scores,
            at: self.ctx.clock.now(),
        })
    }

    /// The patterns that protected something. A file that came during the run and that a verifier names never was.
    pub(super) fn protected_now(&self, subject: &ProofSubject) -> Result<Vec<String>, DriveError> {
        let head = &subject.start;
        let mut patterns = super::prepare::protected_in(&self.ctx.state.spec, &|path| {
            let bytes = self.workspace.file_at(head, path).ok().flatten()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        });
        let changes = self.workspace.changes(subject.baseline.tree.as_str(), subject.tree.as_str())?;
        patterns.retain(|p| !changes.iter().any(|f| f.status == 'A' && f.path == *p));
        Ok(patterns)
    }

    /// The commit that is handed over must hold what was judged: it may differ from the tree in the user's own changes only.
    fn missing_from(&self, subject: &ProofSubject) -> Result<Vec<String>, DriveError> {
        let baseline = &subject.baseline;
        if baseline.dirty_total > baseline.dirty.len() {
            return Ok(Vec::new());
        }
        let files = self.workspace.changes(subject.commit.as_str(), subject.tree.as_str())?;
        let missing: Vec<String> = files
            .into_iter()
            .map(|f| f.path)
            .filter(|path| !baseline.dirty.contains(path) && !path.starts_with(".ralph/"))
            .collect();
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![format!("the recorded commit does not hold the judged state of {}", missing.join(", "))])
    }

    fn prove_in(
        &mut self,
        folder: &Path,
        subject: &ProofSubject,
        found: &mut ProofFindings,
    ) -> Result<bool, DriveError> {
        if let Err(error) = self.workspace.checkout_clean(&subject.checked, folder) {
            found.fail(error.to_string());
            found.hint = Some(match error.hint {
                Some(hint) => format!("{}: {hint}", error.reason),
                None => error.reason,
            });
            return Ok(true);
        }
        let forged = self.workspace.verify_checkout(&subject.checked, folder)?;
        if !forged.is_empty() {
            forged.into_iter().for_each(|why| found.fail(why));
            return Ok(true);
        }
        let watched = Watched::take(folder, &self.protected_now(subject)?);
        let links = self.new_links_out(&watched, subject)?;
        if !links.is_empty() {
            found.fail(format!("links that lead out of the repository: {}", links.join(", ")));
            return Ok(true);
        }
        let checkout = self.open_checkout(folder)?;
        let mut came = BTreeSet::new();
        let mut after = |seen: Option<&ExecTrace>| {
            meddled(&watched, "the setup", found);
            came.extend(watched.came(seen));
        };
        match self.run_setup(&checkout, &subject.logs, Some(&mut after))? {
            SetupEnd::Ready => {}
            SetupEnd::Stopped => return Ok(false),
            SetupEnd::Failed { command, log } => {
                found.fail(format!("setup command `{command}` failed in a clean checkout: see {log}"));
                return Ok(true);
            }
        }
        let (sandbox, env) = (&*checkout.sandbox, checkout.env.as_slice());
        let home = self.home_settings(sandbox, env, &subject.logs)?;
        let Some(run) = self.run_final_checks(sandbox, env, (&subject.tree, &subject.logs), &watched)? else {
            return Ok(false);
        };
        let CheckRun { results, mut trace, all_seen, meddled, output, rewritten } = run;
        trace.steps.extend(came);
        for (heading, excerpt) in output {
            self.ctx.error_entry(&heading, ralph_loop_protocol::text::tail_lines(&excerpt, 30));
            found.output.push_str(&format!("{excerpt}\n"));
        }
        found.results = results;
        meddled.into_iter().for_each(|why| found.fail(why));
        found.watched = if all_seen { Watching::Watched } else { Watching::NotWatched };
        self.judge_harness(folder, subject, (&watched, &trace, home), found)?;
        for file in rewritten {
            let what = "one check rewrote it in the home of the checks, and the next one found it";
            found.judged.iter_mut().for_each(|judged| judged.lower(&format!("~/{file}"), None, what));
        }
        Ok(true)
    }

    /// Links that the run made and that lead out of the repository: what is behind them is not in the commit.
    fn new_links_out(&self, watched: &Watched, subject: &ProofSubject) -> Result<Vec<String>, DriveError> {
        if watched.links_out.is_empty() {
            return Ok(Vec::new());
        }
        let changes = self.workspace.changes(subject.start.as_str(), subject.checked.as_str())?;
        let made = |path: &&String| changes.iter().any(|change| change.path == **path);
        Ok(watched.links_out.iter().filter(made).cloned().collect())
    }
}

/// What a command changed in the checkout that it must not.
fn meddled(watched: &Watched, who: &str, found: &mut ProofFindings) {
    watched.meddled(who).into_iter().for_each(|why| found.fail(why));
}
