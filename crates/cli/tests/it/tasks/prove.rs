//! `ralph prove`: the same proof as a run's, for commits and pull requests that no run made.
#![allow(clippy::disallowed_methods, reason = "tests look at the disk")]

use crate::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const TEST: &str = "import unittest\nimport part\n\n\nclass Part(unittest.TestCase):\n    def test_part(self):\n        self.assertEqual(part.VALUE, 'right')\n";
const CHECK: &str = "python3 -B -m unittest";
const WRONG: &str = "VALUE = 'wrong'\n";
const RIGHT: &str = "VALUE = 'right'\n";

/// A repo with one test, and a second commit.
fn repo<'a>(env: &'a TestEnv, part: &str, edits: &[(&str, &str)]) -> TestRepo<'a> {
    let repo = TestRepo::new(env, "repo", &[("test_part.py", TEST), ("part.py", part)]);
    repo.configure(&[], CHECK, &json!({}));
    for (path, text) in edits {
        repo.write(path, text);
    }
    repo.git(&["add", "-A", "--", "*.py"]);
    repo.git(&["commit", "-q", "-m", "work"]);
    repo
}

fn prove(repo: &TestRepo<'_>, args: &[&str]) -> Finished {
    repo.ralph(&[&["prove", "--isolation", "none", "--json"], args].concat())
}

fn runs(proof: &Value) -> String {
    proof["runs"].as_array().unwrap().iter().filter_map(|run| run["run"].as_str()).collect()
}

#[test]
fn fix_is_proven_without_changing_user_files() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, WRONG, &[("part.py", RIGHT)]);
    repo.write("part.py", "an unfinished edit\n");
    let look = |repo: &TestRepo<'_>| {
        let mut state_home: Vec<_> = ["runs", "workspaces", "proofs", "fences"]
            .iter()
            .flat_map(|name| std::fs::read_dir(env.path("state/ralph").join(name)))
            .flatten()
            .flatten()
            .map(|entry| entry.path())
            .collect();
        state_home.sort();
        let ralph_dir = std::fs::read_dir(repo.dir.join(".ralph")).unwrap().count();
        let git = ["for-each-ref", "status", "stash list", "rev-parse HEAD", "config --list --local"];
        let git: Vec<String> =
            git.iter().map(|args| repo.git(&args.split(' ').collect::<Vec<_>>())).collect();
        (git, ralph_dir, state_home, repo.read("part.py"), repo.read(".git/info/exclude"))
    };
    let before = look(&repo);
    let proof = prove(&repo, &[]).exits(0).json();
    assert_eq!((&proof["level"], &proof["passed"]), (&json!("independent"), &json!(true)), "{proof}");
    assert_eq!(proof["commit"], json!(repo.git(&["rev-parse", "HEAD"])));
    assert_eq!(proof["base"], json!(repo.git(&["rev-parse", "HEAD~1"])));
    assert_eq!(proof["difference"][0]["tests"], json!(["test_part.Part.test_part"]), "{proof}");
    assert_eq!(runs(&proof), "B");
    assert_eq!(look(&repo), before);
    let shown = repo.ralph(&["prove", "--isolation", "none"]).exits(0).stdout;
    for words in ["proven, independent", "failed before, passes now", "B the commit: "] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn empty_commits_are_not_proven() {
    let more = "import unittest\nimport part\n\n\nclass More(unittest.TestCase):\n    def test_more(self):\n        self.assertEqual(part.MORE, 1)\n";
    let weak = TEST.replace("part.VALUE, 'right'", "1, 1");
    let feature = format!("{RIGHT}MORE = 1\n");
    let comment = format!("{RIGHT}# nothing\n");
    type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], i32, Option<&'a str>, &'a str);
    let cases: &[Case<'_>] = &[
        ("comment", RIGHT, &[("part.py", &comment)], 1, Some("unverified"), "B"),
        ("weakened_test", WRONG, &[("test_part.py", &weak)], 1, None, "BA"),
        ("breaks_a_test", RIGHT, &[("part.py", WRONG)], 1, None, "B"),
        ("feature", RIGHT, &[("part.py", &feature), ("test_more.py", more)], 0, Some("own_tests"), "BAC"),
    ];
    for (name, part, edits, code, level, ran) in cases {
        let env = TestEnv::new(RALPH);
        let repo = repo(&env, part, edits);
        let done = prove(&repo, &[]);
        assert_eq!(done.code, Some(*code), "{name}: {} {}", done.stdout, done.stderr);
        let proof = done.json();
        assert_eq!(proof["level"], json!(level), "{name}: {proof}");
        assert_eq!(runs(&proof), *ran, "{name}: {proof}");
    }
}

#[test]
fn the_original_configuration_decides() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("test_part.py", TEST), ("part.py", RIGHT)]);
    repo.configure(&[], CHECK, &json!({}));
    repo.git(&["add", "-f", ".ralph/config.json"]);
    repo.git(&["commit", "-q", "-m", "checks"]);
    repo.configure(&[], "true", &json!({}));
    repo.write("part.py", WRONG);
    repo.git(&["commit", "-qam", "break it"]);
    let proof = prove(&repo, &[]).exits(1).json();
    assert_eq!(proof["checks"][0]["command"], json!(CHECK), "{proof}");
    assert!(proof["failed"].to_string().contains("tests"), "{proof}");
}

#[test]
fn usage_errors_name_the_fix() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, RIGHT, &[("part.py", WRONG)]);
    for (args, words) in [
        (&["no-such-branch"][..], "`no-such-branch` names no commit"),
        (&["--base", "gone"], "`--base gone` names no commit"),
        (&["#7"], "no code host"),
        (&["HEAD~1"], "no commit before it"),
        (&["--max-hunks", "3"], "--thorough"),
    ] {
        let refused = repo.ralph(&[&["prove", "--isolation", "none"], args].concat()).exits(2);
        assert!(refused.stderr.contains(words), "{args:?}: {}", refused.stderr);
    }
    let own = prove(&repo, &["--verify", "grep -q wrong part.py"]).exits(0).json();
    assert_eq!(own["level"], json!("independent"));
}

#[test]
fn thorough_lists_hunks_not_covered_by_any_check() {
    let env = TestEnv::new(RALPH);
    let rows: String = (0..20).map(|n| format!("ROW_{n} = {n}\n")).collect();
    let before = format!("{WRONG}{rows}");
    let after = format!("{RIGHT}{rows}UNUSED = 1\n");
    let repo = repo(&env, &before, &[("part.py", &after)]);
    let proof = prove(&repo, &["--thorough"]).exits(0).json();
    let (hunks, unnoticed) = (&proof["thorough"], &proof["thorough"]["unnoticed"]);
    assert_eq!((&hunks["hunks"], &hunks["reverted"]), (&json!(2), &json!(2)), "{proof}");
    assert_eq!(*unnoticed, json!([{"path": "part.py", "line": 22, "lines": 1, "text": "+UNUSED = 1"}]));
    let bounded = prove(&repo, &["--thorough", "--max-hunks", "1"]).exits(0).json();
    assert_eq!(bounded["thorough"]["reverted"], json!(1), "{bounded}");
    assert_eq!(bounded["thorough"]["unnoticed"], json!([]));
}

#[test]
fn fetching_a_pull_request_leaves_no_refs() {
    let env = TestEnv::new(RALPH);
    env.user_config(&json!({ "local_forge": env.path("forge"), "publish": "pr" }));
    let repo = TestRepo::new(
        &env,
        "repo",
        &[("PROMPT.md", "# Fix it\n"), ("test_part.py", TEST), ("part.py", WRONG)],
    );
    let agent = repo.agent("stub", "echo \"VALUE = 'right'\" > part.py\necho '<promise>COMPLETE</promise>'");
    repo.configure(&[agent], CHECK, &json!({"poll_seconds": 0.05}));
    repo.run(&[]).exits(0);
    let before = repo.git(&["for-each-ref"]);
    let proof = prove(&repo, &["1"]).exits(0).json();
    assert_eq!(proof["base"], json!(repo.git(&["rev-parse", "main"])), "{proof}");
    assert_eq!(proof["level"], json!("independent"));
    assert_eq!(repo.git(&["for-each-ref"]), before);
}

/// Files below a folder, without following links.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path(), found),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
}

#[test]
fn hidden_criterion_counts_and_no_agent_sees_it() {
    const IN_COMMAND: &str = "marker-of-the-command-4711";
    const IN_FILE: &str = "marker-of-the-file-0815";
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("PROMPT.md", "# Write part.py\n"), ("part.py", "VALUE = 0\n")]);
    // The first session does too little for the hidden criterion. Each copies whatever it can read.
    let look = "cat \"$PROMPT\" .ralph/*.md .ralph/*.log 2>/dev/null >> seen.txt; grep -rsh marker-of . .. /tmp \"$HOME\" --exclude=seen.txt >> seen.txt";
    let work =
        "if [ -e again ]; then echo 'VALUE = 42' > part.py; else echo 'VALUE = 1' > part.py; touch again; fi";
    let agent = repo.agent(
        "stub",
        &format!("cat > .prompt-$$; PROMPT=.prompt-$$; {look}\n{work}\necho '<promise>COMPLETE</promise>'"),
    );
    repo.configure(&[agent], "grep -q '[1-9]' part.py", &json!({"max_iterations": 4}));
    let hidden = json!([{
        "command": format!("echo {IN_COMMAND}; python3 -B hidden_check.py"),
        "files": ["hidden_check.py"],
    }]);
    repo.write(".ralph/hidden/criteria.json", &hidden.to_string());
    repo.write(
        ".ralph/hidden/hidden_check.py",
        &format!("import part\nprint('{IN_FILE}')\nassert part.VALUE == 42\n"),
    );
    let refused = repo.run(&[]).exits(2);
    assert!(refused.stderr.contains("hidden criteria need a sandbox"), "{}", refused.stderr);
    let done = repo.ralph(&["run", "--json", "--verbose"]);
    if done.stderr.contains("cannot sandbox") {
        ralph_loop_testkit::skip(&done.stderr);
        return;
    }
    let run = done.json();
    assert_eq!((done.code, &run["iterations"]), (Some(0), &json!(2)), "{} {}", done.stdout, done.stderr);
    let prompts = repo.read("seen.txt");
    assert!(prompts.contains("- hidden check 1: FAILED"), "{prompts}");
    assert!(!format!("{}{}", done.stdout, done.stderr).contains("marker-of"), "{}", done.stderr);
    // Everything that ralph wrote, except for what the user wrote and the run's own copy of that.
    let own = [repo.dir.join(".ralph/hidden"), env.path("state/ralph/hidden")];
    let mut files = Vec::new();
    files_below(&env.path(""), &mut files);
    files.retain(|path| !own.iter().any(|own| path.starts_with(own)));
    assert!(files.len() > 50, "{files:?}");
    for path in files {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        // The agent's own script searches for the word.
        if path.ends_with("stub.sh") {
            continue;
        }
        for marker in [IN_COMMAND, IN_FILE] {
            assert!(!text.contains(marker), "{marker} in {}", path.display());
        }
    }
    let proof: Value = serde_json::from_str(&repo.run_file("proof.json")).unwrap();
    assert!(proof["difference"].to_string().contains("hidden-1"), "{proof}");
}
