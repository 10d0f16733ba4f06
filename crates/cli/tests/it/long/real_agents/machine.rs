//! A machine on which a real agent CLI talks only to the scripted model server.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use crate::RALPH;
use ralph_loop_agents::presets::preset;
use ralph_loop_testkit::model_server::ModelServer;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo, skip};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the CLIs' programs, installed if needed; `None` (with a printed reason) if they are skipped.
pub fn programs() -> Option<PathBuf> {
    if std::env::var("RALPH_REAL_CLIS").is_ok_and(|value| value == "0") {
        skip("the real agent CLIs are left out (RALPH_REAL_CLIS=0)");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/agent-clis");
    let done = TestEnv::finish(&mut Command::new(script));
    assert_eq!(done.code, Some(0), "scripts/agent-clis: {}", done.stderr);
    Some(PathBuf::from(done.stdout.trim()))
}

/// A test machine with one CLI.
pub struct Machine {
    pub env: TestEnv,
    cli: &'static str,
    programs: PathBuf,
}

impl Machine {
    pub fn new(cli: &'static str, programs: &Path) -> Self {
        Self { env: TestEnv::new(RALPH), cli, programs: programs.to_owned() }
    }

    /// A repo with the task that every scenario of the server solves, and this CLI as its only agent.
    pub fn repo(&self, name: &str) -> TestRepo<'_> {
        let task = "# Greet\n\nMake hello.txt with a greeting and run a command that adds a line to it.\n";
        self.repo_with(name, &[("PROMPT.md", task)])
    }

    /// A repo of these files, with this CLI as its only agent.
    pub fn repo_with(&self, name: &str, files: &[(&str, &str)]) -> TestRepo<'_> {
        let repo = TestRepo::new(&self.env, name, files);
        let mut agent = serde_json::to_value(preset(self.cli).unwrap()).unwrap();
        if let Some(model) = self.model() {
            agent["model"] = model.into();
        }
        repo.configure(&[agent], "grep -q shell-ran hello.txt", &json!({}));
        repo
    }

    fn model(&self) -> Option<&'static str> {
        match self.cli {
            "claude" => Some("claude-sonnet-4-5"),
            "codex" => Some("gpt-5.5"),
            "gemini" => Some("gemini-2.5-pro"),
            "opencode" => Some("anthropic/claude-sonnet-4-5"),
            _ => None,
        }
    }

    /// Runs `ralph` with the CLI pointed at `base_url`.
    pub fn ralph(&self, repo: &TestRepo<'_>, base_url: &str, args: &[&str]) -> Finished {
        TestEnv::finish(&mut self.command(repo, base_url, args))
    }

    /// The same command, not started yet.
    pub fn command(&self, repo: &TestRepo<'_>, base_url: &str, args: &[&str]) -> Command {
        self.settings(base_url);
        let mut command = self.env.ralph_command(&repo.dir, args);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.programs.display())).envs(self.vars(base_url));
        command
    }

    /// The CLI's environment variables.
    fn vars(&self, base_url: &str) -> Vec<(&'static str, String)> {
        let v1 = format!("{base_url}/v1");
        let set = |pairs: &[(&'static str, &str)]| pairs.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
        match self.cli {
            "claude" => set(&[
                ("ANTHROPIC_BASE_URL", base_url),
                ("ANTHROPIC_API_KEY", "scripted"),
                ("CLAUDE_CODE_MAX_RETRIES", "1"),
            ]),
            "codex" => set(&[("SCRIPTED_API_KEY", "scripted")]),
            "gemini" => set(&[("GOOGLE_GEMINI_BASE_URL", base_url), ("GEMINI_API_KEY", "scripted")]),
            "opencode" => {
                let config = json!({
                    "small_model": "anthropic/claude-sonnet-4-5", "autoupdate": false, "share": "disabled",
                    "provider": {"anthropic": {"options": {"baseURL": v1, "apiKey": "scripted"}}},
                });
                set(&[
                    ("OPENCODE_CONFIG_CONTENT", &config.to_string()),
                    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
                    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
                    ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
                    // It installs a package into every new home and needs the registry.
                    ("npm_config_offline", "true"),
                ])
            }
            _ => set(&[
                ("OPENAI_BASE_URL", &v1),
                ("OPENAI_API_KEY", "scripted"),
                ("OPENAI_MODEL", "qwen3-coder-plus"),
            ]),
        }
    }

    /// Creates the files that the CLI needs in its home folder.
    fn settings(&self, base_url: &str) {
        let (file, text) = match self.cli {
            "codex" => (".codex/config.toml", codex_settings(base_url)),
            "gemini" => (".gemini/settings.json", gemini_settings().to_string()),
            "qwen" => (".qwen/settings.json", qwen_settings().to_string()),
            _ => return,
        };
        let file = self.env.path("home").join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    /// How a CLI session ends in a scenario, as reported by `ralph probe`.
    pub fn probe(&self, server: &ModelServer, scenario: &str) -> Value {
        self.probe_at(&server.base_url(scenario, "probe"), scenario)
    }

    /// How a session ends without a login.
    pub fn probe_without_key(&self, server: &ModelServer) -> Value {
        let repo = self.repo("nokey");
        let mut command =
            self.command(&repo, &server.base_url("ok", "nokey"), &["probe", "--json", "--timeout", "400"]);
        for name in ["ANTHROPIC_API_KEY", "SCRIPTED_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"] {
            command.env_remove(name);
        }
        TestEnv::finish(&mut command).json()[0].clone()
    }

    /// The same with any URL.
    pub fn probe_at(&self, base_url: &str, name: &str) -> Value {
        let repo = self.repo(name);
        let done = self.ralph(&repo, base_url, &["probe", "--json", "--timeout", "400"]);
        done.json()[0].clone()
    }
}

fn qwen_settings() -> Value {
    json!({
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
        "general": {"disableAutoUpdate": true, "disableUpdateNag": true},
    })
}

fn gemini_settings() -> Value {
    json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false}, "telemetry": {"enabled": false},
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 2},
        "tools": {"useRipgrep": false},
    })
}

fn codex_settings(base_url: &str) -> String {
    format!(
        "model_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
         [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{base_url}/v1\"\n\
         env_key = \"SCRIPTED_API_KEY\"\nwire_api = \"responses\"\nrequest_max_retries = 1\nstream_max_retries = 1\n\
         [analytics]\nenabled = false\n[otel]\nmetrics_exporter = \"none\"\n[features]\nplugins = false\napps = false\n"
    )
}
