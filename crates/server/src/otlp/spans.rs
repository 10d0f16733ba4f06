//! Converts a run's record to spans.

use jiff::{SignedDuration, Timestamp};
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::trust::repo_file;
use ralph_loop_protocol::event::Verdict;
use ralph_loop_protocol::id::Digest;
use ralph_loop_protocol::money::receipt::Receipt;
use ralph_loop_protocol::money::{Cost, Usd};
use ralph_loop_protocol::outcome::EndReason;
use serde_json::{Value, json};
use std::time::Duration;

/// Span kinds and statuses as numbered by the protocol.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const OK: u8 = 1;
const ERROR: u8 = 2;

/// A run's spans: iterations after `from`, and the whole run once it is over.
pub(super) fn of(reading: &RunSnapshot, from: u32) -> Vec<Value> {
    let state = &reading.state;
    let run = reading.entry.run_id.as_str();
    let trace = Trace { run, id: hex(run, 32), root: hex(&format!("{run}/run"), 16) };
    let dir = reading.entry.run_dir();
    let receipts = (from + 1..=state.iterations.count).filter_map(|number| {
        let bytes = repo_file::read_record(&dir.iteration(number).join("receipt.json")).ok()?;
        serde_json::from_slice::<Receipt>(&bytes).ok()
    });
    let mut spans: Vec<Value> = receipts.flat_map(|receipt| trace.iteration(&receipt)).collect();
    if let Some(end) = &state.result.finished {
        let totals = &state.spending.totals;
        spans.push(json!({
            "traceId": trace.id,
            "spanId": trace.root,
            "name": "invoke_agent ralph",
            "kind": INTERNAL,
            "startTimeUnixNano": nanos(state.started_at),
            "endTimeUnixNano": nanos(end.at),
            "attributes": attributes(&[
                ("gen_ai.operation.name", "invoke_agent".into()),
                ("gen_ai.provider.name", "ralph".into()),
                ("gen_ai.agent.name", "ralph".into()),
                ("gen_ai.conversation.id", run.into()),
                ("gen_ai.usage.input_tokens", totals.tokens.known().map(|tokens| tokens.input).into()),
                ("gen_ai.usage.output_tokens", totals.tokens.known().map(|tokens| tokens.output).into()),
                ("ralph.run.id", run.into()),
                ("ralph.run.status", state.status().as_str().into()),
                ("ralph.run.iterations", state.iterations.count.into()),
                ("ralph.run.cost_usd", dollars(totals.cost)),
                ("ralph.run.title", state.spec.task.title.as_str().into()),
            ]),
            "status": { "code": if end.reason == EndReason::Completed { OK } else { ERROR }, "message": end.summary },
        }));
    }
    spans
}

/// A run's trace. Its ids derive from the run's, so that repeated exports are identical.
struct Trace<'a> {
    run: &'a str,
    id: String,
    root: String,
}

impl Trace<'_> {
    fn iteration(&self, receipt: &Receipt) -> Vec<Value> {
        let number = receipt.iteration;
        let id = hex(&format!("{}/{number}", self.run), 16);
        let model = receipt.model.as_deref().unwrap_or("unknown");
        let provider = model.split_once('/').map_or(receipt.agent.as_str(), |(provider, _)| provider);
        let failed = matches!(receipt.verdict, Verdict::SessionFailed);
        let mut spans = vec![json!({
            "traceId": self.id,
            "spanId": id,
            "parentSpanId": self.root,
            "name": format!("invoke_agent {}", receipt.agent),
            "kind": CLIENT,
            "startTimeUnixNano": nanos(receipt.started_at),
            "endTimeUnixNano": nanos(receipt.ended_at),
            "attributes": attributes(&[
                ("gen_ai.operation.name", "invoke_agent".into()),
                ("gen_ai.provider.name", provider.into()),
                ("gen_ai.agent.name", receipt.agent.as_str().into()),
                ("gen_ai.conversation.id", self.run.into()),
                ("gen_ai.request.model", model.into()),
                ("gen_ai.usage.input_tokens", receipt.tokens.map(|tokens| tokens.input).into()),
                ("gen_ai.usage.output_tokens", receipt.tokens.map(|tokens| tokens.output).into()),
                ("ralph.iteration", number.into()),
                ("ralph.verdict", serde_json::to_value(receipt.verdict).unwrap_or_default()),
                ("ralph.cost_usd", dollars(receipt.cost)),
                ("ralph.files_changed", (receipt.files_changed as u64).into()),
            ]),
            "status": { "code": if failed { ERROR } else { OK } },
        })];
        let mut end = receipt.ended_at;
        for check in receipt.checks.iter().rev() {
            let begun = end
                .checked_sub(
                    SignedDuration::try_from(Duration::from_millis(check.duration_ms)).unwrap_or_default(),
                )
                .unwrap_or(end);
            spans.push(json!({
                "traceId": self.id,
                "spanId": hex(&format!("{}/{number}/{}", self.run, check.name), 16),
                "parentSpanId": id,
                "name": format!("execute_tool {}", check.name),
                "kind": INTERNAL,
                "startTimeUnixNano": nanos(begun),
                "endTimeUnixNano": nanos(end),
                "attributes": attributes(&[
                    ("gen_ai.operation.name", "execute_tool".into()),
                    ("gen_ai.tool.name", check.name.as_str().into()),
                    ("gen_ai.tool.type", "function".into()),
                    ("ralph.check.exit_code", check.exit_code.map_or(Value::Null, Value::from)),
                ]),
                "status": { "code": if check.passed { OK } else { ERROR } },
            }));
            end = begun;
        }
        spans
    }
}

/// One request with these spans.
pub(super) fn request(spans: &[Value]) -> Value {
    json!({ "resourceSpans": [{
        "resource": { "attributes": attributes(&[
            ("service.name", "ralph".into()),
            ("service.version", env!("CARGO_PKG_VERSION").into()),
        ]) },
        "scopeSpans": [{ "scope": { "name": "ralph", "version": env!("CARGO_PKG_VERSION") }, "spans": spans }],
    }] })
}

fn hex(text: &str, digits: usize) -> String {
    Digest::of(text.as_bytes()).as_str().chars().take(digits).collect()
}

fn nanos(at: Timestamp) -> String {
    at.as_nanosecond().to_string()
}

/// A known cost as an attribute; unknown values are omitted.
fn dollars(cost: Cost) -> Value {
    cost.known().map(Usd::dollars).into()
}

fn attributes(pairs: &[(&str, Value)]) -> Vec<Value> {
    let value = |value: &Value| match value {
        Value::String(text) => Some(json!({ "stringValue": text })),
        Value::Bool(yes) => Some(json!({ "boolValue": yes })),
        Value::Number(n) if n.is_f64() => Some(json!({ "doubleValue": n })),
        Value::Number(n) => Some(json!({ "intValue": n.to_string() })),
        _ => None,
    };
    pairs.iter().filter_map(|(key, of)| Some(json!({ "key": key, "value": value(of)? }))).collect()
}
