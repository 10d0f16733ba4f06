//! A clean checkout in a folder of its own, and the commands that make it ready for checks.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::environment;
use crate::step::verify::run_logged;
use ralph_domain::ports::{ExecEnd, ExecRequest, ExecTrace, Sandbox, Surroundings};
use ralph_journal::JournalError;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest run of one setup command.
const SETUP_TIMEOUT: Duration = Duration::from_secs(1800);

/// How the setup of a clean checkout ended.
pub(crate) enum SetupEnd {
    /// Every command did its work.
    Ready,
    /// This command failed; its log, relative to the run's folder.
    Failed { command: String, log: String },
    /// The run was stopped meanwhile.
    Stopped,
}

/// Looks at a checkout behind each setup command, and at what was seen of the command.
pub(crate) type AfterSetup<'a> = &'a mut dyn FnMut(Option<&ExecTrace>);

impl Driver {
    /// Makes a folder for a clean checkout, lets `work` use it and removes it. The folder has the name of the workspace: some
    /// tools take a project's name from it.
    pub(crate) fn in_clean_folder<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &Path) -> Result<T, DriveError>,
    ) -> Result<T, DriveError> {
        let parent = self.ctx.proof_dir.clone();
        // A git of an earlier process that was killed may still write there for a moment: this check gets a folder of its own,
        // and what is left of that one goes with it.
        let left_over = remove_dir(&parent);
        let name =
            self.ctx.state.spec.workspace.file_name().unwrap_or_else(|| "checkout".as_ref()).to_owned();
        let number = format!("{}-{}", self.ctx.state.iterations.count, self.ctx.journal.seq().0);
        let own = parent.join(number);
        let folder = own.join(name);
        make_dir(&folder)?;
        let done = work(self, &folder);
        remove_dir(&own)?;
        if remove_dir(&parent).is_err() {
            left_over?;
        }
        done
    }

    /// The variables of commands in a checkout. Elsewhere those of this machine do not count.
    pub(crate) fn checkout_env(&self, sandbox: &dyn Sandbox) -> Vec<(String, String)> {
        match sandbox.capabilities().surroundings {
            Surroundings::Host => {
                let vars = self.ctx.vars.texts();
                let mut env = environment::redirected(vars, &self.ctx.state.spec.workspace, sandbox.root());
                // Then whatever is compiled there, somebody meant to.
                env.push(("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()));
                env
            }
            Surroundings::Own => Vec::new(),
        }
    }

    /// Runs the setup commands; `after` looks at the checkout behind each, and is told what was seen of it. Without it nobody watches.
    pub(crate) fn run_setup(
        &mut self,
        sandbox: &dyn Sandbox,
        env: &[(String, String)],
        logs: &Path,
        mut after: Option<AfterSetup<'_>>,
    ) -> Result<SetupEnd, DriveError> {
        for (n, command) in self.ctx.state.spec.settings.setup_commands.clone().iter().enumerate() {
            let mut request = ExecRequest::new(command.argv());
            request.timeout = Some(SETUP_TIMEOUT);
            request.env = env.to_vec();
            let log: PathBuf = logs.join(format!("setup-{}.log", n + 1));
            let run = run_logged(&mut self.ctx, sandbox, &request, "setup", &log, after.is_some())?;
            let end = run.outcome.as_ref().map(|o| o.end);
            if self.ctx.ends_now() || matches!(end, Ok(ExecEnd::GuardLost | ExecEnd::Stopped(_))) {
                return Ok(SetupEnd::Stopped);
            }
            if !end.as_ref().is_ok_and(|e| e.success()) {
                let log = self.ctx.run.relative(&log);
                return Ok(SetupEnd::Failed { command: command.display(), log });
            }
            if let Some(after) = &mut after {
                after(run.trace.as_ref());
            }
        }
        Ok(SetupEnd::Ready)
    }
}

pub(crate) fn make_dir(path: &Path) -> Result<(), DriveError> {
    Ok(std::fs::create_dir_all(path).map_err(|e| JournalError::file("make the folder", path, e))?)
}

fn remove_dir(path: &Path) -> Result<(), DriveError> {
    let gone = std::fs::remove_dir_all(path).or_else(|error| match error.kind() {
        // Some tools leave folders that nobody may write into.
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
