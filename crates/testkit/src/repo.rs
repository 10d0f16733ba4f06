//! Fixture repos.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use crate::env::{Finished, TestEnv};
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct TestRepo<'a> {
    env: &'a TestEnv,
    pub dir: PathBuf,
}

impl<'a> TestRepo<'a> {
    pub fn new(env: &'a TestEnv, name: &str, files: &[(&str, &str)]) -> Self {
        let dir = env.path(name);
        std::fs::create_dir_all(&dir).expect("a folder");
        let repo = Self { env, dir };
        repo.git(&["init", "-q", "-b", "main"]);
        repo.git(&["config", "user.name", "Tester"]);
        repo.git(&["config", "user.email", "tester@example.com"]);
        for (path, text) in files {
            repo.write(path, text);
        }
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "start"]);
        repo
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.dir.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    /// Reads a file; empty if it doesn't exist.
    pub fn read(&self, path: impl AsRef<Path>) -> String {
        std::fs::read_to_string(self.dir.join(path)).unwrap_or_default()
    }

    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let done = TestEnv::finish(self.env.command("git", &self.dir).args(args));
        assert_eq!(done.code, Some(0), "git {args:?}: {}", done.stderr);
        if args.first() != Some(&"status") {
            return done.stdout.trim_end().to_owned();
        }
        // Ignores the configuration written by a test.
        let own = ["?? .ralph/", "?? .ralph/config.json"];
        done.stdout.lines().filter(|line| !own.contains(line)).collect::<Vec<_>>().join("\n")
    }

    /// A repo with a committed task `PROMPT.md` and a file `readme.txt`.
    pub fn with_task(env: &'a TestEnv) -> Self {
        Self::new(
            env,
            "repo",
            &[("readme.txt", "hello\n"), ("PROMPT.md", "# Do the work\n\nWrite `part.txt`.\n")],
        )
    }

    /// An agent for the configuration: `sh` runs `script`.
    pub fn agent(&self, name: &str, script: &str) -> serde_json::Value {
        serde_json::json!({ "name": name, "command_argv": [self.script(&format!("{name}.sh"), script)] })
    }

    /// Writes a configuration with these agents and one verifier `tests`, a shell line; `more` is merged into it.
    pub fn configure(&self, agents: &[serde_json::Value], check: &str, more: &serde_json::Value) {
        let mut config = serde_json::json!({
            "agents": agents,
            "verifiers": [{ "name": "tests", "command_argv": ["sh", "-c", check] }],
            "max_iterations": 5,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        self.config(&config);
    }

    /// A configuration with one agent `stub`.
    pub fn stub(&self, script: &str, check: &str) {
        self.configure(&[self.agent("stub", script)], check, &serde_json::json!({}));
    }

    /// `ralph run --isolation none --json` with additional arguments.
    pub fn run(&self, args: &[&str]) -> Finished {
        self.ralph(&[&["run", "--isolation", "none", "--json"], args].concat())
    }

    /// Runs `ralph` here.
    pub fn ralph(&self, args: &[&str]) -> Finished {
        self.env.ralph(&self.dir, args)
    }

    /// Writes `.ralph/config.json`.
    pub fn config(&self, value: &serde_json::Value) {
        self.write(".ralph/config.json", &serde_json::to_string_pretty(value).unwrap());
    }

    /// Writes an executable script outside the repo and returns its path.
    pub fn script(&self, name: &str, text: &str) -> String {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.env.path(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        path.display().to_string()
    }

    /// The record of a run, which is outside its folder.
    pub fn record(&self, run: &str) -> PathBuf {
        self.env.path("state/ralph/runs").join(run)
    }

    pub fn events(&self) -> Vec<serde_json::Value> {
        self.events_of(&self.latest())
    }

    pub fn events_of(&self, run: &str) -> Vec<serde_json::Value> {
        let text = self.read(format!(".ralph/runs/{run}/events.jsonl"));
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn kinds(&self) -> Vec<String> {
        self.events().iter().filter_map(|e| Some(e["kind"].as_str()?.to_owned())).collect()
    }

    pub fn events_named(&self, kind: &str) -> Vec<serde_json::Value> {
        self.events().into_iter().filter(|e| e["kind"] == kind).collect()
    }

    pub fn verdicts(&self) -> Vec<String> {
        self.events_named("iteration_ended")
            .iter()
            .filter_map(|e| Some(e["verdict"].as_str()?.to_owned()))
            .collect()
    }

    pub fn latest(&self) -> String {
        let mut ids: Vec<String> = std::fs::read_dir(self.dir.join(".ralph/runs"))
            .map(|entries| entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect())
            .unwrap_or_default();
        ids.sort();
        ids.pop().unwrap_or_default()
    }

    pub fn run_file(&self, name: &str) -> String {
        self.read(format!(".ralph/runs/{}/{name}", self.latest()))
    }
}
