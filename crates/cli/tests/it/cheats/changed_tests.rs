//! Tests of the start that a run changes: what `tests` and `require_proof` make of it, and what a person's answer does.

use super::{PROMISE, RALPH};
use ralph_loop_domain::ports::{Forge as _, PrState};
use ralph_loop_forge::LocalForge;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};

const TEST: &str = "import unittest\nimport part\n\n\nclass Part(unittest.TestCase):\n    def test_part(self):\n        self.assertEqual(part.VALUE, 'right')\n";
const PART: (&str, &str) = ("part.py", "VALUE = 'wrong'\n");
/// Without compiled files: two edits of one size within a second would leave a stale one.
const CHECK: &str = "python3 -B -m unittest";
const CHEAT: &str = "sed -i \"s/part.VALUE, 'right'/1, 1/\" test_part.py";
const RIGHT: &str = "echo \"VALUE = 'right'\" > part.py";

/// A repo with a test that does not pass yet.
fn repo<'a>(env: &'a TestEnv, name: &str, task: &str) -> TestRepo<'a> {
    TestRepo::new(env, name, &[("PROMPT.md", task), ("test_part.py", TEST), PART])
}

fn play(repo: &TestRepo<'_>, work: &str, more: &Value, args: &[&str]) -> Finished {
    let mut config = json!({"max_iterations": 2});
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    repo.configure(&[repo.agent("stub", &format!("{work}\n{PROMISE}"))], CHECK, &config);
    repo.run(args)
}

/// Cheats first, and does the work once it is told to.
fn reformed() -> String {
    format!(
        "if [ $RALPH_ITERATION = 1 ]; then {CHEAT}; else sed -i \"s/1, 1/part.VALUE, 'right'/\" test_part.py; {RIGHT}; fi"
    )
}

fn proof(repo: &TestRepo<'_>) -> Value {
    serde_json::from_str(&repo.run_file("proof.json")).unwrap()
}

#[test]
fn a_person_is_asked_and_an_approval_ends_the_run_by_its_own_tests() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", "# Do the work\n");
    let asked = play(&repo, CHEAT, &json!({}), &[]).exits(3);
    let run = asked.json();
    assert_eq!((&run["reason"], &run["error"]["code"]), (&json!("needs_human"), &json!("NEEDS_HUMAN")));
    assert_eq!((&run["success"], &run["level"]), (&json!(false), &Value::Null));
    assert_eq!(
        run["summary"],
        "stub changed tests: test_part.py. As they were at the start, 1 of 1 test fails: test_part.Part.test_part"
    );
    for words in [
        "ralph approve",
        "ralph nudge",
        "AssertionError: 'wrong' != 'right'",
        "test_part.py: a test, changed",
    ] {
        assert!(asked.stderr.contains(words), "{words}: {}", asked.stderr);
    }
    assert_eq!(repo.events_named("needs_human")[0]["reason"], "tests_changed");
    let asks = proof(&repo);
    assert_eq!((&asks["passed"], &asks["level"]), (&json!(false), &Value::Null));
    assert_eq!(asks["question"]["failing"][0]["name"], "tests");
    assert_eq!(asks["start"][0]["passed"], false);
    // Every face shows what there is to know.
    let status = repo.ralph(&["status", "--json"]).exits(0).json();
    let needs = &status["needs"];
    assert!(needs["details"].to_string().contains("AssertionError"), "{needs}");
    assert!(needs["next"].as_str().unwrap().contains("own tests"), "{needs}");
    let shown = repo.ralph(&["status"]).exits(0).stdout;
    assert!(shown.contains("needs you") && shown.contains("AssertionError"), "{shown}");
    // Nothing goes on without an answer.
    let refused = repo.ralph(&["resume"]).exits(3);
    assert!(refused.stderr.contains("waits for your approval"), "{}", refused.stderr);
    repo.ralph(&["approve"]).exits(0);
    repo.ralph(&["approve"]).exits(0);
    let run = repo.ralph(&["resume", "--json"]).exits(0).json();
    assert_eq!((&run["level"], &run["iterations"]), (&json!("own_tests"), &json!(1)));
    let summary = run["summary"].as_str().unwrap();
    assert!(summary.starts_with("Own tests pass") && summary.contains("approved by"), "{summary}");
    let approved = proof(&repo);
    assert_eq!((&approved["passed"], &approved["level"]), (&json!(true), &json!("own_tests")));
    assert!(!approved["approved_by"].as_str().unwrap().is_empty());
    assert_eq!(repo.events_named("proof_started").len(), 1, "nothing is checked again");
    assert_eq!(repo.events_named("proof_approved").len(), 1);
    assert!(repo.events_named("approval_applied").is_empty(), "refs and settings were not asked about");
    let over = repo.ralph(&["approve"]).exits(2);
    assert!(over.stderr.contains("is over"), "{}", over.stderr);
}

#[test]
fn a_word_for_the_next_session_brings_the_tests_back() {
    for word in ["nudge", "note"] {
        let env = TestEnv::new(RALPH);
        let repo = repo(&env, "repo", "# Do the work\n");
        play(&repo, &reformed(), &json!({}), &[]).exits(3);
        repo.ralph(&[word, "the test is right, the work is not"]).exits(0);
        let run = repo.ralph(&["resume", "--json"]).exits(0).json();
        assert_eq!((&run["level"], &run["iterations"]), (&json!("independent"), &json!(2)), "{word}");
        let prompt = repo.run_file("iterations/2/prompt.md");
        for words in ["the test is right, the work is not", "does not accept them", "bring it back as it was"]
        {
            assert!(prompt.contains(words), "{word}: {words}: {prompt}");
        }
        // What nobody asks any more, nobody approves.
        assert!(repo.events_named("proof_approved").is_empty(), "{word}");
    }
}

#[test]
fn frozen_tests_stay_as_they_are() {
    let new_test = format!("{RIGHT}; cp test_part.py test_more.py");
    for (work, told) in [(CHEAT, "bring it back"), (new_test.as_str(), "take it out")] {
        let env = TestEnv::new(RALPH);
        let repo = repo(&env, "repo", "# Do the work\n");
        play(&repo, work, &json!({"tests": "frozen"}), &[]).exits(1);
        assert!(repo.events_named("needs_human").is_empty(), "{work}");
        let prompt = repo.run_file("iterations/2/prompt.md");
        assert!(prompt.contains("tests are frozen") && prompt.contains(told), "{work}: {prompt}");
    }
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", "# Do the work\n");
    let run = play(&repo, RIGHT, &json!({}), &["--tests", "frozen"]).exits(0).json();
    assert_eq!(run["level"], "independent");
}

#[test]
fn free_tests_are_nobodys_question() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", "# Do the work\n");
    let run = play(&repo, CHEAT, &json!({"tests": "free"}), &[]).exits(0).json();
    assert_eq!(run["level"], "own_tests");
    assert!(repo.events_named("needs_human").is_empty());
    assert_eq!(proof(&repo)["start"][0]["passed"], false);
}

#[test]
fn a_required_level_is_nothing_that_a_person_is_asked_about() {
    let env = TestEnv::new(RALPH);
    let changed = repo(&env, "changed", "# Do the work\n");
    play(&changed, CHEAT, &json!({}), &["--require-proof", "independent"]).exits(1);
    assert!(changed.events_named("needs_human").is_empty());
    let prompt = changed.run_file("iterations/2/prompt.md");
    assert!(
        prompt.contains("an independent proof is required") && prompt.contains("test_part.py"),
        "{prompt}"
    );
    // Tests where there were none are own tests, too.
    let none = TestRepo::new(&env, "none", &[("PROMPT.md", "# Do the work\n"), PART]);
    let own = format!("{RIGHT}; printf '%s' \"$TEST\" > test_part.py");
    let own = format!("TEST='{}'\n{own}", TEST.replace('\'', "\""));
    play(&none, &own, &json!({"require_proof": "independent"}), &[]).exits(1);
    let none = TestRepo::new(&env, "none-again", &[("PROMPT.md", "# Do the work\n"), PART]);
    let run = play(&none, &own, &json!({}), &[]).exits(0).json();
    assert_eq!(run["level"], "own_tests", "nothing of the start fails");
    let honest = repo(&env, "honest", "# Do the work\n");
    let run = play(&honest, RIGHT, &json!({"require_proof": "independent"}), &[]).exits(0).json();
    assert_eq!(run["level"], "independent");
}

#[test]
fn what_the_task_asks_to_change_is_the_users_word() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", "# Relax the test\n\nRewrite test_part.py so that it asks for less.\n");
    let run = play(&repo, CHEAT, &json!({}), &[]).exits(0).json();
    assert_eq!(run["level"], "own_tests");
    assert!(repo.events_named("needs_human").is_empty());
}

#[test]
fn a_new_test_that_the_check_itself_names_needs_nobodys_word() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", "# Do the work\n");
    let work = format!("{RIGHT}; cp test_part.py test_more.py\n{PROMISE}");
    let more = json!({"max_iterations": 1});
    repo.configure(&[repo.agent("stub", &work)], "python3 -m unittest test_part.py test_more.py", &more);
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(run["level"], "own_tests");
}

#[test]
fn tasks_say_it_in_their_own_files() {
    let env = TestEnv::new(RALPH);
    let task = |tests: &str| json!({"task": "Do it", "tests": tests}).to_string();
    let repo = TestRepo::new(&env, "repo", &[("ralph.json", &task("free")), ("test_part.py", TEST), PART]);
    let run = play(&repo, CHEAT, &json!({}), &[]).exits(0).json();
    assert_eq!(run["level"], "own_tests");
    repo.write("ralph.json", &task("loose"));
    let refused = repo.ralph(&["lint"]).exits(2);
    assert!(format!("{}{}", refused.stdout, refused.stderr).contains("loose"), "{}", refused.stderr);
}

#[test]
fn a_draft_says_what_is_asked_and_what_was_answered() {
    let env = TestEnv::new(RALPH);
    let folder = env.path("forge");
    env.user_config(&json!({ "local_forge": folder }));
    let repo = repo(&env, "repo", "# Do the work\n");
    let more = json!({"publish": "pr", "poll_seconds": 0.05});
    let asked = play(&repo, CHEAT, &more, &[]).exits(3).json();
    let forge = LocalForge::open(&folder, &ralph_loop_testkit::vars()).unwrap();
    let pr = forge.pr(1).unwrap();
    assert!(pr.draft && pr.state == PrState::Open, "{pr:?}");
    assert_eq!(asked["pr_url"], pr.url);
    for words in ["**Needs a person.**", "test_part.py", "ralph approve", "### Changed tests"] {
        assert!(pr.body.contains(words), "{words}: {}", pr.body);
    }
    assert!(!pr.body.contains("**Proven"), "{}", pr.body);
    repo.ralph(&["approve"]).exits(0);
    repo.ralph(&["resume"]).exits(0);
    let pr = forge.pr(1).unwrap();
    assert!(
        !pr.draft && pr.body.contains("Own tests pass") && pr.body.contains("approved by"),
        "{}",
        pr.body
    );
    assert!(!pr.body.contains("Needs a person"), "{}", pr.body);
}

/// A process that dies on the way loses neither the question nor the answer.
#[test]
fn question_and_answer_outlive_a_process() {
    let env = TestEnv::new(RALPH);
    let repo = repo(&env, "repo", "# Do the work\n");
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

/// Ctrl-C while the tests of the start run: the run is suspended, and asks when it goes on.
#[test]
fn a_run_that_is_suspended_while_the_tests_of_the_start_run_asks_later() {
    let env = TestEnv::new(RALPH);
    let (hold, started) = (env.path("hold"), env.path("started"));
    std::fs::write(&hold, "").unwrap();
    let slow = format!(
        "import os, time\nif os.path.exists('{}'):\n    open('{}', 'w').close()\n    time.sleep(600)\n{TEST}",
        hold.display(),
        started.display()
    );
    let repo =
        TestRepo::new(&env, "repo", &[("PROMPT.md", "# Do the work\n"), ("test_part.py", &slow), PART]);
    let work = format!("{CHEAT}; sed -i '1,4d' test_part.py\n{PROMISE}");
    repo.configure(&[repo.agent("stub", &work)], CHECK, &json!({"max_iterations": 1}));
    let mut command = env.ralph_command(&repo.dir, &["run", "--isolation", "none", "--json"]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    until("the tests of the start", || started.exists().then_some(()));
    TestEnv::finish(env.command("kill", &repo.dir).args(["-INT", &child.id().to_string()])).exits(0);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(repo.events_named("proof_finished").is_empty());
    std::fs::remove_file(&hold).unwrap();
    let run = repo.ralph(&["resume", "--json"]).exits(3).json();
    assert_eq!(run["reason"], "needs_human");
    repo.ralph(&["cancel"]);
}
