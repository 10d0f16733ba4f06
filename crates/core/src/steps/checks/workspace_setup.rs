//! Runs setup in a fresh workspace before the first session: a worktree, a clone, a container, or an agent's
//! copy without the user's dependencies.

use crate::error::DriveError;
use crate::record::log_tail::read_tail;
use crate::run::Run;
use crate::steps::checks::clean_checkout::{self, Checkout, SetupEnd, make_dir};
use crate::steps::checks::installed;
use ralph_loop_domain::ports::{HostAccess, SandboxError};
use ralph_loop_domain::repo::installed::{InstalledFolder, InstalledUse};
use ralph_loop_journal::folder::artifacts;
use ralph_loop_protocol::display::text::{count, duration};
use ralph_loop_task::spec::WorkspaceKind;
use std::os::unix::fs::MetadataExt as _;

/// Reported bytes of a failed command's output.
const TOLD_MAX: u64 = 1500;
/// Log folder in the run's folder.
const FOLDER: &str = "setup";

/// Runs setup if the workspace is fresh and setup hasn't run there. `false` if the run was stopped. A
/// failure ends this process; `resume` tries again.
pub(crate) fn set_up_workspace(run: &mut Run) -> Result<bool, DriveError> {
    let installed = installed::usable_installed(run);
    let setup = installed::setup_beside(run, &installed);
    let commands = setup.len();
    if !is_fresh_workspace(run)? {
        return Ok(true);
    }
    copy_installed(run, &installed)?;
    if commands == 0 {
        return Ok(true);
    }
    let logs = run.record_dir.path().join(FOLDER);
    let (done, place) = (logs.join("done"), workspace_identity(run));
    if std::fs::read_to_string(&done).is_ok_and(|known| known == place) {
        return Ok(true);
    }
    make_dir(&logs)?;
    let started = run.clock.elapsed();
    // Setup also needs the rest of the driver, so borrow a second connection.
    let sandbox = run.ports.sandbox.new_connection()?;
    let workspace = Checkout { sandbox, env: Vec::new(), setup, installed };
    match clean_checkout::run_setup(run, &workspace, &logs)? {
        SetupEnd::Stopped if run.ledger.ends_now() || run.state.spending.cut_short => Ok(false),
        SetupEnd::Stopped => {
            Err(SandboxError::Broken("the process that supervises its commands died during the setup".into())
                .into())
        }
        SetupEnd::Failed { command, log } => {
            let path = run.record_dir.path().join(&log);
            let output = run.ledger.redact_for_display(read_tail(&path, TOLD_MAX).trim());
            let guessed = run.state.spec.settings.setup_guessed;
            Err(DriveError::Setup { command, log: path.display().to_string(), output, guessed })
        }
        SetupEnd::Ready => {
            let time = duration(run.clock.elapsed().saturating_sub(started));
            artifacts::write(&done, place.as_bytes())?;
            run.notice(format!("the workspace is set up: {} in {time}", count(commands, "command")))?;
            Ok(true)
        }
    }
}

/// Whether nothing is installed there. The agent's copy of the user's folder has the user's dependencies.
fn is_fresh_workspace(run: &Run) -> Result<bool, DriveError> {
    let spec = &run.ledger.state.spec;
    if spec.place != WorkspaceKind::InPlace
        || run.ports.sandbox.capabilities().surroundings == HostAccess::Own
    {
        return Ok(true);
    }
    if !spec.hands_back() {
        return Ok(false);
    }
    // A due guess fills a folder that the user's own lacks.
    let due = spec.settings.setup_guessed || installed::installs(run);
    Ok(due || run.ports.workspace.unrecorded()?.iter().all(|path| path.starts_with(".ralph")))
}

/// Copies the user's installed dependencies into a workspace with its own tree.
fn copy_installed(run: &Run, installed: &[InstalledFolder]) -> Result<(), DriveError> {
    let workspace = &run.ledger.state.spec.workspace;
    for one in installed.iter().filter(|one| one.usage != InstalledUse::Outside) {
        if one.top() != workspace && !workspace.join(&one.at).exists() {
            run.ports.workspace.copy_unrecorded(&one.at, one.top(), workspace)?;
        }
    }
    Ok(())
}

/// Distinguishes a workspace from one recreated at the same path.
fn workspace_identity(run: &Run) -> String {
    let state = &run.ledger.state;
    if run.ports.sandbox.capabilities().surroundings == HostAccess::Own
        && let Some(main) = state.spending.compute.sandboxes.first()
    {
        return format!("{} {}", main.provider, main.id);
    }
    let folder = &state.spec.workspace;
    let number = std::fs::metadata(folder).map_or(0, |meta| meta.ino());
    format!("{} {number}", folder.display())
}
