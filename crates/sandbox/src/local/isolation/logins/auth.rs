//! Agent logins: which files, what a sandbox gets of them, and what is copied back.
//!
//! Only files that hold nothing but a token are copied back, and only if they name the account that was copied in. A
//! settings file can name programs to run, so what a command wrote into one must never reach the user's home.

use super::account::account;
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
    /// Whether it holds nothing but a login. Only such a file can be copied back.
    pub is_login: bool,
    /// Whether it keeps the MCP servers that it names.
    pub keeps_mcp: bool,
}

impl AuthFile {
    /// What a sandbox gets of it.
    pub(in crate::local::isolation) fn content(&self, home: &Path) -> Option<Vec<u8>> {
        let bytes = plain_file(&home.join(&self.path))?;
        Some(if self.keeps_mcp || self.is_login { bytes } else { without_mcp(&self.path, bytes) })
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
        .map(|(path, is_login)| AuthFile { path: path.into(), is_login: *is_login, keeps_mcp: false })
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

/// Copies renewed logins from a sandbox to the user's home; `after` returns a file of the sandbox's home. A login that
/// names another account than `given`, or none, stays behind, and so does one that the user has changed meanwhile.
pub(crate) fn take_back(
    home: &Path,
    given: &mut [(AuthFile, Vec<u8>)],
    after: impl Fn(&Path) -> Option<Vec<u8>>,
) {
    let before =
        |path: &Path| given.iter().find(|(file, _)| file.path == path).map(|(_, bytes)| bytes.clone());
    let mut written = Vec::new();
    for (index, (file, known)) in given.iter().enumerate().filter(|(_, (file, _))| file.is_login) {
        let Some(renewed) = after(&file.path)
            .filter(|new| new.len() as u64 <= MOST && new != known)
            .and_then(|new| renewed(known, &new))
        else {
            continue;
        };
        let ours = home.join(&file.path);
        let owner = account(&file.path, before);
        if owner.is_none() || owner != account(&file.path, &after) {
            let why = if owner.is_none() { "it names no account" } else { "it names another account" };
            tracing::warn!(file = %ours.display(), "a changed login stays in the sandbox: {why}");
        } else if plain_file(&ours).as_deref() == Some(known) {
            match write_private(&ours, &renewed) {
                Ok(()) => written.push((index, renewed)),
                Err(error) => {
                    tracing::warn!(file = %ours.display(), %error, "a renewed token could not be kept");
                }
            }
        }
    }
    for (index, bytes) in written {
        given[index].1 = bytes;
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

    const LOGIN: &str = ".claude/.credentials.json";
    const OWNER: &str = r#"{"oauthAccount":{"accountUuid":"ana"}}"#;

    /// Gives the files `before` to a session of `program` that leaves `after`; returns the user's first file.
    fn session(program: &str, before: &[(&str, String)], after: &[(&str, String)]) -> String {
        let user = tempfile::tempdir().unwrap();
        for (name, text) in before {
            write_private(&user.path().join(name), text.as_bytes()).unwrap();
        }
        let mut given = gather(user.path(), auth_files(program));
        take_back(user.path(), &mut given, |path| {
            after.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| text.clone().into())
        });
        fs::read_to_string(user.path().join(before[0].0)).unwrap()
    }

    fn claude(before: &str, after: &str) -> String {
        let files = |login: &str| [(LOGIN, login.to_owned()), (".claude.json", OWNER.to_owned())];
        session("claude", &files(before), &files(after))
    }

    /// An unsigned token of `subject`.
    fn token(subject: &str) -> String {
        use base64::Engine as _;
        let claims = format!(r#"{{"sub":"{subject}"}}"#);
        format!("e30.{}.x", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn only_a_renewed_token_comes_back() {
        let known = r#"{"a":{"token":"one","until":1},"b":null,"organizationUuid":"o"}"#;
        let renewed = r#"{"a":{"token":"two","until":2,"more":1},"b":"x","organizationUuid":"o"}"#;
        assert_eq!(claude(known, renewed), renewed);
        for no in [
            "not a token file",
            "{not json}",
            "[]",
            "{}",
            r#"{"a":{"token":"two"},"organizationUuid":"o"}"#,
            r#"{"a":"two","b":null,"organizationUuid":"o"}"#,
            r#"{"a":{"token":["two"]},"b":null,"organizationUuid":"o"}"#,
            r#"{"a":{"token":"two"},"b":null,"organizationUuid":"o"} and more"#,
        ] {
            assert_eq!(claude(known, no), known, "{no}");
        }
        // Unrequested values are left out.
        let more = r#"{"a":{"token":"two"},"b":null,"organizationUuid":"o","hooks":{"x":"touch /tmp/x"}}"#;
        assert_eq!(
            serde_json::from_str::<Value>(&claude(known, more)).unwrap(),
            serde_json::json!({"a":{"token":"two"},"b":null,"organizationUuid":"o"})
        );
    }

    #[test]
    fn a_login_the_user_changed_meanwhile_stays_and_settings_never_come_back() {
        let user = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| write_private(&user.path().join(name), text.as_bytes()).unwrap();
        let login = |token: u8| format!(r#"{{"t":{token},"organizationUuid":"o"}}"#);
        put(LOGIN, &login(1));
        put(".claude.json", OWNER);
        let mut given = gather(user.path(), auth_files("claude"));
        let settings = r#"{"oauthAccount":{"accountUuid":"ana"},"hooks":{}}"#;
        let mut ends = |token: u8| {
            let files = [(LOGIN, login(token)), (".claude.json", settings.to_owned())];
            take_back(user.path(), &mut given, |path| {
                files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| text.clone().into())
            });
            fs::read_to_string(user.path().join(LOGIN)).unwrap()
        };
        // Two sessions of one sandbox renew it, one after the other.
        assert_eq!(ends(2), login(2));
        assert_eq!(ends(3), login(3));
        put(LOGIN, &login(9));
        assert_eq!(ends(4), login(9));
        assert_eq!(fs::read_to_string(user.path().join(".claude.json")).unwrap(), OWNER);
    }

    #[test]
    fn a_login_comes_back_only_if_it_names_the_same_account() {
        let claude = |organization: &str, account: &str, token: u8| {
            [
                (LOGIN, format!(r#"{{"t":{token},"organizationUuid":{organization}}}"#)),
                (".claude.json", format!(r#"{{"oauthAccount":{{"accountUuid":{account}}}}}"#)),
            ]
        };
        let codex = |account: &str, token: u8| {
            [(".codex/auth.json", format!(r#"{{"tokens":{{"t":{token},"account_id":{account}}}}}"#))]
        };
        let gemini = |id: &str, token: u8| {
            [(".gemini/oauth_creds.json", format!(r#"{{"t":{token},"id_token":"{id}"}}"#))]
        };
        let came_back = |program: &str, before: &[(&str, String)], after: &[(&str, String)]| {
            let left = session(program, before, after);
            assert!(left == before[0].1 || left == after[0].1);
            left == after[0].1
        };
        assert!(came_back("claude", &claude(r#""o""#, r#""a""#, 1), &claude(r#""o""#, r#""a""#, 2)));
        for (organization, account) in
            [(r#""p""#, r#""a""#), (r#""o""#, r#""b""#), ("null", r#""a""#), (r#""o""#, "null")]
        {
            let other = claude(organization, account, 2);
            assert!(!came_back("claude", &claude(r#""o""#, r#""a""#, 1), &other), "{other:?}");
        }
        let plain = |token: u8| claude("null", r#""a""#, token);
        assert!(came_back("claude", &plain(1), &plain(2)), "the organization is optional");
        let unnamed = |token: u8| claude(r#""o""#, "null", token);
        assert!(!came_back("claude", &unnamed(1), &unnamed(2)));
        assert!(came_back("codex", &codex(r#""a""#, 1), &codex(r#""a""#, 2)));
        assert!(!came_back("codex", &codex(r#""a""#, 1), &codex(r#""b""#, 2)));
        assert!(!came_back("codex", &codex("null", 1), &codex("null", 2)));
        assert!(came_back("gemini", &gemini(&token("a"), 1), &gemini(&token("a"), 2)));
        assert!(!came_back("gemini", &gemini(&token("a"), 1), &gemini(&token("b"), 2)));
        for no in ["", "x", "a.b.c"] {
            assert!(!came_back("gemini", &gemini(no, 1), &gemini(no, 2)), "{no}");
        }
        for (program, path) in
            [("qwen", ".qwen/oauth_creds.json"), ("opencode", ".local/share/opencode/auth.json")]
        {
            let of = |token: u8| [(path, format!(r#"{{"t":{token}}}"#))];
            assert!(!came_back(program, &of(1), &of(2)), "{program}'s login names no account");
        }
    }
}
