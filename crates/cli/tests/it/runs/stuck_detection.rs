//! Stuck detection and cost caps: what stops a run and what doesn't.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};

const PROMISE: &str = "echo '<promise>COMPLETE</promise>'";

/// Unknown test scripts, each with a number that improves by one every session.
#[test]
fn improving_numbers_are_not_a_loop() {
    let say = [
        "echo \"p99 $((110 - n)) ms\"",
        "echo \"accuracy 0.$((60 + n))\"",
        "echo \"$((10 - n)) left\"",
        "echo \"$((10 - n)) failed, $n passed\"",
        "echo \"$n/10 cases ok\"",
    ];
    for say in say {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        let agent = repo.agent("one", "echo line $RALPH_ITERATION >> part.txt; echo 'Did the next one.'");
        let check = format!("n=$(wc -l < part.txt); {say}; test $n -ge 10");
        repo.configure(&[agent], &check, &json!({"completion": "checks", "max_iterations": 12}));
        let run = repo.run(&[]).exits(0).json();
        assert_eq!(run["iterations"], 10, "{say}: {run}");
        let kinds = repo.kinds();
        assert!(
            !kinds.iter().any(|kind| ["stuck", "gutter", "mitigated"].contains(&kind.as_str())),
            "{say}: {kinds:?}"
        );
    }
}

#[test]
fn repeated_failure_is_detected_despite_new_files() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent(
        "one",
        "echo x$RALPH_ITERATION > new$RALPH_ITERATION.txt; echo \"Tried way $RALPH_ITERATION.\"",
    );
    repo.configure(&[agent], "echo 'FAIL: the total is 4, not 5'; exit 1", &json!({"max_iterations": 30}));
    let run = repo.run(&[]).exits(3).json();
    assert!(run["iterations"].as_u64().unwrap() <= 12, "{run}");
    let asked = repo.events_named("needs_human")[0]["message"].as_str().unwrap().to_owned();
    assert!(!asked.contains("--max-iterations"), "more iterations aren't useful advice: {asked}");
}

/// A check's output about the machine, and the expected report.
#[test]
fn machine_failures_are_told_apart_from_agent_failures() {
    let faults = [
        ("./run.sh", "run.sh", 1),
        (
            "python3 -c 'import frobnicate_lib'",
            "`frobnicate_lib` is not installed; run `pip install frobnicate_lib`",
            2,
        ),
        ("frobnicate --all", "`frobnicate` is not installed", 1),
    ];
    for (check, told, sessions) in faults {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.write("run.sh", "#!/bin/sh\nexit 0\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "a script without execute permission"]);
        let agent = repo.agent("one", "echo $RALPH_ITERATION > part$RALPH_ITERATION.txt; echo 'Tried.'");
        repo.configure(&[agent], check, &json!({"max_iterations": 12, "baseline": true}));
        let run = repo.run(&[]).exits(3).json();
        assert_eq!(run["iterations"], sessions, "{check}: {run}");
        let kinds = repo.kinds();
        let first = kinds.iter().position(|kind| kind == "iteration_started").unwrap();
        let events = repo.events();
        let before = serde_json::to_string(&events[..first]).unwrap();
        assert!(before.contains(told), "{check}: told before the first session: {before}");
        let asked = repo.events_named("needs_human")[0]["message"].as_str().unwrap().to_owned();
        assert!(asked.contains(told), "{check}: {asked}");
    }
}

#[test]
fn missing_file_named_in_the_task_is_an_ordinary_failure() {
    for check in ["python3 report.py", "sh report.py", "./report.py", "python3 -c 'import report'"] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.write("PROMPT.md", "# Write report.py\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "task"]);
        let work = "echo try $RALPH_ITERATION >> notes.txt; [ $RALPH_ITERATION = 4 ] && { echo '#!/bin/sh' > report.py; chmod +x report.py; }";
        let agent = repo.agent("one", &format!("{work}; {PROMISE}"));
        repo.configure(&[agent], check, &json!({"max_iterations": 5, "baseline": true}));
        let run = repo.run(&[]).exits(0).json();
        assert_eq!(run["iterations"], 4, "{check}: {run}");
    }
}

#[test]
fn loop_evidence_is_in_the_event_and_the_next_prompt() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let tool = json!({"type": "assistant", "message": {"id": "m1", "model": "claude-sonnet-4-5", "content": [{"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/x/newNUMBER.txt"}}]}});
    let agent = claude(&repo, &env, &[init(), tool, result(0.01, 1)], "echo x > new$RALPH_ITERATION.txt");
    let more = json!({"max_iterations": 5, "gutter_score": 0.95});
    repo.configure(&[agent], "echo 'FAIL: the total is wrong'; false", &more);
    repo.run(&[]).exits(1);
    let stuck = repo.events_named("stuck");
    assert!(!stuck.is_empty(), "{:?}", repo.kinds());
    let (event, context) = (&stuck[0], &stuck[0]["context"]);
    assert!(context["recent_actions"].to_string().contains("new3.txt"), "{event}");
    assert!(context["repeated_error"].as_str().unwrap().contains("the total is wrong"), "{event}");
    let next = event["iteration"].as_u64().unwrap() + 1;
    let prompt = repo.run_file(&format!("iterations/{next}/prompt.md"));
    let evidence = event["evidence"][0].as_str().unwrap();
    assert!(prompt.contains(evidence) && prompt.contains("The error that stays"), "{next}: {prompt}");
}

#[test]
fn disabled_loop_detection_does_nothing() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agents = ["one", "two"].map(|name| repo.agent(name, "echo x > scratch.txt; echo 'tried the same'"));
    let more = json!({"stuck_detection": {"disabled": true}, "critic": {"agent": "two"}, "agent_selection": "priority", "max_iterations": 8});
    repo.configure(&agents, "echo boom; false", &more);
    let run = repo.run(&[]).exits(1).json();
    assert_eq!((&run["reason"], &run["iterations"]), (&json!("max_iterations"), &json!(8)), "{run}");
    let kinds = repo.kinds();
    for kind in ["stuck", "gutter", "mitigated", "criticised", "diagnosed"] {
        assert!(!kinds.contains(&kind.to_owned()), "{kind}: {kinds:?}");
    }
    let metrics: Value = serde_json::from_str(&repo.run_file("iterations/8/metrics.json")).unwrap();
    assert!(metrics["loop_score"].is_null() || metrics["loop_score"] == json!(0.0), "{metrics}");
}

/// An agent with Claude Code's output format.
fn claude(repo: &TestRepo<'_>, env: &TestEnv, lines: &[Value], work: &str) -> Value {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = env.path("claude.jsonl");
    std::fs::write(&file, text).unwrap();
    let say = format!("sed \"s/NUMBER/$RALPH_ITERATION/\" {}", file.display());
    let mut agent = repo.agent("claude", &format!("{work}\n{say}"));
    agent["output_format"] = json!("claude-stream-json");
    agent
}

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s", "model": "claude-sonnet-4-5", "tools": []})
}

fn result(cost: f64, output: u64) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "stop_reason": "end_turn", "num_turns": 1, "result": "Way NUMBER.",
           "total_cost_usd": cost, "usage": {"input_tokens": 0, "output_tokens": output},
           "modelUsage": {"claude-sonnet-4-5": {"inputTokens": 0, "outputTokens": output, "costUSD": cost}}})
}

#[test]
fn cost_cap_uses_the_larger_of_reported_and_computed_cost() {
    // A million tokens cost more than a cent, and ten tokens less than five dollars.
    for (cost, output, basis) in [(0.01, 1_000_000, "estimated"), (5.0, 10, "reported")] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        let agent = claude(&repo, &env, &[init(), result(cost, output)], "date > part.txt");
        repo.configure(&[agent], "false", &json!({"max_cost_usd_estimate": 4.0, "max_iterations": 3}));
        let run = repo.run(&[]).exits(1).json();
        assert_eq!((&run["reason"], &run["iterations"]), (&json!("max_cost"), &json!(1)), "{run}");
        assert!(run["cost_usd"].as_f64().unwrap() >= 5.0, "{run}");
        assert_eq!(run["cost_basis"], basis, "{run}");
    }
}

#[test]
fn unenforceable_token_cap_is_reported_at_the_start() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(&format!("echo x > part.txt; {PROMISE}"), "true");
    let run = repo.ralph(&["run", "--isolation", "none", "--max-tokens", "300"]).exits(0);
    assert!(run.stderr.contains("the cap of 300 tokens cannot hold"), "{}", run.stderr);
}

#[test]
fn cost_warning_comes_before_the_cap_even_within_a_session() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = claude(&repo, &env, &[init(), result(0.8, 1)], "date > part.txt");
    repo.configure(&[agent], "false", &json!({"max_cost_usd_estimate": 1.0, "max_iterations": 3}));
    repo.run(&[]).exits(1);
    let kinds = repo.kinds();
    let warned = kinds.iter().position(|kind| kind == "budget_warning").unwrap();
    let second = kinds.iter().enumerate().filter(|(_, kind)| *kind == "iteration_started").nth(1).unwrap().0;
    assert!(warned < second, "at 80 % of the money, before the next session: {kinds:?}");
}

#[test]
fn limit_signs_on_stdout_count_only_after_a_failed_exit() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let mark = env.path("mark").display().to_string();
    let mut agent = repo.agent(
        "one",
        &format!(
            "[ -e {mark} ] || {{ : > {mark}; echo 'quota of the day is gone, try again in 1 seconds'; exit 1; }}\n\
             echo 'The quota of the day is shown now.'; echo x > part.txt; {PROMISE}"
        ),
    );
    agent["rate_limit_detection"] = json!({"patterns": ["quota of the day"]});
    repo.configure(&[agent], "test -f part.txt", &json!({}));
    repo.run(&[]).exits(0);
    assert_eq!(repo.events_named("cooldown_set").len(), 1);
    let ends: Vec<Value> =
        repo.events_named("session_ended").iter().map(|e| e["end"]["how"].clone()).collect();
    assert_eq!(ends, ["rate_limited", "completed"]);
}

/// Claude Code's retry notice; without a status if the server didn't answer.
fn retry_notice(status: Option<u16>, error: &str) -> Value {
    json!({"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "retry_delay_ms": 500, "error_status": status, "error": error})
}

#[test]
fn retry_notices_do_not_count_as_activity() {
    let ends = [
        (Some(529), "overloaded", "overloaded"),
        (Some(401), "authentication_failed", "auth"),
        (None, "unknown", "unreachable"),
    ];
    for (status, error, how) in ends {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        let notice = retry_notice(status, error).to_string();
        // It repeats the notice forever.
        let endless = format!("echo '{}'\nwhile :; do echo '{notice}'; sleep 0.3; done", init());
        let mut agent = claude(&repo, &env, &[], &endless);
        agent["idle_timeout_seconds"] = json!(3);
        let other = repo.agent("other", &format!("echo x > part.txt; {PROMISE}"));
        repo.configure(&[agent, other], "test -f part.txt", &json!({"agent_selection": "priority"}));
        repo.run(&[]).exits(0);
        let end = &repo.events_named("session_ended")[0]["end"];
        assert_eq!(end["how"], how, "{status:?}: {end}");
        assert_eq!(repo.events_named("agent_dropped").len(), usize::from(how == "auth"), "{status:?}");
    }
}
