//! The required checks once more, with what decides as it was at the start, where the run changed something of that; what
//! follows from it for the level; and a person's word on changed tests.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::findings::HarnessFindings;
use crate::proof::put_back::{PutBack, put_back};
use crate::proof::watched::Watched;
use crate::step::clean_checkout::{SetupEnd, make_dir};
use crate::step::prepare::task_words;
use crate::step::prove::{ProofFindings, ProofSubject};
use ralph_loop_domain::ports::ExecTrace;
use ralph_loop_domain::proof::{Proof, ProofLevel, TestsQuestion};
use ralph_loop_evidence::harness::names;
use ralph_loop_journal::artifacts;
use ralph_loop_protocol::event::{CheckResult, EventBody, FileChange, ProofApproved};
use ralph_loop_protocol::id::Digest;
use ralph_loop_protocol::weakened::WeakKind;
use ralph_loop_task::config::{RequiredProof, TestsPolicy};
use std::collections::BTreeSet;
use std::path::Path;

/// Changes to what decides that the proof keeps.
const HARNESS_MAX: usize = 200;
/// Reasons that are kept.
const TOLD_MAX: usize = 40;
/// Files of which only the keys that decide are compared.
const READ_BY_KEYS: [&str; 3] = ["package.json", "Cargo.toml", "pyproject.toml"];

/// How the checks ended with what decides as it was at the start.
enum StartRun {
    /// They pass, and nothing else lowers the level.
    Passed(Vec<CheckResult>),
    /// They pass; something that is no test still lowers the level.
    Lowered(Vec<CheckResult>),
    /// They do not: results of those that ran, and what else did not hold.
    Failed { results: Vec<CheckResult>, why: Vec<String> },
    /// The run was stopped meanwhile.
    Stopped,
}

impl StartRun {
    fn failed(why: impl Into<String>) -> Self {
        Self::Failed { results: Vec::new(), why: vec![why.into()] }
    }
}

impl Driver {
    /// Where the run changed something that decides, and passes: the checks once more with all of that as it was at the start.
    /// Only if they pass then, too, is the level `independent`. `false` where the run was stopped meanwhile.
    pub(super) fn check_as_at_start(
        &mut self,
        subject: &ProofSubject,
        found: &mut ProofFindings,
    ) -> Result<bool, DriveError> {
        let Some(mut harness) = found.judged.take() else { return Ok(true) };
        let passed =
            found.failed.is_empty() && !found.results.is_empty() && found.results.iter().all(|r| r.passed);
        let base = &subject.start;
        let changes = self.workspace.changes(base.as_str(), subject.checked.as_str())?;
        let back = harness.put_back(&changes);
        let mut level = harness.level();
        if passed && (!back.is_empty() || level == ProofLevel::OwnTests) {
            let left: Vec<FileChange> = changes.into_iter().filter(|c| !back.contains(&c.path)).collect();
            let logs = subject.logs.join("start");
            make_dir(&logs)?;
            let again = self.in_clean_folder(|driver, folder| {
                driver.run_as_at_start(folder, subject, (&back, &left), &logs)
            })?;
            level = match again {
                StartRun::Stopped => return Ok(false),
                StartRun::Passed(results) => {
                    found.start = results;
                    harness.is_confirmed();
                    ProofLevel::Independent
                }
                StartRun::Lowered(results) => {
                    found.start = results;
                    ProofLevel::OwnTests
                }
                StartRun::Failed { results, why } => {
                    found.start = results;
                    harness.is_refuted();
                    self.judge_refuted(&harness, why, found);
                    ProofLevel::OwnTests
                }
            };
            if level == ProofLevel::Independent {
                // What was as at the start in a run that passes needs no look.
                found.weakened.retain(|finding| !back.contains(&finding.path));
            }
        }
        // A line that differs says nothing where the keys that decide are read one by one, and none of them differs.
        let differs = |path: &str| harness.changes.iter().any(|change| change.path == path);
        found.weakened.retain(|finding| {
            let name = finding.path.rsplit('/').next().unwrap_or_default();
            let by_keys = READ_BY_KEYS.contains(&name) || harness.judged.contains(&finding.path);
            finding.kind != WeakKind::ConfigChanged || !by_keys || differs(&finding.path)
        });
        if passed && level == ProofLevel::Independent && !found.weakened.is_empty() {
            level = ProofLevel::OwnTests;
            for finding in &found.weakened {
                harness.lower_test(&finding.path, None, "tests look weaker there than at the start");
            }
        }
        if passed {
            self.judge_level(level, &harness, found);
        }
        found.level = Some(level);
        found.harness = harness.changes.into_iter().take(HARNESS_MAX).collect();
        Ok(true)
    }

    /// The tests of the start do not pass on the work: whether a person has to accept that.
    fn judge_refuted(&self, harness: &HarnessFindings, why: Vec<String>, found: &mut ProofFindings) {
        let settings = &self.ctx.state.spec.settings;
        if settings.tests == TestsPolicy::Free || settings.require_proof.is_some() {
            return;
        }
        let failing: Vec<CheckResult> = found.start.iter().filter(|result| !result.passed).cloned().collect();
        // A check that ran no test at all, or that names a new test itself, says nothing of the tests of the start.
        let names_new = |check: &str| {
            let verifier = settings.verifiers.iter().find(|verifier| verifier.name == check);
            let line = verifier.map(|verifier| verifier.command_argv.join(" ")).unwrap_or_default();
            harness.new_tests.iter().any(|path| names(&line, path))
        };
        let of_start = |result: &CheckResult| {
            !names_new(&result.name) && result.tests.is_none_or(|tests| tests.executed() > 0)
        };
        let had_tests = !why.is_empty() || failing.iter().any(of_start);
        let changed = harness.to_accept(&task_words(&self.ctx.state.spec), had_tests);
        if changed.is_empty() {
            return;
        }
        let question = TestsQuestion { changed, failing, why };
        question.reasons().into_iter().for_each(|why| found.fail(why));
        found.question = Some(question);
    }

    /// Whether the level is what the task asks for.
    fn judge_level(&self, level: ProofLevel, harness: &HarnessFindings, found: &mut ProofFindings) {
        let required = self.ctx.state.spec.settings.require_proof;
        if required != Some(RequiredProof::Independent) || level == ProofLevel::Independent {
            return;
        }
        found.fail(
            "an independent proof is required: the work must pass with what decides as it was at the start, and these changes \
             stand against it",
        );
        harness.changes.iter().take(TOLD_MAX).for_each(|change| found.fail(change.line()));
        for result in found.start.clone().iter().filter(|result| !result.passed) {
            let why = result.why.as_deref().unwrap_or("failed");
            let said = result.evidence(5).join(" | ");
            found.fail(format!("with the tests of the start {} does not pass: {why}. {said}", result.name));
        }
    }

    fn run_as_at_start(
        &mut self,
        folder: &Path,
        subject: &ProofSubject,
        (back, left): (&PutBack, &[FileChange]),
        logs: &Path,
    ) -> Result<StartRun, DriveError> {
        if let Err(error) = self.workspace.checkout_clean(&subject.checked, folder) {
            return Ok(StartRun::failed(error.to_string()));
        }
        let start = folder.parent().unwrap_or(folder).join("files-of-the-start");
        make_dir(&start)?;
        if let Err(error) = self.workspace.checkout_clean(&subject.start, &start) {
            return Ok(StartRun::failed(error.to_string()));
        }
        if let Err(error) = put_back(back, &start, folder) {
            return Ok(StartRun::failed(format!("the files of the start cannot be put back: {error}")));
        }
        let watched = Watched::take(folder, &self.protected_now(subject)?);
        let checkout = self.open_checkout(folder)?;
        let mut meddled = Vec::new();
        let mut came = BTreeSet::new();
        let mut after = |seen: Option<&ExecTrace>| {
            meddled.extend(watched.meddled("the setup"));
            came.extend(watched.came(seen));
        };
        match self.run_setup(&checkout, logs, Some(&mut after))? {
            SetupEnd::Ready => {}
            SetupEnd::Stopped => return Ok(StartRun::Stopped),
            SetupEnd::Failed { command, log } => {
                return Ok(StartRun::failed(format!("setup command `{command}` fails then: see {log}")));
            }
        }
        let (sandbox, env) = (&*checkout.sandbox, checkout.env.as_slice());
        let home = self.home_settings(sandbox, env, logs)?;
        let home = self.home_differences(home.as_deref());
        let Some(mut run) = self.run_final_checks(sandbox, env, (&subject.tree, logs), &watched)? else {
            return Ok(StartRun::Stopped);
        };
        run.trace.steps.extend(came);
        let passed = run.passed();
        meddled.extend(run.meddled);
        if !passed || !meddled.is_empty() {
            return Ok(StartRun::Failed { results: run.results, why: meddled });
        }
        let mut seen = self.compare_harness(folder, subject, left, (&watched, &run.trace))?;
        self.count_tests(&run.results, false, &mut seen);
        let other = self.other_measurements(&run.results).into_iter();
        seen.failed.extend(other.map(|(name, what)| format!("{name}: {what}")));
        Ok(if !seen.failed.is_empty() {
            StartRun::Failed { results: run.results, why: seen.failed }
        } else if seen.changes.is_empty() && home.is_empty() && run.rewritten.is_empty() {
            StartRun::Passed(run.results)
        } else {
            StartRun::Lowered(run.results)
        })
    }

    /// A person accepted the changed tests: the proof says so, and counts.
    pub(crate) fn approve_tests(&mut self) -> Result<(), DriveError> {
        let state = &self.ctx.state;
        let Some(by) = state.people.tests_approved_by.clone() else { return Ok(()) };
        let Some(facts) = state.result.proof.clone() else { return Ok(()) };
        let (path, asked) = (self.ctx.run.proof(), self.ctx.run.path().join("proof/asked.json"));
        // A process that was killed here may have written the one and not the other.
        let found = [&path, &asked].into_iter().find_map(|path| {
            let text = std::fs::read(path).ok().filter(|text| Some(Digest::of(text)) == facts.proof)?;
            Proof::parse(&text).ok().map(|proof| (text, proof))
        });
        let Some((text, proof)) = found else {
            let reason = format!("`{}` is not what was journalled", path.display());
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
