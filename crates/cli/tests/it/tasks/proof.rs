//! Proof levels, through the whole binary: each level with its exit code and text, the policies for tests, and the user's
//! approval. The state machine itself is tested in `crates/proof`.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use crate::RALPH;
use ralph_loop_domain::ports::{Forge as _, PrState};
use ralph_loop_forge::LocalForge;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};

const PROMISE: &str = "echo '<promise>COMPLETE</promise>'";
const TEST: &str = "import unittest\nimport part\n\n\nclass Part(unittest.TestCase):\n    def test_part(self):\n        self.assertEqual(part.VALUE, 'right')\n";
const WRONG: (&str, &str) = ("part.py", "VALUE = 'wrong'\n");
const RIGHT: (&str, &str) = ("part.py", "VALUE = 'right'\n");
/// Without compiled files: two edits of the same size within a second would leave a stale one.
const CHECK: &str = "python3 -B -m unittest";
const CHEAT: &str = "sed -i \"s/part.VALUE, 'right'/1, 1/\" test_part.py";
const WORK: &str = "echo \"VALUE = 'right'\" > part.py";
const FEATURE: &str = "echo \"MORE = 1\" >> part.py";
const FEATURE_TEST: &str = "printf 'import unittest\\nimport part\\n\\nclass More(unittest.TestCase):\\n    def test_more(self):\\n        self.assertEqual(part.MORE, 1)\\n' > test_more.py";

fn repo<'a>(env: &'a TestEnv, name: &str, part: (&str, &str)) -> TestRepo<'a> {
    TestRepo::new(env, name, &[("PROMPT.md", "# Do the work\n"), ("test_part.py", TEST), part])
}

fn play(repo: &TestRepo<'_>, work: &str, more: &Value, args: &[&str]) -> Finished {
    let mut config = json!({"max_iterations": 2});
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    repo.configure(&[repo.agent("stub", &format!("{work}\n{PROMISE}"))], CHECK, &config);
    repo.run(args)
}

fn proof(repo: &TestRepo<'_>) -> Value {
    serde_json::from_str(&repo.run_file("proof.json")).unwrap()
}

#[test]
fn proof_levels_follow_from_the_compared_trees() {
    let vacuous = "printf 'import unittest\\n\\nclass More(unittest.TestCase):\\n    def test_more(self):\\n        pass\\n' > test_more.py";
    for (name, part, work, level, headline) in [
        ("red_to_green", WRONG, WORK.to_owned(), "independent", "Proven, independent"),
        (
            "red_to_green_with_new_test",
            WRONG,
            format!("{WORK}; cp test_part.py test_more.py"),
            "independent",
            "Proven, independent",
        ),
        (
            "feature_with_its_test",
            RIGHT,
            format!("{FEATURE}; {FEATURE_TEST}"),
            "own_tests",
            "Proven by its own tests",
        ),
        (
            "feature_with_a_vacuous_test",
            RIGHT,
            format!("{FEATURE}; {vacuous}"),
            "unverified",
            "Done, unverified",
        ),
        ("comment_only", RIGHT, "echo '# nothing' >> part.py".to_owned(), "unverified", "Done, unverified"),
        (
            "suppression",
            WRONG,
            format!("{WORK}; echo 'import os  # noqa' >> part.py"),
            "own_tests",
            "Proven by its own tests",
        ),
    ] {
        let env = TestEnv::new(RALPH);
        let repo = repo(&env, "repo", part);
        let run = play(&repo, &work, &json!({}), &[]).exits(0).json();
        assert_eq!(run["level"], level, "{name}: {run}");
        assert!(run["summary"].as_str().unwrap().starts_with(headline), "{name}: {run}");
        let proof = proof(&repo);
        assert_eq!(
            proof["difference"].as_array().is_none_or(Vec::is_empty),
            level == "unverified",
            "{name}: {proof}"
        );
        let status = repo.ralph(&["status", "--json"]).exits(0).json();
        assert!(
            status["proof"]["headline"].as_str().unwrap().eq_ignore_ascii_case(headline)
                || level == "own_tests"
        );
    }
}

#[test]
fn unchanged_green_repo_is_reported_as_no_change() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", RIGHT);
    let run = play(&repo, "true", &json!({"max_iterations": 5}), &[]).exits(1).json();
    assert_eq!((&run["reason"], &run["iterations"]), (&json!("no_change"), &json!(2)));
    assert_eq!(run["level"], Value::Null);
}

#[test]
fn criteria_that_already_pass_start_no_session() {
    let env = TestEnv::new(RALPH);
    let task =
        json!({"task": "Have part.py", "acceptance_criteria": [{"type": "file_exists", "path": "part.py"}]});
    let repo = TestRepo::new(&env, "repo", &[("ralph.json", &task.to_string()), RIGHT]);
    repo.configure(&[repo.agent("stub", "touch agent-ran")], "true", &json!({"required_verifiers": []}));
    let run = repo.run(&[]).exits(0).json();
    assert_eq!((&run["level"], &run["iterations"]), (&json!("already_true"), &json!(0)), "{run}");
    assert!(run["summary"].as_str().unwrap().starts_with("Already true"), "{run}");
}

#[test]
fn changed_originals_need_your_approval() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", WRONG);
    let asked = play(&repo, CHEAT, &json!({}), &[]).exits(3);
    let run = asked.json();
    assert_eq!((&run["reason"], &run["level"]), (&json!("needs_human"), &Value::Null));
    assert_eq!(
        run["summary"],
        "stub changed tests or build files that decide the checks: test_part.py. With the originals, 1 of 1 test fails: test_part.Part.test_part"
    );
    for words in
        ["ralph approve", "ralph nudge", "AssertionError: 'wrong' != 'right'", "test_part.py: changed"]
    {
        assert!(asked.stderr.contains(words), "{words}: {}", asked.stderr);
    }
    let asks = proof(&repo);
    assert_eq!((&asks["passed"], &asks["original_harness"][0]["passed"]), (&json!(false), &json!(false)));
    assert!(asks["harness_diff"].as_str().unwrap().contains("test_part.py"), "{asks}");
    let needs = repo.ralph(&["status", "--json"]).exits(0).json()["needs"].clone();
    assert!(needs["details"].to_string().contains("AssertionError"), "{needs}");
    repo.ralph(&["resume"]).exits(3);
    repo.ralph(&["approve"]).exits(0);
    let run = repo.ralph(&["resume", "--json"]).exits(0).json();
    assert_eq!((&run["level"], &run["iterations"]), (&json!("own_tests"), &json!(1)));
    let summary = run["summary"].as_str().unwrap();
    assert!(summary.starts_with("Own tests, originals changed (approved by"), "{summary}");
    assert_eq!(repo.events_named("proof_started").len(), 1, "nothing is checked again");
    assert_eq!(repo.events_named("proof_approved").len(), 1);
    repo.ralph(&["approve"]).exits(2);
}

#[test]
fn hint_makes_the_next_session_restore_the_originals() {
    for word in ["nudge", "note"] {
        let env = TestEnv::new(RALPH);
        let repo = repo(&env, "repo", WRONG);
        let reformed = format!(
            "if [ $RALPH_ITERATION = 1 ]; then {CHEAT}; else sed -i \"s/1, 1/part.VALUE, 'right'/\" test_part.py; {WORK}; fi"
        );
        play(&repo, &reformed, &json!({}), &[]).exits(3);
        repo.ralph(&[word, "the test is right, the work is not"]).exits(0);
        let run = repo.ralph(&["resume", "--json"]).exits(0).json();
        assert_eq!((&run["level"], &run["iterations"]), (&json!("independent"), &json!(2)), "{word}: {run}");
        let prompt = repo.run_file("iterations/2/prompt.md");
        for words in ["the test is right, the work is not", "restore the original"] {
            assert!(prompt.contains(words), "{word}: {words}: {prompt}");
        }
        assert!(repo.events_named("proof_approved").is_empty(), "{word}");
    }
}

#[test]
fn test_policies_limit_changes_to_tests() {
    let more = format!("{WORK}; cp test_part.py test_more.py");
    for (work, cure) in [(CHEAT, "restore the original"), (more.as_str(), "remove it")] {
        let env = TestEnv::new(RALPH);
        let repo = repo(&env, "repo", WRONG);
        play(&repo, work, &json!({"tests": "frozen"}), &[]).exits(1);
        let prompt = repo.run_file("iterations/2/prompt.md");
        assert!(prompt.contains("tests are frozen") && prompt.contains(cure), "{work}: {prompt}");
    }
    for (policy, level) in [("frozen", "independent"), ("free", "independent")] {
        let env = TestEnv::new(RALPH);
        let repo = repo(&env, "repo", WRONG);
        let run = play(&repo, WORK, &json!({}), &["--tests", policy]).exits(0).json();
        assert_eq!(run["level"], level, "{policy}");
    }
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", WRONG);
    let run = play(&repo, CHEAT, &json!({"tests": "free"}), &[]).exits(0).json();
    assert_eq!(run["level"], "unverified", "an edited test that passes without the work shows nothing");
}

#[test]
fn missing_the_required_level_asks_the_user() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", RIGHT);
    let run = play(&repo, FEATURE, &json!({"require_proof": "own_tests"}), &[]).exits(3).json();
    assert!(run["summary"].as_str().unwrap().contains("requires the level own_tests"), "{run}");
    repo.ralph(&["approve"]).exits(0);
    let run = repo.ralph(&["resume", "--json"]).exits(0).json();
    assert_eq!(run["level"], "unverified");
    assert!(run["summary"].as_str().unwrap().starts_with("Done, unverified (approved by"), "{run}");
}

#[test]
fn harness_file_named_in_the_task_is_listed_but_does_not_block() {
    let env = TestEnv::new(RALPH);
    let task = "# Relax the test\n\nRewrite test_part.py so that it asks for less.\n";
    let repo = TestRepo::new(&env, "repo", &[("PROMPT.md", task), ("test_part.py", TEST), WRONG]);
    let run = play(&repo, CHEAT, &json!({}), &[]).exits(0).json();
    assert_eq!(run["level"], "own_tests");
    assert_eq!(proof(&repo)["harness"][0]["named"], true);
}

#[test]
fn draft_pull_request_holds_the_question_and_the_answer() {
    let env = TestEnv::new(RALPH);
    let folder = env.path("forge");
    env.user_config(&json!({ "local_forge": folder, "publish": "pr" }));
    let repo = repo(&env, "repo", WRONG);
    let more = json!({"poll_seconds": 0.05});
    let asked = play(&repo, CHEAT, &more, &[]).exits(3).json();
    let forge = LocalForge::open(&folder, &ralph_loop_testkit::vars()).unwrap();
    let pr = forge.pr(1).unwrap();
    assert!(pr.draft && pr.state == PrState::Open, "{pr:?}");
    assert_eq!(asked["pr_url"], pr.url);
    for words in ["test_part.py", "ralph approve"] {
        assert!(pr.body.contains(words), "{words}: {}", pr.body);
    }
    repo.ralph(&["approve"]).exits(0);
    repo.ralph(&["resume"]).exits(0);
    let pr = forge.pr(1).unwrap();
    assert!(!pr.draft && pr.body.contains("originals changed (approved by"), "{}", pr.body);
}

#[test]
fn an_unverified_result_is_a_draft() {
    let env = TestEnv::new(RALPH);
    let folder = env.path("forge");
    env.user_config(&json!({ "local_forge": folder, "publish": "pr" }));
    let repo = repo(&env, "repo", RIGHT);
    play(&repo, FEATURE, &json!({"poll_seconds": 0.05}), &[]).exits(0);
    let forge = LocalForge::open(&folder, &ralph_loop_testkit::vars()).unwrap();
    let pr = forge.pr(1).unwrap();
    assert!(pr.draft && pr.body.contains("Done, unverified"), "{}", pr.body);
}

#[test]
fn question_and_answer_survive_a_killed_process() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", WRONG);
    let die = |args: &[&str], at: &str| {
        let died = TestEnv::finish(env.ralph_command(&repo.dir, args).env("RALPH_FAULT", at));
        assert!(!matches!(died.code, Some(0 | 1 | 3)), "{at}: {died:?}");
    };
    repo.configure(
        &[repo.agent("stub", &format!("{CHEAT}\n{PROMISE}"))],
        CHECK,
        &json!({"max_iterations": 1}),
    );
    die(&["run", "--isolation", "none", "--json"], "prove.after#1");
    repo.ralph(&["resume", "--json"]).exits(3);
    assert_eq!(repo.events_named("proof_started").len(), 1);
    repo.ralph(&["approve"]).exits(0);
    die(&["resume"], "approve.written#1");
    die(&["resume"], "approve.after#1");
    let run = repo.ralph(&["resume", "--json"]).exits(0).json();
    assert_eq!(run["level"], "own_tests");
    assert_eq!(repo.events_named("proof_approved").len(), 1);
    assert_eq!(repo.events_named("proof_started").len(), 1);
}

#[test]
fn run_suspended_during_the_original_tests_asks_after_resume() {
    let env = TestEnv::new(RALPH);
    let (hold, started) = (env.path("hold"), env.path("started"));
    let slow = format!(
        "import os, time\nif os.path.exists('{}'):\n    open('{}', 'w').close()\n    time.sleep(600)\n{TEST}",
        hold.display(),
        started.display()
    );
    let files = [("PROMPT.md", "# Do the work\n"), ("test_part.py", slow.as_str()), WRONG];
    let repo = TestRepo::new(&env, "repo", &files);
    let work = format!("{CHEAT}; sed -i '1,4d' test_part.py; touch {}\n{PROMISE}", hold.display());
    repo.configure(&[repo.agent("stub", &work)], CHECK, &json!({"max_iterations": 1}));
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "--json"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    until("the original tests", || started.exists().then_some(()));
    TestEnv::finish(env.command("kill", &repo.dir).args(["-INT", &child.id().to_string()])).exits(0);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(repo.events_named("proof_finished").is_empty());
    std::fs::remove_file(&hold).unwrap();
    let run = repo.ralph(&["resume", "--json"]).exits(3).json();
    assert_eq!(run["reason"], "needs_human");
    repo.ralph(&["cancel"]);
}
