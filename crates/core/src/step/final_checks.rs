//! The required checks in a clean checkout, on the work as it stands, and whether what decides is as it was at the start.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::findings::HarnessFindings;
use crate::proof::harness::{self, HarnessFacts};
use crate::proof::results::other_measurements;
use crate::proof::watched::Watched;
use crate::step::prove::{ProofFindings, ProofSubject};
use crate::step::verify::{CheckPlace, CheckRuns, Checked, HowToCheck};
use ralph_loop_domain::ports::{ExecTrace, Sandbox};
use ralph_loop_protocol::event::{CheckResult, FileChange};
use ralph_loop_protocol::id::TreeId;
use ralph_loop_safe_fs::{Links, SafeDir};
use ralph_loop_task::config::TestsPolicy;
use std::collections::BTreeSet;
use std::path::Path;

/// Reasons that are kept.
const TOLD_MAX: usize = 40;
/// A file with definitions of checks is not larger.
const DEFINITIONS_MAX: u64 = 8 * 1024 * 1024;
/// A larger file is not looked into: as much as is put back.
const SOURCE_MAX: u64 = 64 * 1024 * 1024;

/// What came of the required checks in a checkout.
pub(super) struct CheckRun {
    pub(super) results: Vec<CheckResult>,
    pub(super) trace: ExecTrace,
    /// Whether every check was watched.
    pub(super) all_seen: bool,
    /// What was done to files that nobody may touch.
    pub(super) meddled: Vec<String>,
    /// What failed checks printed, each under a heading.
    pub(super) output: Vec<(String, String)>,
    /// Files in the home of the checks that one of them rewrote before the next one ran.
    pub(super) rewritten: BTreeSet<String>,
}

impl CheckRun {
    pub(super) fn passed(&self) -> bool {
        self.meddled.is_empty() && !self.results.is_empty() && self.results.iter().all(|result| result.passed)
    }
}

impl Driver {
    /// Runs the required checks; `None` where the run was stopped meanwhile.
    pub(super) fn run_final_checks(
        &mut self,
        sandbox: &dyn Sandbox,
        env: &[(String, String)],
        (tree, logs): (&TreeId, &Path),
        watched: &Watched,
    ) -> Result<Option<CheckRun>, DriveError> {
        let verifiers: Vec<_> = self.ctx.state.spec.settings.required().cloned().collect();
        let mut run = CheckRun {
            results: Vec::new(),
            trace: ExecTrace::default(),
            all_seen: true,
            meddled: Vec::new(),
            output: Vec::new(),
            rewritten: BTreeSet::new(),
        };
        let mut runs = CheckRuns::default();
        let mut between = self.before_checks(sandbox, env, logs, (watched, verifiers.len()))?;
        for (n, verifier) in verifiers.iter().enumerate() {
            if n > 0 {
                run.meddled.extend(self.between_checks(sandbox, env, logs, &mut between)?);
            }
            let log = logs.join(format!("check-{}.log", verifier.name));
            let place = CheckPlace { sandbox, tree, log: &log, how: HowToCheck { env, watch: true } };
            match runs.run(&mut self.ctx, verifier, &place)? {
                Checked::Result(result, excerpt, seen) => {
                    if !result.passed {
                        let heading = format!("final check: {} failed", verifier.name);
                        run.output.push((heading, format!("{}\n{excerpt}", verifier.command_line())));
                    }
                    let who = format!("`{}`", verifier.name);
                    run.meddled.extend(watched.meddled(&who));
                    run.all_seen &= seen.is_some();
                    if seen.is_none() {
                        run.trace.steps.extend(watched.came(None));
                    }
                    let seen = seen.unwrap_or_default();
                    let wrote = watched.written(&seen).into_iter().take(TOLD_MAX);
                    run.meddled.extend(wrote.map(|path| format!("{path} was written to during {who}")));
                    run.trace.steps.extend(seen.steps);
                    run.results.push(*result);
                }
                Checked::Stopped => return Ok(None),
            }
        }
        run.rewritten = between.rewritten;
        Ok(Some(run))
    }

    /// Settings in the home of the checks, where a setup may have written some.
    pub(super) fn home_settings(
        &mut self,
        sandbox: &dyn Sandbox,
        env: &[(String, String)],
        logs: &Path,
    ) -> Result<Option<String>, DriveError> {
        if self.ctx.state.spec.settings.setup_commands.is_empty() {
            return Ok(None);
        }
        self.files_at_home(sandbox, env, logs, "")
    }

    /// Whether what decides is as it was at the start.
    pub(super) fn judge_harness(
        &mut self,
        folder: &Path,
        subject: &ProofSubject,
        (watched, trace, home): (&Watched, &ExecTrace, Option<String>),
        found: &mut ProofFindings,
    ) -> Result<(), DriveError> {
        let base = &subject.start;
        let changes = self.workspace.changes(base.as_str(), subject.checked.as_str())?;
        let mut harness = self.compare_harness(folder, subject, &changes, (watched, trace))?;
        let start = |path: &str| {
            let bytes = self.workspace.file_at(base, path).ok().flatten()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        // Tests that stand in the product itself explain another number, too.
        let inline = || {
            let marks = ["#[test]", "#[cfg(test)]", ">>> ", "```"];
            let files = changes.iter().filter(|c| c.status != 'A' && c.path.contains('.')).take(200);
            files.filter_map(|c| start(&c.path)).any(|text| marks.iter().any(|mark| text.contains(mark)))
        };
        found.explained = harness.tests_touched || !found.weakened.is_empty() || inline();
        if !self.hands_over() {
            self.count_tests(&found.results, found.explained, &mut harness);
        }
        for (name, what) in self.other_measurements(&found.results) {
            harness.lower_test(&name, None, what);
        }
        for file in self.home_differences(home.as_deref()) {
            let what = "the setup wrote it into the home of the checks, and did not at the start";
            harness.lower(&format!("~/{file}"), None, what);
        }
        harness.failed.iter().for_each(|why| found.fail(why.clone()));
        if self.ctx.state.spec.settings.tests == TestsPolicy::Frozen {
            harness.frozen().into_iter().for_each(|why| found.fail(why));
        }
        found.judged = Some(harness);
        Ok(())
    }

    /// Checks that print their number more or less often than at the start, each with what is told of it.
    pub(super) fn other_measurements(&self, results: &[CheckResult]) -> Vec<(String, String)> {
        let verifiers: Vec<_> = self.ctx.state.spec.settings.required().collect();
        let output = |results: &[CheckResult], name: &str| {
            let result = results.iter().find(|result| result.name == name)?;
            Some(crate::log_tail::read_tail(&self.ctx.run.path().join(&result.log), DEFINITIONS_MAX))
        };
        let at_start = self.ctx.state.baseline_checks.as_ref().map_or(&[][..], |checks| &checks.results);
        other_measurements(&verifiers, &|name| output(at_start, name), &|name| output(results, name))
    }

    /// Settings in the home of the checks that the setup of the start did not leave there.
    pub(super) fn home_differences(&self, home: Option<&str>) -> Vec<String> {
        let (Some(home), Some(start)) = (home, self.baseline_home()) else { return Vec::new() };
        let known: BTreeSet<&str> = start.lines().collect();
        let new = home.lines().filter(|line| !known.contains(line));
        new.filter_map(|line| line.splitn(3, ' ').nth(2)).map(str::to_owned).take(TOLD_MAX).collect()
    }

    pub(super) fn compare_harness(
        &self,
        folder: &Path,
        subject: &ProofSubject,
        changes: &[FileChange],
        (watched, trace): (&Watched, &ExecTrace),
    ) -> Result<HarnessFindings, DriveError> {
        let base = &subject.start;
        let spec = &self.ctx.state.spec;
        let top = SafeDir::open(folder).ok();
        let now = |path: &str| top.as_ref()?.read_text(path, Links::Inside, SOURCE_MAX).ok();
        let start = |path: &str| {
            let bytes = self.workspace.file_at(base, path).ok().flatten()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let came: BTreeSet<&str> =
            changes.iter().filter(|c| c.status == 'A').map(|c| c.path.as_str()).collect();
        let before = self.baseline_trace();
        Ok(harness::judge(&HarnessFacts {
            folder: spec.task.working_dir.as_deref().unwrap_or_default(),
            task: &super::prepare::task_words(spec),
            changes,
            start: &start,
            now: &now,
            protected: &self.protected_now(subject)?,
            tests: watched.tests().filter(|path| !came.contains(path)).map(str::to_owned).collect(),
            sources: watched.sources.iter().filter(|path| !came.contains(path.as_str())).cloned().collect(),
            links: watched
                .links
                .iter()
                .filter(|(link, _)| !came.contains(link.as_str()))
                .map(|(l, t)| (l.clone(), t.clone()))
                .collect(),
            setup: spec.settings.setup_commands.iter().map(|command| command.argv()).collect(),
            traces: [&before, trace],
            verifiers: spec.settings.required().collect(),
        }))
    }
}
