//! The log of this process: begun for commands that drive runs, and where `-vv` asks for it.

use ralph_loop_app::log::RunLog;
use ralph_loop_app::{App, ReadyRun};
use std::path::Path;
use std::sync::OnceLock;
use tracing::Level;

static LOG: OnceLock<RunLog> = OnceLock::new();

/// Listens to what the engine does from now on; with `stderr`, shows it there, too.
pub fn begin(app: &App, stderr: bool) {
    let redactor = app.environment().redactor(Path::new("."));
    LOG.get_or_init(|| RunLog::install(redactor, stderr.then_some(Level::DEBUG)));
}

/// Writes to the record of the run that this process drives.
pub fn attach(run: &ReadyRun) {
    if let Some(log) = LOG.get() {
        log.attach(&run.record(), run.redactor());
    }
}
