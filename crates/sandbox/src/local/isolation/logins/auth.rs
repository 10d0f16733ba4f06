//! Agent logins: which files, what a sandbox gets of them, and what is copied back.
//!
//! Only files that hold nothing but a token are copied back. A settings file can name programs to run, so what a
//! command wrote into one must never reach the user's home.

use super::mcp::without_mcp;
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

pub(in crate::local::isolation) const MOST: u64 = 1 << 20;

/// A login file of an agent below the user's home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthFile {
    /// Its path below the home.
    pub path: PathBuf,
    /// Whether a changed one is copied back: only for files that hold nothing but a token.
    pub renewed: bool,
    /// Whether it keeps the MCP servers that it names.
    pub keeps_mcp: bool,
}

impl AuthFile {
    /// What a sandbox gets of it.
    pub(in crate::local::isolation) fn content(&self, home: &Path) -> Option<Vec<u8>> {
        let bytes = plain_file(&home.join(&self.path))?;
        Some(if self.keeps_mcp || self.renewed { bytes } else { without_mcp(&self.path, bytes) })
    }
}

/// The login files of the agent program `program`.
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

/// Files and folders below a home that belong to the agent program `program`: its login, and what it writes (copies,
/// histories, caches).
pub(in crate::local::isolation) fn own_places(program: &str) -> &'static [&'static str] {
    match program {
        "claude" => &[".claude", ".claude.json", ".claude.json.backup"],
        "codex" => &[".codex"],
        "gemini" => &[".gemini"],
        "opencode" => &[".local/share/opencode", ".local/state/opencode", ".config/opencode"],
        "qwen" => &[".qwen"],
        _ => &[],
    }
}

/// The variables with the agent program's key, server or settings.
pub fn key_variables(program: &str) -> &'static [&'static str] {
    match program {
        "claude" => &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_MAX_RETRIES",
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

/// The logins that exist below `home`, with their content.
pub(crate) fn gather(home: &Path, files: Vec<AuthFile>) -> Vec<(AuthFile, Vec<u8>)> {
    files.into_iter().filter_map(|file| Some((file.content(home)?, file))).map(|(b, f)| (f, b)).collect()
}

/// Takes a token from a sandbox, if it is one and the user's file hasn't changed.
pub(crate) fn take_back(home: &Path, file: &AuthFile, known: &[u8], new: &[u8]) {
    if !file.renewed || new.len() as u64 > MOST || new == known {
        return;
    }
    let ours = home.join(&file.path);
    if let Some(renewed) = renewed(known, new)
        && plain_file(&ours).as_deref() == Some(known)
        && let Err(error) = write_private(&ours, &renewed)
    {
        tracing::warn!(file = %ours.display(), %error, "a renewed token could not be kept");
    }
}

/// The file `known` with the values of `new`; `None` if `new` isn't JSON of the same shape. A renewal changes values:
/// additions are left out, and a file that lacks something or has another type in its place isn't a renewal.
fn renewed(known: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    let object = |bytes: &[u8]| match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    };
    let (known, mut value) = (object(known)?, object(new)?);
    let fits = |(key, old): (&String, &Value)| value.get(key).is_some_and(|new| same_shape(old, new));
    if known.is_empty() || !known.iter().all(fits) {
        return None;
    }
    if value.len() == known.len() {
        return Some(new.to_owned());
    }
    value.retain(|key, _| known.contains_key(key));
    serde_json::to_vec_pretty(&Value::Object(value)).ok()
}

/// Whether two values have the same type, with whatever both name in them. `null` may become something, and back.
fn same_shape(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Null, _) | (_, Value::Null) => true,
        (Value::Object(old), Value::Object(new)) => {
            old.iter().all(|(key, old)| new.get(key).is_none_or(|new| same_shape(old, new)))
        }
        _ => std::mem::discriminant(old) == std::mem::discriminant(new),
    }
}

/// The content of a plain file of bounded size; `None` for a link, a pipe or a folder, which a command may have put
/// there.
pub(in crate::local::isolation) fn plain_file(path: &Path) -> Option<Vec<u8>> {
    let flags = nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let about = file.metadata().ok()?;
    let mut bytes = Vec::new();
    (about.is_file() && about.len() <= MOST).then_some(())?;
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Writes a file that only this user may read, atomically.
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
        let user = tempfile::tempdir().unwrap();
        let place = user.path().join(".claude/.credentials.json");
        let known = br#"{"a":{"token":"one","until":1},"b":null}"#;
        let after = |new: &str| {
            write_private(&place, known).unwrap();
            take_back(user.path(), &auth_files("claude")[0], known, new.as_bytes());
            fs::read_to_string(&place).unwrap()
        };
        let renewed = r#"{"a":{"token":"two","until":2,"more":1},"b":"x"}"#;
        assert_eq!(after(renewed), renewed);
        for no in [
            "not a token file",
            "{not json}",
            "[]",
            "{}",
            r#"{"a":{"token":"two"}}"#,
            r#"{"a":"two","b":null}"#,
            r#"{"a":{"token":["two"]},"b":null}"#,
            r#"{"a":{"token":"two"},"b":null} and more"#,
        ] {
            assert_eq!(after(no).as_bytes(), known, "{no}");
        }
        // Unrequested values are left out.
        let more = after(r#"{"a":{"token":"two"},"b":null,"hooks":{"x":"touch /tmp/x"}}"#);
        assert_eq!(
            serde_json::from_str::<Value>(&more).unwrap(),
            serde_json::json!({"a":{"token":"two"},"b":null})
        );
        // The user has logged in again since: that login stays. Settings are never copied back.
        let put = |name: &str, text: &str| write_private(&user.path().join(name), text.as_bytes()).unwrap();
        put(".claude/.credentials.json", "{\"a\":9}");
        take_back(user.path(), &auth_files("claude")[0], b"{\"a\":1}", b"{\"a\":2}");
        assert_eq!(fs::read_to_string(&place).unwrap(), "{\"a\":9}");
        put(".claude.json", "{\"a\":1}");
        take_back(user.path(), &auth_files("claude")[1], b"{\"a\":1}", b"{\"a\":2}");
        assert_eq!(fs::read_to_string(user.path().join(".claude.json")).unwrap(), "{\"a\":1}");
    }
}
