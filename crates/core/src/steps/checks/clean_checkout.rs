//! A clean checkout in its own folder, and its setup.

use crate::error::DriveError;
use crate::run::Run;
use crate::steps::checks::check::run_logged;
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, Sandbox};
use ralph_loop_domain::repo::installed::InstalledFolder;
use ralph_loop_journal::JournalError;
use ralph_loop_task::config::CommandLine;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SETUP_TIMEOUT: Duration = Duration::from_secs(1800);

pub(crate) enum SetupEnd {
    Ready,
    /// This command failed; the log path is relative to the run's folder.
    Failed {
        command: String,
        log: String,
    },
    /// The run was stopped.
    Stopped,
}

/// A clean checkout, ready for setup and checks.
pub(crate) struct Checkout {
    pub(crate) sandbox: Box<dyn Sandbox>,
    /// Variables for its commands.
    pub(crate) env: Vec<(String, String)>,
    /// Setup still to run.
    pub(crate) setup: Vec<CommandLine>,
    /// Dependencies taken from the user's folder.
    pub(crate) installed: Vec<InstalledFolder>,
}

/// Creates a folder for a clean checkout, calls `work`, and removes it. The folder is named like the
/// workspace, because some tools derive the project's name from it.
pub(crate) fn in_clean_folder<T>(
    run: &mut Run,
    work: impl FnOnce(&mut Run, &Path) -> Result<T, DriveError>,
) -> Result<T, DriveError> {
    let parent = run.ports.proof_dir.clone();
    // Git of a killed process may still be writing there, so use a separate folder and remove both.
    let left_over = remove_dir(&parent);
    let name = run.state.spec.workspace.file_name().unwrap_or_else(|| "checkout".as_ref()).to_owned();
    let number = format!("{}-{}", run.state.iterations.count, run.journal.seq().0);
    let own = parent.join(number);
    let folder = own.join(name);
    make_dir(&folder)?;
    let done = work(run, &folder);
    remove_dir(&own)?;
    if remove_dir(&parent).is_err() {
        left_over?;
    }
    done
}

pub(crate) fn run_setup(run: &mut Run, checkout: &Checkout, logs: &Path) -> Result<SetupEnd, DriveError> {
    for (n, command) in checkout.setup.iter().enumerate() {
        let mut request = ExecRequest::new(command.argv());
        request.timeout = Some(SETUP_TIMEOUT);
        request.env.clone_from(&checkout.env);
        let log: PathBuf = logs.join(format!("setup-{}.log", n + 1));
        let setup_run = run_logged(&mut run.ledger, &*checkout.sandbox, &request, "setup", &log, false)?;
        let end = setup_run.outcome.as_ref().map(|o| o.end);
        if run.ledger.ends_now() || matches!(end, Ok(ExecEnd::GuardLost | ExecEnd::Stopped(_))) {
            return Ok(SetupEnd::Stopped);
        }
        if !end.as_ref().is_ok_and(|e| e.success()) {
            let log = run.record_dir.relative(&log);
            return Ok(SetupEnd::Failed { command: command.display(), log });
        }
    }
    Ok(SetupEnd::Ready)
}

pub(crate) fn make_dir(path: &Path) -> Result<(), DriveError> {
    Ok(std::fs::create_dir_all(path).map_err(|e| JournalError::file("make the folder", path, e))?)
}

fn remove_dir(path: &Path) -> Result<(), DriveError> {
    let gone = std::fs::remove_dir_all(path).or_else(|error| match error.kind() {
        // Some tools leave read-only folders.
        std::io::ErrorKind::PermissionDenied => {
            make_writable(path);
            std::fs::remove_dir_all(path)
        }
        _ => Err(error),
    });
    match gone {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(JournalError::file("remove", path, e).into())
        }
        _ => Ok(()),
    }
}

fn make_writable(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        let _ = std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700));
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
        }
    }
}
