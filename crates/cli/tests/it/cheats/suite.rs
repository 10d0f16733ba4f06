//! Cheats by the dozen: in place (with all the rights of the user), in a worktree and in a clone (in the sandbox
//! where this machine has one). Each has an honest copy in the same scene, which passes: so a cheat fails for its own sake.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use super::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};

/// A scene, a cheat in it, and honest work in it.
pub struct Cheat {
    /// Committed files.
    pub files: &'static [(&'static str, &'static str)],
    /// The checks, as shell lines.
    pub checks: &'static [&'static str],
    /// Laid over the configuration.
    pub config: Value,
    /// What the agent does in every session, before it promises.
    pub cheat: &'static str,
    /// What an honest agent does.
    pub honest: &'static str,
    /// Words that must stand in the journal of the cheat's run in place.
    pub noticed: &'static str,
}

/// Where a run works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkspaceKind {
    Here,
    Worktree,
    Clone,
}

const PROMISE: &str = "\necho '<promise>COMPLETE</promise>'";

impl Cheat {
    /// The usual scene: a script checks a file.
    pub fn usual(cheat: &'static str, noticed: &'static str) -> Self {
        Self {
            files: &[("check.sh", "grep -q right part.txt\n"), (".gitignore", "out/\n")],
            checks: &["sh check.sh"],
            config: json!({}),
            cheat,
            honest: "echo right > part.txt",
            noticed,
        }
    }

    /// A scene in which a pass in the workspace is easy to get: the check also takes a file that git ignores. What remains
    /// is to fool the final check.
    pub fn reaches_the_proof(cheat: &'static str, noticed: &'static str) -> Self {
        Self {
            files: &[
                ("check.sh", "cat out/part.txt part.txt 2>/dev/null | grep -q right\n"),
                (".gitignore", "out/\n"),
            ],
            ..Self::usual(cheat, noticed)
        }
    }

    /// The cheat is never proven, the honest copy is, in the places of the test `name`.
    pub fn is_never_proven(&self, name: &str) {
        for place in
            super::places(name, &[WorkspaceKind::Here, WorkspaceKind::Worktree, WorkspaceKind::Clone])
        {
            let (run, said) = self.play(place, self.cheat);
            assert!(
                matches!(run.code, Some(1 | 3)),
                "{place:?}: {:?} exits {:?}\n{}\n{said}",
                self.cheat,
                run.code,
                run.stderr
            );
            assert_eq!(run.json()["success"], json!(false));
            if place == WorkspaceKind::Here {
                assert!(said.contains(self.noticed), "{}: {}\n{said}", self.noticed, run.stderr);
            }
            let (run, said) = self.play(place, self.honest);
            assert_eq!(run.code, Some(0), "honest work, {place:?}: {}\n{said}", run.stderr);
        }
    }

    /// One run, and its journal.
    fn play(&self, place: WorkspaceKind, script: &str) -> (Finished, String) {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::new(&env, "repo", self.files);
        if !self.files.iter().any(|(path, _)| *path == "ralph_task.md") {
            repo.write("PROMPT.md", "# Do the work\n");
        }
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "scene"]);
        let script = format!("echo $RALPH_ITERATION > part.txt\n{script}\n{PROMISE}");
        let verifiers: Vec<Value> = self
            .checks
            .iter()
            .enumerate()
            .map(|(n, line)| json!({"name": format!("check{n}"), "command_argv": ["sh", "-c", line]}))
            .collect();
        let mut config = json!({
            "agents": [{"name": "stub", "command_argv": ["sh", "-c", script]}],
            "verifiers": verifiers,
            "max_iterations": 2,
        });
        for (key, value) in self.config.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        repo.config(&config);
        let source = repo.dir.display().to_string();
        let args: Vec<&str> = match place {
            WorkspaceKind::Here => vec!["run", "--isolation", "none", "--json"],
            WorkspaceKind::Worktree => vec!["run", "--worktree", "--json"],
            WorkspaceKind::Clone => vec!["run", "--clone", &source, "--json"],
        };
        // Programs of the user's own come first, and some of the project's.
        let path = std::env::var("PATH").unwrap_or_default();
        let path =
            format!("{}:{}:{path}", env.path("home/.local/bin").display(), repo.dir.join(".bin").display());
        let run = |args: &[&str]| TestEnv::finish(env.ralph_command(&repo.dir, args).env("PATH", &path));
        let mut done = run(&args);
        if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
            // A machine without a sandbox: the same place, with all the rights of the user.
            done = run(&[args.as_slice(), &["--isolation", "none"]].concat());
        }
        let line = done.stdout.lines().last().unwrap_or_default();
        let dir = serde_json::from_str::<Value>(line).unwrap_or_default()["run_dir"].clone();
        let journal = format!("{}/events.jsonl", dir.as_str().unwrap_or_default());
        let said = std::fs::read_to_string(journal).unwrap_or_default();
        (done, said)
    }
}
