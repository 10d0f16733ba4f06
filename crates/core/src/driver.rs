//! The driver: ask what comes next, do it, journal it, ask again.
//!
//! Start and resume are the same thing. A new run has an empty journal and so its first step is `Prepare`; a killed one
//! has a longer journal and its next step is whatever was not done yet.

use crate::context::{CancelFlag, Context, Observer};
use crate::error::DriveError;
use crate::integrity::Watch;
use crate::task_book;
use ralph_domain::decide::{Step, decide};
use ralph_domain::event::EventBody;
use ralph_domain::id::Digest;
use ralph_domain::outcome::{EndReason, ErrorCode, RunError, RunResult};
use ralph_domain::ports::{Agent, Clock, CustomCheck, Sandbox, Workspace};
use ralph_domain::redact::Redactor;
use ralph_domain::spec::RunSpec;
use ralph_domain::state::RunState;
use ralph_journal::journal::{Journal, Places};
use ralph_journal::layout::RalphDir;
use ralph_journal::snapshot;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything a driver is handed.
pub struct Parts {
    /// The `.ralph/` folder of the workspace.
    pub dir: RalphDir,
    /// Where the journal's files are.
    pub places: Places,
    /// Where clean checkouts are made.
    pub proof_dir: PathBuf,
    /// Where commands run.
    pub sandbox: Box<dyn Sandbox>,
    /// The agent's tree.
    pub workspace: Box<dyn Workspace>,
    /// Who can work.
    pub agents: Vec<Box<dyn Agent>>,
    /// Checks that are code of the calling program, by the name of their verifier.
    pub custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Knows the secrets.
    pub redactor: Arc<Redactor>,
    /// Watches.
    pub observer: Box<dyn Observer>,
    /// Ends the run from outside.
    pub cancel: Arc<CancelFlag>,
}

/// Drives one run.
pub struct Driver {
    pub(crate) ctx: Context,
    pub(crate) sandbox: Box<dyn Sandbox>,
    pub(crate) workspace: Box<dyn Workspace>,
    pub(crate) agents: Vec<Box<dyn Agent>>,
    /// The version of the task whose file is the baseline.
    spec_version: u32,
}

impl Driver {
    /// A new run: freezes the spec and opens the journal.
    pub fn create(spec: RunSpec, parts: Parts) -> Result<Self, DriveError> {
        parts.places.dir.create()?;
        let digest = snapshot::write_spec(&parts.places, &spec)?;
        let title = spec.task.title.clone();
        let journal = Journal::create(parts.places.clone(), parts.redactor.clone())?;
        let mut driver = Self::assemble(RunState::new(spec), journal, parts);
        driver.ctx.record(EventBody::RunCreated { spec: digest, title })?;
        driver.ctx.record(EventBody::DriverStarted { pid: std::process::id(), torn_bytes: 0 })?;
        driver.inherit_cooldowns()?;
        driver.ctx.flush()?;
        Ok(driver)
    }

    /// A run of an earlier process: replays its journal and goes on.
    pub fn resume(parts: Parts) -> Result<Self, DriveError> {
        let spec = snapshot::read_spec(&parts.places.dir).or_else(|error| match &parts.places.spare {
            // The run folder is gone (`git clean -fdx`), its spare links are not.
            Some(spare) => snapshot::read_spec(&ralph_journal::layout::RunDir::at(spare)).map_err(|_| error),
            None => Err(error),
        })?;
        let mut state = RunState::new(spec);
        let (journal, opened) =
            Journal::open(parts.places.clone(), parts.redactor.clone(), &mut |event| state.apply(event))?;
        let state = over_named_spec(&parts.places, state)?;
        let mut driver = Self::assemble(state, journal, parts);
        if driver.ctx.journal.seq() == ralph_domain::id::Seq(0) {
            // Killed before its first event was whole: the frozen spec is there, so the run is.
            let spec = serde_json::to_vec_pretty(&driver.ctx.state.spec).unwrap_or_default();
            let title = driver.ctx.state.spec.task.title.clone();
            driver.ctx.record(EventBody::RunCreated { spec: Digest::of(&spec), title })?;
        }
        driver
            .ctx
            .record(EventBody::DriverStarted { pid: std::process::id(), torn_bytes: opened.torn_bytes })?;
        if opened.healed_bytes > 0 {
            driver.ctx.notice(format!(
                "{} bytes that the journal had lost were taken from its sealed copy",
                opened.healed_bytes
            ))?;
        }
        if let Some(baseline) = driver.ctx.state.baseline.clone() {
            driver.workspace.reopen(&baseline)?;
        }
        if driver.ctx.state.edit_pending {
            driver.ctx.new_spec_version()?;
        }
        driver.ctx.check_files(&Watch::default())?;
        driver.ctx.redo_controls()?;
        driver.check_evidence()?;
        driver.check_tree()?;
        Ok(driver)
    }

    fn assemble(state: RunState, journal: Journal, parts: Parts) -> Self {
        let mut ctx = Context::new(
            state,
            journal,
            parts.dir,
            parts.clock,
            parts.redactor,
            parts.observer,
            parts.cancel,
            parts.proof_dir,
        );
        ctx.custom_checks = parts.custom_checks;
        Self {
            ctx,
            sandbox: parts.sandbox,
            workspace: parts.workspace,
            agents: parts.agents,
            spec_version: 1,
        }
    }

    /// What is known of the run.
    pub fn state(&self) -> &RunState {
        &self.ctx.state
    }

    /// Runs to the end, or to where a person is needed. An error leaves the journal as it is: `resume` goes on from it.
    pub fn run(mut self) -> RunResult {
        let result = self.drive();
        let flushed = self.ctx.settle();
        self.clear_marker();
        match result.and(flushed) {
            Ok(()) => self.result(None),
            Err(error) => {
                let run_error = error.to_run_error(Some(self.ctx.state.iterations + 1));
                self.result(Some(run_error))
            }
        }
    }

    fn drive(&mut self) -> Result<(), DriveError> {
        loop {
            self.ctx.read_inbox()?;
            self.apply_approval()?;
            self.take_edit()?;
            self.ctx.state.tick(self.ctx.clock.now());
            match decide(&self.ctx.state) {
                Step::Prepare => self.prepare()?,
                Step::Work { iteration, attempt, agent, model, skipped } => {
                    self.work(iteration, attempt, &agent, model.as_deref(), skipped)?;
                }
                Step::CloseInterrupted => self.close_interrupted()?,
                Step::Void => self.void()?,
                Step::Checkpoint => self.checkpoint()?,
                Step::Verify { checks } => self.verify(&checks)?,
                Step::Judge => self.judge()?,
                Step::Wait { reason, until } => self.wait(&reason, until)?,
                Step::Mitigate { rung } => self.mitigate(rung)?,
                Step::Prove => self.prove()?,
                Step::Publish => self.publish()?,
                Step::AskPerson(need) => {
                    self.ctx.record(EventBody::NeedsHuman { reason: need.reason, message: need.message })?;
                }
                Step::Finish { reason, summary } => {
                    self.ctx.boundary("finish.before");
                    self.ctx.record(EventBody::Finished { reason, summary })?;
                    self.ctx.boundary("finish.after");
                }
                Step::AwaitPerson | Step::Done => return Ok(()),
            }
        }
    }

    /// A person approved: refs and configuration as they are now are the new baseline.
    fn apply_approval(&mut self) -> Result<(), DriveError> {
        if !self.ctx.state.approval_pending || self.ctx.state.baseline.is_none() {
            return Ok(());
        }
        self.workspace.accept_refs()?;
        self.ctx.accept_config()
    }

    /// Checks judge the recorded tree. Where the files are others now, they are recorded anew first.
    fn check_tree(&mut self) -> Result<(), DriveError> {
        let recorded = self
            .ctx
            .state
            .current
            .as_ref()
            .is_some_and(|c| c.stage == ralph_domain::state::Stage::Checkpointed);
        if recorded && Some(self.workspace.tree()?) != self.ctx.state.tree {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Evidence that a power cut damaged is no evidence.
    fn check_evidence(&mut self) -> Result<(), DriveError> {
        let state = &self.ctx.state;
        let Some(digest) = state.proof.as_ref().filter(|p| p.passed).and_then(|p| p.proof.clone()) else {
            return Ok(());
        };
        let path = self.ctx.run.proof();
        let sound = std::fs::read(&path).is_ok_and(|text| Digest::of(&text) == digest);
        if !sound && state.finished.is_none() {
            let reason = format!("`{}` is not what was journalled", path.display());
            self.ctx.record(EventBody::ProofVoided { reason })?;
        }
        Ok(())
    }

    /// The task file that a person's edit names is the new baseline of that file.
    fn take_edit(&mut self) -> Result<(), DriveError> {
        let spec = &self.ctx.state.spec;
        if self.spec_version == spec.spec_version || self.ctx.state.baseline.is_none() {
            return Ok(());
        }
        self.spec_version = spec.spec_version;
        let source = spec.task.source.clone();
        let path = spec.workspace.join(&source);
        let file = std::fs::read_to_string(&path).unwrap_or_default();
        let text = match &spec.task.raw {
            // What was marked as done stays marked where the new text has it, too.
            Some(raw) => task_book::marked(spec.task.dialect, raw, &self.ctx.state.claims),
            None => spec.task.text.clone(),
        };
        let same = |file: &str| file.replace("\r\n", "\n").trim_end() == text.replace("\r\n", "\n").trim_end();
        if !same(&file) {
            // The file follows the person's word, unless somebody changed it meanwhile: that is an agent's doing.
            if !path.is_file() || !self.is_as_before(&file)? {
                return Ok(());
            }
            ralph_journal::artifacts::write_atomic(&path, text.as_bytes())?;
        }
        Ok(self.workspace.accept_protected(&source)?)
    }

    /// Whether the task file is still what the version before the edit said, marks aside.
    fn is_as_before(&mut self, file: &str) -> Result<bool, DriveError> {
        let spec = &self.ctx.state.spec;
        let before = self.ctx.run.path().join(format!("spec.v{}.json", spec.spec_version.saturating_sub(1)));
        let before = std::fs::read(&before).ok().and_then(|text| snapshot::parse_spec(&before, &text).ok());
        if let Some(before) = before.filter(|before| task_book::has_book(&before.task)) {
            return Ok(task_book::review(&before.task, &self.ctx.redactor.text(file)).is_ok());
        }
        let source = spec.task.source.clone();
        Ok(!self.workspace.protected_changes()?.iter().any(|c| c.path == source))
    }

    /// Agents that an earlier run in this folder put to rest keep resting.
    fn inherit_cooldowns(&mut self) -> Result<(), DriveError> {
        #[derive(serde::Deserialize)]
        struct Entry {
            cooldown_until: i64,
            reason: String,
        }
        let Ok(text) = std::fs::read(self.ctx.dir.cooldowns()) else { return Ok(()) };
        let Ok(map) = serde_json::from_slice::<std::collections::BTreeMap<String, Entry>>(&text) else {
            return Ok(());
        };
        let now = self.ctx.clock.now();
        for (name, entry) in map {
            let agent = ralph_domain::id::AgentName::new(name);
            let until = jiff::Timestamp::from_second(entry.cooldown_until).unwrap_or(now);
            if until > now && self.ctx.state.spec.settings.agent(&agent).is_some() {
                self.ctx.record(EventBody::CooldownSet { agent, until, reason: entry.reason })?;
            }
        }
        Ok(())
    }

    fn result(&self, error: Option<RunError>) -> RunResult {
        let state = &self.ctx.state;
        let (reason, summary) = match (&error, &state.finished, &state.needs_human) {
            (Some(error), _, _) => (EndReason::Error, error.message.clone()),
            (None, Some(end), _) => (end.reason, end.summary.clone()),
            (None, None, Some(need)) => (EndReason::NeedsHuman, need.message.clone()),
            (None, None, None) => (EndReason::Error, "the run stopped without an end".into()),
        };
        let clean = |text: &str| self.ctx.redactor.text(text).into_owned();
        let summary = clean(&summary);
        let error = error.or_else(|| ending_error(reason, &summary, state));
        let error = error.map(|e| RunError { message: clean(&e.message), ..e });
        let files = match (&state.baseline, &state.work) {
            (Some(baseline), Some(work)) => self
                .workspace
                .changes(baseline.head.as_str(), work.as_str())
                .map(|files| {
                    files
                        .into_iter()
                        .filter(|f| !f.path.starts_with(".ralph/"))
                        .map(|f| clean(&f.path))
                        .collect()
                })
                .unwrap_or_else(|_| state.touched.iter().cloned().collect()),
            _ => Vec::new(),
        };
        RunResult {
            success: reason == EndReason::Completed,
            reason,
            run_id: Some(state.spec.run_id.clone()),
            run_dir: Some(self.ctx.run.path().to_owned()),
            iterations: state.iterations,
            cost_usd: state.totals.cost,
            cost_basis: state.totals.basis,
            tokens: state.totals.tokens,
            elapsed_seconds: state.elapsed().as_secs_f64(),
            summary,
            branch: self.result_branch(),
            pr_url: state.published.as_ref().and_then(|p| p.pr_url.clone()),
            files_changed: files,
            error,
        }
    }
}

/// The state over the spec that the journal names by its digest, wherever a copy of that one is left: the file in the
/// run folder may have been edited while nobody drove the run.
fn over_named_spec(places: &Places, state: RunState) -> Result<RunState, DriveError> {
    let Some(digest) = &state.spec_digest else { return Ok(state) };
    let path = places.dir.spec();
    if std::fs::read(&path).is_ok_and(|text| Digest::of(&text) == *digest) {
        return Ok(state);
    }
    match snapshot::find_spec(places, digest) {
        Some(text) => Ok(snapshot::replay(&places.dir, snapshot::parse_spec(&path, &text)?)?),
        None => Ok(state),
    }
}

/// The typed error that belongs to an end without success.
fn ending_error(reason: EndReason, summary: &str, state: &RunState) -> Option<RunError> {
    let run = &state.spec.run_id;
    let (code, hint, recoverable) = match reason {
        EndReason::Completed | EndReason::Stopped | EndReason::Cancelled => return None,
        EndReason::MaxIterations => (
            ErrorCode::MaxIterations,
            "start again with a larger `--max-iterations`; the work is kept".into(),
            false,
        ),
        EndReason::MaxCost => {
            (ErrorCode::MaxCost, "start again with a larger `--max-cost`; the work is kept".into(), false)
        }
        EndReason::MaxTokens => (
            ErrorCode::MaxTokens,
            "start again with a larger `max_tokens_total`; the work is kept".into(),
            false,
        ),
        EndReason::Timeout => {
            (ErrorCode::Timeout, "start again with more time; the work is kept".into(), false)
        }
        EndReason::Stuck => (ErrorCode::Stuck, format!("`ralph show {run}` shows what was tried"), false),
        EndReason::NeedsHuman => {
            let approve = state.needs_human.as_ref().is_some_and(|n| n.reason.needs_approval());
            let hint = if approve {
                format!("look at it, then `ralph approve {run}` and `ralph resume {run}`")
            } else {
                format!("`ralph nudge \"…\" --run {run}` gives a hint, `ralph resume {run}` goes on")
            };
            (ErrorCode::NeedsHuman, hint, true)
        }
        EndReason::Error if state.dropped.is_empty() => {
            (ErrorCode::IterationFailed, format!("`ralph show {run}` shows what happened"), true)
        }
        EndReason::Error => {
            (ErrorCode::AuthFailed, "`ralph probe` shows what is wrong with each agent".into(), true)
        }
    };
    Some(RunError {
        code,
        message: summary.to_owned(),
        hint: Some(hint),
        recoverable,
        iteration: Some(state.iterations + 1),
    })
}
