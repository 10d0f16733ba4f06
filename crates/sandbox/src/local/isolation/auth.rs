//! Logins of agents: copied into the run's home, and a renewed token copied back.
//!
//! Only files that hold nothing but a token come back. A settings file can name programs to run, so what a command
//! wrote into one must never reach the user's own home.

use super::mcp::without_mcp;
use ralph_safe_fs::{Links, SafeDir};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The largest login file that is copied.
const MOST: u64 = 1 << 20;

/// A file below the user's home that an agent logs in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthFile {
    /// Its path below the home.
    pub path: PathBuf,
    /// Whether a changed one is copied back: only for files that hold a token and nothing else.
    pub renewed: bool,
    /// Whether the MCP servers that it names come along.
    pub keeps_mcp: bool,
}

impl AuthFile {
    /// What a sandbox gets of it.
    fn content(&self, home: &Path) -> Option<Vec<u8>> {
        let bytes = plain_file(&home.join(&self.path))?;
        Some(if self.keeps_mcp || self.renewed { bytes } else { without_mcp(&self.path, bytes) })
    }
}

/// The files that the agent program `program` logs in with.
pub fn auth_files(program: &str) -> Vec<AuthFile> {
    let files: &[(&str, bool)] = match program {
        "claude" => {
            &[(".claude/.credentials.json", true), (".claude.json", false), (".claude/settings.json", false)]
        }
        "codex" => &[(".codex/auth.json", true), (".codex/config.toml", false)],
        "gemini" => &[
            (".gemini/oauth_creds.json", true),
            (".gemini/google_accounts.json", false),
            (".gemini/settings.json", false),
            (".gemini/installation_id", false),
        ],
        "opencode" => &[(".local/share/opencode/auth.json", true), (".config/opencode/opencode.json", false)],
        "qwen" => &[(".qwen/oauth_creds.json", true), (".qwen/settings.json", false)],
        _ => &[],
    };
    files
        .iter()
        .map(|(path, renewed)| AuthFile { path: path.into(), renewed: *renewed, keeps_mcp: false })
        .collect()
}

/// The variables that hold the key of the agent program `program`, or say which server it talks to.
pub fn key_variables(program: &str) -> &'static [&'static str] {
    match program {
        "claude" => &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
        "codex" => &["OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_API_KEY"],
        "gemini" => &["GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT"],
        "qwen" => &["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "DASHSCOPE_API_KEY"],
        "opencode" => &[
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "OPENROUTER_API_KEY",
            "GEMINI_API_KEY",
            "OPENCODE_API_KEY",
            "OPENCODE_CONFIG_CONTENT",
            "OPENCODE_DISABLE_MODELS_FETCH",
            "OPENCODE_DISABLE_LSP_DOWNLOAD",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS",
        ],
        _ => &[],
    }
}

/// The logins of one sandbox.
#[derive(Debug)]
pub(super) struct Logins {
    from: PathBuf,
    to: PathBuf,
    /// What was last the same on both sides.
    files: Mutex<Vec<(AuthFile, Vec<u8>)>>,
}

impl Logins {
    /// Copies what exists from the home `from` to the home `to`.
    pub(super) fn copy_in(from: &Path, to: &Path, files: &[AuthFile]) -> std::io::Result<Self> {
        let mut copied = Vec::new();
        // A command writes here: nothing in it is followed.
        let home = SafeDir::open(to)?;
        for file in files {
            let Some(bytes) = file.content(from) else { continue };
            home.write_with(&file.path, &bytes, 0o600)?;
            copied.push((file.clone(), bytes));
        }
        Ok(Self { from: from.to_owned(), to: to.to_owned(), files: Mutex::new(copied) })
    }

    /// Copies renewed tokens back, where the user's own file is still the one that was copied.
    pub(super) fn copy_back(&self) {
        let Ok(mut files) = self.files.lock() else { return };
        for (file, known) in files.iter_mut().filter(|(file, _)| file.renewed) {
            let read = |home: SafeDir| home.read(&file.path, Links::Refused, MOST + 1);
            let Ok(new) = SafeDir::open(&self.to).and_then(read) else { continue };
            if new.len() as u64 <= MOST && renew(&self.from.join(&file.path), known, &new) {
                *known = new;
            }
        }
    }
}

/// Puts a renewed token in the place of the one that was copied, where that is still the user's own; whether it did.
fn renew(ours: &Path, known: &[u8], new: &[u8]) -> bool {
    let object = new.trim_ascii().starts_with(b"{") && new.trim_ascii().ends_with(b"}");
    new != known && object && plain_file(ours).as_deref() == Some(known) && write_private(ours, new).is_ok()
}

/// The logins that exist below `home`, with their content.
pub(crate) fn gather(home: &Path, files: Vec<AuthFile>) -> Vec<(AuthFile, Vec<u8>)> {
    files.into_iter().filter_map(|file| Some((file.content(home)?, file))).map(|(b, f)| (f, b)).collect()
}

/// Takes a token that came back from a sandbox.
pub(crate) fn take_back(home: &Path, file: &AuthFile, known: &[u8], new: &[u8]) {
    if file.renewed && new.len() as u64 <= MOST {
        renew(&home.join(&file.path), known, new);
    }
}

/// The content of a plain file of bounded size; nothing for a link, a pipe or a folder, which a command may have put there.
fn plain_file(path: &Path) -> Option<Vec<u8>> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let about = file.metadata().ok()?;
    let mut bytes = Vec::new();
    (about.is_file() && about.len() <= MOST).then_some(())?;
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Writes a file that only this user may read, all of it or nothing.
fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let beside = path.with_extension(format!("ralph-{}", std::process::id()));
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_renewed_token_comes_back() {
        let (user, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let put =
            |home: &Path, name: &str, text: &str| write_private(&home.join(name), text.as_bytes()).unwrap();
        let get = |name: &str| fs::read_to_string(user.path().join(name)).unwrap();
        put(user.path(), ".claude/.credentials.json", "{\"a\":1}");
        put(user.path(), ".claude.json", "{}");
        let logins = Logins::copy_in(user.path(), run.path(), &auth_files("claude")).unwrap();
        put(run.path(), ".claude.json", "{\"mcpServers\":{}}");
        put(run.path(), ".claude/.credentials.json", "not a token file");
        logins.copy_back();
        assert_eq!(get(".claude/.credentials.json"), "{\"a\":1}");
        put(run.path(), ".claude/.credentials.json", "{\"a\":2}");
        logins.copy_back();
        assert_eq!(get(".claude/.credentials.json"), "{\"a\":2}");
        assert_eq!(get(".claude.json"), "{}");
        // A link to a secret is no token.
        fs::remove_file(run.path().join(".claude/.credentials.json")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", run.path().join(".claude/.credentials.json")).unwrap();
        logins.copy_back();
        assert_eq!(get(".claude/.credentials.json"), "{\"a\":2}");
        // Neither is one behind a folder that leads elsewhere, and nothing is written there.
        let elsewhere = tempfile::tempdir().unwrap();
        fs::remove_dir_all(run.path().join(".claude")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), run.path().join(".claude")).unwrap();
        fs::write(elsewhere.path().join(".credentials.json"), "{\"a\":7}").unwrap();
        logins.copy_back();
        assert_eq!(get(".claude/.credentials.json"), "{\"a\":2}");
        Logins::copy_in(user.path(), run.path(), &auth_files("claude")).unwrap_err();
        assert_eq!(fs::read_to_string(elsewhere.path().join(".credentials.json")).unwrap(), "{\"a\":7}");
        fs::remove_file(run.path().join(".claude")).unwrap();
        put(run.path(), ".claude/.credentials.json", "{\"a\":2}");
        // The user has logged in anew meanwhile: that one stays.
        put(user.path(), ".claude/.credentials.json", "{\"a\":9}");
        fs::remove_file(run.path().join(".claude/.credentials.json")).unwrap();
        put(run.path(), ".claude/.credentials.json", "{\"a\":3}");
        logins.copy_back();
        assert_eq!(get(".claude/.credentials.json"), "{\"a\":9}");
    }
}
