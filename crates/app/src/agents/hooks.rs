//! Hooks for a run's own sessions: written into its record, out of agents' reach, and read there by the agent
//! CLI.

use crate::environment::Environment;
use crate::error::AppError;
use crate::trust::repo_file;
use ralph_loop_agents::cli::start::{UserServers, UserSide, server_variables};
use ralph_loop_agents::presets;
use ralph_loop_agents::session_hooks::{HookPlace, SessionHooks, session_hooks};
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_task::config::{AgentConfig, Isolation, Share};
use ralph_loop_task::spec::RunSpec;
use std::path::{Path, PathBuf};

/// Entries examined in a settings folder.
const NAMES_MAX: usize = 1000;

/// An agent's hooks, with their files written; `None` if it supports none or runs elsewhere.
pub(crate) fn of_agent(
    env: &Environment,
    home: &StateHome,
    spec: &RunSpec,
    config: &AgentConfig,
) -> Result<SessionHooks, AppError> {
    let none = Ok(SessionHooks::default());
    let Some(name) = presets::preset_of(&config.command_argv) else { return none };
    let Some(program) = program(env, spec) else { return none };
    if spec.settings.sandbox.provider().is_elsewhere() {
        return none;
    }
    let folder = home.record(&spec.run_id).path().join("hooks");
    let var = |name: &str| config.env.get(name).cloned().or_else(|| env.vars().get(name));
    let place = HookPlace {
        program: &program,
        folder: &folder,
        sandboxed: spec.settings.isolation != Isolation::None,
        argv: &config.command_argv,
        var: &var,
        read: &|path| String::from_utf8(repo_file::read_own(path).ok()?).ok(),
        names: &names,
    };
    let Some(hooks) = session_hooks(name, &place) else { return none };
    write(&folder, &hooks)?;
    Ok(hooks)
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.take(NAMES_MAX).collect()
}

/// The parts of the user's own settings that sessions start with.
pub(crate) fn user_side(env: &Environment, spec: &RunSpec, config: &AgentConfig) -> UserSide {
    let Some(name) = presets::preset_of(&config.command_argv) else { return UserSide::default() };
    let is_set = |name: &str| config.env.contains_key(name) || env.vars().is_filled(name);
    let unset = server_variables(name).iter().copied().filter(|name| !is_set(name)).collect();
    let open = spec.settings.isolation == Isolation::None;
    let elsewhere = spec.settings.sandbox.provider().is_elsewhere();
    let shares = (open && !elsewhere) || spec.settings.share.contains(&Share::Mcp);
    let servers = match shares {
        true if elsewhere => UserServers::InHome,
        true => servers_of(env),
        false => UserServers::None,
    };
    UserSide { servers, unset, model: None }
}

/// The user's file of MCP servers for claude, if it lists any.
fn servers_of(env: &Environment) -> UserServers {
    let file = env.vars().home().map(|home| home.join(".claude.json"));
    let names_some = |file: &PathBuf| {
        let text = repo_file::read_own(file).unwrap_or_default();
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        value["mcpServers"].as_object().is_some_and(|servers| !servers.is_empty())
    };
    file.filter(names_some).map_or(UserServers::None, UserServers::File)
}

/// The program that hooks start, unless it is in the repo, where the agent could change it.
pub(crate) fn program(env: &Environment, spec: &RunSpec) -> Option<PathBuf> {
    let program = env.program()?.canonicalize().ok()?;
    let own = [&spec.origin, &spec.workspace].into_iter().any(|folder| program.starts_with(folder));
    (!own).then_some(program)
}

fn write(folder: &Path, hooks: &SessionHooks) -> Result<(), AppError> {
    for (name, text) in &hooks.files {
        let path = folder.join(name);
        let failed = |e: std::io::Error| {
            AppError::environment(format!("can't write the run's hooks to `{}`", path.display()))
                .cause(e.to_string())
        };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(&path, text).map_err(failed)?;
    }
    for (name, target) in &hooks.links {
        let path = folder.join(name);
        // An earlier session may have replaced the link with a file.
        let _ = std::fs::remove_file(&path);
        let _ = std::os::unix::fs::symlink(target, &path);
    }
    Ok(())
}
