//! Provides a clean checkout's dependencies: those installed in the user's folder, or by setup.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::environment;
use crate::proof::installed_marks::{self, Writers};
use crate::proof::surroundings;
use crate::step::checks::clean_checkout::{Checkout, make_dir};
use ralph_loop_domain::ports::{HostAccess, Sandbox};
use ralph_loop_domain::repo::installed;
use ralph_loop_domain::repo::installed::{InstalledFolder, InstalledUse};
use ralph_loop_domain::repo::setup;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_protocol::event::FileChange;
use ralph_loop_safe_fs::{Links, SafeDir};
use ralph_loop_task::config::{CommandLine, Isolation};
use std::collections::BTreeMap;
use std::path::Path;

/// Marks a run whose checkouts install everything.
const INSTALLS: &str = "baseline/installs";

impl Driver {
    /// Opens the checkout in `folder` with the user's installed dependencies.
    pub(crate) fn open_checkout(&mut self, folder: &Path) -> Result<Checkout, DriveError> {
        let mut installed = self.usable_installed();
        let setup = self.setup_beside(&installed);
        // Something at that path came with the run: originally git didn't track it.
        let top = SafeDir::open(folder).ok();
        for one in installed.iter_mut().filter(|one| one.usage != InstalledUse::Outside) {
            let at = one.at.clone();
            let clear = || {
                let cleared = top.as_ref().map_or(Ok(()), |top| top.remove(&at));
                cleared.map_err(|error| JournalError::file("clear", folder, error))
            };
            clear()?;
            if one.usage == InstalledUse::Copied && !self.workspace.copy_unrecorded(&at, one.top(), folder)? {
                clear()?;
                one.usage = InstalledUse::Lent;
            }
        }
        let lent: Vec<InstalledFolder> =
            installed.iter().filter(|one| one.usage == InstalledUse::Lent).cloned().collect();
        let sandbox = self.sandbox.with_lent(folder, &lent)?;
        let env = self.checkout_env(&*sandbox, folder, &installed);
        Ok(Checkout { sandbox, env, setup, installed })
    }

    /// Variables for commands in a checkout. This machine's don't apply elsewhere.
    fn checkout_env(
        &self,
        sandbox: &dyn Sandbox,
        folder: &Path,
        installed: &[InstalledFolder],
    ) -> Vec<(String, String)> {
        if sandbox.capabilities().surroundings == HostAccess::Own {
            return Vec::new();
        }
        let vars = self.ctx.vars.texts();
        let mut env = environment::redirected(vars, &self.ctx.state.spec.workspace, sandbox.root());
        // Any compiled file there is then intentional.
        env.push(("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()));
        if !installed.is_empty() {
            // Borrowed dependencies must not be synced.
            env.push(("UV_NO_SYNC".to_owned(), "1".to_owned()));
        }
        if !installed.is_empty() && self.writers() == Writers::Sessions {
            // A session could have put compiled files next to unchanged sources.
            let compiled = folder.with_file_name("compiled");
            env.push(("PYTHONPYCACHEPREFIX".to_owned(), compiled.display().to_string()));
        }
        env
    }

    /// Dependencies in the user's folder that are unchanged. None if setup is configured, or this run's
    /// checkouts install everything.
    pub(crate) fn usable_installed(&self) -> Vec<InstalledFolder> {
        let state = &self.ctx.state;
        let settings = &state.spec.settings;
        let configured = !settings.setup_commands.is_empty() && !settings.setup_guessed;
        let elsewhere = self.sandbox.capabilities().surroundings == HostAccess::Own;
        if configured || elsewhere || self.installs() {
            return Vec::new();
        }
        // Before the first session only the user can have changed it.
        if state.spending.totals.sessions == 0 {
            return self.installed.clone();
        }
        let now = self.installed_marks();
        let same = |one: &&InstalledFolder| {
            let name = installed_marks::name(one);
            state.surroundings.get(&name).is_some_and(|before| now.get(&name) == Some(before))
        };
        self.installed.iter().filter(same).cloned().collect()
    }

    /// Fingerprints of what checks depend on outside the workspace, for the journal.
    pub(crate) fn sealed_surroundings(&self) -> BTreeMap<String, String> {
        match self.sandbox.capabilities().surroundings {
            HostAccess::Host => {
                let mut all = surroundings::sealed(&self.fingerprints());
                all.extend(self.installed_marks());
                all
            }
            HostAccess::Own => BTreeMap::new(),
        }
    }

    /// Fingerprints of installed dependencies.
    fn installed_marks(&self) -> BTreeMap<String, String> {
        installed_marks::marks(&self.installed, self.writers())
    }

    fn writers(&self) -> Writers {
        match self.ctx.state.spec.settings.isolation {
            Isolation::None => Writers::Sessions,
            _ => Writers::User,
        }
    }

    /// Setup commands still needed with these dependencies.
    pub(crate) fn setup_beside(&self, installed: &[InstalledFolder]) -> Vec<CommandLine> {
        let settings = &self.ctx.state.spec.settings;
        let mut commands = settings.setup_commands.clone();
        if commands.is_empty() && self.installs() {
            commands = self.setup_in_place();
        }
        commands.retain(|command| !installed::has_all_of(&command.display(), installed.iter()));
        commands
    }

    /// What would update the user's folders: the guessed setup, or what their files name.
    fn setup_in_place(&self) -> Vec<CommandLine> {
        let settings = &self.ctx.state.spec.settings;
        if !settings.setup_commands.is_empty() {
            return settings.setup_commands.clone();
        }
        let top = SafeDir::open(&self.ctx.state.spec.workspace);
        let commands = self.installed.iter().filter_map(|one| {
            let above = one.at.rsplit_once('/').map_or("", |(above, _)| above);
            let has = |file: &str| {
                top.as_ref().is_ok_and(|top| top.is_file(Path::new(above).join(file), Links::Inside))
            };
            let command = self.with_test_extra(setup::setup_of(&one.at, has)?.command);
            Some(CommandLine::Shell(match above {
                "" => command,
                above => format!("cd {above} && {command}"),
            }))
        });
        commands.collect()
    }

    /// Whether this run's checkouts install everything.
    pub(crate) fn installs(&self) -> bool {
        self.ctx.run.path().join(INSTALLS).exists()
    }

    /// Sets whether this run's checkouts install everything.
    pub(crate) fn set_installs(&mut self, installs: bool) -> Result<(), DriveError> {
        let file = self.ctx.run.path().join(INSTALLS);
        if installs {
            make_dir(&self.ctx.run.path().join("baseline"))?;
            artifacts::write(&file, b"")?;
        } else {
            let _ = std::fs::remove_file(&file);
        }
        Ok(())
    }

    /// Fingerprints of what checkouts get.
    pub(crate) fn usable_marks(&self) -> BTreeMap<String, String> {
        installed_marks::marks(&self.usable_installed(), self.writers())
    }

    /// Names dependencies that the user's folder has and checkouts lack, with the setup that would install
    /// them, if none is configured.
    pub(crate) fn missing_setup_hint(&self) -> Result<Option<String>, DriveError> {
        let spec = &self.ctx.state.spec;
        if !spec.settings.setup_commands.is_empty() || !self.usable_installed().is_empty() {
            return Ok(None);
        }
        let unrecorded = self.workspace.unrecorded()?;
        let below = spec.task.working_dir.clone().unwrap_or_default();
        let has = |name: &str| {
            [spec.workspace.join(name), spec.workspace.join(&below).join(name)].iter().any(|p| p.is_file())
        };
        let missing = setup::missing_setup(&unrecorded, has);
        Ok(missing.map(|(folder, setup)| setup::setup_hint(&folder, &self.with_test_extra(setup.command))))
    }

    /// Describes the dependencies the checks ran with.
    pub(crate) fn with_installed(&self) -> String {
        match self.usable_installed().as_slice() {
            [] => String::new(),
            installed => format!(" with {}", installed::named(installed)),
        }
    }

    /// Whether setup could provide more than what is installed.
    pub(crate) fn can_install(&self) -> bool {
        !self.installs() && !self.usable_installed().is_empty() && !self.setup_in_place().is_empty()
    }

    /// After a failed final check with borrowed dependencies: whether the run changed a dependency file, so
    /// that the check repeats with a full install.
    pub(crate) fn installs_after(&mut self, changes: &[FileChange]) -> Result<bool, DriveError> {
        let Some(change) = changes.iter().find(|change| setup::names_dependencies(&change.path)) else {
            return Ok(false);
        };
        if !self.can_install() {
            return Ok(false);
        }
        let commands: Vec<String> = self.setup_in_place().iter().map(CommandLine::display).collect();
        let why = format!(
            "the checks fail with what is already installed, and the run changed `{}`: the final check runs `{}` instead",
            change.path,
            commands.join("; ")
        );
        self.set_installs(true)?;
        self.ctx.notice(why)?;
        Ok(true)
    }
}
