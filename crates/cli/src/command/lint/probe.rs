//! Which checks pass before any work: each runs once, sandboxed as in a run.

use crate::error::CommandError;
use crate::output::Out;
use crate::signals;
use ralph_loop_app::scratch::Scratch;
use ralph_loop_app::{Environment, find, repo_file};
use ralph_loop_core::CancelFlag;
use ralph_loop_domain::ports::{ExecRequest, ExecSink, Sandbox as _, StopCause, Stream};
use ralph_loop_task::config::CommandLine;
use ralph_loop_task::criterion::Check;
use ralph_loop_task::dialect::TaskFile;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Output searched for a pattern.
const OUTPUT_MAX: usize = 4 * 1024 * 1024;

/// Ids of criteria whose own check passes now.
pub fn passing(
    env: &Environment,
    task: &TaskFile,
    folder: &Path,
    seconds: u64,
    out: &Out,
) -> Result<Vec<String>, CommandError> {
    if task.git.repo_url.is_some() {
        out.say("the checks are not tried: the task works in a clone that is yet to be made");
        return Ok(Vec::new());
    }
    let top = find::top(folder);
    let cancel = signals::install();
    let sandbox = Scratch::over_repo(env, "lint", &top)?;
    let cwd = task.git.working_dir.as_ref().map(PathBuf::from).unwrap_or_default();
    let probe =
        Probe { sandbox, top: top.join(&cwd), cwd, timeout: Duration::from_secs(seconds.max(1)), cancel };
    let mut passing = Vec::new();
    for criterion in &task.criteria {
        if probe.cancel.get().is_some() {
            return Err(CommandError::usage("the probe was interrupted"));
        }
        if !matches!(criterion.check, Check::Claimed | Check::PrChecksPass | Check::PrApproved) {
            out.say(format!("trying {}: {}", criterion.id, criterion.check.describe()));
        }
        if probe.passes(&criterion.check) {
            passing.push(criterion.id.clone());
        }
    }
    Ok(passing)
}

struct Probe {
    sandbox: Scratch,
    top: PathBuf,
    cwd: PathBuf,
    timeout: Duration,
    cancel: Arc<CancelFlag>,
}

impl Probe {
    fn passes(&self, check: &Check) -> bool {
        match check {
            Check::Command { command } => self.exec(command).is_some(),
            Check::CommandOutput { command, pattern } => {
                self.exec(command).is_some_and(|output| pattern.matches(&output))
            }
            Check::FileExists { path } => self.top.join(path).exists(),
            Check::FileContains { path, pattern } => repo_file::read(&self.top.join(path))
                .is_ok_and(|bytes| pattern.matches(&String::from_utf8_lossy(&bytes))),
            Check::PrChecksPass | Check::PrApproved | Check::Claimed => false,
        }
    }

    /// The output of a command that exits with 0, else `None`.
    fn exec(&self, command: &CommandLine) -> Option<String> {
        let request = ExecRequest {
            cwd: self.cwd.clone(),
            timeout: Some(self.timeout),
            ..ExecRequest::new(command.argv())
        };
        let mut sink = Sink { bytes: Vec::new(), cancel: &self.cancel };
        let outcome = self.sandbox.sandbox.exec(&request, &mut sink).ok()?;
        outcome.end.success().then(|| String::from_utf8_lossy(&sink.bytes).into_owned())
    }
}

struct Sink<'a> {
    bytes: Vec<u8>,
    cancel: &'a CancelFlag,
}

impl ExecSink for Sink<'_> {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        let room = OUTPUT_MAX.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        match self.cancel.get() {
            Some(_) => ControlFlow::Break(StopCause::Cancelled),
            None => ControlFlow::Continue(()),
        }
    }
}
