//! The hooks of a run's own sessions: written into its record, where no agent can write, and read from there by the agent's CLI.

use crate::environment::Environment;
use crate::error::AppError;
use ralph_agents::presets;
use ralph_agents::session_hooks::{HookPlace, SessionHooks, session_hooks};
use ralph_domain::config::{AgentConfig, Isolation};
use ralph_domain::spec::RunSpec;
use ralph_journal::layout::StateHome;
use std::path::{Path, PathBuf};

/// The hooks of an agent, with their files in place; none for an agent that takes none, or works elsewhere.
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
    };
    let Some(hooks) = session_hooks(name, &place) else { return none };
    write(&folder, &hooks)?;
    Ok(hooks)
}

/// The program that hooks start. One that lies in the repo is the agent's own to change.
pub(crate) fn program(env: &Environment, spec: &RunSpec) -> Option<PathBuf> {
    let program = env.program()?.canonicalize().ok()?;
    let own = [&spec.origin, &spec.workspace].into_iter().any(|folder| program.starts_with(folder));
    (!own).then_some(program)
}

fn write(folder: &Path, hooks: &SessionHooks) -> Result<(), AppError> {
    for (name, text) in &hooks.files {
        let path = folder.join(name);
        let failed = |e: std::io::Error| {
            AppError::environment(format!("the hooks of the run cannot be written to `{}`", path.display()))
                .cause(e.to_string())
        };
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(&path, text).map_err(failed)?;
    }
    Ok(())
}
