//! Loads a run's configuration: the user's file, the repo's, then flags; detected agents if none are named.
//! Invalid files are reported with their line. Unapproved requests of the repo's file are left out.

use crate::agents::programs::Programs;
use crate::environment::Environment;
use crate::error::AppError;
use crate::trust::Ask;
use crate::trust::repo_file;
use crate::trust::screen::{Screen, source_of};
use ralph_loop_agents::presets;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::config::{AgentConfig, ConfigFile, Isolation, NotifyConfig, ProviderName, Settings};
use std::path::Path;

/// Settings from the configuration files.
#[derive(Debug, Clone, Default)]
pub struct LoadedSettings {
    /// The repo's file over the user's.
    pub file: ConfigFile,
    /// Digest of the repo's file.
    pub repo_digest: Option<Digest>,
    /// Isolation in the user's file: only there and on the command line does `none` count.
    pub user_isolation: Option<Isolation>,
    /// Isolation in the repo's file.
    pub repo_isolation: Option<Isolation>,
    /// The user's file alone.
    pub user: ConfigFile,
    /// Names of the verifiers in the repo's file.
    pub repo_verifiers: Vec<String>,
    /// Requests of the repo's file, whether or not allowed.
    pub asks: Vec<Ask>,
}

impl LoadedSettings {
    /// Settings for one session of this agent without checks: a question, a probe, a plan.
    pub fn alone(&self, agent: &AgentConfig, isolation: Option<Isolation>) -> Settings {
        let file = ConfigFile {
            agents: Some(vec![agent.clone()]),
            agent_priority: None,
            verifiers: None,
            required_verifiers: None,
            sandbox: None,
            isolation: Some(isolation.or(self.user_isolation).unwrap_or_default()),
            ..self.file.clone()
        };
        file.resolve()
    }
}

/// Reads both files.
pub fn load(env: &Environment, top: &Path) -> Result<LoadedSettings, AppError> {
    let user = user_file(env)?;
    let repo_path = RalphDir::of(top).config();
    let (repo_digest, mut repo) = of_repo(&repo_path)?;
    let mut asks = screened(env, top, &user, &source_of(top, &repo_path), &mut repo);
    if let Some(path) = env.config_beside_task() {
        let (_, mut beside) = of_repo(path)?;
        asks.extend(screened(env, top, &user, &source_of(top, path), &mut beside));
        repo = repo.overlaid(beside);
    }
    Ok(LoadedSettings {
        asks,
        user_isolation: user.isolation,
        repo_isolation: repo.isolation,
        repo_verifiers: repo.verifiers.iter().flatten().map(|verifier| verifier.name.clone()).collect(),
        file: user.clone().overlaid(repo),
        user,
        repo_digest,
    })
}

/// A repo's file and its digest.
fn of_repo(repo_path: &Path) -> Result<(Option<Digest>, ConfigFile), AppError> {
    let repo = read(repo_path, repo_file::read)?;
    let repo_digest = repo.as_ref().map(|(text, _)| Digest::of(text.as_bytes()));
    let repo = repo.map(|(_, file)| file).unwrap_or_default();
    if repo.notify.is_some() {
        return Err(AppError::usage(format!(
            "`{}` sets `notify`, which works only in your own config",
            repo_path.display()
        ))
        .cause("a notification runs programs and sends words elsewhere; a repo must not choose them")
        .hint("move `notify` to your own `~/.config/ralph/config.json`, or give `--notify`"));
    }
    if repo.share.is_some() {
        return Err(AppError::usage(format!(
            "`{}` sets `share`, which works only in your own config",
            repo_path.display()
        ))
        .hint("move `share` to your own `~/.config/ralph/config.json`, or give `--share`"));
    }
    if repo.sandbox_read.is_some() {
        return Err(AppError::usage(format!(
            "`{}` sets `sandbox_read`, which works only in your own config",
            repo_path.display()
        ))
        .hint("move `sandbox_read` to your own `~/.config/ralph/config.json`"));
    }
    Ok((repo_digest, repo))
}

/// The user's file; the server's, for a run that it was asked for.
pub fn user_file(env: &Environment) -> Result<ConfigFile, AppError> {
    let Some(path) = env.user_config() else { return Ok(ConfigFile::default()) };
    Ok(read(&path, repo_file::read_own)?.map(|(_, file)| file).unwrap_or_default())
}

/// Removes what isn't allowed from a repo's file or task and returns everything it requests.
pub fn screened(
    env: &Environment,
    top: &Path,
    user: &ConfigFile,
    source: &str,
    file: &mut ConfigFile,
) -> Vec<Ask> {
    let named = || ProviderName::parse(&env.vars().filled("RALPH_DEFAULT_PROVIDER")?).ok();
    let provider = user.sandbox.as_ref().and_then(|own| own.provider).or_else(named);
    let (programs, grants) = (programs(env, top), env.grants(top));
    Screen { source, user, provider, programs: &programs, grants: &grants }.config(file)
}

/// The agents of the user's configuration that take part in runs.
pub fn user_agents(env: &Environment) -> Vec<AgentConfig> {
    user_file(env).map(|file| file.resolve().agents).unwrap_or_default()
}

pub fn programs(env: &Environment, top: &Path) -> Programs {
    Programs::new(top, &env.path())
}

/// The user's notification targets; `None` if their file doesn't set any.
pub fn user_notify(env: &Environment) -> Result<Option<Vec<NotifyConfig>>, AppError> {
    Ok(user_file(env)?.notify)
}

/// The user's own file may be a link; a repo's file must stay in the repo.
fn read(
    path: &Path,
    bytes_of: fn(&Path) -> std::io::Result<Vec<u8>>,
) -> Result<Option<(String, ConfigFile)>, AppError> {
    let text = match bytes_of(path) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| {
            AppError::usage(format!("`{}` is not UTF-8 text", path.display())).hint("save it as UTF-8")
        })?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(repo_file::unreadable(path, &e)),
    };
    match ConfigFile::parse(&text) {
        Ok(file) => Ok(Some((text, file))),
        Err(error) => Err(AppError::usage(format!(
            "{}:{}:{}: {}",
            path.display(),
            error.line,
            error.column,
            error.message
        ))
        .hint(error.hint)),
    }
}

/// Presets of installed agents in their usual order: those outside the repo, or if there are none, those in
/// it.
pub fn detected_agents(env: &Environment, top: &Path) -> Vec<AgentConfig> {
    programs(env, top).installed().into_iter().filter_map(presets::preset).collect()
}
