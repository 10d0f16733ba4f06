//! Prove: the final check of the exact work commit, in a clean checkout and a sandbox of its own. What passes only in the
//! workspace does not pass here, and the agent is told what differs.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::results::without_result;
use crate::proof::watched::Watched;
use crate::proof::{difference, environment, surroundings};
use crate::step::verify::{Checked, run_check, run_logged};
use ralph_domain::event::{CheckResult, EventBody};
use ralph_domain::id::{CommitId, TreeId};
use ralph_domain::ports::{Baseline, ExecEnd, ExecRequest, ReleaseWhen, Surroundings};
use ralph_domain::proof::{CLEAN_CHECKOUT, Proof, ProofCheck, ProtectedEvidence, VERSION};
use ralph_domain::protect::ProtectedChange;
use ralph_domain::setup;
use ralph_evidence::test_command;
use ralph_evidence::weakened::{self, Finding};
use ralph_journal::JournalError;
use ralph_journal::artifacts;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest run of one setup command.
const SETUP_TIMEOUT: Duration = Duration::from_secs(1800);
/// Bytes of the patch in which weakened tests are looked for.
const PATCH_MAX: usize = 8 * 1024 * 1024;
/// Reasons that are kept.
const FAILED_MAX: usize = 40;

/// What is to be proven.
struct ProofSubject {
    commit: CommitId,
    tree: TreeId,
    baseline: Baseline,
    logs: PathBuf,
}

/// What a proof found so far.
#[derive(Default)]
struct ProofFindings {
    results: Vec<CheckResult>,
    protected: Vec<ProtectedChange>,
    weakened: Vec<Finding>,
    failed: Vec<String>,
    /// What the failed checks printed.
    output: String,
    hint: Option<String>,
}

impl ProofFindings {
    fn fail(&mut self, why: impl Into<String>) {
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
        self.agents.iter().for_each(|agent| agent.release_resources(ReleaseWhen::Everything));
        let state = &self.ctx.state;
        let (Some(baseline), Some(tree)) = (state.baseline.clone(), state.work.tree.clone()) else {
            return Ok(());
        };
        // Nothing was changed and yet everything passes: the start itself is what is proven.
        let commit = state.work.commit.clone().unwrap_or_else(|| baseline.head.clone());
        let started = self.ctx.clock.elapsed();
        self.ctx.record(EventBody::ProofStarted { commit: commit.clone(), clean: true })?;
        let logs = self.ctx.run.path().join("proof");
        make_dir(&logs)?;
        let subject = ProofSubject { commit, tree, baseline, logs };
        let mut found = ProofFindings::default();
        let protected = self.workspace.protected_changes()?;
        found.protected = self.take_claims(self.ctx.state.iterations.count, protected)?;
        for change in found.protected.clone() {
            found.fail(format!("protected path {} was {}", change.path, change.change.as_str()));
        }
        for missing in self.missing_from(&subject)? {
            found.fail(missing);
        }
        found.weakened = self.weakened(&subject)?;
        self.check_environment(&mut found);
        if !self.prove_clean(&subject, &mut found)? {
            return Ok(());
        }
        self.ctx.boundary("prove.ran");
        for result in found.results.clone().iter().filter(|r| !r.passed) {
            let why = result.why.as_deref().unwrap_or("failed");
            found.fail(format!("{}: {why}", result.name));
        }
        // A required check that did not run has not passed. Where something else failed, that is why it did not.
        if found.failed.is_empty() {
            let required = &self.ctx.state.spec.settings.required_verifiers;
            without_result(required, &found.results).into_iter().for_each(|why| found.fail(why));
        }
        if !found.output.is_empty() {
            self.explain(&subject, &mut found)?;
        }
        self.finish_proof(&subject, &found, started)
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
                    "programs or settings that the checks use changed on this machine: look at them, and start a new run (`ralph run --new`) if they are yours"
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

    /// Definitions that a check runs (a script of `package.json`, a target of a makefile) and that the run changed.
    fn redefined(&self, subject: &ProofSubject, folder: &Path) -> Result<Vec<String>, DriveError> {
        let spec = &self.ctx.state.spec;
        let below = spec.task.working_dir.clone().unwrap_or_default();
        let mut found = Vec::new();
        for verifier in spec.settings.required() {
            for named in test_command::named_by(&verifier.command_argv) {
                for file in named.files {
                    let path = Path::new(&below).join(file).display().to_string();
                    let Some(old) = self.workspace.file_at(&subject.baseline.head, &path)? else { continue };
                    let old = test_command::definition(file, &String::from_utf8_lossy(&old), &named.name);
                    let now = ralph_safe_fs::SafeDir::open(folder)
                        .and_then(|folder| {
                            folder.read_text(&path, ralph_safe_fs::Links::Inside, DEFINITIONS_MAX)
                        })
                        .unwrap_or_default();
                    let now = test_command::definition(file, &now, &named.name);
                    if let Some(old) = old.filter(|old| now.as_ref() != Some(old)) {
                        found.push(format!(
                            "`{}` in {path}, which {} runs, is not what it was: bring back `{}`",
                            named.name,
                            verifier.name,
                            ralph_domain::text::one_line(&old, 200)
                        ));
                    }
                }
            }
        }
        Ok(found)
    }

    /// What the run's whole change does to tests.
    fn weakened(&self, subject: &ProofSubject) -> Result<Vec<Finding>, DriveError> {
        let patch =
            self.workspace.patch(subject.baseline.head.as_str(), subject.commit.as_str(), PATCH_MAX)?;
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
            proof: ralph_domain::id::Digest::of(&text),
            failed: found.failed.clone(),
            duration_ms: (self.ctx.clock.elapsed() - started).as_millis() as u64,
            weakened: found.weakened.len() as u32,
            hint: found.hint.clone(),
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
            verifier.map(ralph_domain::config::VerifierConfig::command_line).unwrap_or_default()
        };
        let check = |result: &CheckResult| ProofCheck {
            command: self.ctx.redactor.text(&command(&result.name)).into_owned(),
            commit: Some(subject.commit.clone()),
            result: result.clone(),
        };
        Ok(Proof {
            version: VERSION,
            run_id: state.spec.run_id.clone(),
            passed: found.failed.is_empty() && !found.results.is_empty(),
            commit: subject.commit.clone(),
            tree: subject.tree.clone(),
            base: subject.baseline.head.clone(),
            place: CLEAN_CHECKOUT.to_owned(),
            checks: found.results.iter().map(check).collect(),
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
            cost_usd: state.spending.totals.cost,
            cost_basis: state.spending.totals.basis,
            loop_score: state.stuck.scores,
            at: self.ctx.clock.now(),
        })
    }

    /// The patterns that protected something. A file that came during the run and that a verifier names never was.
    fn protected_now(&self, subject: &ProofSubject) -> Result<Vec<String>, DriveError> {
        let mut patterns = super::prepare::protected_patterns(&self.ctx.state.spec);
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

    /// The work commit in a folder of its own; `false` where the run was stopped meanwhile.
    fn prove_clean(&mut self, subject: &ProofSubject, found: &mut ProofFindings) -> Result<bool, DriveError> {
        let parent = self.ctx.proof_dir.clone();
        // A git of an earlier process that was killed may still write there for a moment: this check gets a folder of its own,
        // and what is left of that one goes with it.
        let left_over = remove_dir(&parent);
        // The folder has the name of the workspace: some tools take a project's name from it.
        let name =
            self.ctx.state.spec.workspace.file_name().unwrap_or_else(|| "checkout".as_ref()).to_owned();
        let number = format!("{}-{}", self.ctx.state.iterations.count, self.ctx.journal.seq().0);
        let own = parent.join(number);
        let folder = own.join(name);
        make_dir(&folder)?;
        let done = self.prove_in(&folder, subject, found);
        remove_dir(&own)?;
        if remove_dir(&parent).is_err() {
            left_over?;
        }
        done
    }

    fn prove_in(
        &mut self,
        folder: &Path,
        subject: &ProofSubject,
        found: &mut ProofFindings,
    ) -> Result<bool, DriveError> {
        if let Err(error) = self.workspace.checkout_clean(&subject.commit, folder) {
            found.fail(error.to_string());
            found.hint = Some(match error.hint {
                Some(hint) => format!("{}: {hint}", error.reason),
                None => error.reason,
            });
            return Ok(true);
        }
        let forged = self.workspace.verify_checkout(&subject.commit, folder)?;
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
        for why in self.redefined(subject, folder)? {
            found.fail(why);
        }
        let sandbox = self.sandbox.with_root(folder)?;
        // Elsewhere the variables of this machine do not count.
        let env = match sandbox.capabilities().surroundings {
            Surroundings::Host => {
                environment::redirected(self.ctx.vars.texts(), &self.ctx.state.spec.workspace, sandbox.root())
            }
            Surroundings::Own => Vec::new(),
        };
        for (n, command) in self.ctx.state.spec.settings.setup_commands.clone().iter().enumerate() {
            let mut request = ExecRequest::new(command.argv());
            request.timeout = Some(SETUP_TIMEOUT);
            request.env.clone_from(&env);
            let log = subject.logs.join(format!("setup-{}.log", n + 1));
            let run = run_logged(&mut self.ctx, &*sandbox, &request, "setup", &log)?;
            let end = run.outcome.as_ref().map(|o| o.end);
            if self.ctx.ends_now() || matches!(end, Ok(ExecEnd::GuardLost)) {
                return Ok(false);
            }
            if !end.as_ref().is_ok_and(|e| e.success()) {
                let log = self.ctx.run.relative(&log);
                found.fail(format!(
                    "setup command `{}` failed in a clean checkout: see {log}",
                    command.display()
                ));
                return Ok(true);
            }
            meddled(&watched, "the setup", found);
        }
        let verifiers: Vec<_> = self.ctx.state.spec.settings.required().cloned().collect();
        for verifier in &verifiers {
            let log = subject.logs.join(format!("check-{}.log", verifier.name));
            match run_check(&mut self.ctx, &*sandbox, verifier, &subject.tree, &log, &env)? {
                Checked::Result(result, excerpt) => {
                    if !result.passed {
                        let heading = format!("final check: {} failed", verifier.name);
                        self.ctx.error_entry(&heading, ralph_domain::text::tail_lines(&excerpt, 30));
                        found.output.push_str(&format!("{}\n{excerpt}\n", verifier.command_line()));
                    }
                    meddled(&watched, &format!("`{}`", verifier.name), found);
                    found.results.push(result);
                }
                Checked::Stopped => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Links that the run made and that lead out of the repository: what is behind them is not in the commit.
    fn new_links_out(&self, watched: &Watched, subject: &ProofSubject) -> Result<Vec<String>, DriveError> {
        if watched.links_out.is_empty() {
            return Ok(Vec::new());
        }
        let changes = self.workspace.changes(subject.baseline.head.as_str(), subject.commit.as_str())?;
        let made = |path: &&String| changes.iter().any(|change| change.path == **path);
        Ok(watched.links_out.iter().filter(made).cloned().collect())
    }

    /// "Works on my machine": what the workspace has and the commit has not, and what only a person can fix.
    fn explain(&self, subject: &ProofSubject, found: &mut ProofFindings) -> Result<(), DriveError> {
        let unrecorded = self.workspace.unrecorded()?;
        let files = self.workspace.changes(subject.commit.as_str(), subject.tree.as_str())?;
        let dirty: Vec<String> = files.into_iter().filter(|f| f.status != 'D').map(|f| f.path).collect();
        if let Some(line) = difference::line(&unrecorded, &dirty, &found.output) {
            found.fail(line);
        }
        let state = &self.ctx.state;
        let below = state.spec.task.working_dir.clone().unwrap_or_default();
        let has = |name: &str| {
            [state.spec.workspace.join(name), state.spec.workspace.join(&below).join(name)]
                .iter()
                .any(|path| path.is_file())
        };
        if state.spec.settings.setup_commands.is_empty()
            && let Some((folder, setup)) = setup::missing_setup(&unrecorded, has)
        {
            found.hint = Some(setup::setup_hint(&folder, setup.command));
            return Ok(());
        }
        let needed: Vec<&str> =
            dirty.iter().filter(|p| difference::is_named(p, &found.output)).map(String::as_str).collect();
        if !needed.is_empty() {
            found.hint = Some(setup::commit_hint(&needed));
        }
        Ok(())
    }
}

/// A file with definitions of checks is not larger.
const DEFINITIONS_MAX: u64 = 8 * 1024 * 1024;

/// What a command changed in the checkout that it must not.
fn meddled(watched: &Watched, who: &str, found: &mut ProofFindings) {
    for path in watched.changed().into_iter().take(FAILED_MAX) {
        found.fail(format!("{path} was changed in the clean checkout by {who}"));
    }
}

fn make_dir(path: &Path) -> Result<(), DriveError> {
    Ok(std::fs::create_dir_all(path).map_err(|e| JournalError::file("make the folder", path, e))?)
}

fn remove_dir(path: &Path) -> Result<(), DriveError> {
    let gone = std::fs::remove_dir_all(path).or_else(|error| match error.kind() {
        // Some tools leave folders that nobody may write into.
        std::io::ErrorKind::PermissionDenied => {
            make_writable(path);
            std::fs::remove_dir_all(path)
        }
        _ => Err(error),
    });
    match gone {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(JournalError::file("remove", path, e).into())
        }
        _ => Ok(()),
    }
}

fn make_writable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let _ = std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700));
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
}
