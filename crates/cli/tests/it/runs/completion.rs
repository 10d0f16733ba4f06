//! When a run ends: promises, empty answers, tests that never ran, the clean checkout, budgets.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};

const PROMISE: &str = "echo '<promise>COMPLETE</promise>'";

/// A scripted agent with these turns.
fn scripted(repo: &TestRepo<'_>, turns: &Value) -> Value {
    repo.write(".ralph/agent.json", &json!({"version": 1, "turns": turns}).to_string());
    json!({"name": "actor", "kind": "scripted", "script": ".ralph/agent.json"})
}

#[test]
fn promise_must_be_alone_on_a_line_of_the_final_message() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let said = [
        "echo 'I will print <promise>COMPLETE</promise> when I am done.'",
        "printf '```\\n<promise>COMPLETE</promise>\\n```\\n'",
        "echo '<promise>DONE</promise>'",
        "echo '<promise>complete</promise>'",
        "echo '> <promise>COMPLETE</promise>'",
        "echo '<promise>COMPLETE</promise>' >&2; echo 'said on the wrong stream'",
    ];
    let mut script = String::from("echo $RALPH_ITERATION > part.txt\ncase $RALPH_ITERATION in\n");
    for (n, line) in said.iter().enumerate() {
        script.push_str(&format!("{}) {line} ;;\n", n + 1));
    }
    script.push_str(&format!("*) echo 'Now it is done.'; {PROMISE} ;;\nesac"));
    repo.configure(&[repo.agent("stub", &script)], "true", &json!({"max_iterations": 9}));
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(run["iterations"], 7);
    let verdicts = repo.verdicts();
    assert!(verdicts[..6].iter().all(|v| v == "not_promised"), "{verdicts:?}");
    assert_eq!(verdicts[6], "candidate");
}

#[test]
fn promise_after_the_last_sentence_counts_and_one_inside_is_reported() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let script = "echo $RALPH_ITERATION > part.txt\ncase $RALPH_ITERATION in\n1) echo 'Now I say <promise>COMPLETE</promise>, as asked.' ;;\n2) echo 'Still at it.' ;;\n*) echo 'All done. <promise>COMPLETE</promise>' ;;\nesac";
    repo.configure(&[repo.agent("stub", script)], "true", &json!({"max_iterations": 9}));
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(run["iterations"], 3, "{run}");
    let told: Vec<String> =
        repo.events_named("notice").iter().map(|e| e["message"].as_str().unwrap().to_owned()).collect();
    assert!(told.iter().any(|words| words.contains("the promise was not alone on its line")), "{told:?}");
    assert!(told.iter().any(|words| words.contains("2 sessions in a row did not say")), "{told:?}");
    let prompt = repo.run_file("iterations/2/prompt.md");
    assert!(prompt.contains("the task isn't claimed as done"), "{prompt}");
}

#[test]
fn missing_promise_is_reported_at_the_end() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.configure(&[repo.agent("stub", "echo x > part.txt; echo 'Did it.'")], "true", &json!({}));
    let run = repo.run(&["--max-iterations", "1"]).exits(1).json();
    assert!(run["summary"].as_str().unwrap().contains("no session said that the task is done"), "{run}");
    let status = repo.ralph(&["status"]).exits(0).stdout;
    assert!(status.contains("the checks pass; no session said"), "{status}");
}

#[test]
fn false_promise_is_reported_to_the_agent() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(
        &format!("echo $RALPH_ITERATION > part.txt; {PROMISE}"),
        "echo it is $(cat part.txt); test $(cat part.txt) = 2",
    );
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(run["iterations"], 2);
    assert_eq!(repo.verdicts(), ["false_promise", "candidate"]);
    let prompt = repo.run_file("iterations/2/prompt.md");
    assert!(prompt.contains("FAILED: exit code 1") && prompt.contains("    it is 1"), "{prompt}");
}

#[test]
fn promise_on_the_last_iteration_counts() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(
        &format!("echo $RALPH_ITERATION > part.txt; echo ok; [ $RALPH_ITERATION -lt 3 ] || {PROMISE}"),
        "test $(cat part.txt) = 3",
    );
    let run = repo.run(&["--max-iterations", "3"]).exits(0).json();
    assert_eq!((&run["iterations"], &run["reason"]), (&json!(3), &json!("completed")));
}

#[test]
fn promise_of_a_failed_session_does_not_count() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(&format!("echo x > part.txt; {PROMISE}; exit 1"), "true");
    let run = repo.run(&["--max-iterations", "2"]).exits(1).json();
    assert_eq!(run["reason"], "max_iterations");
    assert_eq!(repo.verdicts(), ["session_failed", "session_failed"]);
    assert_eq!(repo.events_named("session_ended")[0]["promised"], false);
}

#[test]
fn completion_by_checks_needs_no_promise_and_custom_words_work() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.configure(
        &[repo.agent("stub", "echo $RALPH_ITERATION > part.txt; echo ok")],
        "test $(cat part.txt) = 2",
        &json!({"completion": "checks"}),
    );
    assert_eq!(repo.run(&[]).exits(0).json()["iterations"], 2);
    let more = json!({"completion_promise": "ALL DONE"});
    repo.configure(
        &[repo.agent("stub", "echo x > part.txt; echo '<promise>ALL DONE</promise>'")],
        "true",
        &more,
    );
    repo.run(&[]).exits(0);
    assert!(repo.run_file("iterations/1/prompt.md").contains("\n<promise>ALL DONE</promise>\n"));
}

#[test]
fn empty_answer_is_retried_then_counted() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let mut agent =
        repo.agent("stub", &format!("[ $RALPH_ITERATION = 1 ] && exit 0; echo x > part.txt; {PROMISE}"));
    agent["empty_retries"] = json!(2);
    repo.configure(&[agent], "true", &json!({}));
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(run["iterations"], 2, "three empty answers are one iteration");
    let started = repo.events_named("iteration_started");
    let tries: Vec<(u64, u64)> =
        started.iter().map(|e| (e["iteration"].as_u64().unwrap(), e["attempt"].as_u64().unwrap())).collect();
    assert_eq!(tries, [(1, 1), (1, 2), (1, 3), (2, 1)]);
    assert_eq!(repo.events_named("iteration_voided").len(), 2);
    assert_eq!(repo.verdicts(), ["session_failed", "candidate"]);
}

#[test]
fn check_that_ran_no_test_does_not_pass() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let zero = [
        "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s",
        "============================ no tests ran in 0.01s =============================",
        "collected 0 items\n\n============================ no tests ran in 0.12s ============================",
        "ok  \texample.com/x\t0.002s [no tests to run]",
        "Tests run: 0, Failures: 0, Errors: 0, Skipped: 0",
        "No test files found, exiting with code 0",
        "  0 passing (1ms)",
    ];
    for text in zero {
        repo.write("summary.txt", text);
        repo.stub(&format!("date +%N > part.txt; {PROMISE}"), "cat summary.txt");
        let run = repo.run(&["--max-iterations", "1"]).exits(1).json();
        assert_eq!(run["reason"], "max_iterations", "{text}");
        assert_eq!(repo.verdicts(), ["false_promise"], "{text}");
        assert_eq!(repo.events_named("check_finished")[0]["result"]["why"], "no test was executed", "{text}");
    }
    // Summed over binaries: one that ran something is enough.
    let some = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    repo.write("summary.txt", some);
    repo.git(&["add", "summary.txt"]);
    repo.git(&["commit", "-qm", "a summary"]);
    repo.run(&["--max-iterations", "1"]).exits(0);
    let proof: Value = serde_json::from_str(&repo.run_file("proof.json")).unwrap();
    assert_eq!(proof["checks"][0]["tests"]["passed"], 3);
}

#[test]
fn result_that_works_only_locally_is_not_proven() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write(".gitignore", "cache/\n");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "ignore"]);
    let script = format!(
        "mkdir -p cache; echo ok > cache/data\n[ $RALPH_ITERATION = 1 ] || cp cache/data data\necho x > part.txt; {PROMISE}"
    );
    let check = "test -f ready || exit 5; cat data cache/data 2>/dev/null | grep -q ok";
    repo.write("ready", "");
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "ready"]);
    repo.configure(
        &[repo.agent("stub", &script)],
        check,
        &json!({"setup_commands": ["touch made-by-setup", ["true"]]}),
    );
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(run["iterations"], 2);
    let proofs = repo.events_named("proof_finished");
    assert_eq!((&proofs[0]["passed"], &proofs[1]["passed"]), (&json!(false), &json!(true)));
    let prompt = repo.run_file("iterations/2/prompt.md");
    assert!(prompt.contains("NOT DONE: the final check in a clean checkout failed"), "{prompt}");
    assert!(prompt.contains("Ignored and unrecorded files don't exist there"), "{prompt}");
    let proof: Value = serde_json::from_str(&repo.run_file("proof.json")).unwrap();
    assert_eq!((&proof["place"], &proof["passed"]), (&json!("clean checkout"), &json!(true)));
    assert!(!repo.dir.join("made-by-setup").exists(), "the setup ran elsewhere");
    assert!(
        !env.path("state/ralph/proofs").join(run["run_id"].as_str().unwrap()).exists(),
        "and that folder is gone"
    );
}

#[test]
fn missing_system_program_asks_the_user() {
    let env = TestEnv::new(RALPH);
    let files = [
        ("PROMPT.md", "# Task\n"),
        (".gitignore", "node_modules/\n"),
        ("package.json", "{}\n"),
        ("package-lock.json", "{}\n"),
    ];
    let repo = TestRepo::new(&env, "repo", &files);
    let install = "mkdir -p node_modules; touch node_modules/lib.js";
    let work = format!("{install}; echo $RALPH_ITERATION > part.txt; {PROMISE}");
    let check = "test -f node_modules/lib.js && test -f part.txt";
    repo.stub(&work, check);
    let done = repo.run(&[]).exits(3);
    let run = done.json();
    assert_eq!((&run["reason"], &run["iterations"]), (&json!("needs_human"), &json!(2)));
    let summary = run["summary"].as_str().unwrap();
    assert!(summary.contains("node_modules/") && summary.contains("[\"npm ci\"]"), "{summary}");
    assert_eq!(repo.events_named("needs_human")[0]["reason"], "setup");
    let notices = repo.events_named("notice");
    let told = notices.iter().filter(|notice| notice["message"].as_str().unwrap().contains("npm ci")).count();
    assert_eq!(told, 1, "one notice, at once: {notices:?}");
    let prompt = repo.run_file("iterations/2/prompt.md");
    assert!(prompt.contains("not in the commit: node_modules/ (ignored by git)"), "{prompt}");
    assert!(prompt.contains("Perhaps only the user can fix it"), "{prompt}");
    let status = repo.ralph(&["status"]).exits(0).stdout;
    assert!(status.contains("--proof`"), "{status}");
    // The same files again ask the same question.
    let idle = format!("{install}; [ -f part.txt ] || echo x > part.txt; {PROMISE}");
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    repo.stub(&idle, check);
    let run = repo.run(&["--new", "--max-iterations", "9"]).exits(3).json();
    assert_eq!(run["iterations"], 2, "{run}");
    // A session that ends earlier reports it at its end.
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    let run = repo.run(&["--new", "--max-iterations", "1"]).exits(1).json();
    assert!(run["summary"].as_str().unwrap().contains("npm ci"), "{run}");
    // With the setup it is proven.
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    repo.configure(&[repo.agent("stub", &work)], check, &json!({ "setup_commands": [install] }));
    repo.run(&["--new"]).exits(0);
}

#[test]
fn uncommitted_files_needed_by_checks_are_requested_before_publishing() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write("expected.txt", "right\n");
    repo.stub(&format!("echo right > part.txt; {PROMISE}"), "diff expected.txt part.txt");
    let run = repo.run(&["--branch", "topic"]).exits(3).json();
    let summary = run["summary"].as_str().unwrap();
    assert!(summary.contains("need `expected.txt`, which you have not committed"), "{summary}");
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    repo.git(&["add", "expected.txt"]);
    repo.git(&["commit", "-qm", "what is expected"]);
    repo.run(&["--new"]).exits(0);
}

#[test]
fn clean_checkout_is_a_git_repo() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.git(&["tag", "-a", "v1", "-m", "one"]);
    let check = "test -f part.txt && git describe | grep -q v1 && git log --oneline | grep -q start && git status --porcelain";
    repo.stub(&format!("echo right > part.txt; {PROMISE}"), check);
    repo.run(&[]).exits(0);
    let repo = TestRepo::new(&env, "second", &[("PROMPT.md", "# Task\n")]);
    repo.git(&["tag", "-a", "v1", "-m", "one"]);
    repo.stub(&format!("echo right > part.txt; {PROMISE}"), check);
    repo.run(&["--worktree"]).exits(0);
}

#[test]
fn failed_setup_in_the_final_check_proves_nothing() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.configure(
        &[repo.agent("stub", &format!("echo $RALPH_ITERATION > part.txt; {PROMISE}"))],
        "true",
        &json!({"setup_commands": ["exit 7"], "max_iterations": 2, "baseline": false}),
    );
    let run = repo.run(&[]).exits(1).json();
    assert_eq!(run["success"], false);
    let proof: Value = serde_json::from_str(&repo.run_file("proof.json")).unwrap();
    assert_eq!(proof["passed"], false);
    assert!(proof["failed"][0].as_str().unwrap().contains("setup command `exit 7` failed"), "{proof}");
}

#[test]
fn checks_follow_their_schedule_and_all_required_ones_run_before_success() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let verifier = |name: &str, when: &str| json!({"name": name, "run_when": when, "command_argv": ["sh", "-c", format!("echo {name} >> {}", env.path("ran").display())]});
    let more = json!({
        "verifiers": [verifier("changed", "on_change"), verifier("each", "always"), verifier("promised", "on_promise")],
        "required_verifiers": ["changed", "each", "promised"],
    });
    // Iteration 1 changes, 2 does not, 3 promises.
    repo.configure(
        &[repo.agent(
            "stub",
            &format!("echo ok; case $RALPH_ITERATION in 1) echo x > part.txt;; 3) {PROMISE};; esac"),
        )],
        "",
        &more,
    );
    assert_eq!(repo.run(&[]).exits(0).json()["iterations"], 3);
    let ran: Vec<String> = repo
        .events_named("check_finished")
        .iter()
        .map(|e| format!("{} {}", e["iteration"], e["result"]["name"].as_str().unwrap()))
        .collect();
    assert_eq!(ran, ["1 changed", "1 each", "2 each", "3 each", "3 promised"]);
    let proof: Value = serde_json::from_str(&repo.run_file("proof.json")).unwrap();
    assert_eq!(proof["checks"].as_array().unwrap().len(), 3, "the final check runs all of them");
}

#[test]
fn a_flaky_pass_does_not_survive_the_final_check() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let count = env.path("count");
    // Passes in the iteration, fails in the final check.
    let check = format!("echo x >> {0}; test $(wc -l < {0}) -ne 2", count.display());
    let agent = repo.agent("stub", &format!("echo $RALPH_ITERATION > part.txt; {PROMISE}"));
    repo.configure(&[agent], &check, &json!({"baseline": false}));
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(run["iterations"], 2);
    assert_eq!(repo.events_named("proof_finished")[0]["passed"], false);
}

#[test]
fn iterations_end_the_run_with_a_warning_before() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo $RALPH_ITERATION > part.txt; echo ok", "echo \"$(cat part.txt)\" failed; false");
    let run = repo.run(&["--max-iterations", "5"]).exits(1).json();
    assert_eq!(
        (&run["reason"], &run["iterations"], &run["error"]["code"]),
        (&json!("max_iterations"), &json!(5), &json!("MAX_ITERATIONS"))
    );
    let warnings = repo.events_named("budget_warning");
    assert_eq!(warnings[0]["message"], "4 of 5 iterations used (80 %)");
    assert_eq!(warnings.len(), 1);
}

#[test]
fn session_past_the_time_limit_is_stopped_and_ends_the_run() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo $$ > pid.txt; echo ok; sleep 600", "true");
    let run = repo.run(&["--max-seconds", "1"]).exits(1).json();
    assert_eq!((&run["reason"], &run["error"]["code"]), (&json!("timeout"), &json!("TIMEOUT")));
    assert!(run["elapsed_seconds"].as_f64().unwrap() < 10.0, "{run}");
    assert_eq!(repo.events_named("session_ended")[0]["end"]["how"], "timed_out");
    assert!(!ralph_loop_testkit::env::is_alive(repo.read("pid.txt").trim().parse().unwrap()));
}

#[test]
fn deadline_always_ends_the_run() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let more = json!({"deadline": "2020-01-01T00:00:00Z"});
    repo.configure(&[repo.agent("stub", "echo ok")], "true", &more);
    let run = repo.run(&[]).exits(1).json();
    assert_eq!((&run["reason"], &run["iterations"]), (&json!("timeout"), &json!(0)));
}

#[test]
fn cost_and_token_caps_stop_the_run() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let turn = |n: u32| json!({"do": [{"write": {"path": "part.txt", "content": format!("{n}\n")}}], "say": "ok", "tokens": {"input": 100, "output": 20, "cached": 7}, "cost_usd": 0.4});
    let turns = json!([turn(1), turn(2), turn(3), turn(4)]);
    let agent = scripted(&repo, &turns);
    repo.configure(&[agent], "false", &json!({"max_cost_usd_estimate": 1.0, "max_iterations": 9}));
    let run = repo.run(&[]).exits(1).json();
    assert_eq!(
        (&run["reason"], &run["iterations"], &run["error"]["code"]),
        (&json!("max_cost"), &json!(3), &json!("MAX_COST"))
    );
    assert!((run["cost_usd"].as_f64().unwrap() - 1.2).abs() < 1e-9, "{run}");
    assert_eq!(run["cost_basis"], "reported");
    assert_eq!(run["tokens"], json!({"input": 300, "output": 60, "cached": 21, "cache_write": 0}));
    let warning = &repo.events_named("budget_warning")[0];
    assert_eq!(
        (&warning["budget"], warning["message"].as_str().unwrap().contains("80 %")),
        (&json!("cost"), true),
        "{warning}"
    );
    let receipt: Value = serde_json::from_str(&repo.run_file("iterations/2/receipt.json")).unwrap();
    assert_eq!((&receipt["cost_usd"], &receipt["total_cost_usd"]), (&json!(0.4), &json!(0.8)));

    let run = repo.run(&["--max-cost", "9", "--max-tokens", "300"]).exits(1).json();
    assert_eq!((&run["reason"], &run["iterations"]), (&json!("max_tokens"), &json!(3)));
}

#[test]
fn unenforceable_cap_is_refused_in_strict_mode() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(&format!("echo x > part.txt; {PROMISE}"), "true");
    let refused = repo.run(&["--strict-budget"]).exits(4);
    assert!(refused.stderr.contains("does not report its cost"), "{}", refused.stderr);
    assert!(!repo.dir.join(".ralph/runs").exists());
}

#[test]
fn silent_agent_with_passing_checks_is_detected() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.configure(
        &[repo.agent("stub", "echo 'all good so far'")],
        "true",
        &json!({"on_stuck": "fail", "max_iterations": 20}),
    );
    let run = repo.run(&[]).exits(1).json();
    assert_eq!((&run["reason"], &run["iterations"]), (&json!("no_change"), &json!(2)));

    // One more test passes each time: the same file, the same words, the same exit code.
    let work = "echo \"call($RALPH_ITERATION)\" >> part.txt; echo 'did the next one'";
    let check =
        "n=$(wc -l < part.txt); echo \"===== $((9 - n)) failed, $n passed in 0.1s =====\"; [ $n -gt 7 ]";
    repo.configure(&[repo.agent("stub", work)], check, &json!({"on_stuck": "fail", "max_iterations": 7}));
    let run = repo.run(&["--new"]).exits(1).json();
    assert_eq!(run["reason"], "max_iterations");
    assert_eq!(repo.events_named("gutter").len(), 0);
    let ended = repo.events_named("iteration_ended");
    assert_eq!(ended[3]["signals"]["progress"], "4 tests pass, 3 before");
}

#[test]
fn looping_run_escalates_then_asks_the_user() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = [repo.agent("stub", "echo x > scratch.txt; echo 'tried the same'")];
    repo.configure(&agent, "echo boom; false", &json!({"max_iterations": 30}));
    let done = repo.run(&[]).exits(3);
    let run = done.json();
    assert_eq!(
        (&run["reason"], &run["iterations"], &run["error"]["code"]),
        (&json!("needs_human"), &json!(7), &json!("NEEDS_HUMAN"))
    );
    let hint = run["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("`ralph nudge \"…\" --run "), "a command that works as it stands: {hint}");
    let rungs: Vec<Value> = repo.events_named("mitigated").iter().map(|e| e["rung"].clone()).collect();
    assert_eq!(rungs, ["nudge", "rotate", "doctor", "pause"]);
    let metrics: Value = serde_json::from_str(&repo.run_file("iterations/3/metrics.json")).unwrap();
    assert_eq!(metrics["loop_score"], 0.8);
    assert!(repo.run_file("iterations/4/prompt.md").contains("The last iterations lead nowhere"));
    assert!(repo.run_file("iterations/5/prompt.md").contains("Do not repeat what was tried"));
    assert!(repo.run_file("iterations/6/prompt.md").contains("A doctor read the record of this run"));
    assert!(repo.read(".ralph/diagnostics.md").contains("## Suggested guardrails\n\n- when "));
    assert_eq!(metrics["kinds"], json!(["repetitive", "error_loop", "no_progress"]));
    assert_eq!(metrics["seen"][0]["signal"], "repeated_failure");
    let activity = repo.read(".ralph/activity.log");
    assert!(
        activity.contains("stuck (loop score") && activity.contains("repeated_failure 0.5: "),
        "{activity}"
    );
    let shown = repo.ralph(&["show", &repo.latest(), "3"]).exits(0).stdout;
    assert!(shown.contains("0.5 repeated failure: the same failure 3 times"), "{shown}");
    // `resume` alone is enough; the person's hint reaches the next session.
    repo.ralph(&["nudge", "look at the door"]).exits(0);
    repo.ralph(&["resume", "--json"]).exits(3);
    assert!(repo.run_file("iterations/8/prompt.md").contains("look at the door"));
    let run = repo.ralph(&["resume", "--json"]).exits(1).json();
    assert_eq!(run["reason"], "stuck", "the third time in a row ends the run (max_consecutive_gutter)");

    // A session's leftovers wouldn't count as a change any more.
    std::fs::remove_file(repo.dir.join("scratch.txt")).unwrap();
    repo.configure(&agent, "echo boom; false", &json!({"max_iterations": 20, "on_stuck": "fail"}));
    let run = repo.run(&["--new"]).exits(1).json();
    assert_eq!(run["reason"], "stuck");
    std::fs::remove_file(repo.dir.join("scratch.txt")).unwrap();
    repo.configure(
        &agent,
        "echo boom; false",
        &json!({"max_iterations": 8, "stuck_detection": {"disabled": true}}),
    );
    assert_eq!(repo.run(&["--new"]).exits(1).json()["reason"], "max_iterations");
}
