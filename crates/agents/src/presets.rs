//! Each known CLI's headless command line, and which CLIs are installed.
//!
//! The command lines were tested with the versions in [`tried_with`]. They let the agent act without asking, because
//! no user can answer: the sandbox isolates it.

use crate::scan::Cursor;
use ralph_loop_task::config::{AgentConfig, OutputFormat, PromptMode};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The names of all presets, in the order they are offered.
pub const NAMES: [&str; 5] = ["claude", "codex", "gemini", "opencode", "qwen"];

/// The configuration for a CLI; `None` without a preset.
pub fn preset(name: &str) -> Option<AgentConfig> {
    let (argv, format, model_flag, env): (&[&str], _, _, &[(&str, &str)]) = match name {
        "claude" => (
            &[
                "claude",
                "-p",
                "--output-format",
                "stream-json",
                "--verbose",
                "--dangerously-skip-permissions",
            ],
            OutputFormat::ClaudeStreamJson,
            "--model",
            &[("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")],
        ),
        "codex" => (
            &[
                "codex",
                "exec",
                "--json",
                "--dangerously-bypass-approvals-and-sandbox",
                "--skip-git-repo-check",
                "-",
            ],
            OutputFormat::CodexJson,
            "--model",
            &[],
        ),
        "gemini" => (
            // Without `-p`, gemini takes a prompt on stdin and runs headless.
            &["gemini", "--approval-mode", "yolo", "--skip-trust", "--output-format", "stream-json"],
            OutputFormat::GeminiJson,
            "--model",
            &[("GEMINI_CLI_NO_RELAUNCH", "true")],
        ),
        "opencode" => (
            &["opencode", "run", "--auto", "--format", "json"],
            OutputFormat::OpencodeJson,
            "--model",
            &[("OPENCODE_DISABLE_AUTOUPDATE", "1")],
        ),
        "qwen" => (
            &["qwen", "--approval-mode", "yolo", "--output-format", "stream-json"],
            OutputFormat::QwenJson,
            "--model",
            &[("QWEN_CODE_NO_RELAUNCH", "true")],
        ),
        _ => return None,
    };
    let env: BTreeMap<String, String> = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Some(AgentConfig {
        prompt_mode: PromptMode::Stdin,
        output_format: format,
        model_argv: vec![model_flag.to_owned(), "{{model}}".to_owned()],
        env,
        ..AgentConfig::command(name, argv)
    })
}

/// The preset whose program `argv` starts, whatever the agent's name.
pub fn preset_of(argv: &[String]) -> Option<&'static str> {
    let program = Path::new(argv.first()?).file_name()?.to_str()?;
    NAMES.into_iter().find(|name| *name == program)
}

/// The CLI version that the preset was tested with.
pub fn tried_with(name: &str) -> Option<&'static str> {
    match name {
        "claude" => Some("2.1.325"),
        "codex" => Some("0.166.0"),
        "gemini" => Some("0.61.0"),
        "opencode" => Some("1.18.33"),
        "qwen" => Some("0.15.10"),
        _ => None,
    }
}

/// A warning and fix if a CLI reports an older version than the tested one.
pub fn too_old(name: &str, said: &str) -> Option<(String, String)> {
    let tried = tried_with(name)?;
    let found = numbers(said)?;
    if found >= numbers(tried)? {
        return None;
    }
    let [major, minor, patch] = found;
    let mut message = format!("{major}.{minor}.{patch} is older than {tried}, which was tried");
    if name == "claude" {
        message.push_str("; on Node 20, npm silently takes such a version unless one is named");
    }
    Some((message, format!("{}@{tried}", install_hint(name)?)))
}

/// The first `1.2.3` in a text.
fn numbers(said: &str) -> Option<[u32; 3]> {
    said.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
        let mut cursor = Cursor::new(word);
        let major = cursor.whole()?;
        let minor = cursor.eat(".").then(|| cursor.whole())??;
        let patch = cursor.eat(".").then(|| cursor.whole())??;
        Some([major, minor, patch])
    })
}

pub fn install_hint(name: &str) -> Option<&'static str> {
    match name {
        "claude" => Some("npm install -g @anthropic-ai/claude-code"),
        "codex" => Some("npm install -g @openai/codex"),
        "gemini" => Some("npm install -g @google/gemini-cli"),
        "opencode" => Some("npm install -g opencode-ai"),
        "qwen" => Some("npm install -g @qwen-code/qwen-code"),
        _ => None,
    }
}

pub fn login_hint(name: &str) -> Option<&'static str> {
    match name {
        "claude" => {
            Some("run `claude` once and use /login, or set ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN")
        }
        "codex" => Some("run `codex login`, or set OPENAI_API_KEY"),
        "gemini" => Some("run `gemini` once and choose how to log in, or set GEMINI_API_KEY"),
        "opencode" => Some(
            "run `opencode auth login`, or set the key of your provider (ANTHROPIC_API_KEY, OPENAI_API_KEY)",
        ),
        "qwen" => {
            Some("run `qwen` once and use /auth, or set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL")
        }
        _ => None,
    }
}

/// The presets whose program is in `path_var` (the value of `PATH`), with its path.
pub fn detect(path_var: &str) -> Vec<(&'static str, PathBuf)> {
    NAMES.into_iter().filter_map(|name| Some((name, find_program(name, path_var)?))).collect()
}

/// The first executable `program` in the folders of `path_var`.
pub fn find_program(program: &str, path_var: &str) -> Option<PathBuf> {
    std::env::split_paths(path_var)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_headless_on_stdin_and_has_its_hints() {
        for name in NAMES {
            let config = preset(name).unwrap();
            assert_eq!(config.name.as_str(), name);
            assert_eq!(config.prompt_mode, PromptMode::Stdin);
            assert_ne!(config.output_format, OutputFormat::Text);
            assert_eq!(preset_of(&config.command_argv), Some(name));
            assert!(install_hint(name).is_some() && login_hint(name).is_some());
            assert_eq!(too_old(name, tried_with(name).unwrap()), None);
        }
        assert!(preset("emacs").is_none());
        assert_eq!(preset_of(&["/opt/bin/codex".to_owned()]), Some("codex"));
    }

    #[test]
    fn old_cli_is_reported_with_its_fix() {
        let (message, fix) = too_old("claude", "2.1.197 (Claude Code)").unwrap();
        assert!(
            message.starts_with("2.1.197 is older than 2.1.325") && message.contains("Node 20"),
            "{message}"
        );
        assert_eq!(fix, "npm install -g @anthropic-ai/claude-code@2.1.325");
        assert!(too_old("codex", "codex-cli 0.99.0").unwrap().1.ends_with("@openai/codex@0.166.0"));
        for fine in ["codex-cli 0.166.0", "codex-cli 1.0.0", "no number", ""] {
            assert_eq!(too_old("codex", fine), None, "{fine}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_executable_files_on_the_path_are_found() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        for (name, mode) in [("claude", 0o755), ("codex", 0o644)] {
            let file = folder.path().join(name);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::create_dir(folder.path().join("gemini")).unwrap();
        let path_var = format!("/nonexistent:relative:{}", folder.path().display());
        let found = detect(&path_var);
        assert_eq!(found, [("claude", folder.path().join("claude"))]);
        assert!(detect("").is_empty());
    }
}
