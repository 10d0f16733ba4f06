//! Settings of known agents in a repo that make them start programs or load code: hooks, helpers that hand out keys, servers of
//! tools, plugins, variables. What runs that way has the agent's key and login, without any model having been asked.

use super::agents::{SERVER_KEYS, is_loader_variable, settings_files, unescaped, without_comments};
use crate::repo_file;
use crate::trust::{Ask, AskKind, quoted};
use ralph_domain::id::Digest;
use serde_json::Value;
use std::path::Path;

/// Keys behind which programs stand, in the settings of any of the known agents.
const PROGRAM_KEYS: &[&str] = &[
    "apiKeyHelper",
    "awsAuthRefresh",
    "awsCredentialExport",
    "discoveryCommand",
    "callCommand",
    "enabledPlugins",
    "extraKnownMarketplaces",
    "formatter",
    "gcpAuthRefresh",
    "hooks",
    "lsp",
    "mcp",
    "mcpServers",
    "mcp_servers",
    "notify",
    "otelHeadersHelper",
    "plugin",
    "statusLine",
    "toolCallCommand",
    "toolDiscoveryCommand",
];
/// Bytes of a setting that is shown.
const SHOWN: usize = 80;

/// Files of a repo whose every setting is about programs.
fn program_files(known: &str) -> &'static [&'static str] {
    match known {
        "claude" => &[".mcp.json"],
        _ => &[],
    }
}

/// Folders of a repo from which the program `known` loads code by itself.
fn code_folders(known: &str) -> &'static [&'static str] {
    match known {
        "opencode" => &[".opencode/plugin", ".opencode/plugins", ".opencode/tool", ".opencode/tools"],
        "gemini" => &[".gemini/extensions"],
        "qwen" => &[".qwen/extensions"],
        _ => &[],
    }
}

/// What files of the repo at `top` would make the program `known` start or load.
pub fn agent_programs(top: &Path, known: &str) -> Vec<Ask> {
    let mut asks = Vec::new();
    for file in settings_files(known).iter().chain(program_files(known)) {
        // One that cannot be read is asked about as such already.
        let Ok(bytes) = repo_file::read(&top.join(file)) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        for (key, value) in settings(&text) {
            let asked = format!(
                "`{known}`, which has your keys, to start what `{key}` says: {}",
                quoted(&value.chars().take(SHOWN).collect::<String>())
            );
            let content = format!("{known}\0{value}\0{}", programs_named(top, &value));
            asks.push(Ask::new(AskKind::Program, file, key, &content, asked));
        }
    }
    for folder in code_folders(known) {
        let digest = folder_digest(&top.join(folder), 0);
        if let Some(digest) = digest {
            let asked = format!("`{known}`, which has your keys, to load the code in {}", quoted(folder));
            let content = format!("{known}\0{digest}");
            asks.push(Ask::new(AskKind::Program, folder, "files", &content, asked));
        }
    }
    asks
}

/// Settings of a file that start or load something, each with its value.
fn settings(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    match serde_json::from_str::<Value>(text) {
        Ok(value) => in_json(&value, &mut found),
        // Comments, TOML, lines of a `.env`, or nothing that anybody could read.
        Err(_) => in_text(&unescaped(text), &mut found),
    }
    found.dedup();
    found
}

fn in_json(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let is_empty = matches!(value, Value::Null | Value::Bool(false))
                    || value.as_object().is_some_and(serde_json::Map::is_empty)
                    || value.as_array().is_some_and(Vec::is_empty);
                let loads = is_loader_variable(key) || is_server_variable(key);
                if (is_program_key(key) || loads) && !is_empty {
                    found.push((key.clone(), value.to_string()));
                } else {
                    in_json(value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| in_json(value, found)),
        _ => {}
    }
}

/// In a text whose grammar is not looked at, the whole of it stands behind a key.
fn in_text(text: &str, found: &mut Vec<(String, String)>) {
    let lower = text.to_ascii_lowercase();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for key in PROGRAM_KEYS {
        let wanted = key.to_ascii_lowercase();
        let named = lower.match_indices(&wanted).any(|(at, _)| {
            let before = lower[..at].chars().next_back();
            let rest = &lower[at + wanted.len()..];
            let is_key = without_comments(rest.trim_start_matches(['"', '\''])).starts_with([':', '=']);
            let is_table = rest.starts_with([']', '.']);
            !before.is_some_and(is_word) && (is_key || is_table)
        });
        if named {
            found.push(((*key).to_owned(), text.to_owned()));
        }
    }
    for line in text.lines() {
        let name = line.trim_start().trim_start_matches("export ").trim_start_matches(['"', '\'']);
        let name = name.split(|c: char| !is_word(c)).next().unwrap_or_default();
        if is_loader_variable(name) || is_server_variable(name) {
            found.push((name.to_owned(), line.trim().to_owned()));
        }
    }
}

fn is_program_key(key: &str) -> bool {
    PROGRAM_KEYS.iter().any(|known| known.eq_ignore_ascii_case(key))
}

/// Variables that lead what a program sends elsewhere, and are not asked about as addresses.
fn is_server_variable(name: &str) -> bool {
    const ENDS: [&str; 4] = ["_PROXY", "_BASE_URL", "_ENDPOINT", "_API_BASE"];
    let upper = name.to_ascii_uppercase();
    !SERVER_KEYS.contains(&name) && (upper == "ALL_PROXY" || ENDS.iter().any(|end| upper.ends_with(end)))
}

/// The bytes of the repo's own files that a setting names: they are part of what is allowed.
fn programs_named(top: &Path, value: &str) -> String {
    let words = value.split(|c: char| c.is_whitespace() || "\"'`;|&()<>=,[]{}".contains(c));
    let files = words.filter(|word| !word.is_empty() && !word.starts_with('/') && word.len() < 512);
    let digests = files.filter_map(|word| repo_file::read(&top.join(word)).ok());
    digests.map(|bytes| Digest::of(&bytes).to_string()).collect::<Vec<_>>().join(" ")
}

/// What a folder holds, by name and bytes; nothing where it holds no file.
fn folder_digest(folder: &Path, depth: usize) -> Option<String> {
    const FILES: usize = 2000;
    const DEPTH: usize = 8;
    let mut names: Vec<_> = std::fs::read_dir(folder).ok()?.flatten().take(FILES).collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    let mut text = String::new();
    for entry in names {
        let kind = entry.file_type().ok()?;
        let content = match kind.is_dir() {
            true if depth < DEPTH => folder_digest(&entry.path(), depth + 1),
            // A link is not followed: where it leads is read by nobody here, and counts by its name.
            _ => repo_file::read(&entry.path()).ok().map(|bytes| Digest::of(&bytes).to_string()),
        };
        text.push_str(&format!("{}\0{}\n", entry.file_name().display(), content.unwrap_or_default()));
    }
    (!text.is_empty()).then(|| Digest::of(text.as_bytes()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<String> {
        settings(text).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn what_starts_or_loads_something_is_found_in_every_form() {
        assert_eq!(
            keys(r#"{"hooks": {"SessionStart": []}, "apiKeyHelper": "sh x"}"#),
            ["apiKeyHelper", "hooks"]
        );
        assert_eq!(keys(r#"{"\u0068ooks": {"Stop": [1]}}"#), ["hooks"]);
        assert_eq!(
            keys(r#"{"env": {"https_proxy": "http://e:1", "NODE_OPTIONS": "--require x"}}"#),
            ["NODE_OPTIONS", "https_proxy"]
        );
        assert_eq!(
            keys("{ // a word\n \"mcpServers\" /* x */ : {\"a\": {\"command\": \"sh\"}} }"),
            ["mcpServers"]
        );
        assert_eq!(keys("[mcp_servers.x]\ncommand = \"sh\"\n"), ["mcp_servers"]);
        assert_eq!(keys("notify = [\"sh\"]\n"), ["notify"]);
        assert_eq!(keys("export LD_PRELOAD=./x.so\n"), ["LD_PRELOAD"]);
    }

    #[test]
    fn everyday_settings_ask_for_nothing() {
        for plain in [
            r#"{"permissions": {"allow": ["Bash(npm test)"]}, "model": "opus", "hooks": {}, "env": {"CI": "1"}}"#,
            "model = \"gpt-5\"\nnotify_me = 1\napproval_policy = \"never\"\n",
            "{\"plugins_disabled\": true}",
            "GEMINI_MODEL=flash\n",
        ] {
            assert_eq!(keys(plain), Vec::<String>::new(), "{plain}");
        }
    }

    #[test]
    fn a_changed_script_behind_a_hook_is_asked_about_again() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir(top.path().join(".claude")).unwrap();
        std::fs::write(
            top.path().join(".claude/settings.json"),
            r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sh format.sh"}]}]}}"#,
        )
        .unwrap();
        let digests = || -> Vec<Digest> {
            agent_programs(top.path(), "claude").into_iter().map(|ask| ask.digest).collect()
        };
        std::fs::write(top.path().join("format.sh"), "true").unwrap();
        let first = digests();
        assert_eq!((first.len(), digests()), (1, first.clone()));
        std::fs::write(top.path().join("format.sh"), "false").unwrap();
        assert_ne!(digests(), first);
    }
}
