//! Where a run stands, as one JSON object.

use crate::facts::Facts;
use crate::now;
use serde_json::{Value, json};
use std::path::Path;

/// The run as one JSON object.
pub fn object(facts: &Facts) -> Value {
    let state = &facts.state;
    let settings = &state.spec.settings;
    let checks: Vec<Value> = settings
        .verifiers
        .iter()
        .map(|verifier| {
            let result = state.work.checks.get(&verifier.name);
            json!({
                "name": verifier.name,
                "command": verifier.command_line(),
                "required": settings.required_verifiers.contains(&verifier.name),
                "passed": result.map(|r| r.passed),
                "why": result.and_then(|r| r.why.as_deref()),
                "exit_code": result.and_then(|r| r.exit_code),
                "duration_ms": result.map(|r| r.duration_ms),
                "tests": result.and_then(|r| r.tests),
                "current_tree": result.is_some_and(|r| facts.is_current(r)),
                "at": result.and_then(|r| facts.written_at(Path::new(&r.log))),
                "log": result.map(|r| r.log.as_str()),
            })
        })
        .collect();
    let cooldowns: serde_json::Map<String, Value> = state
        .agents
        .cooldowns
        .iter()
        .filter(|(_, rest)| rest.until > facts.now)
        .map(|(name, rest)| (name.to_string(), json!({ "until": rest.until, "reason": rest.reason })))
        .collect();
    let needs = state.people.needs_human.as_ref().map(|need| {
        let next = need.answer(facts.entry.run_id.as_str());
        json!({ "reason": need.reason, "message": need.message, "next": next })
    });
    let finished = state
        .result
        .finished
        .as_ref()
        .map(|end| json!({ "reason": end.reason, "summary": end.summary, "at": end.at }));
    json!({
        "run_id": facts.entry.run_id,
        "title": state.spec.task.title,
        "status": facts.status(),
        "now": now::line(facts).1,
        "driven": facts.driver.is_some(),
        "pid": facts.driver.as_ref().map(|d| d.pid),
        "iteration": facts.iteration(),
        "iterations_done": state.iterations.count,
        "max_iterations": settings.budgets.max_iterations,
        "agent": state.iterations.current.as_ref().map(|c| &c.agent),
        "loop_score": facts.loop_score(),
        "cost_usd": state.spending.totals.cost,
        "cost_basis": state.spending.totals.basis,
        "max_cost_usd": settings.budgets.max_cost,
        "compute_usd": state.spending.compute.known_cost(),
        "sandboxes": state.spending.compute.sandboxes,
        "tokens": state.spending.totals.tokens,
        "elapsed_seconds": state.elapsed().as_secs_f64(),
        "working_seconds": state.spent().time.as_secs_f64(),
        "checks": checks,
        "cooldowns": cooldowns,
        "dropped": state.agents.dropped,
        "needs": needs,
        "branch": facts.branch(),
        "workspace": state.spec.home(),
        "run_dir": facts.entry.run_dir().path(),
        "last_event_at": facts.last_event,
        "finished": finished,
    })
}
