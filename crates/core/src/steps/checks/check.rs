//! Runs one check and describes its result, with tree and log digest.

use crate::error::DriveError;
use crate::inbox;
use crate::ledger::Ledger;
use crate::observers::SessionProgress;
use crate::record::log_tail::{read_tail, useful_lines};
use crate::steps::checks::measure::{self, Measured};
use ralph_loop_domain::ports::{
    ExecEnd, ExecRequest, ExecSink, ExecTrace, Sandbox, SandboxError, StopCause, Stream,
};
use ralph_loop_journal::folder::artifacts::{self, FinishedLog, OutputLog};
use ralph_loop_journal::live::LiveStream;
use ralph_loop_proof::report::environment::{hidden_path, refused_port};
use ralph_loop_proof::report::failing::failing_tests;
use ralph_loop_proof::report::scanner::TestScanner;
use ralph_loop_protocol::display::text::{count, duration, tail};
use ralph_loop_protocol::event::{CheckResult, EventBody};
use ralph_loop_protocol::id::TreeId;
use ralph_loop_protocol::money::budget::BudgetKind;
use ralph_loop_task::config::{Expect, Isolation, VerifierConfig};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Output searched for a pattern.
const OUTPUT_MAX: u64 = 4 * 1024 * 1024;
/// Output used for prompts, errors and signatures.
pub(crate) const EXCERPT: usize = 8 * 1024;
/// Output searched for names of failing tests.
const NAMES_MAX: u64 = 256 * 1024;
/// Tells a command its check's name; commands that read it are never shared.
const OWN_NAME: &str = "RALPH_VERIFIER";

/// The outcome of a check.
pub(crate) enum CheckOutcome {
    /// It ran: result, end of output, and trace.
    Result(Box<CheckResult>, String, Option<ExecTrace>),
    /// Ended by the engine (canceled, time limit, guard lost); nothing is known.
    Stopped,
}

/// How a check or its setup runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CheckOptions<'a> {
    /// Additional variables.
    pub env: &'a [(String, String)],
    /// Whether to trace it, if possible.
    pub watch: bool,
}

/// Where a check runs, and on which files.
#[derive(Clone, Copy)]
pub(crate) struct CheckTarget<'a> {
    pub sandbox: &'a dyn Sandbox,
    /// The tree it judges.
    pub tree: &'a TreeId,
    pub log: &'a Path,
    pub how: CheckOptions<'a>,
}

/// Checks run so far on one tree: those with the same command share one execution.
#[derive(Default)]
pub(crate) struct CheckRuns {
    done: Vec<(VerifierConfig, CheckResult, String, Option<ExecTrace>)>,
}

impl CheckRuns {
    /// Runs a check, or reuses the result of the same command on the same files.
    pub(crate) fn run(
        &mut self,
        ledger: &mut Ledger,
        verifier: &VerifierConfig,
        place: &CheckTarget<'_>,
    ) -> Result<CheckOutcome, DriveError> {
        if let Some((_, result, excerpt, trace)) = self
            .done
            .iter()
            .find(|(known, result, ..)| result.tree == *place.tree && is_same(known, verifier))
        {
            // The time was spent only once.
            let result = CheckResult { name: verifier.name.clone(), duration_ms: 0, ..result.clone() };
            return Ok(CheckOutcome::Result(Box::new(result), excerpt.clone(), trace.clone()));
        }
        let checked = run_check(ledger, verifier, place)?;
        if let CheckOutcome::Result(result, excerpt, trace) = &checked {
            self.done.push((verifier.clone(), (**result).clone(), excerpt.clone(), trace.clone()));
        }
        Ok(checked)
    }
}

/// Whether two checks run and judge the same command.
fn is_same(a: &VerifierConfig, b: &VerifierConfig) -> bool {
    !a.command_argv.is_empty()
        && a.command_argv == b.command_argv
        && a.timeout_seconds == b.timeout_seconds
        && a.expect == b.expect
        && a.metric == b.metric
        && !a.command_argv.iter().any(|word| word.contains(OWN_NAME))
}

pub(crate) fn run_check(
    ledger: &mut Ledger,
    verifier: &VerifierConfig,
    place: &CheckTarget<'_>,
) -> Result<CheckOutcome, DriveError> {
    if let Some(found) = run_builtin_check(ledger, verifier, place)? {
        return Ok(found);
    }
    let CheckTarget { sandbox, tree, log: log_path, how } = *place;
    let timeout = Duration::from_secs(verifier.timeout_seconds);
    let mut request = ExecRequest::new(verifier.command_argv.clone());
    request.timeout = Some(timeout);
    request.cwd = ledger.state.spec.task.working_dir.clone().map(PathBuf::from).unwrap_or_default();
    request.env = vec![("CI".into(), "true".into()), ("RALPH_VERIFIER".into(), verifier.name.clone())];
    request.env.extend(how.env.iter().cloned());
    let run = run_logged(ledger, sandbox, &request, &verifier.name, log_path, how.watch)?;
    let (end, time, survivors) = match &run.outcome {
        Ok(outcome) => (Ok(outcome.end), outcome.duration, outcome.survivors),
        Err(error) => (Err(error.to_string()), Duration::ZERO, 0),
    };
    let tests = run.tests;
    // Only exit code 0 can pass; every other end is a failure, or no result.
    let why = match &end {
        Ok(ExecEnd::Stopped(_) | ExecEnd::GuardLost) => return Ok(CheckOutcome::Stopped),
        Ok(ExecEnd::Exited(0)) if tests.is_some_and(|t| t.executed() == 0) => {
            Some("no test was executed".to_owned())
        }
        Ok(ExecEnd::Exited(0)) if run.unfinished => {
            Some("tests began and ended without their result: what they run ended the process".to_owned())
        }
        Ok(ExecEnd::Exited(0)) if run.failed_at_end > 0 => {
            let tests = count(run.failed_at_end as usize, "test");
            Some(format!("its own report says that {tests} failed, though it ended with 0"))
        }
        Ok(ExecEnd::Exited(0)) => match &verifier.expect {
            Some(Expect::Output(output)) if !output.holds(&read_tail(log_path, OUTPUT_MAX)) => {
                Some(format!("it does not print {}", output.describe()))
            }
            _ => match measure::again(verifier, log_path, &mut |label, log| {
                let run = run_logged(ledger, sandbox, &request, label, log, false)?;
                Ok(run.outcome.map(|outcome| outcome.end).map_err(|error| error.to_string()))
            })? {
                Measured::Enough => None,
                Measured::NotEnough(why) => Some(why),
                Measured::Stopped => return Ok(CheckOutcome::Stopped),
            },
        },
        Ok(ExecEnd::Exited(code)) => Some(format!("exit code {code}")),
        Ok(ExecEnd::Signaled(signal)) => Some(format!("ended by signal {signal}")),
        Ok(ExecEnd::TimedOut | ExecEnd::IdleTimedOut) => Some(format!("no end after {}", duration(timeout))),
        Err(error) => Some(error.clone()),
    };
    if survivors > 0 {
        ledger.notice(format!(
            "{}: {survivors} processes that it had left running were ended",
            verifier.name
        ))?;
    }
    let passed = why.is_none();
    let own_network = !passed && has_own_network(ledger);
    let mut refused = run.trace.iter().flat_map(|trace| trace.kept_out.iter().copied()).collect::<Vec<u16>>();
    // A run that isn't watched has only its output.
    refused.extend(refused_port(&run.excerpt).filter(|port| own_network && !refused.contains(port)));
    let hidden = hidden_path(&run.excerpt, |path| !passed && sandbox.hides(path));
    let why = why.map(|why| match (refused.as_slice(), hidden) {
        ([_, ..], _) => {
            let hosts: Vec<String> = refused.iter().map(|port| format!("localhost:{port}")).collect();
            let flags: Vec<String> = hosts.iter().map(|host| format!("--allow-host {host}")).collect();
            format!(
                "{why}; {} refused the connection: the sandbox reaches a server on this machine with `{}`",
                hosts.join(" and "),
                flags.join(" ")
            )
        }
        ([], Some(path)) => format!(
            "{why}; `{path}` is outside the sandbox's view: `sandbox_read` in your own configuration adds it"
        ),
        ([], None) => why,
    });
    let result = CheckResult {
        name: verifier.name.clone(),
        tree: tree.clone(),
        passed,
        why,
        exit_code: end.ok().and_then(ExecEnd::code),
        duration_ms: time.as_millis() as u64,
        tests,
        log: ledger.record_dir.relative(log_path),
        log_digest: run.log.digest,
        failing: if passed { Vec::new() } else { failing_tests(&read_tail(log_path, NAMES_MAX)) },
        last_lines: if passed { Vec::new() } else { useful_lines(&run.excerpt, sandbox.root()) },
    };
    Ok(CheckOutcome::Result(Box::new(result), run.excerpt, run.trace))
}

/// Whether commands run in a local sandbox, from which this machine's servers are out of reach.
fn has_own_network(ledger: &Ledger) -> bool {
    let settings = &ledger.state.spec.settings;
    !settings.sandbox.provider().is_elsewhere()
        && matches!(settings.isolation, Isolation::Bwrap | Isolation::Landlock)
}

/// Runs a check without a command: on a file, or in the calling program. `None` if it needs a command.
fn run_builtin_check(
    ledger: &mut Ledger,
    verifier: &VerifierConfig,
    place: &CheckTarget<'_>,
) -> Result<Option<CheckOutcome>, DriveError> {
    let CheckTarget { sandbox, tree, log: log_path, how } = *place;
    let folder = ledger.state.spec.task.working_dir.clone().unwrap_or_default();
    let read = |path: &str| match sandbox.read(&Path::new(&folder).join(path)) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => Err(format!("`{path}` does not exist")),
        Err(error) => Err(error.to_string()),
    };
    let started = ledger.clock.elapsed();
    let why = match &verifier.expect {
        Some(Expect::Output(_)) | None => return Ok(None),
        Some(Expect::FileExists { path }) => read(path).err(),
        Some(Expect::FileContains { path, pattern }) => match read(path) {
            Ok(bytes) if pattern.matches(&String::from_utf8_lossy(&bytes)) => None,
            Ok(_) => Some(format!("`{path}` does not contain a match of /{}/", pattern.as_str())),
            Err(why) => Some(why),
        },
        Some(Expect::Custom) => match ledger.custom_checks.get(&verifier.name) {
            Some(check) => check.check_in(sandbox, how.env).err(),
            None => Some("the program that started this run does not know this check".to_owned()),
        },
    };
    let took = ledger.clock.elapsed().saturating_sub(started);
    ledger.command_took(took);
    if verifier.expect == Some(Expect::Custom) && why.is_some() {
        // An abandoned check says nothing about the work.
        inbox::read(ledger)?;
        if ledger.ends_now() {
            return Ok(Some(CheckOutcome::Stopped));
        }
    }
    let why = why.map(|why| ledger.redactor.text(&why).into_owned());
    let text = format!("{}: {}\n", verifier.command_line(), why.as_deref().unwrap_or("yes"));
    let log_digest = artifacts::write(log_path, text.as_bytes())?;
    let result = CheckResult {
        name: verifier.name.clone(),
        tree: tree.clone(),
        passed: why.is_none(),
        why,
        exit_code: None,
        duration_ms: took.as_millis() as u64,
        tests: None,
        log: ledger.record_dir.relative(log_path),
        log_digest,
        failing: Vec::new(),
        last_lines: Vec::new(),
    };
    // File checks run no program, so there is nothing to trace. The caller's code can't be traced, and nothing
    // of a hidden check is recorded.
    let seen =
        (verifier.expect != Some(Expect::Custom) || ledger.is_hidden(verifier)).then(ExecTrace::default);
    Ok(Some(CheckOutcome::Result(Box::new(result), text, seen)))
}

pub(crate) struct LoggedRun {
    pub outcome: Result<ralph_loop_domain::ports::ExecOutcome, SandboxError>,
    pub tests: Option<ralph_loop_protocol::proof::test_counts::TestCounts>,
    /// Whether tests began and ended without a result.
    pub unfinished: bool,
    /// Failed tests in the last report.
    pub failed_at_end: u64,
    pub excerpt: String,
    pub log: FinishedLog,
    pub trace: Option<ExecTrace>,
}

/// Runs one command with its output in a log.
pub(crate) fn run_logged(
    ledger: &mut Ledger,
    sandbox: &dyn Sandbox,
    request: &ExecRequest,
    label: &str,
    log_path: &Path,
    watch: bool,
) -> Result<LoggedRun, DriveError> {
    let log = ledger.open_log(log_path)?;
    let started = ledger.clock.elapsed();
    let mut sink = CheckSink {
        ledger,
        log,
        scanner: TestScanner::default(),
        excerpt: Vec::new(),
        label,
        voice: LiveStream::Check(label.to_owned()),
        started,
        last_poll: started,
        error: None,
    };
    let done = match watch {
        true => sandbox.exec_watched(request, &mut sink),
        false => sandbox.exec(request, &mut sink).map(|outcome| (outcome, None)),
    };
    let (outcome, trace) = match done {
        Ok((outcome, trace)) => (Ok(outcome), trace),
        Err(error) => (Err(error), None),
    };
    let CheckSink { ledger, mut log, scanner, mut excerpt, error, voice, .. } = sink;
    ledger.command_took(ledger.clock.elapsed().saturating_sub(started));
    if let Some(error) = error {
        return Err(error);
    }
    let outcome = match outcome {
        // A verifier that can't start has failed; a broken sandbox is an error.
        Err(error @ SandboxError::CannotStart { .. }) => {
            let line = format!("{error}\n");
            log.push(Stream::Stderr, line.as_bytes());
            excerpt.extend_from_slice(line.as_bytes());
            Err(error)
        }
        Err(error) => return Err(error.into()),
        Ok(outcome) => Ok(outcome),
    };
    if outcome.as_ref().is_ok_and(|outcome| outcome.end == ExecEnd::Stopped(StopCause::Budget)) {
        let cut_ms = u64::try_from(ledger.unreported_time().as_millis()).unwrap_or(u64::MAX).max(1);
        let message = format!("the time is used up: `{label}` was ended");
        ledger.record(EventBody::BudgetWarning { budget: BudgetKind::Time, message, cut_ms })?;
    }
    let (log, rest) = log.finish()?;
    for rest in &rest {
        ledger.show_text(&voice, rest);
        excerpt.extend_from_slice(rest);
    }
    let excerpt = String::from_utf8_lossy(&excerpt);
    let excerpt = tail(&excerpt, EXCERPT).to_owned();
    let unfinished = scanner.is_unfinished();
    let failed_at_end = scanner.failed_at_end();
    Ok(LoggedRun { outcome, tests: scanner.finish(), unfinished, failed_at_end, excerpt, log, trace })
}

struct CheckSink<'a> {
    ledger: &'a mut Ledger,
    log: OutputLog,
    scanner: TestScanner,
    excerpt: Vec<u8>,
    label: &'a str,
    voice: LiveStream,
    started: Duration,
    last_poll: Duration,
    error: Option<DriveError>,
}

impl ExecSink for CheckSink<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        self.scanner.feed(bytes);
        let clean = self.log.push(stream, bytes);
        self.ledger.show_text(&self.voice, &clean);
        self.excerpt.extend_from_slice(&clean);
        if self.excerpt.len() > 4 * EXCERPT {
            let over = self.excerpt.len() - EXCERPT;
            self.excerpt.drain(..over);
        }
    }

    fn poll(&mut self) -> ControlFlow<StopCause> {
        let now = self.ledger.clock.elapsed();
        self.ledger.live.keep_pace(now);
        if self.ledger.cancel.get().is_none() && now - self.last_poll < crate::record::recorder::POLL {
            return ControlFlow::Continue(());
        }
        self.last_poll = now;
        let live = SessionProgress {
            now: self.ledger.clock.now(),
            elapsed: now - self.started,
            silent: None,
            activity: self.label,
        };
        self.ledger.observer.live(&self.ledger.state, &live);
        if self.ledger.time_is_up(now.saturating_sub(self.started)) {
            return ControlFlow::Break(StopCause::Budget);
        }
        match inbox::read(self.ledger) {
            Ok(Some(StopCause::Suspended)) => ControlFlow::Break(StopCause::Suspended),
            Ok(_) if self.ledger.ends_now() => ControlFlow::Break(StopCause::Cancelled),
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(StopCause::Cancelled)
            }
        }
    }
}
