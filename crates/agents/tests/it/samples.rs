//! The recorded output of the real CLIs with the expected results, for pieces of any size.

use crate::support::{Canned, cli};
use ralph_loop_domain::ports::{ExecEnd, SessionReport};
use ralph_loop_protocol::money::CostBasis;
use ralph_loop_task::config::OutputFormat;
use std::path::PathBuf;

const DONE: &str = "All work is finished.\n\n<promise>COMPLETE</promise>";

struct Expected {
    name: &'static str,
    word: &'static str,
    /// Part of the reason.
    reason: &'static str,
    message: &'static str,
    /// input, output, cached, cache_write.
    tokens: Option<[u64; 4]>,
    cost: Option<f64>,
    reset: Option<&'static str>,
}

const fn row(name: &'static str, word: &'static str, reason: &'static str) -> Expected {
    Expected { name, word, reason, message: "", tokens: None, cost: None, reset: None }
}

impl Expected {
    const fn says(mut self, message: &'static str) -> Self {
        self.message = message;
        self
    }
    const fn tokens(mut self, tokens: [u64; 4]) -> Self {
        self.tokens = Some(tokens);
        self
    }
    const fn cost(mut self, cost: f64) -> Self {
        self.cost = Some(cost);
        self
    }
    const fn reset(mut self, at: &'static str) -> Self {
        self.reset = Some(at);
        self
    }
}

/// An API error: nothing used, nothing paid.
const fn free(name: &'static str, word: &'static str, reason: &'static str) -> Expected {
    row(name, word, reason).tokens([0; 4]).cost(0.0)
}

const SAMPLES: &[Expected] = &[
    // Ended at the third refusal, long before the recorded result.
    row("claude-429-default", "rate limited", "rate limit 429, try 3 of 10"),
    row("claude-badtool", "completed", "").says(DONE).tokens([2400, 80, 1600, 600]).cost(0.01113),
    row("claude-budget", "ended by ralph", "").tokens([1200, 40, 800, 300]).cost(0.005565),
    row("claude-cap3", "completed", "").says(DONE).tokens([4800, 160, 3200, 1200]).cost(0.02226),
    free("claude-err-auth", "not logged in", "Invalid API key"),
    free("claude-err-credit", "no credit", "Credit balance is too low"),
    free("claude-err-nomodel", "agent failed", "issue with the selected model"),
    free("claude-err-overloaded", "provider overloaded", "529 Overloaded"),
    free("claude-err-rl429", "rate limited", "Request rejected (429)"),
    free("claude-err-toolong", "context too long", "Prompt is too long"),
    free("claude-err-usagelimit", "rate limited", "reached your usage limit"),
    row("claude-glm", "completed", "").says(DONE).tokens([3600, 120, 2400, 900]),
    row("claude-json", "completed", "").says(DONE).tokens([3600, 120, 2400, 900]).cost(0.016695),
    row("claude-maxturns1", "agent failed", "Reached maximum number of turns (1)")
        .tokens([1200, 40, 800, 300])
        .cost(0.005565),
    free("claude-nocreds", "not logged in", "Not logged in"),
    free("claude-refused", "provider not reachable", "Connection refused"),
    row("claude-streamjson", "completed", "").says(DONE).tokens([3600, 120, 2400, 900]).cost(0.016695),
    free("claude-usagelimit-oauth-json", "rate limited", "5-hour limit").reset("2026-11-15T04:02:18Z"),
    free("claude-usagelimit-oauth-stream-json", "rate limited", "5-hour limit").reset("2026-11-15T04:02:20Z"),
    row("perm-none", "refused", "2 tool uses denied (Bash, Write)")
        .says(DONE)
        .tokens([3600, 120, 2400, 900])
        .cost(0.016695),
    // qwen uses claude's array, without a price, and includes cached tokens in its input.
    row("qwen-ok", "completed", "").says(DONE).tokens([2400, 80, 1600, 0]),
    row("opencode-ok", "completed", "").says(DONE).tokens([3600, 120, 2400, 900]).cost(0.016695),
    // It waited for a Retry-After until it was killed: the last event was the limit.
    row("codex-429-long", "rate limited", "429 Too Many Requests"),
    row("codex-err-auth", "not logged in", "401 Unauthorized"),
    row("codex-err-overloaded", "provider overloaded", "529"),
    row("codex-err-quota", "rate limited", "Quota exceeded"),
    row("codex-err-rl429", "rate limited", "last status: 429"),
    row("codex-err-streamcut", "provider overloaded", "stream disconnected"),
    row("codex-err-toolong", "context too long", "Your input exceeds the context window"),
    row("codex-err-unavail", "provider overloaded", "at capacity"),
    row("codex-err-usagelimit", "rate limited", "hit your usage limit"),
    row("codex-ok2", "completed", "").says(DONE).tokens([3600, 120, 2400, 0]),
    row("codex-refused", "provider not reachable", "waiting for network"),
    row("gemini-err-auth", "not logged in", "invalid authentication credentials"),
    row("gemini-err-overloaded", "provider overloaded", "The model is overloaded"),
    row("gemini-err-quota", "rate limited", "Resource has been exhausted"),
    row("gemini-err-rl429", "rate limited", "exceeded your current quota").reset("2026-11-15T03:00:03.5Z"),
    row("gemini-err-unavail", "provider overloaded", "The model is overloaded"),
    row("gemini-err-usagelimit", "rate limited", "exhausted your daily quota"),
    row("gemini-loop", "agent failed", "Loop detected").tokens([4800, 192, 3200, 0]),
    row("gemini-ok", "completed", "").says(DONE).tokens([3600, 144, 2400, 0]),
    row("gemini-stream", "completed", "").says(DONE).tokens([3600, 144, 2400, 0]),
    row("gemini-stream-429", "rate limited", "exceeded your current quota")
        .tokens([0; 4])
        .reset("2026-11-15T03:00:03.5Z"),
    row("gemini-untrusted", "agent failed", "--skip-trust"),
];

fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/cli-samples");
    if !folder.is_dir() {
        println!("skipped: ../shared is not here");
        return None;
    }
    Some(folder)
}

fn format_of(name: &str) -> OutputFormat {
    match name.split('-').next() {
        Some("codex") => OutputFormat::CodexJson,
        Some("gemini") => OutputFormat::GeminiJson,
        Some("opencode") => OutputFormat::OpencodeJson,
        Some("qwen") => OutputFormat::QwenJson,
        _ => OutputFormat::ClaudeStreamJson,
    }
}

fn read(folder: &std::path::Path, name: &str, chunk: usize) -> SessionReport {
    let bytes = |ending: &str| std::fs::read(folder.join(format!("{name}.{ending}"))).unwrap_or_default();
    let meta = String::from_utf8(bytes("meta")).unwrap();
    let code = meta.split_whitespace().find_map(|word| word.strip_prefix("rc=")).unwrap().parse().unwrap();
    let mut sandbox = Canned::new(bytes("out"), bytes("err"), ExecEnd::Exited(code));
    sandbox.chunk = chunk;
    cli(format_of(name), &sandbox).0
}

#[test]
fn every_sample_is_read_as_what_it_is_in_pieces_of_any_size() {
    let Some(folder) = folder() else { return };
    let mut wrong = Vec::new();
    for expected in SAMPLES {
        for chunk in [1, 7, 4096] {
            if let Err(why) = check(expected, &read(&folder, expected.name, chunk)) {
                wrong.push(format!("{} in pieces of {chunk}: {why}", expected.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check(expected: &Expected, report: &SessionReport) -> Result<(), String> {
    let reason = report.end.reason().unwrap_or_default();
    if report.end.word() != expected.word || !reason.contains(expected.reason) {
        return Err(format!("{:?}", report.end));
    }
    if report.final_message != expected.message {
        return Err(format!("said {:?}", report.final_message));
    }
    let tokens = report.usage.tokens.map(|t| [t.input, t.output, t.cached, t.cache_write]);
    let cost = report.usage.cost.map(|usd| (usd.dollars() * 1e6).round() / 1e6);
    if tokens != expected.tokens || cost != expected.cost {
        return Err(format!("{:?}", report.usage));
    }
    if report.usage.basis != if cost.is_some() { CostBasis::Reported } else { CostBasis::Unknown } {
        return Err(format!("{:?}", report.usage.basis));
    }
    let reset = match &report.end {
        ralph_loop_protocol::event::SessionEnd::RateLimited { reset_at, .. } => {
            reset_at.map(|at| at.to_string())
        }
        _ => None,
    };
    // Clock times without a zone depend on the machine's.
    if expected.name != "codex-err-usagelimit" && reset.as_deref() != expected.reset {
        return Err(format!("resets at {reset:?}"));
    }
    Ok(())
}

#[test]
fn every_sample_is_tested() {
    let Some(folder) = folder() else { return };
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".meta") else { continue };
        if ["claude", "codex", "gemini", "opencode", "qwen"].iter().any(|cli| name.starts_with(cli)) {
            assert!(SAMPLES.iter().any(|sample| sample.name == name), "{name} has no row");
        }
    }
}

#[test]
fn every_sample_renders_as_readable_text() {
    let Some(folder) = folder() else { return };
    let readable = |name: &str, chunk: usize| {
        let bytes = |ending: &str| std::fs::read(folder.join(format!("{name}.{ending}"))).unwrap_or_default();
        // A session's log holds both streams.
        let log = [bytes("err"), bytes("out")].concat();
        let mut reader =
            ralph_loop_agents::cli::ReadableOutput::new(format_of(name), std::path::Path::new("/"));
        let mut text: String = log.chunks(chunk).map(|piece| reader.push(piece)).collect();
        text.push_str(&reader.finish());
        text
    };
    for sample in SAMPLES {
        let text = readable(sample.name, 4096);
        assert_eq!(text, readable(sample.name, 7), "{}", sample.name);
        let data = text.lines().filter(|line| line.starts_with("{\"")).count();
        assert_eq!(data, 0, "{} shows data:\n{text}", sample.name);
        if sample.word == "completed" {
            assert!(text.contains(sample.message.trim()), "{} lost its message:\n{text}", sample.name);
        }
    }
    for name in ["claude-streamjson", "codex-ok2", "gemini-stream", "opencode-ok", "qwen-ok"] {
        let text = readable(name, 4096);
        assert!(text.lines().any(|line| line.starts_with("> ")), "{name} shows no tool call:\n{text}");
    }
}
