//! Tries the checks of a task once before any work, sandboxed as in a run.

use super::checks::{CheckSource, TaskCheck};
use super::facts;
use crate::agents::scratch::Scratch;
use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::task::task_source::TaskSource;
use crate::trust::repo_file;
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, ExecSink, Sandbox as _, StopCause, Stream};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::config::{CommandLine, Expect, VerifierConfig};
use ralph_loop_task::criterion::Span;
use ralph_loop_task::dialect::{Dialect, TaskFile};
use ralph_loop_task::lint::{Diagnostic, programs_of};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a check may take before it counts as endless.
pub const SECONDS: u64 = 120;
/// Output searched for an expectation.
const OUTPUT_MAX: usize = 4 * 1024 * 1024;
/// Last lines shown.
const LINES_MAX: usize = 12;

/// How a check ended before any work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeEnd {
    Passes,
    Fails,
    /// A program that isn't in the repo doesn't exist.
    NotFound,
    /// It was ended after this time.
    NoEnd(Duration),
}

/// A check that was tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    pub check: TaskCheck,
    pub end: ProbeEnd,
    pub last_lines: Vec<String>,
}

/// Follows a probe.
pub trait ProbeWatch {
    /// A check is about to start.
    fn starts(&self, _: &TaskCheck) {}
    /// Whether to stop.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl ProbeWatch for Unwatched {}

/// Runs each check once, at most `limit` each.
pub fn probe(
    env: &Environment,
    source: &TaskSource,
    task: &TaskFile,
    checks: &[TaskCheck],
    limit: Duration,
    watch: &dyn ProbeWatch,
) -> Result<Vec<Probed>, AppError> {
    let top = find::top(&source.folder);
    let cwd = task.git.working_dir.as_ref().map(PathBuf::from).unwrap_or_default();
    let probe =
        Probe { env, sandbox: Scratch::over_repo(env, "lint", &top)?, folder: top.join(&cwd), cwd, watch };
    let mut out = Vec::new();
    for check in checks {
        if watch.is_cancelled() {
            return Err(AppError::usage("the probe was interrupted").hint("run it again"));
        }
        watch.starts(check);
        let (end, last_lines) = probe.run(&check.verifier, limit)?;
        out.push(Probed { check: check.clone(), end, last_lines });
    }
    Ok(out)
}

struct Probe<'a> {
    env: &'a Environment,
    sandbox: Scratch,
    folder: PathBuf,
    cwd: PathBuf,
    watch: &'a dyn ProbeWatch,
}

impl Probe<'_> {
    fn run(&self, verifier: &VerifierConfig, limit: Duration) -> Result<(ProbeEnd, Vec<String>), AppError> {
        let ended = |passes: bool| if passes { ProbeEnd::Passes } else { ProbeEnd::Fails };
        match &verifier.expect {
            Some(Expect::FileExists { path }) => {
                return Ok((ended(repo_file::read(&self.folder.join(path)).is_ok()), Vec::new()));
            }
            Some(Expect::FileContains { path, pattern }) => {
                let text = repo_file::read(&self.folder.join(path)).unwrap_or_default();
                return Ok((ended(pattern.matches(&String::from_utf8_lossy(&text))), Vec::new()));
            }
            Some(Expect::Custom) => return Ok((ProbeEnd::Fails, Vec::new())),
            Some(Expect::Output(_)) | None => {}
        }
        let timeout = limit.min(Duration::from_secs(verifier.timeout_seconds));
        let request = ExecRequest {
            cwd: self.cwd.clone(),
            timeout: Some(timeout),
            env: vec![("CI".to_owned(), "true".to_owned())],
            ..ExecRequest::new(verifier.command_argv.clone())
        };
        let mut sink = Sink { bytes: Vec::new(), watch: self.watch };
        let end = self.sandbox.sandbox.exec(&request, &mut sink).map(|outcome| outcome.end);
        let output = String::from_utf8_lossy(&sink.bytes).into_owned();
        let end = match end {
            Ok(ExecEnd::Exited(0)) => {
                let printed = match &verifier.expect {
                    Some(Expect::Output(output_test)) => output_test.holds(&output),
                    _ => true,
                };
                let measured = verifier.metric.as_ref().is_none_or(|metric| {
                    metric.value(&output).is_ok_and(|value| metric.shortfall(value).is_none())
                });
                ended(printed && measured)
            }
            Ok(ExecEnd::TimedOut | ExecEnd::IdleTimedOut) => ProbeEnd::NoEnd(timeout),
            Ok(ExecEnd::Exited(127)) if !self.lacks_only_work(verifier) => ProbeEnd::NotFound,
            Ok(_) => ProbeEnd::Fails,
            // The sandbox itself works, so the program couldn't start.
            Err(_) if !self.lacks_only_work(verifier) => ProbeEnd::NotFound,
            Err(_) => ProbeEnd::Fails,
        };
        let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES_MAX)..].iter().map(|line| one_line(line, 200));
        Ok((end, last.collect()))
    }

    /// Whether every missing program is a path in the repo: making it may be the task.
    fn lacks_only_work(&self, verifier: &VerifierConfig) -> bool {
        let missing = missing_programs(self.env, verifier, &self.folder);
        !missing.is_empty()
            && missing.iter().all(|program| program.contains('/') && !program.starts_with('/'))
    }
}

/// The programs of a check that don't exist here.
pub(super) fn missing_programs(env: &Environment, verifier: &VerifierConfig, folder: &Path) -> Vec<String> {
    let command = match verifier.command_argv.as_slice() {
        [] => return Vec::new(),
        [sh, c, line] if sh == "sh" && c == "-c" => CommandLine::Shell(line.clone()),
        argv => CommandLine::Argv(argv.to_vec()),
    };
    programs_of(&command).into_iter().filter(|program| !facts::exists(env, program, folder)).collect()
}

/// What a probe says about a task. A check that can't start proves nothing, and neither do checks that all pass.
pub fn judge(probed: &[Probed], task: &TaskFile) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for one in probed {
        let (file, place, in_section) = match &one.check.source {
            CheckSource::Task { file, place } => (file.as_str(), *place, task.dialect == Dialect::PromptMd),
            CheckSource::Config { file, .. } => (file.as_str(), Span::START, false),
            CheckSource::Detected { file, .. } => (file.as_str(), Span::START, false),
            CheckSource::Flag => (task.source.as_str(), Span::START, false),
        };
        let command = one_line(&one.check.verifier.command_line(), 80);
        match &one.end {
            ProbeEnd::Passes | ProbeEnd::Fails => {}
            ProbeEnd::NotFound => found.push(Diagnostic::error(
                "check-not-found",
                file,
                place,
                format!("`{command}` can't start: command not found"),
                "install the program, correct its name, or install it with a setup command",
            )),
            ProbeEnd::NoEnd(after) => {
                let message = format!(
                    "`{command}` didn't end within {}",
                    ralph_loop_protocol::display::text::duration(*after)
                );
                let fix = "name a command that ends; a slow one goes to `verifiers` with `timeout_seconds`";
                found.push(match in_section {
                    true => Diagnostic::error("check-no-end", file, place, message, fix),
                    false => Diagnostic::warning("check-no-end", file, place, message, fix),
                });
            }
        }
    }
    if !probed.is_empty() && probed.iter().all(|one| one.end == ProbeEnd::Passes) {
        let line = match task.dialect {
            Dialect::RalphTaskMd => {
                "`verify_commands: [{command: \"./app list\", contains: \"3 items\"}]` in the frontmatter"
            }
            Dialect::RalphJson => {
                "`{\"type\": \"command_output\", \"command\": \"./app list\", \"contains\": \"3 items\"}` in `acceptance_criteria`"
            }
            Dialect::Plan => "`{\"command\": \"./app list\", \"contains\": \"3 items\"}` in `verifyCommands`",
            Dialect::PromptMd => "- `./app list | grep '3 items'` under Verification",
        };
        found.push(Diagnostic::warning(
            "nothing-red",
            &task.source,
            Span::START,
            "every check passes before any work, so none can show that the work is done",
            format!("run the product and judge what it prints, for example {line}"),
        ));
    }
    found
}

struct Sink<'a> {
    bytes: Vec<u8>,
    watch: &'a dyn ProbeWatch,
}

impl ExecSink for Sink<'_> {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let extra = self.bytes.len().saturating_sub(OUTPUT_MAX);
        self.bytes.drain(..extra);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        match self.watch.is_cancelled() {
            true => ControlFlow::Break(StopCause::Cancelled),
            false => ControlFlow::Continue(()),
        }
    }
}
