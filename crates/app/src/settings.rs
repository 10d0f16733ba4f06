//! The configuration of a run: the user's own file, the repo's, then flags; agents found on this machine where nobody
//! named any. Bad files are refused with their line.

use crate::environment::Environment;
use crate::error::AppError;
use ralph_agents::presets;
use ralph_domain::config::{AgentConfig, ConfigFile, Isolation, NotifyConfig};
use ralph_domain::id::Digest;
use ralph_journal::layout::RalphDir;
use std::path::Path;

/// The settings as read from the configuration files.
#[derive(Debug, Clone, Default)]
pub struct LoadedSettings {
    /// User's file below, repo's file above.
    pub file: ConfigFile,
    /// Digest of the repo's file, if there is one.
    pub repo_digest: Option<Digest>,
    /// Isolation as the user's own file says: only there and on the command line does `none` count.
    pub user_isolation: Option<Isolation>,
    /// Isolation as the repo's file says.
    pub repo_isolation: Option<Isolation>,
    /// What the repo's file would open, and only the user's own file or a flag can.
    pub ignored_keys: Vec<String>,
}

/// Reads both files.
pub fn load(env: &Environment, top: &Path) -> Result<LoadedSettings, AppError> {
    let user = match env.user_config() {
        Some(path) => read(&path)?,
        None => None,
    };
    let repo_path = RalphDir::of(top).config();
    let repo = read(&repo_path)?;
    let repo_digest = repo.as_ref().map(|(text, _)| Digest::of(text.as_bytes()));
    let user = user.map(|(_, file)| file).unwrap_or_default();
    let mut repo = repo.map(|(_, file)| file).unwrap_or_default();
    if repo.notify.is_some() {
        return Err(AppError::usage(format!(
            "`{}` says who is notified, but only you can say that",
            repo_path.display()
        ))
        .cause("a notification runs programs and sends words elsewhere; a repo must not choose them")
        .hint("move `notify` to your own `~/.config/ralph/config.json`, or give `--notify`"));
    }
    let ignored_keys = without_own_words(&mut repo, &user);
    Ok(LoadedSettings {
        ignored_keys,
        user_isolation: user.isolation,
        repo_isolation: repo.isolation,
        file: user.overlaid(repo),
        repo_digest,
    })
}

/// Who is to be told, as the user's own file says; `None` where it says nothing.
pub fn user_notify(env: &Environment) -> Result<Option<Vec<NotifyConfig>>, AppError> {
    let Some(path) = env.user_config() else { return Ok(None) };
    Ok(read(&path)?.and_then(|(_, file)| file.notify))
}

/// Takes out of a repo's file what would open the sandbox: hosts, variables, volumes. Returns what the user's own does not say.
fn without_own_words(repo: &mut ConfigFile, user: &ConfigFile) -> Vec<String> {
    let mut ignored_keys = Vec::new();
    let lists = [
        ("allowed_hosts", repo.allowed_hosts.take(), &user.allowed_hosts),
        ("pass_env", repo.pass_env.take(), &user.pass_env),
    ];
    for (key, asked, own) in lists {
        let own: &[String] = own.as_deref().unwrap_or_default();
        ignored_keys.extend(
            asked
                .into_iter()
                .flatten()
                .filter(|word| !own.contains(word))
                .map(|word| format!("`{key}`: {word}")),
        );
    }
    if let Some(sandbox) = &mut repo.sandbox {
        let own = user.sandbox.as_ref().map(|own| &own.volumes);
        let asked = std::mem::take(&mut sandbox.volumes).into_iter();
        let new = asked.filter(|(name, _)| own.is_none_or(|own| !own.contains_key(name)));
        ignored_keys.extend(new.map(|(name, _)| format!("`sandbox.volumes`: {name}")));
    }
    ignored_keys
}

fn read(path: &Path) -> Result<Option<(String, ConfigFile)>, AppError> {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| {
            AppError::usage(format!("`{}` is not UTF-8 text", path.display())).hint("save it as UTF-8")
        })?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(AppError::environment(format!("cannot read `{}`: {e}", path.display()))),
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

/// The agents that are installed, as presets, in their usual order.
pub fn detected_agents(env: &Environment) -> Vec<AgentConfig> {
    presets::detect(&env.path()).into_iter().filter_map(|(name, _)| presets::preset(name)).collect()
}
