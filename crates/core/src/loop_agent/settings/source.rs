//! Where an agent's run comes from: built from ports, or wired by another crate.

use crate::cancel::CancelToken;
use crate::driver::drive_and_release;
use crate::error::DriveError;
use crate::help::StuckAdvisor;
use crate::observers::Observer;
use crate::ports::RunPorts;
use crate::resume::run_writer::{RunWriter, WriterOptions};
use crate::run::Run;
use ralph_loop_domain::ports::CustomCheck;
use ralph_loop_journal::folder::layout::{RunDir, StateHome};
use ralph_loop_journal::folder::snapshot;
use ralph_loop_journal::inbox;
use ralph_loop_journal::lock::{LockHolder, RunLock};
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::outcome::{ErrorCode, RunError, RunResult};
use ralph_loop_task::spec::RunSpec;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const CLEANUP_TIMEOUT: Duration = Duration::from_secs(15);

/// What a [`LoopAgent`](super::LoopAgent) adds to the run of a [`RunSource`].
pub struct Hooks {
    /// Observers of the run.
    pub observers: Vec<Box<dyn Observer>>,
    /// Asked when the run shows signs of being stuck.
    pub on_stuck: Option<Arc<dyn StuckAdvisor>>,
    /// Suspends the run, which can be resumed.
    pub cancel: Arc<CancelToken>,
    /// Checks implemented by the caller, by verifier name.
    pub custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
}

/// The outcome of driving a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Driven {
    /// Its result.
    pub result: RunResult,
    /// All its changes as a patch.
    pub diff: String,
}

/// Creates a run on the first await, and resumes it from its journal after that. Runs on a separate thread,
/// so it may block.
pub trait RunSource: Send {
    /// Creates or resumes the run. From here on its record can be watched and steered.
    fn begin(&mut self, hooks: Hooks) -> Result<RunDir, RunError>;
    /// Drives the run until it ends or needs the user.
    fn drive(&mut self) -> Driven;
}

/// A run built from the caller's ports.
pub(in crate::loop_agent) struct PortSource {
    pub(in crate::loop_agent) spec: RunSpec,
    pub(in crate::loop_agent) home: StateHome,
    pub(in crate::loop_agent) ports: Option<RunPorts>,
    /// Whether the run exists already.
    pub(in crate::loop_agent) exists: bool,
    pub(in crate::loop_agent) run: Option<(Run, RunLock)>,
}

impl RunSource for PortSource {
    fn begin(&mut self, hooks: Hooks) -> Result<RunDir, RunError> {
        let lock = self.lock()?;
        let Some(ports) = &self.ports else { return Err(lost()) };
        let (record, options) = (ports.places.dir.clone(), ports.writer_options());
        let writer =
            self.writer(&record, &options).map_err(|error| with_library_hint(error.to_run_error(None)))?;
        self.exists = true;
        let Some(ports) = self.ports.take() else { return Err(lost()) };
        let run = match Run::try_open(writer, with_hooks(ports, hooks)) {
            Ok(run) => run,
            Err(refused) => {
                let (error, ports) = *refused;
                self.ports = Some(without_hooks(ports));
                return Err(with_library_hint(error.to_run_error(None)));
            }
        };
        lead(&record, &lock);
        self.run = Some((run, lock));
        Ok(record)
    }

    fn drive(&mut self) -> Driven {
        let Some((run, lock)) = self.run.take() else {
            return Driven { result: RunResult::refused(lost()), diff: String::new() };
        };
        let (result, diff, ports) = drive_and_release(run);
        self.ports = Some(without_hooks(ports));
        drop(lock);
        Driven { result: in_library_words(result), diff }
    }
}

/// Replaces hints about commands with library calls: no command finds the records of such a run.
fn in_library_words(mut result: RunResult) -> RunResult {
    if let Some(run) = &result.run_id {
        result.summary = result
            .summary
            .replace(&format!("`ralph resume {run}` continues"), "`run()` continues from there");
    }
    result.error = result.error.map(with_library_hint);
    result
}

/// The error with a library call as its hint.
fn with_library_hint(mut error: RunError) -> RunError {
    let asks_for_approval = error.hint.as_deref().is_some_and(|hint| hint.contains("ralph approve"));
    let call = match error.code {
        ErrorCode::MaxIterations | ErrorCode::MaxCost | ErrorCode::MaxTokens | ErrorCode::Timeout => {
            "`handle().set_limits(…)` raises the limit; then `run()` continues"
        }
        ErrorCode::Stuck => "`handle().history()` has what was tried",
        ErrorCode::NeedsHuman if asks_for_approval => {
            "`handle().send(Control::Approve)` accepts it; then `run()` continues"
        }
        ErrorCode::NeedsHuman => "`handle().nudge(…)` answers; then `run()` continues",
        _ if error.recoverable => "fix what the message names; then call `run()` to continue",
        _ => "build another agent",
    };
    if error.hint.as_deref().is_none_or(|hint| hint.contains("`ralph ")) {
        error.hint = Some(call.to_owned());
    }
    error
}

impl PortSource {
    /// Opens or creates the journal. A failure leaves the agent unchanged for a retry.
    fn writer(&self, record: &RunDir, options: &WriterOptions) -> Result<RunWriter, DriveError> {
        if self.exists {
            inbox::send(record, "library", Control::Resume)?;
            return RunWriter::open(options);
        }
        // Remote backends need no local folder, but the user-facing files of a run do.
        let folder = &self.spec.workspace;
        std::fs::create_dir_all(folder)
            .map_err(|error| ralph_loop_journal::JournalError::file("make", folder, error))?;
        RunWriter::create(self.spec.clone(), options)
    }

    fn lock(&self) -> Result<RunLock, RunError> {
        let now = self.ports.as_ref().map_or_else(jiff::Timestamp::default, |ports| ports.clock.now());
        let holder = LockHolder::new(std::process::id(), self.spec.run_id.clone(), now);
        let path = self.home.folder_lock(self.spec.home());
        RunLock::take(&path, &holder, CLEANUP_TIMEOUT).map_err(|error| RunError {
            code: ErrorCode::SandboxInitFailed,
            message: error.to_string(),
            hint: Some(
                "one run at a time works in a folder: await the other one, or give this one its own".into(),
            ),
            recoverable: true,
            iteration: None,
        })
    }
}

/// Links the record to its lock, so that watchers know whether it is driven.
fn lead(record: &RunDir, lock: &RunLock) {
    use std::os::unix::ffi::OsStrExt as _;
    let _ = ralph_loop_journal::folder::artifacts::write(
        &record.lock_place(),
        lock.path().as_os_str().as_bytes(),
    );
}

fn with_hooks(mut ports: RunPorts, hooks: Hooks) -> RunPorts {
    ports.observers = hooks.observers;
    ports.cancel = hooks.cancel;
    ports.custom_checks.extend(hooks.custom_checks);
    ports.helpers.on_stuck = hooks.on_stuck;
    ports
}

/// Removes the hooks, which hold references to their agent; the next run brings its own.
fn without_hooks(mut ports: RunPorts) -> RunPorts {
    ports.observers.clear();
    ports.custom_checks.retain(|_, check| check.is_hidden());
    ports.helpers.on_stuck = None;
    ports
}

fn lost() -> RunError {
    RunError {
        code: ErrorCode::InvalidInput,
        message: "this agent has lost its parts: an earlier call of it broke".into(),
        hint: Some("build another agent, with `.resume(run_id)` to continue the run".into()),
        recoverable: false,
        iteration: None,
    }
}

/// The spec of an earlier process's run.
pub(in crate::loop_agent) fn spec_of(record: &RunDir) -> Result<RunSpec, ralph_loop_journal::JournalError> {
    Ok(snapshot::load(record)?.spec.clone())
}
