//! The hooks of a run's sessions: makes each known CLI call `ralph hook` before and after its tools, without changing
//! the user's or the repo's settings.

mod gemini;
mod shim;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use shim::command;
use std::path::{Path, PathBuf};

/// What a session needs for its hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionHooks {
    pub argv: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Required files: path below the hooks' folder, and text.
    pub files: Vec<(String, String)>,
    /// Required links: path below that folder, and target.
    pub links: Vec<(String, PathBuf)>,
}

/// The environment of the hooks.
#[derive(Clone, Copy)]
pub struct HookPlace<'a> {
    /// The `ralph` binary, as the session sees it.
    pub program: &'a Path,
    /// The folder of [`SessionHooks::files`], as the session sees it. No agent can write there.
    pub folder: &'a Path,
    pub sandboxed: bool,
    pub argv: &'a [String],
    pub var: &'a dyn Fn(&str) -> Option<String>,
    /// Reads a user's file.
    pub read: &'a dyn Fn(&Path) -> Option<String>,
    /// Lists a user's folder.
    pub names: &'a dyn Fn(&Path) -> Vec<String>,
}

/// The hooks of a CLI; `None` if it doesn't support them.
pub fn session_hooks(cli: &str, place: &HookPlace<'_>) -> Option<SessionHooks> {
    match cli {
        "claude" => Some(claude(place)),
        "codex" => Some(codex(place)),
        "qwen" => Some(qwen(place)),
        "opencode" => opencode(place),
        "gemini" => gemini::hooks(place),
        _ => None,
    }
}

/// The hooks in claude's format, which qwen also reads.
fn claude_hooks(place: &HookPlace<'_>, cli: &str) -> Value {
    let hook = |event: &str, seconds: u32| json!([{"hooks": [{"type": "command", "command": command(place, event, cli), "timeout": seconds}]}]);
    let every = |event: &str| json!([{"matcher": "*", "hooks": [{"type": "command", "command": command(place, event, cli), "timeout": 10}]}]);
    json!({
        "PreToolUse": every("pre-tool-use"),
        "PostToolUse": every("post-tool-use"),
        "PostToolUseFailure": every("post-tool-use"),
        "Stop": hook("stop", 60),
        "SessionStart": hook("session-start", 10),
        "SessionEnd": hook("session-end", 10),
    })
}

/// In a sandbox the plugin is loaded from a folder of the run; otherwise settings carry the same hooks. Settings on
/// the user's command line are kept.
fn claude(place: &HookPlace<'_>) -> SessionHooks {
    let hooks = claude_hooks(place, "claude");
    let own_settings = place.argv.iter().any(|arg| arg.split('=').next() == Some("--settings"));
    if place.sandboxed || own_settings {
        let plugin = json!({
            "name": "ralph", "version": env!("CARGO_PKG_VERSION"),
            "description": "The guard, the context monitor and the stop gate of this run", "author": {"name": "ralph"},
        });
        return SessionHooks {
            argv: vec!["--plugin-dir".to_owned(), place.folder.join("claude").display().to_string()],
            env: Vec::new(),
            files: vec![
                ("claude/.claude-plugin/plugin.json".to_owned(), plugin.to_string()),
                ("claude/hooks/hooks.json".to_owned(), json!({"hooks": hooks}).to_string()),
            ],
            links: Vec::new(),
        };
    }
    SessionHooks {
        argv: vec!["--settings".to_owned(), place.folder.join("claude.json").display().to_string()],
        env: Vec::new(),
        files: vec![("claude.json".to_owned(), json!({"hooks": hooks}).to_string())],
        links: Vec::new(),
    }
}

/// The machine's settings override those of the user and the repo. An administrator's settings are kept.
fn qwen(place: &HookPlace<'_>) -> SessionHooks {
    let every = |event: &str| json!([{"matcher": "*", "hooks": [{"type": "command", "name": "ralph", "command": command(place, event, "qwen"), "timeout": 10_000}]}]);
    let settings = json!({"hooksConfig": {"enabled": true}, "hooks": {"PreToolUse": every("pre-tool-use")}});
    by_settings(place, "QWEN_CODE_SYSTEM_SETTINGS_PATH", "qwen.json", settings)
}

fn by_settings(place: &HookPlace<'_>, variable: &str, file: &str, settings: Value) -> SessionHooks {
    if (place.var)(variable).is_some_and(|value| !value.is_empty()) {
        return SessionHooks::default();
    }
    SessionHooks {
        argv: Vec::new(),
        env: vec![(variable.to_owned(), place.folder.join(file).display().to_string())],
        files: vec![(file.to_owned(), settings.to_string())],
        links: Vec::new(),
    }
}

/// Codex runs only trusted hooks, identified by the hash of their definition. Ours is defined and trusted on the
/// session's command line; the repo's stay untrusted, unlike with the flag that bypasses trust.
fn codex(place: &HookPlace<'_>) -> SessionHooks {
    let command = command(place, "pre-tool-use", "codex");
    let quoted = Value::String(command.clone()).to_string();
    let hash = codex_hash(&command);
    let hook = format!(r#"hooks.PreToolUse=[{{hooks=[{{type="command",command={quoted},timeout=10}}]}}]"#);
    let trust = format!(
        r#"hooks.state={{"/<session-flags>/config.toml:pre_tool_use:0:0"={{trusted_hash="sha256:{hash}"}}}}"#
    );
    SessionHooks { argv: ["-c", &hook, "-c", &trust].map(str::to_owned).to_vec(), ..SessionHooks::default() }
}

/// The hash by which codex identifies our hook.
fn codex_hash(command: &str) -> String {
    let quoted = Value::String(command.to_owned()).to_string();
    // Keys in alphabetical order: the hash is over this text.
    let identity = format!(
        r#"{{"event_name":"pre_tool_use","hooks":[{{"async":false,"command":{quoted},"timeout":10,"type":"command"}}]}}"#
    );
    Sha256::digest(identity.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A plugin that asks before each tool and throws if the answer is no, or missing.
fn opencode(place: &HookPlace<'_>) -> Option<SessionHooks> {
    let program = serde_json::to_string(&place.program.display().to_string()).ok()?;
    let text = include_str!("session_hooks/opencode.js").replace("\"{{program}}\"", &program);
    let mut config: Value = match (place.var)("OPENCODE_CONFIG_CONTENT").filter(|text| !text.is_empty()) {
        Some(text) => serde_json::from_str(&text).ok()?,
        None => json!({}),
    };
    let file = format!("file://{}", place.folder.join("opencode.js").display());
    let plugins = config.as_object_mut()?.entry("plugin").or_insert_with(|| json!([]));
    plugins.as_array_mut()?.push(json!(file));
    Some(SessionHooks {
        argv: Vec::new(),
        env: vec![("OPENCODE_CONFIG_CONTENT".to_owned(), config.to_string())],
        files: vec![("opencode.js".to_owned(), text)],
        links: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(
        cli: &str,
        sandboxed: bool,
        argv: &[&str],
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Option<SessionHooks> {
        let argv: Vec<String> = argv.iter().map(|arg| (*arg).to_owned()).collect();
        let place = HookPlace {
            program: Path::new("/opt/it's/ralph"),
            folder: Path::new("/r/hooks"),
            sandboxed,
            argv: &argv,
            var,
            read: &|_| None,
            names: &|_| Vec::new(),
        };
        session_hooks(cli, &place)
    }

    #[test]
    fn claude_gets_settings_or_a_plugin_with_the_same_hooks() {
        let none = |_: &str| None;
        let open = of("claude", false, &["claude", "-p"], &none).unwrap();
        assert_eq!(open.argv, ["--settings", "/r/hooks/claude.json"]);
        assert!(
            open.files[0].1.contains(r"'/opt/it'\\''s/ralph' hook pre-tool-use --for claude"),
            "{}",
            open.files[0].1
        );
        let closed = of("claude", true, &["claude"], &none).unwrap();
        assert_eq!(closed.argv, ["--plugin-dir", "/r/hooks/claude"]);
        assert_eq!(closed.files[1].1, open.files[0].1);
        let own = of("claude", false, &["claude", "--settings=x.json"], &none).unwrap();
        assert_eq!(own.argv[0], "--plugin-dir");
    }

    #[test]
    fn user_settings_are_kept() {
        let set = |name: &str| (name == "QWEN_CODE_SYSTEM_SETTINGS_PATH").then(|| "/etc/q.json".to_owned());
        assert_eq!(of("qwen", false, &[], &set), Some(SessionHooks::default()));
        let content = |name: &str| {
            (name == "OPENCODE_CONFIG_CONTENT").then(|| r#"{"model":"m","plugin":["mine"]}"#.to_owned())
        };
        let hooks = of("opencode", false, &[], &content).unwrap();
        assert_eq!(hooks.env[0].1, r#"{"model":"m","plugin":["mine","file:///r/hooks/opencode.js"]}"#);
        assert!(hooks.files[0].1.contains("\"/opt/it's/ralph\""), "{}", hooks.files[0].1);
        assert_eq!(of("emacs", false, &[], &set), None);
    }

    #[test]
    fn codex_trusts_our_hook_by_the_hash_that_it_computes_itself() {
        let argv: Vec<String> = Vec::new();
        let place = HookPlace {
            program: Path::new("/opt/ralph"),
            folder: Path::new("/r"),
            sandboxed: false,
            argv: &argv,
            var: &|_| None,
            read: &|_| None,
            names: &|_| Vec::new(),
        };
        let hooks = session_hooks("codex", &place).unwrap();
        assert!(
            hooks.argv[1].starts_with("hooks.PreToolUse=[{hooks=[{type=\"command\",command=\""),
            "{}",
            hooks.argv[1]
        );
        assert!(hooks.argv[1].contains("'/opt/ralph' hook pre-tool-use --for codex"), "{}", hooks.argv[1]);
        assert!(hooks.argv[3].contains("/<session-flags>/config.toml:pre_tool_use:0:0"), "{}", hooks.argv[3]);
        // As reported by `hooks/list` of its app server.
        assert_eq!(
            codex_hash("'/opt/ralph' hook pre-tool-use --for codex"),
            "f809b9c49646bd109af100f4c55b10f16c437ccdcb7419308ada7cd1288aace7"
        );
    }
}
