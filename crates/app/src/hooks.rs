//! The hooks of a run's own sessions: written into its record, where no agent can write, and read from there by the agent's CLI.

use crate::environment::Environment;
use crate::error::AppError;
use crate::repo_file;
use ralph_agents::presets;
use ralph_agents::session_hooks::{HookPlace, SessionHooks, gemini_silenced_by, session_hooks};
use ralph_domain::config::{AgentConfig, Isolation};
use ralph_domain::spec::RunSpec;
use ralph_journal::layout::StateHome;
use std::path::{Path, PathBuf};

/// Names in a folder of settings that are looked at.
const NAMES_MAX: usize = 1000;

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
        read: &|path| String::from_utf8(repo_file::read_own(path).ok()?).ok(),
        names: &names,
    };
    let Some(hooks) = session_hooks(name, &place) else { return none };
    if name == "gemini" {
        not_silenced(spec)?;
    }
    write(&folder, &hooks)?;
    Ok(hooks)
}

fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.take(NAMES_MAX).collect()
}

/// A repo's settings stand over the user's in gemini, and would take the guard away in silence.
fn not_silenced(spec: &RunSpec) -> Result<(), AppError> {
    for folder in [&spec.workspace, &spec.origin] {
        let file = folder.join(".gemini/settings.json");
        let Ok(text) = repo_file::read_text(&file) else { continue };
        if let Some(why) = gemini_silenced_by(&text) {
            return Err(AppError::environment("the guard would not be heard in gemini's sessions")
                .cause(format!("`.gemini/settings.json` of this repo stands over it, and {why}"))
                .hint(
                    "take `hooksConfig` out of that file, or run in a sandbox (without `--isolation none`)",
                ));
        }
    }
    Ok(())
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
    for (name, target) in &hooks.links {
        let path = folder.join(name);
        // A session of before may have put a file of its own in the link's place.
        let _ = std::fs::remove_file(&path);
        let _ = std::os::unix::fs::symlink(target, &path);
    }
    Ok(())
}
