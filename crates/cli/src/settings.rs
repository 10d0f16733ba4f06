//! The configuration of a run: the user's own file, the repo's, then flags; agents found on this machine where nobody
//! named any. Bad files are refused with their line.

use crate::error::CommandError;
use crate::host;
use ralph_agents::presets;
use ralph_domain::config::{AgentConfig, ConfigFile, Isolation, NotifyConfig};
use ralph_domain::id::Digest;
use ralph_journal::layout::RalphDir;
use std::path::Path;

/// What the files say.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// User's file below, repo's file above.
    pub file: ConfigFile,
    /// Digest of the repo's file, if there is one.
    pub repo_digest: Option<Digest>,
    /// Isolation as the user's own file says: only there and on the command line does `none` count.
    pub user_isolation: Option<Isolation>,
    /// Isolation as the repo's file says.
    pub repo_isolation: Option<Isolation>,
}

/// Reads both files.
pub fn load(top: &Path) -> Result<Loaded, CommandError> {
    let user = match host::user_config() {
        Some(path) => read(&path)?,
        None => None,
    };
    let repo_path = RalphDir::of(top).config();
    let repo = read(&repo_path)?;
    let repo_digest = repo.as_ref().map(|(text, _)| Digest::of(text.as_bytes()));
    let user = user.map(|(_, file)| file).unwrap_or_default();
    let repo = repo.map(|(_, file)| file).unwrap_or_default();
    if repo.notify.is_some() {
        return Err(CommandError::usage(format!(
            "`{}` says who is to be told, but only you can say that",
            repo_path.display()
        ))
        .cause("a notification runs programs and sends words elsewhere; a repo must not choose them")
        .hint("move `notify` to your own `~/.config/ralph/config.json`, or give `--notify`"));
    }
    Ok(Loaded {
        user_isolation: user.isolation,
        repo_isolation: repo.isolation,
        file: user.overlaid(repo),
        repo_digest,
    })
}

/// Who is to be told, as the user's own file says; `None` where it says nothing.
pub fn user_notify() -> Result<Option<Vec<NotifyConfig>>, CommandError> {
    let Some(path) = host::user_config() else { return Ok(None) };
    Ok(read(&path)?.and_then(|(_, file)| file.notify))
}

fn read(path: &Path) -> Result<Option<(String, ConfigFile)>, CommandError> {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| {
            CommandError::usage(format!("`{}` is not UTF-8 text", path.display())).hint("save it as UTF-8")
        })?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(CommandError::environment(format!("cannot read `{}`: {e}", path.display()))),
    };
    match ConfigFile::parse(&text) {
        Ok(file) => Ok(Some((text, file))),
        Err(error) => Err(CommandError::usage(format!(
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
pub fn detected_agents() -> Vec<AgentConfig> {
    let path = std::env::var("PATH").unwrap_or_default();
    presets::detect(&path).into_iter().filter_map(|(name, _)| presets::preset(name)).collect()
}
