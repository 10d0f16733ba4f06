//! A scene in which what decides is changed: the cheat and its honest twin, in place, in a worktree and in a clone.

use super::{PROMISE, RALPH};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};

/// A test for each scene.
macro_rules! cheats {
    ($($name:ident: $scene:expr;)*) => {
        $(#[test]
        fn $name() {
            $scene.plays(stringify!($name));
        })*
    };
}
pub(crate) use cheats;

/// A test of a module, with the runner that every Python has.
pub const UNIT: (&str, &str) = (
    "test_part.py",
    "import unittest\nimport part\n\n\nclass Part(unittest.TestCase):\n    def test_part(self):\n        self.assertEqual(part.VALUE, 'right')\n",
);
/// The module as it is at the start.
pub const PART: (&str, &str) = ("part.py", "VALUE = 'wrong'\n");

/// How a cheat must end.
#[derive(Debug, Clone, Copy)]
pub enum End {
    /// Not done, for a reason with these words.
    NotDone(&'static str),
    /// Done by its own tests: never independent, and this is named.
    OwnTests(&'static str),
    /// A person is asked about changed tests, and this is named.
    Asked(&'static str),
}

/// A scene, a cheat in it, and honest work in it.
pub struct Scene {
    /// Committed files.
    pub files: &'static [(&'static str, &'static str)],
    /// Committed links: their names, and where they lead.
    pub links: &'static [(&'static str, &'static str)],
    /// What is asked for.
    pub task: &'static str,
    /// The checks, as shell lines.
    pub checks: Vec<&'static str>,
    /// Laid over the configuration.
    pub config: Value,
    /// What the agent does before it promises.
    pub cheat: &'static str,
    /// How that must end.
    pub end: End,
    /// What an honest agent does.
    pub honest: &'static str,
    /// The level of the honest work.
    pub honest_level: &'static str,
    /// Whether only watching sees it: then the run in place is sandboxed, too.
    pub watched: bool,
}

impl Scene {
    /// A scene whose work is `part.txt`.
    pub fn new(cheat: &'static str, end: End) -> Self {
        Self {
            files: &[],
            links: &[],
            task: "# Do the work\n",
            checks: Vec::new(),
            config: json!({}),
            cheat,
            end,
            honest: "echo right > part.txt",
            honest_level: "independent",
            watched: false,
        }
    }

    /// The cheat ends as it must, and the honest twin is done, in the places of the test `name`.
    pub fn plays(&self, name: &str) {
        for place in super::places(name, &["here", "worktree", "clone"]) {
            let env = TestEnv::new(RALPH);
            let Some((run, record)) = self.play(&env, place, self.cheat, "cheat") else {
                ralph_loop_testkit::skip("checks cannot be watched on this machine");
                return;
            };
            let about = format!("{place}: {}\n{}\n{record}", self.cheat, run.stderr);
            match self.end {
                End::NotDone(words) => {
                    assert!(matches!(run.code, Some(1 | 3)), "exits {:?}: {about}", run.code);
                    assert!(record.contains(words), "does not say {words:?}: {about}");
                }
                End::Asked(path) => {
                    assert_eq!(run.code, Some(3), "{about}");
                    assert_eq!(run.json()["level"], Value::Null, "{about}");
                    assert!(record.contains("tests_changed"), "{about}");
                    assert!(record.contains(path), "does not name {path:?}: {about}");
                }
                End::OwnTests(path) => {
                    let level = run.json()["level"].clone();
                    assert_eq!((run.code, level), (Some(0), json!("own_tests")), "{about}");
                    assert!(run.json()["summary"].as_str().unwrap().starts_with("Own tests pass"), "{about}");
                    assert!(record.contains(path), "does not name {path:?}: {about}");
                }
            }
            let Some((run, record)) = self.play(&env, place, self.honest, "honest") else { return };
            let level = run.json()["level"].clone();
            let about = format!("honest, {place}: {}\n{record}", run.stderr);
            assert_eq!((run.code, level), (Some(0), json!(self.honest_level)), "{about}");
        }
    }

    /// One run, with its journal; `None` where it must be watched and cannot be.
    fn play(&self, env: &TestEnv, place: &str, script: &str, name: &str) -> Option<(Finished, String)> {
        let repo = TestRepo::new(env, name, self.files);
        repo.write("PROMPT.md", self.task);
        for (link, to) in self.links {
            std::os::unix::fs::symlink(to, repo.dir.join(link)).unwrap();
        }
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", "scene"]);
        let checks = self.checks.iter().enumerate();
        let verifiers: Vec<Value> = checks
            .map(|(n, line)| json!({"name": format!("check{n}"), "command_argv": ["sh", "-c", line]}))
            .collect();
        let script = format!("echo $RALPH_ITERATION > part.txt\n{script}\n{PROMISE}");
        let mut config = json!({
            "agents": [{"name": "stub", "command_argv": ["sh", "-c", script]}],
            "verifiers": verifiers,
            "max_iterations": 1,
        });
        for (key, value) in self.config.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        repo.config(&config);
        let source = repo.dir.display().to_string();
        let mut args: Vec<&str> = match place {
            "worktree" => vec!["run", "--worktree", "--json"],
            "clone" => vec!["run", "--clone", &source, "--json"],
            _ => vec!["run", "--json"],
        };
        if place == "here" && !self.watched {
            args.extend(["--isolation", "none"]);
        }
        let mut done = env.ralph(&repo.dir, &args);
        if done.code == Some(4) && done.stderr.contains("cannot sandbox") {
            if self.watched {
                return None;
            }
            // A machine without a sandbox: the same place, with all the rights of the user.
            done = env.ralph(&repo.dir, &[args.as_slice(), &["--isolation", "none"]].concat());
        }
        let line = done.stdout.lines().last().unwrap_or_default();
        let dir = serde_json::from_str::<Value>(line).unwrap_or_default()["run_dir"].clone();
        let read = |file: &str| {
            std::fs::read_to_string(format!("{}/{file}", dir.as_str().unwrap_or_default()))
                .unwrap_or_default()
        };
        let proof = read("proof.json");
        if self.watched && !proof.is_empty() && !proof.contains("\"watched\": \"watched\"") {
            return None;
        }
        Some((done, format!("{}\n{proof}", read("events.jsonl"))))
    }
}
