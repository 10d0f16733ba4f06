//! How many tests ran at the start. What is handed over as a commit does not hold what the user has not committed; where that ran at
//! the start, the checks run once more on the commit that the work stands on, and those numbers are held against the result.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::counts;
use crate::proof::findings::HarnessFindings;
use crate::proof::watched::Watched;
use crate::step::clean_checkout::{SetupEnd, make_dir};
use crate::step::prove::{ProofFindings, ProofSubject};
use ralph_loop_evidence::weakened::{is_source, is_test_path};
use ralph_loop_protocol::event::CheckResult;
use std::path::Path;

impl Driver {
    /// What the numbers of tests say against a pass.
    pub(super) fn count_tests(&self, now: &[CheckResult], explained: bool, found: &mut HarnessFindings) {
        let before = match &self.results_of_head {
            Some(results) => results.as_slice(),
            None => self.ctx.state.baseline_checks.as_ref().map_or(&[][..], |checks| &checks.results),
        };
        let verifiers: Vec<_> = self.ctx.state.spec.settings.required().collect();
        counts::counts(&verifiers, before, now, explained, found);
    }

    /// Counts the tests of what is handed over. `false` where the run was stopped meanwhile.
    pub(super) fn hold_counts(
        &mut self,
        subject: &ProofSubject,
        found: &mut ProofFindings,
    ) -> Result<bool, DriveError> {
        if !self.hands_over() {
            return Ok(true);
        }
        let Some(mut judged) = found.judged.take() else { return Ok(true) };
        let mut told = HarnessFindings::default();
        self.count_tests(&found.results, found.explained, &mut told);
        let differs = !told.failed.is_empty() || !told.changes.is_empty();
        // New tests are taken out again, and then fewer may run than at the start with the user's own.
        let changes = self.workspace.changes(subject.start.as_str(), subject.checked.as_str())?;
        let counted_again = !judged.put_back(&changes).is_empty();
        let passed = found.failed.is_empty() && found.results.iter().all(|result| result.passed);
        if passed
            && (differs || counted_again)
            && self.had_other_tests(subject)
            && !self.count_at_head(subject)?
        {
            return Ok(false);
        }
        self.count_tests(&found.results, found.explained, &mut judged);
        judged.failed.iter().for_each(|why| found.fail(why.clone()));
        found.judged = Some(judged);
        Ok(true)
    }

    /// Whether tests of the user's that are not committed may have run at the start, and are not in what is handed over.
    fn had_other_tests(&self, subject: &ProofSubject) -> bool {
        let baseline = &subject.baseline;
        let may_be = |path: &String| is_test_path(path) || is_source(path);
        self.results_of_head.is_none()
            && self.ctx.state.baseline_checks.is_some()
            && (baseline.dirty_total > baseline.dirty.len() || baseline.dirty.iter().any(may_be))
    }

    /// Runs the required checks on the commit that the work stands on. `false` where the run was stopped meanwhile.
    fn count_at_head(&mut self, subject: &ProofSubject) -> Result<bool, DriveError> {
        let logs = subject.logs.join("head");
        make_dir(&logs)?;
        let results =
            self.in_clean_folder(|driver, folder| driver.results_at_head(folder, subject, &logs))?;
        let Some(results) = results else { return Ok(false) };
        self.results_of_head = Some(results);
        Ok(true)
    }

    fn results_at_head(
        &mut self,
        folder: &Path,
        subject: &ProofSubject,
        logs: &Path,
    ) -> Result<Option<Vec<CheckResult>>, DriveError> {
        if self.workspace.checkout_clean(&subject.start, folder).is_err() {
            return Ok(Some(Vec::new()));
        }
        let checkout = self.open_checkout(folder)?;
        match self.run_setup(&checkout, logs, None)? {
            SetupEnd::Ready => {}
            SetupEnd::Stopped => return Ok(None),
            SetupEnd::Failed { .. } => return Ok(Some(Vec::new())),
        }
        let watched = Watched::take(folder, &[]);
        let (sandbox, env) = (&*checkout.sandbox, checkout.env.as_slice());
        let run = self.run_final_checks(sandbox, env, (&subject.tree, logs), &watched)?;
        Ok(run.map(|run| run.results))
    }
}
