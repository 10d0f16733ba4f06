//! Numbers that are goals: the command of a check is run as often as its metric asks for, each time with a log of its own, and
//! the median of what it prints counts.

use crate::error::DriveError;
use crate::log_tail::read_tail;
use ralph_loop_domain::ports::ExecEnd;
use ralph_loop_proof::report::numbers::Measurement;
use ralph_loop_task::config::{MetricConfig, VerifierConfig};
use std::path::{Path, PathBuf};

/// Bytes of an output in which the number is looked for.
const OUTPUT_MAX: u64 = 4 * 1024 * 1024;

/// What a measurement came to.
pub(crate) enum Measured {
    /// As much as is asked for, or nothing is.
    Enough,
    /// Why it is not enough, or why there is no number.
    NotEnough(String),
    /// The engine ended it: nothing is known.
    Stopped,
}

/// Runs a command under a name for people, with its output in a log; says how it ended, or why it could not start.
type RunOnce<'a> = dyn FnMut(&str, &Path) -> Result<Result<ExecEnd, String>, DriveError> + 'a;

/// Measures again, after the first run of a check has ended well, and says whether the number is enough. `run_once` runs the
/// command under a name for people, with its output in a log, and says how it ended, or why it could not start.
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
    // Without a target it is only looked at: a check that prints no number then is no failed one.
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

/// What the logs of a measurement say; `Err` says in words why they say nothing.
pub(crate) fn of_logs(metric: &MetricConfig, log_path: &Path) -> Result<Measurement, String> {
    let logs = (1..=metric.repeat.max(1))
        .map(|run| if run == 1 { log_path.to_owned() } else { log_of(log_path, run) });
    let values =
        logs.map(|log| metric.value(&read_tail(&log, OUTPUT_MAX))).collect::<Result<Vec<f64>, String>>()?;
    Measurement::of(&values).ok_or_else(|| "it was not measured".to_owned())
}

/// The log of a further run, beside the first one's.
fn log_of(first: &Path, run: u32) -> PathBuf {
    first.with_extension(format!("{run}.log"))
}
