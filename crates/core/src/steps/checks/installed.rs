//! Provides a clean checkout's dependencies: those installed in the user's folder, or by setup.

use crate::error::DriveError;
use crate::proof::installed_marks::{self, Writers};
use crate::proof::{environment, surroundings};
use crate::run::Run;
use crate::steps::checks::clean_checkout::{Checkout, make_dir};
use ralph_loop_domain::ports::{HostAccess, Sandbox};
use ralph_loop_domain::repo::installed::{self, InstalledFolder, InstalledUse};
use ralph_loop_domain::repo::setup;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_protocol::event::FileChange;
use ralph_loop_safe_fs::{Links, SafeDir};
use ralph_loop_task::config::{CommandLine, Isolation};
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes of `pyproject.toml` that are read.
const PROJECT_MAX: u64 = 64 * 1024;
/// Marks a run whose checkouts install everything.
const INSTALLS: &str = "baseline/installs";

/// Opens the checkout in `folder` with the user's installed dependencies.
pub(crate) fn open_checkout(run: &mut Run, folder: &Path) -> Result<Checkout, DriveError> {
    let mut installed = usable_installed(run);
    let setup = setup_beside(run, &installed);
    // Something at that path came with the run: originally git didn't track it.
    let top = SafeDir::open(folder).ok();
    for one in installed.iter_mut().filter(|one| one.usage != InstalledUse::Outside) {
        let at = one.at.clone();
        let clear = || {
            let cleared = top.as_ref().map_or(Ok(()), |top| top.remove(&at));
            cleared.map_err(|error| JournalError::file("clear", folder, error))
        };
        clear()?;
        if one.usage == InstalledUse::Copied
            && !run.ports.workspace.copy_unrecorded(&at, one.top(), folder)?
        {
            clear()?;
            one.usage = InstalledUse::Lent;
        }
    }
    let lent: Vec<InstalledFolder> =
        installed.iter().filter(|one| one.usage == InstalledUse::Lent).cloned().collect();
    let sandbox = run.ports.sandbox.with_lent(folder, &lent)?;
    let env = checkout_env(run, &*sandbox, folder, &installed);
    Ok(Checkout { sandbox, env, setup, installed })
}

/// Variables for commands in a checkout. This machine's don't apply elsewhere.
fn checkout_env(
    run: &Run,
    sandbox: &dyn Sandbox,
    folder: &Path,
    installed: &[InstalledFolder],
) -> Vec<(String, String)> {
    if sandbox.capabilities().surroundings == HostAccess::Own {
        return Vec::new();
    }
    let vars = run.ports.vars.texts();
    let mut env = environment::redirected(vars, &run.ledger.state.spec.workspace, sandbox.root());
    // Any compiled file there is then intentional.
    env.push(("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()));
    if !installed.is_empty() {
        // Borrowed dependencies must not be synced.
        env.push(("UV_NO_SYNC".to_owned(), "1".to_owned()));
    }
    if !installed.is_empty() && writers(run) == Writers::Sessions {
        // A session could have put compiled files next to unchanged sources.
        let compiled = folder.with_file_name("compiled");
        env.push(("PYTHONPYCACHEPREFIX".to_owned(), compiled.display().to_string()));
    }
    env
}

/// Dependencies in the user's folder that are unchanged. None if setup is configured, or this run's
/// checkouts install everything.
pub(crate) fn usable_installed(run: &Run) -> Vec<InstalledFolder> {
    let state = &run.ledger.state;
    let settings = &state.spec.settings;
    let configured = !settings.setup_commands.is_empty() && !settings.setup_guessed;
    let elsewhere = run.ports.sandbox.capabilities().surroundings == HostAccess::Own;
    if configured || elsewhere || installs(run) {
        return Vec::new();
    }
    // Before the first session only the user can have changed it.
    if state.spending.totals.sessions == 0 {
        return run.ports.installed.clone();
    }
    let now = installed_marks(run);
    let same = |one: &&InstalledFolder| {
        let name = installed_marks::name(one);
        state.surroundings.get(&name).is_some_and(|before| now.get(&name) == Some(before))
    };
    run.ports.installed.iter().filter(same).cloned().collect()
}

/// Fingerprints of what checks depend on outside the workspace, for the journal.
pub(crate) fn sealed_surroundings(run: &Run) -> BTreeMap<String, String> {
    match run.ports.sandbox.capabilities().surroundings {
        HostAccess::Host => {
            let mut all = surroundings::sealed(&fingerprints(run));
            all.extend(installed_marks(run));
            all
        }
        HostAccess::Own => BTreeMap::new(),
    }
}

/// Fingerprints of installed dependencies.
fn installed_marks(run: &Run) -> BTreeMap<String, String> {
    installed_marks::marks(&run.ports.installed, writers(run))
}

fn writers(run: &Run) -> Writers {
    match run.state.spec.settings.isolation {
        Isolation::None => Writers::Sessions,
        _ => Writers::User,
    }
}

/// Setup commands still needed with these dependencies.
pub(crate) fn setup_beside(run: &Run, installed: &[InstalledFolder]) -> Vec<CommandLine> {
    let settings = &run.ledger.state.spec.settings;
    let mut commands = settings.setup_commands.clone();
    if commands.is_empty() && installs(run) {
        commands = setup_in_place(run);
    }
    commands.retain(|command| !installed::has_all_of(&command.display(), installed.iter()));
    commands
}

/// What would update the user's folders: the guessed setup, or what their files name.
fn setup_in_place(run: &Run) -> Vec<CommandLine> {
    let settings = &run.ledger.state.spec.settings;
    if !settings.setup_commands.is_empty() {
        return settings.setup_commands.clone();
    }
    let top = SafeDir::open(&run.ledger.state.spec.workspace);
    let commands = run.ports.installed.iter().filter_map(|one| {
        let above = one.at.rsplit_once('/').map_or("", |(above, _)| above);
        let has = |file: &str| {
            top.as_ref().is_ok_and(|top| top.is_file(Path::new(above).join(file), Links::Inside))
        };
        let command = with_test_extra(run, setup::setup_of(&one.at, has)?.command);
        Some(CommandLine::Shell(match above {
            "" => command,
            above => format!("cd {above} && {command}"),
        }))
    });
    commands.collect()
}

/// Whether this run's checkouts install everything.
pub(crate) fn installs(run: &Run) -> bool {
    run.record_dir.path().join(INSTALLS).exists()
}

/// Sets whether this run's checkouts install everything.
pub(crate) fn set_installs(run: &mut Run, installs: bool) -> Result<(), DriveError> {
    let file = run.record_dir.path().join(INSTALLS);
    if installs {
        make_dir(&run.ledger.record_dir.path().join("baseline"))?;
        artifacts::write(&file, b"")?;
    } else {
        let _ = std::fs::remove_file(&file);
    }
    Ok(())
}

/// Fingerprints of what checkouts get.
pub(crate) fn usable_marks(run: &Run) -> BTreeMap<String, String> {
    installed_marks::marks(&usable_installed(run), writers(run))
}

/// Names dependencies that the user's folder has and checkouts lack, with the setup that would install
/// them, if none is configured.
pub(crate) fn missing_setup_hint(run: &Run) -> Result<Option<String>, DriveError> {
    let spec = &run.ledger.state.spec;
    if !spec.settings.setup_commands.is_empty() || !usable_installed(run).is_empty() {
        return Ok(None);
    }
    let unrecorded = run.ports.workspace.unrecorded()?;
    let below = spec.task.working_dir.clone().unwrap_or_default();
    let has = |name: &str| {
        [spec.workspace.join(name), spec.workspace.join(&below).join(name)].iter().any(|p| p.is_file())
    };
    let missing = setup::missing_setup(&unrecorded, has);
    Ok(missing.map(|(folder, setup)| setup::setup_hint(&folder, &with_test_extra(run, setup.command))))
}

/// Describes the dependencies the checks ran with.
pub(crate) fn with_installed(run: &Run) -> String {
    match usable_installed(run).as_slice() {
        [] => String::new(),
        installed => format!(" with {}", installed::named(installed)),
    }
}

/// Whether setup could provide more than what is installed.
pub(crate) fn can_install(run: &Run) -> bool {
    !installs(run) && !usable_installed(run).is_empty() && !setup_in_place(run).is_empty()
}

/// After a failed final check with borrowed dependencies: whether the run changed a dependency file, so
/// that the check repeats with a full install.
pub(crate) fn installs_after(run: &mut Run, changes: &[FileChange]) -> Result<bool, DriveError> {
    let Some(change) = changes.iter().find(|change| setup::names_dependencies(&change.path)) else {
        return Ok(false);
    };
    if !can_install(run) {
        return Ok(false);
    }
    let commands: Vec<String> = setup_in_place(run).iter().map(CommandLine::display).collect();
    let why = format!(
        "the checks fail with what is already installed, and the run changed `{}`: the final check runs `{}` instead",
        change.path,
        commands.join("; ")
    );
    set_installs(run, true)?;
    run.notice(why)?;
    Ok(true)
}

/// Fingerprints of what checks depend on outside the workspace, at any path where they see it.
pub(crate) fn fingerprints(run: &Run) -> surroundings::Fingerprints {
    let spec = &run.ledger.state.spec;
    surroundings::fingerprints(&run.ports.vars, &spec.settings, [&spec.workspace, run.ports.sandbox.root()])
}

/// A setup command with the project's test extra.
fn with_test_extra(run: &Run, command: &str) -> String {
    let top = SafeDir::open(&run.ledger.state.spec.workspace);
    let project = top.and_then(|top| top.read_text("pyproject.toml", Links::Inside, PROJECT_MAX));
    setup::with_test_extra(command, &project.unwrap_or_default())
}
