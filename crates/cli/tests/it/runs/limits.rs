//! Rate limits, logins and timeouts: cooldowns, fallbacks, and waits that don't count as work.
#![allow(clippy::disallowed_methods, reason = "tests tell agents what time it is")]

use crate::RALPH;
use ralph_loop_testkit::env::{is_alive, until};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

const PROMISE: &str = "echo '<promise>COMPLETE</promise>'";

fn epoch() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// A script that runs `first` on its first call, and `then` on every later one.
fn once(env: &TestEnv, name: &str, first: &str, then: &str) -> String {
    let mark = env.path(name).display().to_string();
    format!("if [ ! -e {mark} ]; then : > {mark}; {first}\nelse {then}\nfi")
}

fn session_agents(repo: &TestRepo<'_>) -> Vec<String> {
    repo.events_named("iteration_started")
        .iter()
        .map(|e| format!("{}{}", e["agent"].as_str().unwrap(), e["iteration"]))
        .collect()
}

#[test]
fn rate_limited_agent_rests_while_another_takes_over() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let limited = "echo 'Error: rate limit reached, try again in 2 seconds' >&2; exit 1";
    let one = once(&env, "limited", limited, &format!("echo x > part.txt; {PROMISE}"));
    let two = "echo $RALPH_ITERATION > two.txt; echo ok; sleep 1.5";
    repo.configure(
        &[repo.agent("one", &one), repo.agent("two", two)],
        "test -f part.txt",
        &json!({"max_iterations": 9}),
    );
    let before = epoch();
    repo.run(&[]).exits(0);
    let order = session_agents(&repo);
    assert_eq!(order[..3], ["one1", "two1", "two2"], "{order:?}");
    assert!(order.last().unwrap().starts_with("one"), "{order:?}");
    let skipped = repo.events_named("iteration_started")[2]["skipped"][0].as_str().unwrap().to_owned();
    assert!(skipped.starts_with("one: ") && skipped.contains("rate limit"), "{skipped}");
    let cooldowns: Value = serde_json::from_str(&repo.read(".ralph/cooldowns.json")).unwrap();
    let rest = &cooldowns["one"];
    assert_eq!(rest.as_object().unwrap().len(), 3, "{rest}");
    let (end, seen) = (rest["cooldown_until"].as_i64().unwrap(), rest["observed_at"].as_i64().unwrap());
    assert!((before..=before + 20).contains(&seen) && (seen + 2..=seen + 6).contains(&end), "{rest}");
    assert!(rest["reason"].as_str().unwrap().contains("try again in 2 seconds"));
    assert_eq!(repo.events_named("session_ended")[0]["end"]["how"], "rate_limited");
}

/// The time runs out at the start, in the setup, after a session, or in the final check.
#[test]
fn check_stops_at_the_run_time_limit_and_more_time_continues_it() {
    for place in ["start", "setup", "iteration", "final check"] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        let (calls, fixed) = (env.path("calls").display().to_string(), env.path("fixed"));
        // Either the setup or one of the checks never ends: the first or the second.
        let slow = format!("[ -e {} ] || sleep 600", fixed.display());
        let nth = |n: u32| {
            format!("echo x >> {calls}; [ $(wc -l < {calls}) != {n} ] || {{ {slow}; }}; test -f part.txt")
        };
        let (check, more) = match place {
            "start" => (nth(1), json!({})),
            "setup" => {
                ("test -f part.txt".to_owned(), json!({"setup_commands": [["sh", "-c", slow.clone()]]}))
            }
            "iteration" => (nth(1), json!({"baseline": false})),
            _ => (nth(2), json!({"baseline": false})),
        };
        repo.configure(&[repo.agent("one", &format!("echo x > part.txt; {PROMISE}"))], &check, &more);
        let run = repo.run(&["--max-seconds", "4"]).exits(1).json();
        assert_eq!(run["reason"], "timeout", "{place}: {run}");
        let failed = repo.events_named("check_finished").iter().filter(|e| e["passed"] == false).count();
        assert_eq!((failed, repo.events_named("proof_finished").len()), (0, 0), "{place}: it did not fail");
        std::fs::write(&fixed, "").unwrap();
        let run = repo.ralph(&["resume", "--max-seconds", "600", "--json"]).exits(0).json();
        assert_eq!(run["success"], true, "{place}: {run}");
    }
}

#[test]
fn waiting_for_all_agents_is_not_an_iteration() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let limited = "echo 'HTTP 429 Too Many Requests' >&2; echo 'Retry-After: 1' >&2; exit 1";
    let agent = repo.agent("one", &once(&env, "limited", limited, &format!("echo x > part.txt; {PROMISE}")));
    repo.configure(&[agent], "true", &json!({}));
    let done = repo.run(&["--max-iterations", "1", "--max-seconds", "3", "--verbose"]).exits(0);
    let run = done.json();
    assert_eq!((&run["iterations"], &run["success"]), (&json!(1), &json!(true)));
    assert!(run["elapsed_seconds"].as_f64().unwrap() > 2.0, "{run}");
    assert_eq!(session_agents(&repo), ["one1", "one1"]);
    let wait = &repo.events_named("wait_started")[0];
    assert!(
        wait["reason"].as_str().unwrap().contains("every agent is in cooldown") && wait["until"].is_string(),
        "{wait}"
    );
    assert!(repo.events_named("wait_ended")[0]["waited_ms"].as_u64().unwrap() > 1000);
    assert!(done.stderr.contains("): every agent is in cooldown"), "{}", done.stderr);
    let metrics: Value = serde_json::from_str(&repo.run_file("iterations/1/metrics.json")).unwrap();
    assert!(metrics["working_ms_total"].as_u64().unwrap() < 2000, "{metrics}");
    assert_eq!(metrics["loop_score"], 0.0);
}

#[test]
fn limit_wait_has_its_own_timeout_and_can_be_cancelled() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent("one", "echo 'rate limit exceeded' >&2; exit 1");
    // No reset time is known and no other agent is free: the first wait is short, whatever cooldown is configured.
    repo.configure(std::slice::from_ref(&agent), "true", &json!({"default_cooldown_seconds": 3600}));
    let child = env.spawn(&repo.dir, &["run", "--isolation", "none", "--json"]);
    until("the wait", || repo.kinds().contains(&"wait_started".to_owned()).then_some(()));
    let cooldowns: Value = serde_json::from_str(&repo.read(".ralph/cooldowns.json")).unwrap();
    let rest = &cooldowns["one"];
    assert_eq!(
        rest["cooldown_until"].as_i64().unwrap() - rest["observed_at"].as_i64().unwrap(),
        30,
        "{rest}"
    );
    let status = repo.ralph(&["status", "--json"]).exits(0);
    assert!(status.stdout.contains("waiting"), "{}", status.stdout);
    repo.ralph(&["cancel"]).exits(0);
    assert_eq!(TestEnv::wait(child).exits(130).json()["iterations"], 0);

    let mut agent = agent;
    agent["rate_limit_detection"] = json!({"default_cooldown_seconds": 1});
    std::fs::remove_file(rests(&env, &repo)).unwrap();
    repo.configure(&[agent], "true", &json!({"max_limit_wait_minutes": 0.01}));
    let run = repo.run(&[]).exits(1).json();
    assert_eq!((&run["reason"], &run["iterations"]), (&json!("timeout"), &json!(0)));
}

/// The engine's file of cooldowns in a folder.
fn rests(env: &TestEnv, repo: &TestRepo<'_>) -> std::path::PathBuf {
    ralph_loop_journal::folder::layout::StateHome::at(&env.path("state/ralph")).folder_cooldowns(&repo.dir)
}

#[test]
fn cooldown_of_an_earlier_run_applies_to_the_next() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let agents = [
        repo.agent("one", &format!("echo x >> one.txt; {PROMISE}")),
        repo.agent("two", &format!("echo x > part.txt; {PROMISE}")),
    ];
    repo.configure(&agents, "test -f part.txt", &json!({}));
    let rest = |until: i64| json!({"one": {"cooldown_until": until, "reason": "weekly limit", "observed_at": epoch() - 5}, "gone": {"cooldown_until": until, "reason": "x", "observed_at": 0}});
    let write = |text: &str| {
        let path = rests(&env, &repo);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(&rest(epoch() + 3600).to_string());
    // The file in the folder is a copy for the user; `ralph` doesn't read it.
    repo.write(".ralph/cooldowns.json", &json!({"two": rest(epoch() + 3600)["one"]}).to_string());
    repo.run(&[]).exits(0);
    assert_eq!(session_agents(&repo), ["two1"]);
    assert!(
        repo.events_named("iteration_started")[0]["skipped"][0].as_str().unwrap().contains("weekly limit")
    );
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-qm", "the first result"]);
    // An expired cooldown and a damaged file have no effect.
    for text in [rest(epoch() - 1).to_string(), "not json".to_owned()] {
        write(&text);
        repo.run(&[]).exits(0);
        assert_eq!(session_agents(&repo)[0], "one1", "{text}");
    }
}

#[test]
fn custom_limit_signs_count_only_after_a_failed_exit() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let script = once(
        &env,
        "slow",
        "echo 'SLOW DOWN please' >&2; exit 1",
        &format!("echo 'slow down'; echo x > part.txt; {PROMISE}"),
    );
    let mut agent = repo.agent("one", &script);
    agent["rate_limit_detection"] = json!({"patterns": ["slow down"], "default_cooldown_seconds": 1});
    repo.configure(&[agent], "true", &json!({}));
    repo.run(&[]).exits(0);
    assert_eq!(repo.events_named("cooldown_set").len(), 1);
}

/// An agent that prints a file, with an output format.
fn canned(repo: &TestRepo<'_>, env: &TestEnv, name: &str, format: &str, lines: &[Value], code: u8) -> Value {
    let text: String = lines.iter().map(|l| format!("{l}\n")).collect();
    std::fs::write(env.path(&format!("{name}.jsonl")), text).unwrap();
    let mut agent = repo.agent(
        name,
        &format!(
            "echo $RALPH_ITERATION > part.txt; cat {}; exit {code}",
            env.path(&format!("{name}.jsonl")).display()
        ),
    );
    agent["output_format"] = json!(format);
    agent
}

fn claude_init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s", "model": "claude-sonnet-5", "tools": []})
}

#[test]
fn claude_stream_has_promise_tokens_and_cost() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let lines = [
        claude_init(),
        json!({"type": "assistant", "message": {"id": "m1", "model": "claude-sonnet-5", "content": [{"type": "text", "text": "<promise>COMPLETE</promise>"}, {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/x/part.txt"}}]}}),
        json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}}),
        json!({"type": "result", "subtype": "success", "is_error": false, "api_error_status": null, "terminal_reason": "completed", "stop_reason": "end_turn", "num_turns": 2,
               "result": "All is done.\n\n<promise>COMPLETE</promise>", "total_cost_usd": 0.25,
               "usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 3},
               "modelUsage": {"claude-sonnet-5": {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 100, "cacheCreationInputTokens": 3, "costUSD": 0.25, "costBasis": "list"}}}),
    ];
    repo.configure(&[canned(&repo, &env, "claude", "claude-stream-json", &lines, 0)], "true", &json!({}));
    let run = repo.run(&["--strict-budget"]).exits(0).json();
    assert_eq!(run["tokens"], json!({"input": 10, "output": 5, "cached": 100, "cache_write": 3}));
    assert_eq!((&run["cost_usd"], &run["cost_basis"]), (&json!(0.25), &json!("reported")));
    let receipt: Value = serde_json::from_str(&repo.run_file("iterations/1/receipt.json")).unwrap();
    assert_eq!((&receipt["model"], &receipt["message"]), (&json!("claude-sonnet-5"), &json!("All is done.")));
    assert!(repo.run_file("iterations/1/actions.jsonl").contains("Edit"));
}

#[test]
fn claude_and_codex_limits_are_read_from_their_errors() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let resets = epoch() + 3600;
    let claude = [
        claude_init(),
        json!({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": resets, "rateLimitType": "five_hour"}}),
        json!({"type": "result", "subtype": "success", "is_error": true, "api_error_status": 429, "api_error": "usage_limit_reached", "num_turns": 1, "result": "You've hit your 5-hour limit · resets 4:02am (UTC)", "total_cost_usd": 0}),
    ];
    let codex = [
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "turn.started"}),
        json!({"type": "turn.failed", "error": {"message": "You\u{2019}ve hit your usage limit. Upgrade or try again in 2 days 3 hours."}}),
    ];
    let agents = [
        canned(&repo, &env, "claude", "claude-stream-json", &claude, 1),
        canned(&repo, &env, "codex", "codex-json", &codex, 1),
        repo.agent("plain", &format!("echo x > part.txt; {PROMISE}")),
    ];
    repo.configure(&agents, "true", &json!({}));
    repo.run(&[]).exits(0);
    assert_eq!(session_agents(&repo), ["claude1", "codex1", "plain1"]);
    let cooldowns: Value = serde_json::from_str(&repo.read(".ralph/cooldowns.json")).unwrap();
    let end = |name: &str| cooldowns[name]["cooldown_until"].as_i64().unwrap();
    assert!((resets..=resets + 5).contains(&end("claude")), "{cooldowns}");
    let wanted = epoch() + (2 * 24 + 3) * 3600;
    assert!((wanted - 30..=wanted + 30).contains(&end("codex")), "{cooldowns}");
}

#[test]
fn codex_stream_has_unknown_cost() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let lines = [
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "turn.started"}),
        json!({"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "bash -lc ls", "aggregated_output": "x", "exit_code": 0}}),
        json!({"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Done.\n<promise>COMPLETE</promise>"}}),
        json!({"type": "turn.completed", "usage": {"input_tokens": 50, "cached_input_tokens": 20, "output_tokens": 7}}),
    ];
    repo.configure(&[canned(&repo, &env, "codex", "codex-json", &lines, 0)], "true", &json!({}));
    let run = repo.run(&[]).exits(0).json();
    assert_eq!(
        (&run["tokens"]["input"], &run["tokens"]["cached"], &run["tokens"]["output"]),
        (&json!(30), &json!(20), &json!(7))
    );
    assert_eq!(run["cost_basis"], "unknown");
}

#[test]
fn logged_out_agents_are_dropped_until_the_run_ends() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let lines = [
        json!({"type": "result", "subtype": "success", "is_error": true, "api_error_status": null, "num_turns": 1, "result": "Not logged in · Please run /login", "total_cost_usd": 0}),
    ];
    let claude = canned(&repo, &env, "claude", "claude-stream-json", &lines, 1);
    repo.configure(
        &[claude.clone(), repo.agent("plain", &format!("echo x > part.txt; {PROMISE}"))],
        "true",
        &json!({}),
    );
    repo.run(&[]).exits(0);
    assert_eq!(session_agents(&repo), ["claude1", "plain1"]);
    assert_eq!(repo.events_named("agent_dropped")[0]["agent"], "claude");
    repo.configure(&[claude], "true", &json!({}));
    let done = repo.run(&[]).exits(4);
    let run = done.json();
    assert_eq!(
        (&run["reason"], &run["error"]["code"], &run["iterations"]),
        (&json!("error"), &json!("AUTH_FAILED"), &json!(0))
    );
    assert!(
        run["summary"].as_str().unwrap().contains("Not logged in") && done.stderr.contains("next:"),
        "{done:?}"
    );
}

/// Hangs with a grandchild in a separate session that ignores SIGTERM.
fn hanging(env: &TestEnv, noise: &str) -> String {
    let pids = env.path("pids").display().to_string();
    format!(
        "echo $$ >> {pids}\nsetsid sh -c 'trap \"\" TERM HUP; echo $$ >> {pids}; exec sleep 600' </dev/null >/dev/null 2>&1 &\necho begun\n{noise}\ntrap '' TERM\nwhile :; do sleep 600; done"
    )
}

fn all_gone(env: &TestEnv) {
    let pids = std::fs::read_to_string(env.path("pids")).unwrap();
    assert!(pids.lines().count() >= 2, "{pids}");
    for pid in pids.lines().map(|p| p.parse().unwrap()) {
        until(&format!("the end of {pid}"), || (!is_alive(pid)).then_some(()));
    }
}

#[test]
fn silent_agent_is_killed_with_its_children() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let mut agent = repo.agent("one", &hanging(&env, ""));
    agent["idle_timeout_seconds"] = json!(4);
    repo.configure(&[agent], "false", &json!({}));
    repo.run(&["--max-iterations", "1"]).exits(1);
    all_gone(&env);
    assert_eq!(repo.events_named("session_ended")[0]["end"]["how"], "idle_timed_out");
    assert!(repo.run_file("iterations/1/output.log").contains("begun"));
}

#[test]
fn session_timeout_applies_despite_output() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let mut agent = repo.agent("one", &hanging(&env, "(while :; do echo still here; sleep 0.2; done) &"));
    agent["timeout_seconds"] = json!(1);
    repo.configure(&[agent], "false", &json!({}));
    repo.run(&["--max-iterations", "1"]).exits(1);
    all_gone(&env);
    assert_eq!(repo.events_named("session_ended")[0]["end"]["how"], "timed_out");
}

#[test]
fn hanging_check_fails_and_its_children_are_killed() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let hang = repo.script("hang.sh", &hanging(&env, ""));
    let more = json!({"verifiers": [{"name": "tests", "command_argv": [hang], "timeout_seconds": 4}]});
    repo.configure(&[repo.agent("one", &format!("echo x > part.txt; {PROMISE}"))], "", &more);
    repo.run(&["--max-iterations", "1"]).exits(1);
    all_gone(&env);
    let why = repo.events_named("check_finished")[0]["result"]["why"].clone();
    assert!(why.as_str().unwrap().contains("no end after 4 s"), "{why}");
}
