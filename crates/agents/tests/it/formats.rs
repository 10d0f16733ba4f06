//! Small outputs of every format, each for one edge case.

use crate::support::{Canned, RecordingSink, cli, play};
use ralph_loop_domain::ports::{ExecEnd, SessionReport, StopCause};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::CostBasis;
use ralph_loop_task::config::{AgentConfig, OutputFormat};

use OutputFormat::{ClaudeJson, ClaudeStreamJson, CodexJson, GeminiJson, Text};

fn ended(format: OutputFormat, stdout: &str, stderr: &str, end: ExecEnd) -> SessionReport {
    cli(format, &Canned::new(stdout, stderr, end)).0
}

fn exited(format: OutputFormat, stdout: &str, stderr: &str, code: i32) -> SessionReport {
    ended(format, stdout, stderr, ExecEnd::Exited(code))
}

#[test]
fn ends_of_every_format() {
    let claude_ok = r#"{"type":"result","subtype":"success","is_error":false,"result":"hi","num_turns":1,"permission_denials":[]}"#;
    let claude_init = r#"{"type":"system","subtype":"init","model":"m"}"#;
    let codex_start = "{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n{\"type\":\"turn.started\"}\n";
    let gemini_init = r#"{"type":"init","model":"g"}"#;
    let table: &[(OutputFormat, &str, &str, i32, &str)] = &[
        // Text: only the exit code and the stderr of a failed exit are evidence.
        (Text, "done", "", 0, "completed"),
        (Text, " \n\t", "", 0, "empty answer"),
        (Text, "the rate limit is hit: 429 Too Many Requests", "rate limit", 0, "completed"),
        (Text, "rate limit", "boom", 1, "agent failed"),
        (Text, "", "Error: 429 Too Many Requests", 1, "rate limited"),
        (ClaudeJson, claude_ok, "", 0, "completed"),
        (ClaudeJson, claude_ok, "", 3, "agent failed"),
        (ClaudeStreamJson, claude_init, "", 0, "ended without a result"),
        (ClaudeStreamJson, claude_init, "", 143, "ended without a result"),
        (ClaudeStreamJson, "", "", 0, "ended without a result"),
        (ClaudeStreamJson, "", "--dangerously-skip-permissions cannot be used with root", 1, "agent failed"),
        (ClaudeStreamJson, "no json at all\n", "Invalid API key", 1, "not logged in"),
        (
            ClaudeJson,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"","num_turns":1}"#,
            "",
            0,
            "empty answer",
        ),
        (
            ClaudeJson,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"I won't","stop_reason":"refusal","num_turns":1}"#,
            "",
            0,
            "refused",
        ),
        (
            ClaudeJson,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"done","num_turns":9,"permission_denials":[{"tool_name":"Bash"}]}"#,
            "",
            0,
            "completed",
        ),
        (
            ClaudeJson,
            r#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}"#,
            "",
            0,
            "agent failed",
        ),
        (
            ClaudeJson,
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":403,"result":"API Error: 403"}"#,
            "",
            1,
            "not logged in",
        ),
        (
            ClaudeJson,
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":500,"result":"API Error: 500","terminal_reason":"completed"}"#,
            "",
            1,
            "provider overloaded",
        ),
        (CodexJson, codex_start, "", 0, "ended without a result"),
        (
            CodexJson,
            "",
            "Reading additional input from stdin...\nNot inside a trusted directory",
            1,
            "agent failed",
        ),
        (CodexJson, "", "Error: Missing environment variable: `X`.", 1, "not logged in"),
        (CodexJson, "{\"type\":\"turn.completed\",\"usage\":{}}", "", 0, "empty answer"),
        (
            CodexJson,
            "{\"type\":\"turn.failed\",\"error\":{\"message\":\"You've hit your usage limit.\"}}",
            "",
            1,
            "rate limited",
        ),
        (
            CodexJson,
            "{\"type\":\"turn.failed\",\"error\":{\"message\":\"You’ve hit your usage limit.\"}}",
            "",
            1,
            "rate limited",
        ),
        (
            CodexJson,
            "{\"type\":\"turn.failed\",\"error\":{\"message\":\"We’re currently experiencing high demand\"}}",
            "",
            1,
            "provider overloaded",
        ),
        (
            CodexJson,
            "{\"type\":\"turn.failed\",\"error\":{\"message\":\"The model `x` does not exist\"}}",
            "",
            1,
            "agent failed",
        ),
        (GeminiJson, gemini_init, "", 0, "ended without a result"),
        (GeminiJson, "", "", 0, "ended without a result"),
        (GeminiJson, "", "Invalid auth method selected.", 41, "not logged in"),
        (GeminiJson, "", "", 53, "agent failed"),
        (GeminiJson, "", "", 130, "agent failed"),
        (GeminiJson, "", "", 173, "rate limited"),
        (GeminiJson, "", "", 147, "not logged in"),
        (
            GeminiJson,
            "",
            "{\n \"error\": {\"message\": \"API key not valid. Please pass a valid API key.\", \"code\": 400}\n}",
            144,
            "not logged in",
        ),
        (
            GeminiJson,
            "",
            "{\n \"error\": {\"message\": \"fetch failed sending request\", \"code\": 1}\n}",
            1,
            "provider not reachable",
        ),
        (
            GeminiJson,
            "",
            "{\n \"error\": {\"message\": \"terminated\", \"code\": 1}\n}",
            1,
            "provider overloaded",
        ),
        (GeminiJson, "{\"response\":\"\",\"stats\":{\"models\":{}}}", "", 0, "empty answer"),
        (GeminiJson, "{\"response\":\"ok\",\"stats\":{\"models\":{}}}", "quota exceeded", 0, "completed"),
        (
            GeminiJson,
            "{\"type\":\"error\",\"severity\":\"warning\",\"message\":\"Loop detected, stopping execution\"}\n{\"type\":\"result\",\"status\":\"success\"}",
            "",
            0,
            "agent failed",
        ),
    ];
    for (format, stdout, stderr, code, word) in table {
        let report = exited(*format, stdout, stderr, *code);
        assert_eq!(report.end.word(), *word, "{format:?} {stdout:?} {stderr:?} {code}: {:?}", report.end);
        assert_eq!(report.exit_code, Some(*code));
    }
}

#[test]
fn the_engines_way_of_ending_decides() {
    for format in [Text, ClaudeStreamJson, CodexJson, GeminiJson] {
        let end = |exec| ended(format, "half an ans", "", exec).end;
        assert_eq!(end(ExecEnd::TimedOut), SessionEnd::TimedOut);
        assert_eq!(end(ExecEnd::IdleTimedOut), SessionEnd::IdleTimedOut);
        assert_eq!(end(ExecEnd::GuardLost), SessionEnd::Interrupted);
        assert_eq!(
            end(ExecEnd::Stopped(StopCause::Rotated)),
            SessionEnd::Stopped { cause: StopCause::Rotated }
        );
        assert_eq!(end(ExecEnd::Stopped(StopCause::Hopeless)).word(), "rate limited");
        assert!(!matches!(end(ExecEnd::Signaled(9)), SessionEnd::Completed | SessionEnd::Empty));
    }
}

#[test]
fn configured_signs_count_only_in_errors() {
    let mut config = AgentConfig::command("x", &["x"]);
    config.rate_limit_detection.patterns = vec!["Come Back Later".into()];
    let agent = ralph_loop_agents::CliAgent::new(config.clone());
    let mut end = |code, stdout: &str, stderr: &str, format| {
        config.output_format = format;
        let sandbox = Canned::new(stdout, stderr, ExecEnd::Exited(code));
        play(&agent, &config, 1, &sandbox, &mut RecordingSink::default()).end.word()
    };
    assert_eq!(end(1, "", "please come back later", Text), "rate limited");
    assert_eq!(end(0, "x", "please come back later", Text), "completed");
    assert_eq!(end(1, "come back later", "", Text), "rate limited");
    let failed = "{\"type\":\"turn.failed\",\"error\":{\"message\":\"come back later\"}}";
    assert_eq!(end(1, failed, "", CodexJson), "rate limited");
}

#[test]
fn a_long_limit_is_not_waited_for() {
    let init = "{\"type\":\"system\",\"subtype\":\"init\",\"model\":\"m\"}\n";
    let retry = |attempt: u32, delay: u64, status: u32| {
        format!(
            "{{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":{attempt},\"max_retries\":10,\"retry_delay_ms\":{delay},\"error_status\":{status},\"error\":\"rate_limit\"}}\n"
        )
    };
    let cut = |lines: String| {
        let mut sandbox = Canned::new(format!("{init}{lines}"), "", ExecEnd::Exited(0));
        sandbox.chunk = 16;
        let (report, told) = cli(ClaudeStreamJson, &sandbox);
        (report, told.activities)
    };
    let (report, activities) = cut(retry(1, 3_600_000, 429));
    let SessionEnd::RateLimited { reset_at: Some(at), .. } = &report.end else { panic!("{:?}", report.end) };
    assert_eq!(at.to_string(), "2026-11-15T04:00:02Z", "an hour after the end of the session");
    assert_eq!(report.exit_code, None, "the process was ended");
    assert_eq!(activities, ["waiting 1 h 00 min for the provider (rate limit 429, try 1 of 10)"]);
    // Short waits and outages are left to the CLI; silence after them is the provider's.
    assert_eq!(cut(retry(1, 1000, 429)).0.end.word(), "rate limited");
    assert_eq!(cut(retry(9, 1000, 529)).0.end.word(), "provider overloaded");
    assert_eq!(cut(retry(1, 1000, 429)).0.exit_code, Some(0));
    // Whole seconds are the provider's `Retry-After`; the CLI's own backoff has a random part.
    let SessionEnd::RateLimited { reset_at, .. } = cut(retry(3, 20_000, 429)).0.end else { panic!() };
    assert_eq!(reset_at.unwrap().to_string(), "2026-11-15T03:00:22Z");
    let SessionEnd::RateLimited { reset_at, .. } = cut(retry(3, 2137, 429)).0.end else { panic!() };
    assert_eq!(reset_at, None);
    // An answer after the wait clears the failure.
    let answer = "{\"type\":\"assistant\",\"message\":{\"id\":\"1\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}}\n";
    assert_eq!(cut(retry(1, 1000, 429) + answer).0.end.word(), "ended without a result");
}

#[test]
fn codex_does_not_wait_forever() {
    let start = "{\"type\":\"thread.started\"}\n";
    let limited =
        "{\"type\":\"error\",\"message\":\"Reconnecting... 3/5 (last status: 429 Too Many Requests)\"}\n";
    let (report, _) = cli(CodexJson, &Canned::new(format!("{start}{limited}"), "", ExecEnd::Exited(0)));
    assert_eq!((report.end.word(), report.exit_code), ("rate limited", None));
    let offline = "{\"type\":\"error\",\"message\":\"Reconnecting... waiting for network (x)\"}\n".repeat(12);
    let (report, told) = cli(CodexJson, &Canned::new(format!("{start}{offline}"), "", ExecEnd::Exited(0)));
    assert_eq!((report.end.word(), report.exit_code), ("provider not reachable", None));
    assert_eq!(told.activities[0], "Reconnecting... waiting for network (x)");
}

#[test]
fn a_refused_login_is_not_tried_again() {
    let retry = "{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":1,\"max_retries\":10,\"retry_delay_ms\":500,\"error_status\":401,\"error\":\"authentication_failed\"}\n";
    let (report, told) = cli(ClaudeStreamJson, &Canned::new(retry, "", ExecEnd::Exited(0)));
    assert_eq!((report.end.word(), report.exit_code), ("not logged in", None));
    let reason = report.end.reason().unwrap();
    assert!(reason.starts_with("the provider refuses the login (authentication failed 401)"), "{reason}");
    assert!(told.activities.is_empty(), "one line is enough: {:?}", told.activities);
    let codex = "{\"type\":\"thread.started\"}\n{\"type\":\"error\",\"message\":\"Reconnecting... 1/5 (unexpected status 401 Unauthorized: x)\"}\n";
    let (report, _) = cli(CodexJson, &Canned::new(codex, "", ExecEnd::Exited(0)));
    assert_eq!((report.end.word(), report.exit_code), ("not logged in", None));
    let gemini =
        "Attempt 1 failed: API key not valid. Please pass a valid API key. Retrying after 500ms...\n";
    let (report, _) = cli(GeminiJson, &Canned::new("", gemini, ExecEnd::Exited(0)));
    assert_eq!((report.end.word(), report.exit_code), ("not logged in", None));
}

#[test]
fn cost_counts_only_on_list_prices() {
    let result = |basis: &str| {
        format!(
            "{{\"type\":\"result\",\"is_error\":false,\"result\":\"x\",\"total_cost_usd\":0.5,\"usage\":{{}},\"modelUsage\":{{\"a\":{{\"inputTokens\":5,\"outputTokens\":1,\"costBasis\":\"list\"}},\"b\":{{\"inputTokens\":7,\"outputTokens\":9,\"costBasis\":\"{basis}\"}}}}}}"
        )
    };
    let listed = exited(ClaudeJson, &result("list"), "", 0).usage;
    assert_eq!((listed.cost.unwrap().dollars(), listed.basis), (0.5, CostBasis::Reported));
    assert_eq!(listed.model.as_deref(), Some("b"));
    let unknown = exited(ClaudeJson, &result("unknown"), "", 0).usage;
    assert_eq!((unknown.cost, unknown.basis), (None, CostBasis::Unknown));
    assert_eq!(unknown.tokens.unwrap().input, 12);
}

#[test]
fn interrupted_session_reports_tokens_and_message() {
    let line = |id: &str, text: &str| {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"model\":\"m\",\"usage\":{{\"input_tokens\":10,\"output_tokens\":1}},\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
        )
    };
    let out = line("1", "a") + &line("2", "b") + &line("2", "c");
    let report = ended(ClaudeStreamJson, &out, "", ExecEnd::TimedOut);
    assert_eq!(report.end, SessionEnd::TimedOut);
    assert_eq!(report.final_message, "bc");
    assert_eq!(report.usage.tokens.unwrap().input, 20);
    assert_eq!(report.usage.basis, CostBasis::Unknown);
}

#[test]
fn denials_in_a_stream_count_only_when_nothing_was_done() {
    let tool = |id: &str, name: &str| {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"{id}\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"{name}\",\"input\":{{}}}}]}}}}\n"
        )
    };
    let outcome = |id: &str, error: bool| {
        format!(
            "{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"{id}\",\"is_error\":{error},\"content\":\"x\"}}]}}}}\n"
        )
    };
    let result = "{\"type\":\"result\",\"is_error\":false,\"result\":\"sorry\",\"num_turns\":9,\"permission_denials\":[{\"tool_name\":\"Write\"}]}";
    let refused =
        tool("1", "Read") + &outcome("1", false) + &tool("2", "Write") + &outcome("2", true) + result;
    let report = exited(ClaudeStreamJson, &refused, "", 0);
    assert_eq!((report.end.word(), report.final_message.as_str()), ("refused", "sorry"));
    let worked =
        tool("1", "Bash") + &outcome("1", false) + &tool("2", "Write") + &outcome("2", true) + result;
    assert_eq!(exited(ClaudeStreamJson, &worked, "", 0).end, SessionEnd::Completed);
}

#[test]
fn agent_actions_are_shown_and_recorded() {
    let claude = r#"{"type":"assistant","message":{"id":"1","content":[{"type":"tool_use","id":"t","name":"Edit","input":{"file_path":"/w/repo/src/x.rs","new_string":"LONG"}}]}}"#
        .replace("LONG", &"y".repeat(100_000));
    let (_, told) = cli(ClaudeStreamJson, &Canned::new(claude, "", ExecEnd::Exited(0)));
    assert_eq!(told.activities, ["editing src/x.rs"]);
    assert_eq!((&told.actions[0]["type"], &told.actions[0]["name"]), (&"tool_use".into(), &"Edit".into()));
    assert!(told.actions[0]["input"].to_string().len() <= 2048);

    let codex = "{\"type\":\"item.started\",\"item\":{\"id\":\"0\",\"type\":\"command_execution\",\"command\":\"/bin/bash -lc 'cargo test'\"}}
{\"type\":\"item.completed\",\"item\":{\"id\":\"0\",\"type\":\"command_execution\",\"command\":\"/bin/bash -lc 'cargo test'\",\"aggregated_output\":\"x\"}}
{\"type\":\"item.completed\",\"item\":{\"id\":\"1\",\"type\":\"file_change\",\"changes\":[{\"path\":\"/w/repo/a\",\"kind\":\"add\"},{\"path\":\"b\"}]}}
";
    let (_, told) = cli(CodexJson, &Canned::new(codex, "", ExecEnd::Exited(0)));
    assert_eq!(told.activities, ["running `cargo test`", "editing a, b"]);
    assert_eq!(told.actions.len(), 3);
    assert_eq!((&told.actions[1]["id"], &told.actions[1]["result"]), (&"0".into(), &"x".into()));

    let claude = r#"{"type":"assistant","message":{"id":"1","content":[{"type":"text","text":"Let me think."}]}}
{"type":"assistant","message":{"id":"2","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"make"}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":"no rule"}]}}"#;
    let (_, told) = cli(ClaudeStreamJson, &Canned::new(claude, "", ExecEnd::Exited(0)));
    let kinds: Vec<&str> = told.actions.iter().filter_map(|a| a["type"].as_str()).collect();
    assert_eq!(kinds, ["message", "tool_use", "result"]);
    assert_eq!((&told.actions[2]["id"], &told.actions[2]["is_error"]), (&"t".into(), &true.into()));

    let gemini = r#"{"type":"tool_use","tool_name":"run_shell_command","parameters":{"command":"ls"}}"#;
    let (_, told) = cli(GeminiJson, &Canned::new(gemini, "", ExecEnd::Exited(0)));
    assert_eq!(told.activities, ["running `ls`"]);
}

#[test]
fn the_prompt_that_gemini_repeats_is_not_its_answer() {
    let out = r#"{"type":"init","model":"g"}
{"type":"message","role":"user","content":"print <promise>COMPLETE</promise>"}
{"type":"message","role":"assistant","content":"first I look","delta":true}
{"type":"tool_use","tool_name":"read_file","parameters":{}}
{"type":"message","role":"assistant","content":"not ","delta":true}
{"type":"message","role":"assistant","content":"yet","delta":true}
{"type":"result","status":"success","stats":{"tool_calls":1}}
"#;
    let report = exited(GeminiJson, out, "", 0);
    assert_eq!((report.end.word(), report.final_message.as_str()), ("completed", "not yet"));
    assert_eq!(report.response["response"], "not yet");
}

#[test]
fn text_keeps_its_response_and_a_signal_is_a_failure() {
    let report = exited(Text, "hello\n", "warn\n", 0);
    assert_eq!(
        report.response,
        serde_json::json!({"format":"text","exit_code":0,"stdout_tail":"hello\n","stderr_tail":"warn\n","truncated":false})
    );
    assert_eq!(report.final_message, "hello\n");
    assert_eq!(report.usage.basis, CostBasis::Unknown);
    let killed = ended(Text, "hello", "", ExecEnd::Signaled(9));
    assert_eq!(killed.end.reason(), Some("the command was ended by signal 9: hello"));
}

#[test]
fn a_prompt_that_fits_no_argument_ends_before_it_starts() {
    let mut config = AgentConfig::command("x", &["x"]);
    config.command_argv.clear();
    let sandbox = Canned::new("", "", ExecEnd::Exited(0));
    let agent = ralph_loop_agents::CliAgent::new(config.clone());
    let report = play(&agent, &config, 1, &sandbox, &mut RecordingSink::default());
    assert!(report.end.reason().unwrap().contains("command_argv"));
    assert!(sandbox.asked.borrow().is_empty());
}

#[test]
fn a_person_can_end_a_session() {
    let config = AgentConfig::command("x", &["x"]);
    let agent = ralph_loop_agents::CliAgent::new(config.clone());
    let mut told = RecordingSink { stop_at: Some((2, StopCause::Cancelled)), ..RecordingSink::default() };
    let mut sandbox = Canned::new("abcdef", "", ExecEnd::Exited(0));
    sandbox.chunk = 1;
    let report = play(&agent, &config, 1, &sandbox, &mut told);
    assert_eq!(report.end, SessionEnd::Stopped { cause: StopCause::Cancelled });
    assert_eq!(report.final_message, "ab");
}
