//! The secret values in agents' login files, for redaction.

use super::auth::{AuthFile, auth_files, plain_file};
use ralph_loop_domain::secret_name::is_secret_name;
use serde_json::Value;
use std::path::Path;

const PROGRAMS: [&str; 5] = ["claude", "codex", "gemini", "opencode", "qwen"];
/// Shorter values could be any word.
const RANDOM_MIN: usize = 10;
/// A value in a file that holds nothing but a login.
const TOKEN_MIN: usize = 20;
/// No login is nested deeper than this.
const DEPTH_MAX: usize = 16;

/// Tokens and keys in the login and settings files of known agents below `home`, each with the name to show in its
/// place. Includes values that the user's MCP servers get.
pub fn login_secrets(home: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for program in PROGRAMS {
        let name = format!("{}_LOGIN", program.to_uppercase());
        for file in auth_files(program) {
            let Some(bytes) = plain_file(&home.join(&file.path)) else { continue };
            let mut values = Vec::new();
            values_of(&file, &bytes, &mut values);
            found.extend(values.into_iter().map(|value| (name.clone(), value)));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn values_of(file: &AuthFile, bytes: &[u8], found: &mut Vec<String>) {
    match file.path.extension().and_then(|end| end.to_str()) {
        Some("toml") => of_toml(&String::from_utf8_lossy(bytes), found),
        _ => {
            if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
                let whole = if file.is_login { Inside::Login } else { Inside::Settings };
                of_value(&value, "", whole, 0, found);
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// In a file that is only a login.
    Login,
    Settings,
    /// Among variables or headers for a server.
    Given,
}

fn of_value(value: &Value, key: &str, inside: Inside, depth: usize, found: &mut Vec<String>) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::String(text) if is_secret(key, text, inside) => {
            // `Bearer …` is separated from the token.
            found.extend(text.rsplit_once(' ').map(|(_, last)| last.to_owned()));
            found.push(text.clone());
        }
        Value::Array(values) => values.iter().for_each(|one| of_value(one, key, inside, depth + 1, found)),
        Value::Object(object) => {
            for (key, value) in object {
                let given = matches!(key.as_str(), "env" | "headers" | "http_headers");
                let inside = if given && value.is_object() { Inside::Given } else { inside };
                of_value(value, key, inside, depth + 1, found);
            }
        }
        _ => {}
    }
}

fn is_secret(key: &str, text: &str, inside: Inside) -> bool {
    let named = is_secret_name(&words(key)) || key.eq_ignore_ascii_case("authorization");
    match inside {
        Inside::Login => {
            named || matches!(key, "access" | "refresh" | "key") || looks_random(text, TOKEN_MIN)
        }
        Inside::Settings => named,
        Inside::Given => named || looks_random(text, RANDOM_MIN),
    }
}

/// `accessToken` → `access_Token`.
fn words(key: &str) -> String {
    let mut out = String::new();
    let mut before = false;
    for letter in key.chars() {
        if before && letter.is_ascii_uppercase() {
            out.push('_');
        }
        before = letter.is_ascii_lowercase();
        out.push(letter);
    }
    out
}

/// Whether a text isn't a word, number, path or address.
fn looks_random(text: &str, least: usize) -> bool {
    let has = |is: fn(&char) -> bool| text.chars().any(|letter| is(&letter));
    let kinds = [char::is_ascii_lowercase, char::is_ascii_uppercase, char::is_ascii_digit];
    let place =
        text.contains("://") || text.starts_with(['/', '~', '.', '@']) || text.contains(char::is_whitespace);
    let mixed = kinds.iter().filter(|is| has(**is)).count() >= 2;
    text.len() >= least && mixed && !place
}

/// Parses TOML line by line: it is the user's settings file, and a partial result is enough.
fn of_toml(text: &str, found: &mut Vec<String>) {
    let mut given = false;
    for line in text.lines() {
        let line = line.trim();
        if let Some(table) = line.strip_prefix('[') {
            given = table.trim_end_matches([']', ' ']).ends_with(".env") || table.contains("headers");
            continue;
        }
        // `env = { A = "…", B = "…" }` is a line of its kind.
        let inline = line.starts_with("env") || line.contains("headers");
        for pair in line.split([',', '{', '}']) {
            let Some((key, value)) = pair.split_once('=').filter(|(_, value)| !value.trim().is_empty())
            else {
                continue;
            };
            let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
            let inside = if given || inline { Inside::Given } else { Inside::Settings };
            let (key, value) = (bare(key), bare(value));
            if is_secret(&key, &value, inside) {
                found.extend(value.rsplit_once(' ').map(|(_, last)| last.to_owned()));
                found.push(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn tokens_and_what_servers_are_given_are_secret_and_plain_words_are_not() {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in [
            (
                ".claude/.credentials.json",
                r#"{"claudeAiOauth":{"accessToken":"ACCESS-VALUE","refreshToken":"REFRESH-VALUE","scopes":["user:inference"],"subscriptionType":"max"}}"#,
            ),
            (
                ".claude.json",
                r#"{"theme":"Dark-Theme-01","mcpServers":{"a":{"command":"Some-Command-1","env":{"DB_TOKEN":"plainwords","K":"Mixed-Value","MODE":"production"}}},"projects":{"/x":{"mcpServers":{"b":{"headers":{"Authorization":"Bearer header-value"}}}}}}"#,
            ),
            (".codex/auth.json", r#"{"OPENAI_API_KEY":"key-value","tokens":{"id_token":"a.b.c-value"}}"#),
            (
                ".codex/config.toml",
                "model = \"Model-Name-01\"\n[mcp_servers.x]\nenv = { \"A_TOKEN\" = \"toml-inline\" }\n[mcp_servers.y.env]\nB = \"Toml-Table-1\"\n",
            ),
            (
                ".local/share/opencode/auth.json",
                r#"{"x":{"type":"oauth","refresh":"open-refresh","access":"open-access"}}"#,
            ),
        ] {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found: Vec<String> = login_secrets(home.path()).into_iter().map(|(_, value)| value).collect();
        for yes in [
            "ACCESS-VALUE",
            "REFRESH-VALUE",
            "plainwords",
            "Mixed-Value",
            "header-value",
            "key-value",
            "a.b.c-value",
            "toml-inline",
            "Toml-Table-1",
            "open-refresh",
            "open-access",
        ] {
            assert!(found.iter().any(|value| value == yes), "{yes}: {found:?}");
        }
        for no in ["Dark-Theme-01", "Some-Command-1", "production", "user:inference", "max", "Model-Name-01"]
        {
            assert!(!found.iter().any(|value| value == no), "{no}: {found:?}");
        }
    }
}
