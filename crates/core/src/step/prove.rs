//! Prove: the final check of the exact work commit. In a clean checkout for worktrees, clones and wherever setup
//! commands exist; in place otherwise, and the evidence says which.

use crate::driver::Driver;
use crate::error::DriveError;
use crate::step::verify::{Checked, run_check, run_logged};
use jiff::Timestamp;
use ralph_domain::event::{CheckResult, EventBody};
use ralph_domain::id::{AgentName, CommitId, RunId, TreeId};
use ralph_domain::money::{CostBasis, Tokens, Usd};
use ralph_domain::ports::{Baseline, ExecEnd, ExecRequest, PutAway, Sandbox};
use ralph_domain::protect::ProtectedChange;
use ralph_domain::state::AgentTotals;
use ralph_journal::JournalError;
use ralph_journal::artifacts;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Longest run of one setup command.
const SETUP_TIMEOUT: Duration = Duration::from_secs(1800);

/// `proof.json`: everything a reader needs to believe the result, or to see why not.
#[derive(Debug, Serialize)]
struct Proof<'a> {
    version: u32,
    run_id: &'a RunId,
    passed: bool,
    commit: &'a CommitId,
    tree: &'a TreeId,
    base: &'a CommitId,
    /// `clean checkout` or `in place`.
    place: &'a str,
    checks: Vec<Evidence<'a>>,
    protected: Protected<'a>,
    failed: &'a [String],
    iterations: u32,
    agents: &'a BTreeMap<AgentName, AgentTotals>,
    tokens: Tokens,
    cost_usd: Usd,
    cost_basis: CostBasis,
    at: Timestamp,
}

#[derive(Debug, Serialize)]
struct Evidence<'a> {
    command: String,
    #[serde(flatten)]
    result: &'a CheckResult,
}

#[derive(Debug, Serialize)]
struct Protected<'a> {
    patterns: Vec<String>,
    changed: &'a [ProtectedChange],
}

impl Driver {
    pub(crate) fn prove(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("prove.before");
        // Nothing of an agent lives while its work is proven: a process of its could meddle with the checkout.
        self.agents.iter().for_each(|agent| agent.put_away(PutAway::Everything));
        let state = &self.ctx.state;
        let (Some(baseline), Some(tree)) = (state.baseline.clone(), state.tree.clone()) else {
            return Ok(());
        };
        // Nothing was changed and yet everything passes: the start itself is what is proven.
        let commit = state.work.clone().unwrap_or_else(|| baseline.head.clone());
        let clean = state.spec.proves_clean();
        let started = self.ctx.clock.elapsed();
        self.ctx.record(EventBody::ProofStarted { commit: commit.clone(), clean })?;
        let logs = self.ctx.run.path().join("proof");
        make_dir(&logs)?;
        let mut failed = Vec::new();
        let protected = self.workspace.protected_changes()?;
        let protected = self.take_claims(self.ctx.state.iterations, protected)?;
        for change in &protected {
            failed.push(format!("protected path {} was {}", change.path, change.change.as_str()));
        }
        failed.extend(self.missing_from(&commit, &tree, &baseline)?);
        let results = if clean {
            self.prove_clean(&commit, &tree, &logs, &mut failed)?
        } else {
            self.prove_in_place(&tree, &logs, &mut failed)?
        };
        self.ctx.boundary("prove.ran");
        let Some(results) = results else { return Ok(()) };
        for result in results.iter().filter(|r| !r.passed) {
            let why = result.why.as_deref().unwrap_or("failed");
            failed.push(format!("{}: {why}", result.name));
        }
        self.finish_proof(&commit, &tree, &baseline.head, clean, &results, &protected, &failed, started)
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one record")]
    fn finish_proof(
        &mut self,
        commit: &CommitId,
        tree: &TreeId,
        base: &CommitId,
        clean: bool,
        results: &[CheckResult],
        protected: &[ProtectedChange],
        failed: &[String],
        started: Duration,
    ) -> Result<(), DriveError> {
        let state = &self.ctx.state;
        let passed = failed.is_empty() && !results.is_empty();
        let mut patterns = super::prepare::protected_patterns(&state.spec);
        if let Some(start) = state.baseline.as_ref().map(|b| &b.tree) {
            // A file that came during the run and that a verifier names was never protected.
            let changes = self.workspace.changes(start.as_str(), tree.as_str())?;
            patterns.retain(|p| !changes.iter().any(|f| f.status == 'A' && f.path == *p));
        }
        let command = |name: &str| {
            let verifier = state.spec.settings.verifiers.iter().find(|v| v.name == name);
            verifier.map(ralph_domain::config::VerifierConfig::command_line).unwrap_or_default()
        };
        let proof = Proof {
            version: 1,
            run_id: &state.spec.run_id,
            passed,
            commit,
            tree,
            base,
            place: if clean { "clean checkout" } else { "in place" },
            checks: results
                .iter()
                .map(|result| Evidence { command: command(&result.name), result })
                .collect(),
            protected: Protected { patterns, changed: protected },
            failed,
            iterations: state.iterations,
            agents: &state.by_agent,
            tokens: state.totals.tokens,
            cost_usd: state.totals.cost,
            cost_basis: state.totals.basis,
            at: self.ctx.clock.now(),
        };
        let text = serde_json::to_vec_pretty(&proof).unwrap_or_default();
        artifacts::write_durable(&self.ctx.run.proof(), &text)?;
        if !passed {
            let list = failed.join("\n");
            self.ctx.error_entry(
                &format!("iteration {}: the final check failed", self.ctx.state.iterations),
                &list,
            );
        }
        self.ctx.record(EventBody::ProofFinished {
            commit: commit.clone(),
            tree: tree.clone(),
            passed,
            proof: ralph_domain::id::Digest::of(&text),
            failed: failed.to_vec(),
            duration_ms: (self.ctx.clock.elapsed() - started).as_millis() as u64,
        })?;
        self.ctx.flush()?;
        self.ctx.boundary("prove.after");
        Ok(())
    }

    /// The commit that is handed over must hold what was judged: it may differ from the tree in the user's own changes only.
    fn missing_from(
        &self,
        commit: &CommitId,
        tree: &TreeId,
        baseline: &Baseline,
    ) -> Result<Vec<String>, DriveError> {
        if baseline.dirty_total > baseline.dirty.len() {
            return Ok(Vec::new());
        }
        let files = self.workspace.changes(commit.as_str(), tree.as_str())?;
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

    /// The work commit in a folder of its own: what passes only in the dirty tree does not pass here.
    fn prove_clean(
        &mut self,
        commit: &CommitId,
        tree: &TreeId,
        logs: &Path,
        failed: &mut Vec<String>,
    ) -> Result<Option<Vec<CheckResult>>, DriveError> {
        let folder = self.ctx.proof_dir.clone();
        remove_dir(&folder)?;
        make_dir(&folder)?;
        self.workspace.checkout_clean(commit, &folder)?;
        let sandbox = self.sandbox.beside(&folder)?;
        let setup = self.ctx.state.spec.settings.setup_commands.clone();
        for (n, command) in setup.iter().enumerate() {
            let mut request = ExecRequest::new(command.argv());
            request.timeout = Some(SETUP_TIMEOUT);
            let log = logs.join(format!("setup-{}.log", n + 1));
            let run = run_logged(&mut self.ctx, &*sandbox, &request, "setup", &log)?;
            let end = run.outcome.as_ref().map(|o| o.end);
            if self.ctx.state.cancel_by.is_some() || matches!(end, Ok(ExecEnd::GuardLost)) {
                return Ok(None);
            }
            if !end.as_ref().is_ok_and(|e| e.success()) {
                failed.push(format!(
                    "setup command `{}` failed in a clean checkout: see {}",
                    command.display(),
                    self.ctx.run.relative(&log)
                ));
                remove_dir(&folder)?;
                return Ok(Some(Vec::new()));
            }
        }
        let results = self.required_checks(&*sandbox, tree, logs)?;
        remove_dir(&folder)?;
        Ok(results)
    }

    /// The workspace itself. Files of the commit that change meanwhile void the result.
    fn prove_in_place(
        &mut self,
        tree: &TreeId,
        logs: &Path,
        failed: &mut Vec<String>,
    ) -> Result<Option<Vec<CheckResult>>, DriveError> {
        let sandbox = self.sandbox.beside(self.sandbox.root())?;
        let results = self.required_checks(&*sandbox, tree, logs)?;
        let now = self.workspace.tree()?;
        if now != *tree {
            // Files that a verifier adds (caches, reports) change nothing that was judged.
            let changed: Vec<String> = self
                .workspace
                .changes(tree.as_str(), now.as_str())?
                .into_iter()
                .filter(|f| f.status != 'A')
                .map(|f| f.path)
                .collect();
            if !changed.is_empty() {
                failed.push(format!("files changed after they were recorded: {}", changed.join(", ")));
            }
        }
        Ok(results)
    }

    fn required_checks(
        &mut self,
        sandbox: &dyn Sandbox,
        tree: &TreeId,
        logs: &Path,
    ) -> Result<Option<Vec<CheckResult>>, DriveError> {
        let verifiers: Vec<_> = self.ctx.state.spec.settings.required().cloned().collect();
        let mut results = Vec::with_capacity(verifiers.len());
        for verifier in &verifiers {
            let log = logs.join(format!("check-{}.log", verifier.name));
            match run_check(&mut self.ctx, sandbox, verifier, tree, &log)? {
                Checked::Result(result, excerpt) => {
                    if !result.passed {
                        let heading = format!("final check: {} failed", verifier.name);
                        self.ctx.error_entry(&heading, ralph_domain::text::tail_lines(&excerpt, 30));
                    }
                    results.push(result);
                }
                Checked::Stopped => return Ok(None),
            }
        }
        Ok(Some(results))
    }
}

fn make_dir(path: &Path) -> Result<(), DriveError> {
    Ok(std::fs::create_dir_all(path).map_err(|e| JournalError::file("make the folder", path, e))?)
}

fn remove_dir(path: &Path) -> Result<(), DriveError> {
    match std::fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(JournalError::file("remove", path, e).into())
        }
        _ => Ok(()),
    }
}
