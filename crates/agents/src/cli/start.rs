//! Command line arguments that keep each known CLI from reading the repo's settings.
//!
//! They were tested with the versions in [`crate::presets::tried_with`], with settings at the top of a repo, in the
//! working folder and in between. Later arguments win, so the user's own follow these.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// The user's side of a start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserSide {
    /// The user's tool servers.
    pub servers: UserServers,
    /// Variables that the user hasn't set and no repo file may set: they are set to empty.
    pub unset: Vec<&'static str>,
    /// The model of the user's own settings, if the CLI's output doesn't name it: it prices sessions.
    pub model: Option<String>,
}

/// The user's tool servers, for a CLI that would otherwise skip them together with the repo's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum UserServers {
    #[default]
    None,
    /// Those in this file, as the session sees it.
    File(PathBuf),
    /// Those in the session's home.
    InHome,
}

/// Variables that choose a CLI's server and that it also reads from repo files.
pub fn server_variables(cli: &str) -> &'static [&'static str] {
    match cli {
        "gemini" => &["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "CODE_ASSIST_ENDPOINT"],
        "qwen" => &["OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"],
        _ => &[],
    }
}

/// The arguments right after the program, for a session in the folder `cwd` of the workspace `root`, at the session's
/// path.
pub(super) fn arguments(cli: &str, root: &Path, cwd: &Path, user: &UserSide) -> Vec<String> {
    match cli {
        "claude" => {
            // The user's settings, and those of `--settings` or our plugin.
            let mut argv = vec!["--setting-sources".to_owned(), "user".to_owned()];
            if user.servers != UserServers::InHome {
                argv.push("--strict-mcp-config".to_owned());
            }
            if let UserServers::File(file) = &user.servers {
                argv.push(format!("--mcp-config={}", file.display()));
            }
            argv
        }
        "codex" => {
            let untrusted = |below: &Path| {
                let folder = if below.as_os_str().is_empty() { root.to_owned() } else { root.join(below) };
                let name = Value::String(folder.display().to_string());
                format!(r#"{}={{trust_level="untrusted"}}"#, name.to_string().replace('\u{7f}', "\\u007f"))
            };
            let folders: Vec<String> = cwd.ancestors().map(untrusted).collect();
            vec!["-c".to_owned(), format!("projects={{{}}}", folders.join(","))]
        }
        _ => Vec::new(),
    }
}

/// Whether the CLI can continue a session by its id.
pub(super) fn can_continue(cli: &str) -> bool {
    matches!(cli, "claude" | "codex")
}

/// Turns the start of a session into the continuation of the session `id`.
pub(super) fn continue_with(cli: &str, argv: &mut Vec<String>, id: &str) {
    let id = id.to_owned();
    match cli {
        "claude" => drop(argv.splice(1..1, ["--resume".to_owned(), id])),
        // `codex exec … resume ID -`: the prompt comes last.
        "codex" => {
            let at = argv.iter().rposition(|word| word == "-").unwrap_or(argv.len());
            argv.splice(at..at, ["resume".to_owned(), id]);
        }
        _ => {}
    }
}

/// The variables that a session is started with.
pub(super) fn variables(cli: &str, user: &UserSide) -> Vec<(String, String)> {
    let own: &[(&str, &str)] = match cli {
        // Folders that the user trusts in their own sessions aren't trusted here: this file doesn't exist.
        "gemini" => &[("GEMINI_CLI_TRUSTED_FOLDERS_PATH", "/nonexistent/trustedFolders.json")],
        "opencode" => &[("OPENCODE_DISABLE_PROJECT_CONFIG", "1")],
        _ => &[],
    };
    let own = own.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    own.chain(user.unset.iter().map(|name| ((*name).to_owned(), String::new()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cli: &str, user: &UserSide) -> String {
        arguments(cli, Path::new("/home/a \"b\"/repo"), Path::new("packages/api"), user).join(" ")
    }

    #[test]
    fn claude_reads_the_users_settings_and_servers_alone() {
        let of = |servers| line("claude", &UserSide { servers, ..UserSide::default() });
        assert_eq!(of(UserServers::None), "--setting-sources user --strict-mcp-config");
        assert_eq!(
            of(UserServers::File("/home/u/.claude.json".into())),
            "--setting-sources user --strict-mcp-config --mcp-config=/home/u/.claude.json"
        );
        assert_eq!(of(UserServers::InHome), "--setting-sources user");
    }

    #[test]
    fn codex_trusts_no_folder_from_the_session_to_the_top() {
        let folder = |below: &str| format!(r#""/home/a \"b\"/repo{below}"={{trust_level="untrusted"}}"#);
        let folders = [folder("/packages/api"), folder("/packages"), folder("")].join(",");
        assert_eq!(line("codex", &UserSide::default()), format!("-c projects={{{folders}}}"));
    }

    #[test]
    fn sessions_are_continued_by_their_id() {
        let of = |cli: &str, line: &str| {
            let mut argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            continue_with(cli, &mut argv, "7-a");
            argv.join(" ")
        };
        assert_eq!(of("claude", "/bin/claude -p --model x"), "/bin/claude --resume 7-a -p --model x");
        assert_eq!(of("codex", "codex exec --json - --model x"), "codex exec --json resume 7-a - --model x");
        assert!(!can_continue("gemini"));
    }

    #[test]
    fn variables_keep_files_of_a_repo_from_naming_a_server() {
        let unset = |cli: &str| UserSide { unset: server_variables(cli).to_vec(), ..UserSide::default() };
        let gemini = variables("gemini", &unset("gemini"));
        assert!(gemini.contains(&("GOOGLE_GEMINI_BASE_URL".to_owned(), String::new())), "{gemini:?}");
        assert!(!gemini.iter().any(|(name, _)| name == "GEMINI_CLI_TRUST_WORKSPACE"));
        assert_eq!(
            variables("opencode", &UserSide::default()),
            [("OPENCODE_DISABLE_PROJECT_CONFIG".to_owned(), "1".to_owned())]
        );
        assert!(variables("claude", &unset("claude")).is_empty());
    }
}
