//! Runs setup in a fresh workspace before the first session: a worktree, a clone, a container, or an agent's
//! copy without the user's dependencies.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::record::log_tail::read_tail;
use crate::step::checks::clean_checkout::{Checkout, SetupEnd, make_dir};
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

impl Driver {
    /// Runs setup if the workspace is fresh and setup hasn't run there. `false` if the run was stopped. A
    /// failure ends this process; `resume` tries again.
    pub(crate) fn set_up_workspace(&mut self) -> Result<bool, DriveError> {
        let installed = self.usable_installed();
        let setup = self.setup_beside(&installed);
        let commands = setup.len();
        if !self.is_fresh_workspace()? {
            return Ok(true);
        }
        self.copy_installed(&installed)?;
        if commands == 0 {
            return Ok(true);
        }
        let logs = self.ctx.run.path().join(FOLDER);
        let (done, place) = (logs.join("done"), self.workspace_identity());
        if std::fs::read_to_string(&done).is_ok_and(|known| known == place) {
            return Ok(true);
        }
        make_dir(&logs)?;
        let started = self.ctx.clock.elapsed();
        // Setup also needs the rest of the driver, so borrow a second connection.
        let sandbox = self.sandbox.new_connection()?;
        let workspace = Checkout { sandbox, env: Vec::new(), setup, installed };
        match self.run_setup(&workspace, &logs)? {
            SetupEnd::Stopped if self.ctx.ends_now() || self.ctx.state.spending.cut_short => Ok(false),
            SetupEnd::Stopped => Err(SandboxError::Broken(
                "the process that supervises its commands died during the setup".into(),
            )
            .into()),
            SetupEnd::Failed { command, log } => {
                let path = self.ctx.run.path().join(&log);
                let output = self.ctx.redact_for_display(read_tail(&path, TOLD_MAX).trim());
                let guessed = self.ctx.state.spec.settings.setup_guessed;
                Err(DriveError::Setup { command, log: path.display().to_string(), output, guessed })
            }
            SetupEnd::Ready => {
                let time = duration(self.ctx.clock.elapsed().saturating_sub(started));
                artifacts::write(&done, place.as_bytes())?;
                self.ctx
                    .notice(format!("the workspace is set up: {} in {time}", count(commands, "command")))?;
                Ok(true)
            }
        }
    }

    /// Whether nothing is installed there. The agent's copy of the user's folder has the user's dependencies.
    fn is_fresh_workspace(&self) -> Result<bool, DriveError> {
        let spec = &self.ctx.state.spec;
        if spec.place != WorkspaceKind::InPlace || self.sandbox.capabilities().surroundings == HostAccess::Own
        {
            return Ok(true);
        }
        if !spec.hands_back() {
            return Ok(false);
        }
        // A due guess fills a folder that the user's own lacks.
        let due = spec.settings.setup_guessed || self.installs();
        Ok(due || self.workspace.unrecorded()?.iter().all(|path| path.starts_with(".ralph")))
    }

    /// Copies the user's installed dependencies into a workspace with its own tree.
    fn copy_installed(&self, installed: &[InstalledFolder]) -> Result<(), DriveError> {
        let workspace = &self.ctx.state.spec.workspace;
        for one in installed.iter().filter(|one| one.usage != InstalledUse::Outside) {
            if one.top() != workspace && !workspace.join(&one.at).exists() {
                self.workspace.copy_unrecorded(&one.at, one.top(), workspace)?;
            }
        }
        Ok(())
    }

    /// Distinguishes a workspace from one recreated at the same path.
    fn workspace_identity(&self) -> String {
        let state = &self.ctx.state;
        if self.sandbox.capabilities().surroundings == HostAccess::Own
            && let Some(main) = state.spending.compute.sandboxes.first()
        {
            return format!("{} {}", main.provider, main.id);
        }
        let folder = &state.spec.workspace;
        let number = std::fs::metadata(folder).map_or(0, |meta| meta.ino());
        format!("{} {number}", folder.display())
    }
}
