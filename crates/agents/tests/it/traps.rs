//! One test for every trap seen in real CLIs, with their original texts.

use crate::support::{Canned, RecordingSink, cli, play};
use OutputFormat::{ClaudeJson, ClaudeStreamJson, CodexJson, GeminiJson, OpencodeJson, QwenJson};
use ralph_loop_agents::CliAgent;
use ralph_loop_domain::ports::{ExecEnd, SessionReport, StopCause};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::CostBasis;
use ralph_loop_task::config::{AgentConfig, OutputFormat};
use std::time::Duration;

/// An agent's own text when it works on such errors.
const QUOTE: &str =
    "Fixed: 429 rate limit reached, try again in 5 minutes. Invalid API key. Overloaded. [API Error: 401 no]";

fn exited(format: OutputFormat, stdout: &str, stderr: &str, code: i32) -> SessionReport {
    cli(format, &Canned::new(stdout, stderr, ExecEnd::Exited(code))).0
}

fn word(format: OutputFormat, stdout: &str, stderr: &str, code: i32) -> &'static str {
    exited(format, stdout, stderr, code).end.word()
}

#[test]
fn an_agent_may_quote_any_error_in_its_own_words() {
    let quote = serde_json::to_string(QUOTE).unwrap();
    let table = [
        (
            ClaudeJson,
            format!(
                r#"{{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":{quote}}}"#
            ),
        ),
        (
            CodexJson,
            format!(
                "{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":{quote}}}}}\n{{\"type\":\"turn.completed\",\"usage\":{{}}}}\n"
            ),
        ),
        (
            GeminiJson,
            format!(
                "{{\"type\":\"message\",\"role\":\"assistant\",\"content\":{quote}}}\n{{\"type\":\"result\",\"status\":\"success\"}}\n"
            ),
        ),
        (
            OpencodeJson,
            format!(
                "{{\"type\":\"text\",\"part\":{{\"messageID\":\"m\",\"text\":{quote}}}}}\n{{\"type\":\"step_finish\",\"part\":{{\"reason\":\"stop\"}}}}\n"
            ),
        ),
        (
            QwenJson,
            format!(
                "[{{\"type\":\"assistant\",\"message\":{{\"id\":\"1\",\"content\":[{{\"type\":\"text\",\"text\":{quote}}}],\"usage\":{{\"output_tokens\":40}}}}}},{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":{quote},\"num_turns\":1}}]"
            ),
        ),
    ];
    for (format, stdout) in table {
        let report = exited(format, &stdout, QUOTE, 0);
        assert_eq!(report.end, SessionEnd::Completed, "{format:?}");
        assert_eq!(report.final_message, QUOTE, "{format:?}");
    }
}

#[test]
fn no_terminal_event_is_a_failure_whatever_the_exit_code() {
    let begun = [
        (ClaudeStreamJson, "{\"type\":\"system\",\"subtype\":\"init\"}\n"),
        (CodexJson, "{\"type\":\"turn.started\"}\n"),
        (GeminiJson, "{\"type\":\"init\"}\n"),
        (OpencodeJson, "{\"type\":\"step_finish\",\"part\":{\"reason\":\"tool-calls\"}}\n"),
        (QwenJson, "{\"type\":\"system\",\"subtype\":\"init\"}\n"),
    ];
    for (format, stdout) in begun {
        // SIGTERM makes gemini exit with 0, and claude and codex with 143.
        for code in [0, 1, 143] {
            assert_eq!(word(format, stdout, "", code), "ended without a result", "{format:?} {code}");
        }
    }
}

#[test]
fn claude_as_root_gets_the_sandbox_variable() {
    let stderr =
        "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons";
    let report = exited(ClaudeStreamJson, "", stderr, 1);
    assert_eq!(report.end, SessionEnd::Failed { reason: stderr.into() });
    let config = AgentConfig { output_format: ClaudeStreamJson, ..AgentConfig::command("c", &["claude"]) };
    for as_root in [true, false] {
        let sandbox = Canned::new("", "", ExecEnd::Exited(0));
        let agent = CliAgent::new(config.clone()).running_as_root(as_root);
        play(&agent, &config, 1, &sandbox, &mut RecordingSink::default());
        let told = sandbox.asked.borrow()[0].env.contains(&("IS_SANDBOX".into(), "1".into()));
        assert_eq!(told, as_root);
    }
}

#[test]
fn claude_stream_json_without_verbose_says_so() {
    let stderr = "Error: When using --print, --output-format=stream-json requires --verbose";
    assert_eq!(exited(ClaudeStreamJson, "", stderr, 1).end.reason(), Some(stderr));
    let preset = ralph_loop_agents::presets::preset("claude").unwrap();
    assert!(preset.command_argv.iter().any(|arg| arg == "--verbose"));
}

#[test]
fn claude_answers_as_an_object_an_array_or_lines() {
    let init = r#"{"type":"system","subtype":"init","model":"m"}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"hi","num_turns":1,"usage":{"input_tokens":7}}"#;
    for stdout in [result.to_owned(), format!("[{init},{result}]\n"), format!("{init}\n{result}\n")] {
        let report = exited(ClaudeJson, &stdout, "", 0);
        assert_eq!((report.end, report.final_message.as_str()), (SessionEnd::Completed, "hi"));
        assert_eq!(report.usage.tokens.unwrap().input, 7);
    }
}

#[test]
fn claude_turn_and_money_limits_are_not_success() {
    let turns = r#"{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["Reached maximum number of turns (1)"]}"#;
    assert_eq!(exited(ClaudeJson, turns, "", 1).end.reason(), Some("Reached maximum number of turns (1)"));
    let money = r#"{"type":"result","subtype":"error_max_budget_usd","is_error":true,"terminal_reason":"budget_exhausted"}"#;
    assert_eq!(exited(ClaudeJson, money, "", 1).end, SessionEnd::Stopped { cause: StopCause::Budget });
}

#[test]
fn claude_says_success_on_errors_and_refusals() {
    let row = |more: &str| format!(r#"{{"type":"result","subtype":"success","is_error":true,{more}}}"#);
    let table = [
        (r#""api_error_status":429,"result":"API Error: Request rejected (429)""#, "rate limited"),
        (
            r#""api_error_status":null,"api_error":"usage_limit_reached","result":"You've hit your 5-hour limit""#,
            "rate limited",
        ),
        (r#""api_error_status":401,"result":"Invalid API key · Fix external API key""#, "not logged in"),
        (r#""api_error_status":null,"result":"Not logged in · Please run /login""#, "not logged in"),
        (r#""api_error_status":400,"result":"Credit balance is too low""#, "no credit"),
        (r#""api_error_status":529,"result":"API Error: 529 Overloaded""#, "provider overloaded"),
        (
            r#""api_error_status":null,"result":"API Error: Connection refused (ECONNREFUSED)""#,
            "provider not reachable",
        ),
        (
            r#""api_error_status":400,"terminal_reason":"prompt_too_long","result":"Prompt is too long · x""#,
            "context too long",
        ),
        (r#""api_error_status":404,"result":"There's an issue with the selected model""#, "agent failed"),
        (
            r#""api_error_status":null,"stop_reason":"refusal","result":"API Error: Sonnet 4.5 can't help with this.""#,
            "refused",
        ),
    ];
    for (more, expected) in table {
        let report = exited(ClaudeJson, &row(more), "", 1);
        assert_eq!((report.end.word(), report.final_message.as_str()), (expected, ""), "{more}");
    }
}

#[test]
fn claude_interrupted_exits_with_0_and_is_not_success() {
    let stdout = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming"}"#;
    let reason = exited(ClaudeJson, stdout, "", 0).end;
    assert_eq!(reason.reason(), Some("error_during_execution (aborted_streaming)"));
}

#[test]
fn claude_denials_with_nothing_written_are_a_refusal() {
    let stdout = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","num_turns":3,"permission_denials":[{"tool_name":"Write"},{"tool_name":"Bash"}]}"#;
    let end = exited(ClaudeJson, stdout, "", 0).end;
    assert_eq!(end.word(), "refused");
    assert!(end.reason().unwrap().contains("2 tool uses denied (Bash, Write)"), "{end:?}");
}

#[test]
fn claude_prices_of_unknown_models_are_not_believed() {
    let stdout = r#"{"type":"result","is_error":false,"result":"x","total_cost_usd":0.02178,"usage":{},"modelUsage":{"glm-4.7":{"inputTokens":5,"costBasis":"unknown"}}}"#;
    let usage = exited(ClaudeJson, stdout, "", 0).usage;
    assert_eq!((usage.cost, usage.basis), (None, CostBasis::Unknown));
    assert_eq!(usage.model.as_deref(), Some("glm-4.7"));
}

/// Plays these outputs in order with the same agent; returns dollars and input tokens of each.
fn sessions(format: OutputFormat, outputs: &[String]) -> Vec<(f64, u64)> {
    let config = AgentConfig { output_format: format, ..AgentConfig::command("x", &["x"]) };
    let agent = CliAgent::new(config.clone());
    let one = |stdout: &String| {
        let sandbox = Canned::new(stdout.as_str(), "", ExecEnd::Exited(0));
        let usage = play(&agent, &config, 1, &sandbox, &mut RecordingSink::default()).usage;
        (usage.cost.unwrap_or_default().dollars(), usage.tokens.unwrap().input)
    };
    outputs.iter().map(one).collect()
}

#[test]
fn claude_totals_accumulate_over_a_resumed_session() {
    let result = |session: &str, cost: f64, input: u32| {
        format!(
            r#"{{"type":"result","is_error":false,"result":"x","session_id":"{session}","total_cost_usd":{cost},"usage":{{}},"modelUsage":{{"m":{{"inputTokens":{input},"costBasis":"list"}}}}}}"#
        )
    };
    let outputs = [result("a", 0.005565, 1200), result("a", 0.01113, 2400), result("b", 0.01113, 2400)];
    assert_eq!(sessions(ClaudeJson, &outputs), [(0.005565, 1200), (0.005565, 1200), (0.01113, 2400)]);
}

#[test]
fn codex_totals_accumulate_and_input_includes_cached() {
    let turn = |input: u32, cached: u32| {
        format!(
            "{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}\n{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"x\"}}}}\n{{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":{input},\"cached_input_tokens\":{cached}}}}}\n"
        )
    };
    assert_eq!(sessions(CodexJson, &[turn(2000, 800), turn(4000, 1600)]), [(0.0, 1200), (0.0, 1200)]);
}

#[test]
fn codex_writes_two_apostrophes() {
    for apostrophe in ["'", "\u{2019}"] {
        let stdout = format!(
            "{{\"type\":\"turn.failed\",\"error\":{{\"message\":\"You{apostrophe}ve hit your usage limit. Upgrade, or try again in 2 hours.\"}}}}"
        );
        let end = exited(CodexJson, &stdout, "", 1).end;
        let SessionEnd::RateLimited { reset_at: Some(at), .. } = &end else { panic!("{end:?}") };
        assert_eq!(at.to_string(), "2026-11-15T05:00:02Z");
    }
}

#[test]
fn codex_warns_about_an_unknown_model_and_continues() {
    let stdout = "{\"type\":\"item.completed\",\"item\":{\"type\":\"error\",\"message\":\"Model metadata for gpt-5 not found\"}}
{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"done\"}}
{\"type\":\"turn.completed\",\"usage\":{}}\n";
    assert_eq!(word(CodexJson, stdout, "", 0), "completed");
}

#[test]
fn codex_without_a_network_is_ended_early() {
    let line = "{\"type\":\"error\",\"message\":\"Reconnecting... waiting for network (Connection failed: error sending request)\"}\n";
    let report = exited(CodexJson, &line.repeat(3), "", 0);
    assert_eq!((report.end.word(), report.exit_code), ("provider not reachable", None));
    let after = format!(
        "{}{{\"type\":\"item.completed\",\"item\":{{\"type\":\"agent_message\",\"text\":\"x\"}}}}\n{line}{{\"type\":\"turn.completed\"}}\n",
        line.repeat(2)
    );
    assert_eq!(exited(CodexJson, &after, "", 0).exit_code, Some(0), "a short gap is nothing");
}

#[test]
fn codex_does_not_wait_for_a_long_retry_after() {
    let line = |of: u32| {
        format!(
            "{{\"type\":\"error\",\"message\":\"Reconnecting... 1/{of} (exceeded retry limit, last status: 429 Too Many Requests, request id: r)\"}}\n"
        )
    };
    // Its last try.
    let report = exited(CodexJson, &line(1), "", 0);
    assert_eq!((report.end.word(), report.exit_code), ("rate limited", None));
    // More would follow, but silence does.
    let config = AgentConfig { output_format: CodexJson, ..AgentConfig::command("x", &["x"]) };
    for (silence_limit, code) in [(Duration::ZERO, None), (Duration::from_secs(3600), Some(0))] {
        let agent = CliAgent::new(config.clone()).with_silence_limit(silence_limit);
        let sandbox = Canned::new(line(5), "", ExecEnd::Exited(0));
        let report = play(&agent, &config, 1, &sandbox, &mut RecordingSink::default());
        assert_eq!((report.end.word(), report.exit_code), ("rate limited", code));
    }
}

#[test]
fn gemini_exits_with_the_status_mod_256() {
    let table = [
        (173, "rate limited"),
        (145, "not logged in"),
        (147, "not logged in"),
        (244, "provider overloaded"),
        (247, "provider overloaded"),
        (17, "provider overloaded"),
        (41, "not logged in"),
        (55, "agent failed"),
    ];
    for (code, expected) in table {
        assert_eq!(word(GeminiJson, "", "", code), expected, "{code}");
    }
    assert!(exited(GeminiJson, "", "", 55).end.reason().unwrap().contains("--skip-trust"));
}

#[test]
fn gemini_leaves_stdout_empty_and_its_error_on_stderr() {
    let stderr = "YOLO mode is enabled.\n    at x (file:1:2) {\n  status: 429\n}\n{\n  \"session_id\": \"s\",\n  \"error\": {\n    \"type\": \"Error\",\n    \"message\": \"You exceeded your current quota. Suggested retry after 7s.\",\n    \"code\": 429\n  }\n}\n";
    let end = exited(GeminiJson, "", stderr, 173).end;
    let SessionEnd::RateLimited { reset_at: Some(at), .. } = &end else { panic!("{end:?}") };
    assert_eq!(at.to_string(), "2026-11-15T03:00:09Z");
}

#[test]
fn gemini_splits_the_promise_over_deltas() {
    let stdout = "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"Done.\\n\\n<p\",\"delta\":true}
{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"romise>COMPLETE</promise>\",\"delta\":true}
{\"type\":\"result\",\"status\":\"success\",\"stats\":{\"models\":{\"g\":{\"tokens\":{\"prompt\":2000,\"cached\":800,\"candidates\":40,\"total\":2048}}}}}\n";
    let report = exited(GeminiJson, stdout, "", 0);
    assert!(ralph_loop_domain::text::claim::promises(&report.final_message, "COMPLETE"));
    let tokens = report.usage.tokens.unwrap();
    assert_eq!((tokens.input, tokens.cached, tokens.output), (1200, 800, 48), "the prompt holds the cached");
}

#[test]
fn gemini_loop_detection_is_not_success() {
    let stdout = r#"{"session_id":"s","response":"","stats":{"models":{}},"warnings":["Loop detected, stopping execution"]}"#;
    assert_eq!(exited(GeminiJson, stdout, "", 0).end.reason(), Some("Loop detected, stopping execution"));
}

#[test]
fn gemini_reports_retries_on_stderr() {
    let attempt = |n: u32, wait: u32| {
        format!(
            "Attempt {n} failed: You exceeded your current quota, please check your plan and billing details.\nSuggested retry after 1s.. Retrying after {wait}ms...\n"
        )
    };
    let ended = |stderr: String| {
        let mut sandbox = Canned::new("{\"type\":\"init\"}\n", stderr, ExecEnd::Exited(0));
        sandbox.chunk = 50;
        let (report, told) = cli(GeminiJson, &sandbox);
        (report.end.word(), report.exit_code, told.activities.len())
    };
    assert_eq!(
        ended(attempt(1, 5258) + &attempt(2, 9000)),
        ("rate limited", Some(0), 2),
        "its own short waits"
    );
    assert_eq!(ended(attempt(1, 5258) + &attempt(2, 9000) + &attempt(3, 9000)).1, None, "the third refusal");
    assert_eq!(ended(attempt(1, 3_600_000)).1, None, "an hour");
    let busy = "Attempt 4 failed with status 529. Retrying with backoff... _ApiError: overloaded\n";
    assert_eq!(ended(busy.to_owned()).0, "provider overloaded");
}

#[test]
fn opencode_reports_tokens_and_cost_per_step() {
    let step = |reason: &str| {
        format!(
            "{{\"type\":\"step_finish\",\"part\":{{\"reason\":\"{reason}\",\"tokens\":{{\"input\":1200,\"output\":40,\"reasoning\":2,\"cache\":{{\"write\":300,\"read\":800}}}},\"cost\":0.005565}}}}\n"
        )
    };
    let stdout = format!(
        "{{\"type\":\"tool_use\",\"part\":{{\"tool\":\"write\",\"state\":{{\"status\":\"completed\",\"input\":{{\"filePath\":\"/w/repo/a\"}}}}}}}}\n{}{{\"type\":\"step_start\",\"part\":{{}}}}\n{{\"type\":\"text\",\"part\":{{\"messageID\":\"m\",\"text\":\"done\"}}}}\n{}",
        step("tool-calls"),
        step("stop")
    );
    let (report, told) = cli(OpencodeJson, &Canned::new(stdout, "", ExecEnd::Exited(0)));
    assert_eq!((report.end, report.final_message.as_str()), (SessionEnd::Completed, "done"));
    let tokens = report.usage.tokens.unwrap();
    assert_eq!([tokens.input, tokens.output, tokens.cached, tokens.cache_write], [2400, 84, 1600, 600]);
    assert_eq!((report.usage.cost.unwrap().dollars(), report.usage.basis), (0.01113, CostBasis::Reported));
    assert_eq!(told.activities, ["editing a"]);
}

#[test]
fn opencode_errors_have_a_name_and_a_status() {
    let error = |name: &str, message: &str, status: &str| {
        format!(
            "{{\"type\":\"error\",\"error\":{{\"name\":\"{name}\",\"data\":{{\"message\":\"{message}\",{status}\"isRetryable\":false,\"responseHeaders\":{{\"retry-after\":\"30\"}}}}}}}}\n"
        )
    };
    let table = [
        (
            "APIError",
            "This request would exceed your account's rate limit.",
            "\"statusCode\":429,",
            "rate limited",
        ),
        ("APIError", "invalid x-api-key", "\"statusCode\":401,", "not logged in"),
        ("ProviderAuthError", "no key", "", "not logged in"),
        (
            "APIError",
            "Your credit balance is too low to access the Anthropic API.",
            "\"statusCode\":400,",
            "no credit",
        ),
        ("APIError", "Overloaded", "\"statusCode\":529,", "provider overloaded"),
        ("APIError", "Cannot connect to API: Unable to connect.", "", "provider not reachable"),
        ("ContextOverflowError", "prompt is too long", "", "context too long"),
        ("APIError", "model: nope", "\"statusCode\":404,", "agent failed"),
    ];
    for (name, message, status, expected) in table {
        assert_eq!(word(OpencodeJson, &error(name, message, status), "", 1), expected, "{message}");
    }
    let SessionEnd::RateLimited { reset_at, .. } =
        exited(OpencodeJson, &error("APIError", "slow down", "\"statusCode\":429,"), "", 1).end
    else {
        panic!()
    };
    assert_eq!(reset_at.unwrap().to_string(), "2026-11-15T03:00:32Z");
}

#[test]
fn qwen_reports_errors_as_answers() {
    let told = |text: &str, output: u32| {
        format!(
            "{{\"type\":\"assistant\",\"message\":{{\"id\":\"1\",\"model\":\"q\",\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"usage\":{{\"input_tokens\":0,\"output_tokens\":{output}}}}}}}\n{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"num_turns\":1,\"result\":\"{text}\",\"usage\":{{\"input_tokens\":0,\"output_tokens\":{output}}}}}\n"
        )
    };
    let table = [
        ("[API Error: 401 invalid x-api-key]", "not logged in"),
        ("[API Error: 429 Rate limit reached]\\nPlease wait and try again later.", "rate limited"),
        ("[API Error: 400 Your credit balance is too low]", "no credit"),
        ("[API Error: 400 prompt is too long: 250000 tokens > 200000 maximum]", "context too long"),
        ("[API Error: 503 Service unavailable]", "provider overloaded"),
        ("half an ans[API Error: Model stream ended without a finish reason.]", "provider overloaded"),
        ("[API Error: 404 model: nope]", "agent failed"),
    ];
    for (text, expected) in table {
        let report = exited(QwenJson, &told(text, 0), "", 0);
        assert_eq!((report.end.word(), report.final_message.as_str()), (expected, ""), "{text}");
        assert_eq!(word(QwenJson, &told(text, 12), "", 0), "completed", "a model said it: {text}");
    }
}

#[test]
fn qwen_input_includes_cached_tokens() {
    let stdout = r#"[{"type":"result","subtype":"success","is_error":false,"result":"x","num_turns":1,"usage":{"input_tokens":4000,"output_tokens":80,"cache_read_input_tokens":1600}}]"#;
    let tokens = exited(QwenJson, stdout, "", 0).usage.tokens.unwrap();
    assert_eq!((tokens.input, tokens.cached), (2400, 1600));
}

#[test]
fn requested_model_counts_if_the_cli_names_none() {
    let config = AgentConfig {
        output_format: CodexJson,
        model: Some("gpt-5.5".into()),
        ..AgentConfig::command("x", &["x"])
    };
    let sandbox =
        Canned::new("{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":1}}", "", ExecEnd::Exited(0));
    let report = play(&CliAgent::new(config.clone()), &config, 1, &sandbox, &mut RecordingSink::default());
    assert_eq!(report.usage.model.as_deref(), Some("gpt-5.5"));
}
