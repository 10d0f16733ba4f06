//! Runs the checks on the original files before the first session: shows what the final check is worth, and
//! reveals environment problems before anything costs money.

use crate::error::DriveError;
use crate::record::log_tail::{last_lines, read_tail};
use crate::run::Run;
use crate::steps::checks::check::{CheckOptions, CheckOutcome, CheckRuns, CheckTarget};
use crate::steps::checks::clean_checkout::{self, SetupEnd, make_dir};
use crate::steps::checks::missing_programs::is_created_by_task;
use crate::steps::checks::{installed, measure};
use ralph_loop_domain::ports::ExecTrace;
use ralph_loop_domain::proof::Watching;
use ralph_loop_domain::repo::installed::named;
use ralph_loop_domain::repo::setup;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_proof::report::environment::fault;
use ralph_loop_proof::report::numbers;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::{Baseline, BaselineChecks, CheckResult};
use ralph_loop_protocol::id::Digest;
use ralph_loop_protocol::stuck::MeasuredNumber;
use ralph_loop_task::config::{CommandLine, Expect, VerifierConfig};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Baseline results cached for other runs.
const CACHED_MAX: usize = 50;
/// Execution trace of the baseline checks, in the run's folder.
const TRACE: &str = "baseline/trace.json";

/// Bytes examined of a failed setup's output.
const SETUP_TAIL: u64 = 8 * 1024;
/// Bytes examined of a failed check's output.
const CHECK_TAIL: u64 = 64 * 1024;

/// Baseline check results and trace.
#[derive(Debug, Serialize, Deserialize)]
struct BaselineRecord {
    checks: BaselineChecks,
    trace: ExecTrace,
    /// The user's installed dependencies are incomplete; setup succeeds.
    #[serde(default)]
    installs: bool,
}

/// How the baseline ended.
pub(crate) enum BaselineEnd {
    /// The results; `None` if not wanted or not possible.
    Known(Option<BaselineChecks>),
    /// The run was stopped.
    Stopped,
}

/// Runs every check on the original files in a clean checkout after setup, or reuses cached results.
pub(crate) fn check_baseline(run: &mut Run, baseline: &Baseline) -> Result<BaselineEnd, DriveError> {
    if !run.state.spec.settings.baseline {
        return Ok(BaselineEnd::Known(None));
    }
    let cache = run.ports.baseline_cache.as_ref().map(|folder| folder.join(cache_key(run, baseline)));
    if let Some(mut record) = cache.as_deref().and_then(read_record) {
        record.checks.cached = true;
        for result in &mut record.checks.results {
            result.log_digest = write_cached_log(run, &result.log)?;
        }
        keep_trace(run, &record)?;
        if record.installs {
            installed::set_installs(run, true)?;
        }
        report_baseline(run, &record.checks)?;
        return Ok(BaselineEnd::Known(Some(record.checks)));
    }
    let logs = run.record_dir.path().join("baseline");
    make_dir(&logs)?;
    let mut found =
        clean_checkout::in_clean_folder(run, |run, folder| check_start(run, folder, baseline, &logs))?;
    if let Some(first) = found.take_if(|first| first_lack(run, &first.checks).is_some()) {
        found = check_with_setup(run, first, baseline, &logs)?;
    }
    let Some(record) = found else {
        let cut_short = run.state.spending.cut_short && run.state.time_left().is_zero();
        return Ok(match run.ledger.ends_now() || cut_short {
            true => BaselineEnd::Stopped,
            false => BaselineEnd::Known(None),
        });
    };
    keep_trace(run, &record)?;
    // Other failures may be transient; passes and test failures are reproducible on the same files.
    let lasting = record.checks.setup_failed.is_none()
        && record.checks.results.iter().all(|r| r.passed || r.tests.is_some_and(|t| t.executed() > 0));
    if let Some(path) = cache.filter(|_| lasting) {
        keep_record(&path, &record);
    }
    report_baseline(run, &record.checks)?;
    Ok(BaselineEnd::Known(Some(record.checks)))
}

/// Repeats the baseline checks with setup if the user's installed dependencies are incomplete; uses setup
/// for the run if that succeeds.
fn check_with_setup(
    run: &mut Run,
    first: BaselineRecord,
    baseline: &Baseline,
    logs: &Path,
) -> Result<Option<BaselineRecord>, DriveError> {
    let (installed, lack) = (installed::usable_installed(run), first_lack(run, &first.checks));
    if !installed::can_install(run) {
        return Ok(Some(first));
    }
    let logs = logs.join("setup");
    make_dir(&logs)?;
    installed::set_installs(run, true)?;
    let again =
        clean_checkout::in_clean_folder(run, |run, folder| check_start(run, folder, baseline, &logs))?;
    match again {
        Some(again) if first_lack(run, &again.checks).is_none() => {
            let setup =
                installed::setup_beside(run, &[]).iter().map(CommandLine::display).collect::<Vec<_>>();
            run.notice(format!(
                "with {} the checks cannot run ({}); they run after `{}` in this run",
                named(&installed),
                lack.unwrap_or_default(),
                setup.join("; ")
            ))?;
            Ok(Some(BaselineRecord { installs: true, ..again }))
        }
        again => {
            installed::set_installs(run, false)?;
            Ok(again.map(|_| first))
        }
    }
}

/// What a required baseline check lacks in its environment.
fn first_lack(run: &Run, checks: &BaselineChecks) -> Option<String> {
    if let Some(setup) = &checks.setup_failed {
        return Some(format!("`{setup}` fails"));
    }
    let required = &run.ledger.state.spec.settings.required_verifiers;
    let failing = checks.results.iter().filter(|result| !result.passed && required.contains(&result.name));
    failing.filter_map(|result| lack_of(run, result)).next()
}

fn lack_of(run: &Run, result: &CheckResult) -> Option<String> {
    let output = read_tail(&run.ledger.record_dir.path().join(&result.log), CHECK_TAIL);
    let found = fault(result.exit_code, &output, &|name| is_created_by_task(&run.ledger.state, name))?;
    Some(format!("{}: {}", result.name, found.sentence()))
}

/// The execution trace of the baseline checks.
pub(crate) fn baseline_trace(run: &Run) -> ExecTrace {
    let text = std::fs::read(run.record_dir.path().join(TRACE)).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn keep_trace(run: &Run, record: &BaselineRecord) -> Result<(), DriveError> {
    make_dir(&run.ledger.record_dir.path().join("baseline"))?;
    let text = serde_json::to_vec(&record.trace).unwrap_or_default();
    artifacts::write(&run.ledger.record_dir.path().join(TRACE), &text)?;
    Ok(())
}

/// Writes the log of a cached check.
fn write_cached_log(run: &Run, log: &str) -> Result<Digest, DriveError> {
    let path = run.record_dir.path().join(log);
    path.parent().map_or(Ok(()), make_dir)?;
    Ok(artifacts::write(&path, b"the result of an earlier run, on the same files with the same checks\n")?)
}

/// Everything the results depend on.
fn cache_key(run: &Run, baseline: &Baseline) -> String {
    let settings = &run.ledger.state.spec.settings;
    let known = serde_json::json!([
        // Previously seen failures.
        "red",
        baseline.tree,
        settings.verifiers,
        settings.setup_commands,
        installed::usable_marks(run),
        run.state.spec.task.working_dir,
        settings.isolation,
        settings.sandbox,
        run.state.spec.workspace.file_name().map(|name| name.to_string_lossy().into_owned()),
    ]);
    format!("{}.json", Digest::of(known.to_string().as_bytes()).as_str().replace(':', "-"))
}

/// `None` if the run was stopped or there is no checkout.
fn check_start(
    run: &mut Run,
    folder: &Path,
    baseline: &Baseline,
    logs: &Path,
) -> Result<Option<BaselineRecord>, DriveError> {
    if let Err(error) = run.ports.workspace.checkout_clean(&baseline.start, folder) {
        run.notice(format!("the checks were not run at the start: {error}"))?;
        return Ok(None);
    }
    let checkout = installed::open_checkout(run, folder)?;
    if !checkout.installed.is_empty() {
        let installed = named(&checkout.installed);
        run.notice(format!("the checks use what is already installed: {installed}"))?;
    }
    let mut checks = BaselineChecks {
        results: Vec::new(),
        red: Vec::new(),
        watched: Watching::Watched,
        setup_failed: None,
        setup_lines: Vec::new(),
        setup_log: None,
        cached: false,
        metric: None,
    };
    let mut trace = ExecTrace::default();
    match clean_checkout::run_setup(run, &checkout, logs)? {
        SetupEnd::Ready => {}
        SetupEnd::Stopped => return Ok(None),
        SetupEnd::Failed { command, log } => {
            let path = run.record_dir.path().join(&log);
            let output = run.ledger.redact_for_display(&read_tail(&path, SETUP_TAIL));
            let hint = setup::setup_failed_hint(run.state.spec.settings.setup_guessed);
            run.notice(format!(
                "warning: the setup command `{command}` fails on the original files; every final check runs it first, so nothing can be proven; log: {}; {hint}",
                path.display()
            ))?;
            checks.setup_lines = last_lines(&output);
            checks.setup_log = Some(log);
            checks.setup_failed = Some(command);
            return Ok(Some(BaselineRecord { checks, trace, installs: false }));
        }
    }
    let (sandbox, env) = (&*checkout.sandbox, checkout.env.as_slice());
    let (mut runs, mut second_runs) = (CheckRuns::default(), CheckRuns::default());
    for verifier in run.state.spec.settings.verifiers.clone() {
        let log = logs.join(format!("check-{}.log", verifier.name));
        let how = CheckOptions { env, watch: true };
        let place = CheckTarget { sandbox, tree: &baseline.tree, log: &log, how };
        match runs.run(&mut run.ledger, &verifier, &place)? {
            CheckOutcome::Result(result, _, seen) => {
                match seen {
                    Some(seen) => trace.steps.extend(seen.steps),
                    None => checks.watched = Watching::NotWatched,
                }
                if !result.passed && lack_of(run, &result).is_none() {
                    let again = logs.join(format!("check-{}-again.log", verifier.name));
                    let place = CheckTarget { log: &again, how: CheckOptions { env, watch: false }, ..place };
                    match second_runs.run(&mut run.ledger, &verifier, &place)? {
                        CheckOutcome::Result(again, ..) if !again.passed => checks.red.push(verifier.name.clone()),
                        CheckOutcome::Result(..) => run.notice(format!(
                            "{} failed and passed on the same files: it's flaky, so it can't show a difference",
                            verifier.name
                        ))?,
                        CheckOutcome::Stopped => return Ok(None),
                    }
                }
                checks.results.push(*result);
            }
            CheckOutcome::Stopped => return Ok(None),
        }
    }
    checks.metric = original_metric(run, logs);
    Ok(Some(BaselineRecord { checks, trace, installs: false }))
}

/// The metric's original value, just measured by the baseline.
fn original_metric(run: &Run, logs: &Path) -> Option<MeasuredNumber> {
    run.state.spec.settings.verifiers.iter().find_map(|verifier| {
        let metric = verifier.metric.as_ref()?;
        let measured = measure::of_logs(metric, &logs.join(format!("check-{}.log", verifier.name))).ok()?;
        numbers::of_measurement(&verifier.name, measured, metric.rises())
    })
}

/// Reports before money is spent: a check that fails other than by its tests may be the wrong command,
/// and one that passes already can't show that the work is done.
fn report_baseline(run: &mut Run, checks: &BaselineChecks) -> Result<(), DriveError> {
    let required = run.state.spec.settings.required_verifiers.clone();
    let doubtful =
        checks.results.iter().filter(|result| !checks.cached && is_suspicious_failure(run, result));
    let doubtful: Vec<(&str, &str)> =
        doubtful.map(|result| (result.name.as_str(), result.why.as_deref().unwrap_or("failed"))).collect();
    let fails = match doubtful.as_slice() {
        [] => None,
        [(name, why)] => Some(format!("{name} fails ({why})")),
        several => {
            let each: Vec<String> = several.iter().map(|(name, why)| format!("{name} ({why})")).collect();
            Some(format!("{} fail", one_line(&each.join(", "), 300)))
        }
    };
    if let Some(fails) = fails {
        run.notice(format!(
            "before any work {fails}; if that is not how the result is checked, `--verify CMD` names another command"
        ))?;
    }
    let passing: Vec<&str> = checks
        .results
        .iter()
        .filter(|r| r.passed && required.contains(&r.name))
        .map(|r| r.name.as_str())
        .collect();
    if passing.is_empty() {
        return Ok(());
    }
    let all = passing.len() == required.len();
    let names = one_line(&passing.join(", "), 200);
    run.notice(match all {
        true => format!(
            "warning: every check passes already, before any work ({names}); unless a new test fails without the work, the result is unverified"
        ),
        false => format!("passes already, before any work: {names}"),
    })
}

/// Whether a check fails as a wrong command would. Failing tests and missing files are expected and
/// reported with the snapshot; a missing program has a separate message.
fn is_suspicious_failure(run: &Run, result: &CheckResult) -> bool {
    let by_tests = result.tests.is_some_and(|tests| tests.executed() > 0);
    let looks = |verifier: &VerifierConfig| {
        matches!(
            verifier.expect,
            Some(Expect::FileExists { .. } | Expect::FileContains { .. } | Expect::Custom)
        )
    };
    let mut verifiers = run.state.spec.settings.verifiers.iter();
    let no_command = verifiers.any(|verifier| verifier.name == result.name && looks(verifier));
    !result.passed && !by_tests && !no_command && !matches!(result.exit_code, Some(0 | 126 | 127))
}

/// Reports environment failures with the fix; the task may be to fix them.
pub(crate) fn report_setup_hint(run: &mut Run, setup: Option<String>) -> Result<(), DriveError> {
    let Some(checks) = run.state.baseline_checks.clone() else { return Ok(()) };
    let failing: Vec<_> = checks.results.iter().filter(|result| !result.passed).collect();
    if failing.is_empty() {
        return Ok(());
    }
    if let Some(hint) = setup {
        return run.notice(hint);
    }
    let with = installed::with_installed(run);
    let missing = failing.iter().find(|result| matches!(result.exit_code, Some(126 | 127)));
    if let Some(result) = missing {
        let (name, log) = (result.name.clone(), result.log.clone());
        return run.notice(format!(
            "{name} finds no program to run on the original files{with}: see {log}; install it, or add a command to `setup_commands` that does"
        ));
    }
    match failing.iter().find_map(|result| lack_of(run, result)) {
        Some(lack) => {
            run.notice(format!("on the original files{with}, {lack}, unless creating it is the task"))
        }
        None => Ok(()),
    }
}

fn read_record(path: &Path) -> Option<BaselineRecord> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Caches a record and drops the oldest. Write failures are ignored.
fn keep_record(path: &Path, record: &BaselineRecord) {
    let Some(folder) = path.parent() else { return };
    if make_dir(folder).is_err() {
        return;
    }
    let text = serde_json::to_vec(record).unwrap_or_default();
    if artifacts::write_atomic(path, &text).is_err() {
        return;
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<(std::time::SystemTime, PathBuf)> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    all.sort();
    for (_, old) in all.iter().take(all.len().saturating_sub(CACHED_MAX)) {
        let _ = std::fs::remove_file(old);
    }
}
