//! Metrics: runs a check's command as often as its metric asks, logs each run, and uses the median.

use crate::error::DriveError;
use crate::record::log_tail::read_tail;
use ralph_loop_domain::ports::ExecEnd;
use ralph_loop_proof::report::numbers::Measurement;
use ralph_loop_task::config::{MetricConfig, VerifierConfig};
use std::path::{Path, PathBuf};

const OUTPUT_MAX: u64 = 4 * 1024 * 1024;

pub(crate) enum Measured {
    /// Reached, or no target.
    Enough,
    /// Why it isn't reached, or why there is no number.
    NotEnough(String),
    /// Stopped by the engine; nothing is known.
    Stopped,
}

/// Runs a command under a display name with its output in a log; returns how it ended, or why it didn't
/// start.
type RunOnce<'a> = dyn FnMut(&str, &Path) -> Result<Result<ExecEnd, String>, DriveError> + 'a;

/// Repeats a passing check's command with `run_once` and returns whether the metric reaches its target.
pub(crate) fn again(
    verifier: &VerifierConfig,
    log_path: &Path,
    run_once: &mut RunOnce<'_>,
) -> Result<Measured, DriveError> {
    let Some(metric) = &verifier.metric else { return Ok(Measured::Enough) };
    for run in 2..=metric.repeat {
        let label = format!("{} ({run} of {})", verifier.name, metric.repeat);
        let why = match run_once(&label, &log_of(log_path, run))? {
            Ok(ExecEnd::Exited(0)) => continue,
            Ok(ExecEnd::Stopped(_) | ExecEnd::GuardLost) => return Ok(Measured::Stopped),
            Ok(end) => {
                end.code().map_or_else(|| "no end in time".to_owned(), |code| format!("exit code {code}"))
            }
            Err(why) => why,
        };
        return Ok(Measured::NotEnough(format!("run {run} of {}: {why}", metric.repeat)));
    }
    // Without a target, a missing number isn't a failure.
    if metric.target.is_none() {
        return Ok(Measured::Enough);
    }
    Ok(match of_logs(metric, log_path) {
        Err(why) => Measured::NotEnough(why),
        Ok(measured) => match metric.shortfall(measured.value) {
            None => Measured::Enough,
            Some(why) if metric.repeat > 1 => {
                let runs = metric.repeat;
                let apart = (measured.noise * 1000.0).round() / 1000.0;
                let apart = if apart > 0.0 { format!(", ±{apart}") } else { String::new() };
                Measured::NotEnough(format!("{why} (the median of {runs} runs{apart})"))
            }
            Some(why) => Measured::NotEnough(why),
        },
    })
}

/// The metric in a measurement's logs, or why there is none.
pub(crate) fn of_logs(metric: &MetricConfig, log_path: &Path) -> Result<Measurement, String> {
    let logs = (1..=metric.repeat.max(1))
        .map(|run| if run == 1 { log_path.to_owned() } else { log_of(log_path, run) });
    let values =
        logs.map(|log| metric.value(&read_tail(&log, OUTPUT_MAX))).collect::<Result<Vec<f64>, String>>()?;
    Measurement::of(&values).ok_or_else(|| "it was not measured".to_owned())
}

/// The log of a repeated run, next to the first.
fn log_of(first: &Path, run: u32) -> PathBuf {
    first.with_extension(format!("{run}.log"))
}
