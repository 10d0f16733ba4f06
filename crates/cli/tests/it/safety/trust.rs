//! Requests of a repo, a task, a tracked file or a fetched state that only the user can allow: each attack ends before anything
//! starts, and has an honest twin in which the user allows it.
#![allow(clippy::disallowed_methods, reason = "a test starts processes and asks for its PATH")]

mod agent_settings;
mod approved_text;
mod attacks;
mod fetched;
mod fetched_state;
mod keys;
mod logins;
mod other_repos;
mod pages_and_paths;
mod permissions;
mod terminal;
mod tree_programs;
mod variables;

use crate::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The script of every agent here: it writes its variables to an ignored file and finishes.
const WORK: &str = "cat > /dev/null\n\
    { echo \"program=$0\"; echo \"args=$*\"; env; } > .ralph/seen.txt\n\
    echo x > part.txt; echo '<promise>COMPLETE</promise>'";

/// A machine with a repo on it.
struct Place {
    env: TestEnv,
    /// Additional user variables.
    vars: Vec<(String, String)>,
    /// Folders in front of the usual `PATH`.
    path: String,
}

impl Place {
    /// A user who has `claude`, `codex`, `gemini` and `opencode`, each with a key.
    fn new() -> Self {
        let env = TestEnv::new(RALPH);
        std::fs::create_dir_all(env.path("bin")).unwrap();
        for name in ["claude", "codex", "gemini", "opencode"] {
            program(&env.path("bin").join(name), WORK);
        }
        let keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];
        let vars = keys.iter().map(|name| ((*name).to_owned(), format!("key-of-the-user-{name}"))).collect();
        let path = env.path("bin").display().to_string();
        let place = Self { env, vars, path };
        let files = [("readme.txt", "hello\n"), ("PROMPT.md", "# Do the work\n\nWrite `part.txt`.\n")];
        TestRepo::new(&place.env, "repo", &files);
        place.agent("claude", &["claude", "-p"], &json!({}));
        place
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let done = TestEnv::finish(self.env.command("git", &self.env.path("repo")).args(args));
        assert_eq!(done.code, Some(0), "git {args:?}: {}", done.stderr);
        done.stdout.trim_end().to_owned()
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.env.path("repo").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.env.path("repo").join(path)).unwrap_or_default()
    }

    /// Merges these keys into the repo's configuration.
    fn config(&self, more: &Value) {
        let mut config: Value =
            serde_json::from_str(&self.read(".ralph/config.json")).unwrap_or_else(|_| json!({}));
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        self.write(".ralph/config.json", &config.to_string());
    }

    /// A configuration with one agent.
    fn agent(&self, name: &str, argv: &[&str], env: &Value) {
        self.config(&json!({
            "agents": [{ "name": name, "command_argv": argv, "env": env }],
            "verifiers": [{ "name": "tests", "command_argv": ["sh", "-c", "test -f part.txt"] }],
        }));
    }

    fn track(&self, path: &str) {
        self.git(&["add", "-f", path]);
        self.git(&["commit", "-q", "-m", "a gift"]);
    }

    fn ralph(&self, args: &[&str]) -> Finished {
        self.ralph_in(&self.env.path("repo"), args)
    }

    fn ralph_in(&self, folder: &Path, args: &[&str]) -> Finished {
        TestEnv::finish(&mut self.command(folder, args))
    }

    fn command(&self, folder: &Path, args: &[&str]) -> std::process::Command {
        let mut command = self.env.ralph_command(folder, args);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path)).envs(self.vars.clone());
        command
    }

    /// A run without a sandbox, which is fast and works on every machine.
    fn run(&self, args: &[&str]) -> Finished {
        let _ = std::fs::remove_file(self.env.path("repo").join("part.txt"));
        self.ralph(&[&["run", "--new", "--isolation", "none", "--json"], args].concat())
    }

    /// The number of runs.
    fn runs(&self) -> usize {
        std::fs::read_dir(self.env.path("state/ralph/runs")).map_or(0, |list| {
            list.flatten().filter(|entry| entry.path().extension().is_some_and(|end| end == "json")).count()
        })
    }
}

/// Makes an executable script.
fn program(path: &Path, script: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
