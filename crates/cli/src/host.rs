//! What the process is told by its environment: folders, user name, `.env`, secrets.
#![allow(unsafe_code, reason = "the environment is completed once, before any thread exists")]
#![allow(clippy::disallowed_methods, reason = "the home of `.env`")]

use crate::error::CommandError;
use ralph_domain::config::SLACK_VARIABLE;
use ralph_domain::redact::Redactor;
use ralph_journal::layout::StateHome;
use std::path::{Path, PathBuf};

/// Keys that a repo's `.env` may set. Others stay out: a repo must not choose `PATH` or `LD_PRELOAD` for its user.
const DOTENV_KEYS: &[&str] = &[
    "DAYTONA_API_KEY",
    "DAYTONA_API_URL",
    "DAYTONA_SERVER_URL",
    "E2B_API_KEY",
    "VERCEL_TOKEN",
    "VERCEL_TEAM_ID",
    "VERCEL_PROJECT_ID",
    "VERCEL_OIDC_TOKEN",
    "GITHUB_PAT",
    "GITHUB_TOKEN",
    "GITHUB_APP_ID",
    "GITHUB_APP_PRIVATE_KEY_PEM",
    "GITHUB_APP_INSTALLATION_ID",
    "ZAI_API_KEY",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY",
    "DEEPSEEK_API_KEY",
    "MOONSHOT_API_KEY",
    "DASHSCOPE_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "XAI_API_KEY",
    "LITELLM_PROXY_API_KEY",
    "SLACK_WEBHOOK_URL",
    "RALPH_DB_URL",
    "RALPH_DEFAULT_PROVIDER",
    "RALPH_DEFAULT_MODEL_PROFILE",
    "RALPH_FALLBACK_MODEL_PROFILE",
];

/// The folder that a command works in.
pub fn folder(dir: Option<&Path>) -> Result<PathBuf, CommandError> {
    let path = match dir {
        Some(dir) => dir.to_owned(),
        None => std::env::current_dir()
            .map_err(|e| CommandError::environment(format!("the current folder cannot be used: {e}")))?,
    };
    path.canonicalize().map_err(|e| {
        CommandError::usage(format!("`{}` cannot be used as a folder: {e}", path.display()))
            .hint("name an existing folder with `-C DIR`")
    })
}

/// `ralph`'s own folder outside any repo.
pub fn state_home() -> Result<StateHome, CommandError> {
    let var = |name: &str| std::env::var(name).ok();
    StateHome::from_env(var("XDG_STATE_HOME").as_deref(), var("HOME").as_deref()).ok_or_else(|| {
        CommandError::environment("neither XDG_STATE_HOME nor HOME is set")
            .hint("set HOME: runs are registered below it")
    })
}

/// The user's own configuration file.
pub fn user_config() -> Option<PathBuf> {
    let xdg = std::env::var("XDG_CONFIG_HOME").ok().filter(|p| p.starts_with('/')).map(PathBuf::from);
    let home = std::env::var("HOME").ok().filter(|p| !p.is_empty()).map(|h| Path::new(&h).join(".config"));
    Some(xdg.or(home)?.join("ralph/config.json"))
}

/// Who acts, for the journal.
pub fn actor() -> String {
    let name = ["USER", "LOGNAME"].iter().find_map(|n| std::env::var(n).ok().filter(|v| !v.is_empty()));
    let name =
        name.or_else(|| nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|u| u.name));
    format!("{} via cli", name.unwrap_or_else(|| "somebody".into()))
}

/// Completes the environment from a folder's `.env`: known keys only, and never over what is set.
pub fn load_dotenv(folder: &Path) {
    for (key, value) in parse_dotenv(&std::fs::read_to_string(folder.join(".env")).unwrap_or_default()) {
        // Where words are sent is the user's choice: a `.env` that comes with the repo has no say in it.
        let foreign = || key == SLACK_VARIABLE && is_tracked(folder);
        if DOTENV_KEYS.contains(&key.as_str()) && std::env::var_os(&key).is_none() && !foreign() {
            // SAFETY: called once at the start of a command, before this process has a second thread.
            unsafe { std::env::set_var(key, value) };
        }
    }
}

fn is_tracked(folder: &Path) -> bool {
    ralph_git::Repo::discover(folder)
        .is_ok_and(|repo| repo.git().call(["ls-files", "--error-unmatch", "--", ".env"]).run().is_ok())
}

/// A redactor for every secret this process can see: its environment, and all of the folder's `.env`.
pub fn redactor(folder: &Path) -> Redactor {
    let dotenv = parse_dotenv(&std::fs::read_to_string(folder.join(".env")).unwrap_or_default());
    let vars = std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
    Redactor::from_vars(vars.chain(dotenv))
}

fn parse_dotenv(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim();
        let quoted = |q: char| value.len() >= 2 && value.starts_with(q) && value.ends_with(q);
        let value = if quoted('"') {
            value[1..value.len() - 1].replace("\\n", "\n")
        } else if quoted('\'') {
            value[1..value.len() - 1].to_owned()
        } else {
            value.split(" #").next().unwrap_or(value).trim().to_owned()
        };
        pairs.push((key.trim().to_owned(), value));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dotenv_lines_are_read_as_shells_read_them() {
        let pairs = parse_dotenv("# c\nA=1 # note\nexport B=\"x\\ny\"\nC='q#q'\nnonsense\nD=\n");
        let want = [("A", "1"), ("B", "x\ny"), ("C", "q#q"), ("D", "")];
        assert_eq!(pairs, want.map(|(k, v)| (k.to_owned(), v.to_owned())));
    }
}
