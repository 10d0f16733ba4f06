//! Interprets claude's result event. Its `subtype` says "success" even on API errors, so it isn't trusted alone.

use crate::cli::parser::{ProcessClose, REASON_MAX, failed_after_success};
use crate::cli::words;
use crate::limits;
use ralph_loop_domain::ports::StopCause;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::{CostBasis, Tokens, Usage, Usd};
use serde_json::Value;

/// What the events showed before the result.
#[derive(Default)]
pub(in crate::cli) struct StreamFacts {
    /// Whether any event of the format was seen.
    pub(in crate::cli) started: bool,
    pub(in crate::cli) tools: u64,
    /// Tool uses that can change something and didn't fail.
    pub(in crate::cli) acted: u64,
    /// The agent's last text.
    pub(in crate::cli) said: String,
    pub(in crate::cli) model: Option<String>,
    /// Tokens counted by message: a lower bound, for sessions that end without a result.
    pub(in crate::cli) tokens: Tokens,
    pub(in crate::cli) last_output: u64,
    /// The plan's limit rejected a request.
    pub(in crate::cli) rejected: bool,
    /// When it resets, in epoch seconds.
    pub(in crate::cli) resets_at: Option<i64>,
}

/// The end that a result event means.
pub(in crate::cli) fn judge(
    result: &Value,
    message: &str,
    seen: &StreamFacts,
    close: &ProcessClose<'_>,
) -> SessionEnd {
    let subtype = result["subtype"].as_str().unwrap_or_default();
    if result["is_error"] != true && !subtype.starts_with("error") {
        return judge_success(result, message, seen, close);
    }
    let words = match result["result"].as_str() {
        Some(words) if !words.trim().is_empty() => words.to_owned(),
        _ => errors(result),
    };
    let reason = text::one_line(if words.is_empty() { subtype } else { &words }, REASON_MAX);
    let terminal = result["terminal_reason"].as_str().unwrap_or_default();
    let status = result["api_error_status"].as_u64().and_then(|status| u16::try_from(status).ok());
    if subtype == "error_max_budget_usd" || terminal == "budget_exhausted" {
        return SessionEnd::Stopped { cause: StopCause::Budget };
    }
    if result["stop_reason"] == "refusal" {
        // The provider's word for it is in `result`, marked as an API error without a status.
        return SessionEnd::Refused { reason };
    }
    if subtype == "error_max_turns" {
        return SessionEnd::Failed { reason };
    }
    if terminal == "prompt_too_long" {
        return SessionEnd::ContextTooLong { reason };
    }
    if status == Some(429) || result["api_error"] == "usage_limit_reached" || seen.rejected {
        let reset_at = seen.reset_at(close.now).or_else(|| limits::reset_time(&words, close.now));
        return SessionEnd::RateLimited { reset_at, reason };
    }
    if result["api_error"] == "connection_failed" {
        // Also for a connection that was lost.
        return match words::classify(&words, status, close) {
            end @ SessionEnd::Overloaded { .. } => end,
            _ => SessionEnd::Unreachable { reason },
        };
    }
    if subtype.starts_with("error") && status.is_none() {
        // An error of the CLI itself; its list of errors isn't the provider's message.
        let why = if terminal.is_empty() { subtype.to_owned() } else { format!("{subtype} ({terminal})") };
        let reason = if words.is_empty() { why } else { format!("{why}: {words}") };
        return SessionEnd::Failed { reason: text::one_line(&reason, REASON_MAX) };
    }
    words::classify(&words, status, close)
}

fn judge_success(result: &Value, message: &str, seen: &StreamFacts, close: &ProcessClose<'_>) -> SessionEnd {
    if result["stop_reason"] == "refusal" {
        return SessionEnd::Refused { reason: text::one_line(message, REASON_MAX) };
    }
    let turns = result["num_turns"].as_u64().unwrap_or(0);
    let denied = result["permission_denials"].as_array().map_or(&[][..], Vec::as_slice);
    // Without the stream, every turn except the last has tool uses.
    let nothing_done =
        if seen.tools > 0 { seen.acted == 0 } else { denied.len() as u64 >= turns.saturating_sub(1) };
    if !denied.is_empty() && nothing_done {
        return SessionEnd::Refused { reason: denials(denied) };
    }
    if let Some(failed) = failed_after_success(close.exec) {
        return failed;
    }
    if message.trim().is_empty() && seen.tools == 0 && turns <= 1 {
        return SessionEnd::Empty;
    }
    SessionEnd::Completed
}

fn denials(denied: &[Value]) -> String {
    let mut tools: Vec<&str> = denied.iter().filter_map(|denial| denial["tool_name"].as_str()).collect();
    tools.sort_unstable();
    tools.dedup();
    let what = text::count(denied.len(), "tool use");
    let reason = format!(
        "{what} denied ({}) and nothing done: headless, the CLI needs `--dangerously-skip-permissions` or allowed tools",
        tools.join(", ")
    );
    text::one_line(&reason, REASON_MAX)
}

fn errors(result: &Value) -> String {
    let list = result["errors"].as_array().map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("; ")
}

/// Tokens and cost. `modelUsage` includes subagents and side calls that `usage` lacks; its cost is real only if
/// claude's price list has every model.
pub(in crate::cli) fn usage(result: Option<&Value>, seen: &StreamFacts) -> Usage {
    let Some(result) = result else {
        return Usage { tokens: seen.partial_tokens(), model: seen.model.clone(), ..Usage::unknown() };
    };
    let models = result["modelUsage"].as_object();
    let mut tokens = Tokens::default();
    let mut main: Option<(&String, u64)> = None;
    // Without information on models or prices, the number counts as the list's.
    let mut listed = true;
    for (name, used) in models.into_iter().flatten() {
        let count = |key: &str| used[key].as_u64().unwrap_or(0);
        let output = count("outputTokens");
        tokens += Tokens {
            input: count("inputTokens"),
            output,
            cached: count("cacheReadInputTokens"),
            cache_write: count("cacheCreationInputTokens"),
        };
        if main.is_none_or(|(_, most)| output > most) {
            main = Some((name, output));
        }
        listed &= used.get("costBasis").is_none_or(|basis| basis == "list");
    }
    if main.is_none() {
        tokens = tokens_of(&result["usage"]);
    }
    let cost = result["total_cost_usd"].as_f64().filter(|cost| listed && *cost >= 0.0).map(Usd::from_dollars);
    Usage {
        saved: None,
        tokens: result.get("usage").or(result.get("modelUsage")).map(|_| tokens),
        cost,
        basis: if cost.is_some() { CostBasis::Reported } else { CostBasis::Unknown },
        model: main.map(|(name, _)| name.clone()).or_else(|| seen.model.clone()),
    }
}

pub(in crate::cli) fn tokens_of(usage: &Value) -> Tokens {
    let count = |key: &str| usage[key].as_u64().unwrap_or(0);
    Tokens {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cached: count("cache_read_input_tokens"),
        cache_write: count("cache_creation_input_tokens"),
    }
}
