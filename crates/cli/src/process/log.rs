//! The process log: for commands that drive runs, and with `-vv`.

use ralph_loop_app::start::log::RunLog;
use ralph_loop_app::{App, StartedRun};
use std::path::Path;
use std::sync::OnceLock;
use tracing::Level;

static LOG: OnceLock<RunLog> = OnceLock::new();

/// Starts logging; with `stderr`, shows it as well.
pub fn begin(app: &App, stderr: bool) {
    let redactor = app.environment().redactor(Path::new("."));
    LOG.get_or_init(|| RunLog::install(redactor, stderr.then_some(Level::DEBUG)));
}

/// Logs to the record of the run that this process drives.
pub fn attach(run: &StartedRun) {
    if let Some(log) = LOG.get() {
        log.attach(&run.record(), run.redactor());
    }
}
