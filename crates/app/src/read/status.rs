//! The status as one JSON object: the whole [`RunView`](ralph_loop_domain::view::RunView) plus fields for
//! older readers.

use crate::environment::Environment;
use crate::race::races;
use crate::read::facts::RunSnapshot;
use serde_json::{Value, json};
use std::path::Path;

/// Includes the run's race, if it belongs to one.
pub fn with_race(env: &Environment, facts: &RunSnapshot) -> Value {
    let mut value = object(facts);
    // An unreadable race must not hide the run.
    if let Ok(Some(race)) = races::of_run(env, &facts.entry.run_id) {
        value["race"] = serde_json::to_value(race).unwrap_or_default();
    }
    value
}

pub fn object(facts: &RunSnapshot) -> Value {
    let state = &facts.state;
    let view = facts.view();
    let checks: Vec<Value> = view
        .checks
        .iter()
        .map(|check| {
            let result = check.last.as_ref();
            json!({
                "name": check.name,
                "command": check.command,
                "required": check.required,
                "passed": result.map(|r| r.passed),
                "why": result.and_then(|r| r.why.as_deref()),
                "exit_code": result.and_then(|r| r.exit_code),
                "duration_ms": result.map(|r| r.duration_ms),
                "tests": result.and_then(|r| r.tests),
                "current_tree": check.current_tree,
                "refused": check.refused.is_some(),
                "failing": result.map(|r| &r.failing),
                "last_lines": result.map(|r| &r.last_lines),
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
    let budgets = &state.spec.settings.budgets;
    let mut object = json!({
        "pid": facts.driver.as_ref().map(|d| d.pid),
        "iteration": facts.iteration(),
        "iterations_done": view.iterations,
        "max_iterations": budgets.max_iterations,
        "agent": view.current.as_ref().map(|c| &c.agent),
        "cost_usd": view.spent.cost.known(),
        "cost_basis": view.spent.cost.basis(),
        "max_cost_usd": budgets.max_cost,
        "compute_usd": view.spent.compute_usd,
        "sandboxes": state.spending.compute.sandboxes,
        "tokens": view.spent.tokens,
        "checks": checks,
        "cooldowns": cooldowns,
        "dropped": state.agents.dropped,
        "needs": view.needs,
        "branch": view.branch,
        "ref": view.work_ref,
        "run_dir": facts.entry.run_dir().path(),
        "finished": view.finished,
    });
    if let (Value::Object(object), Ok(Value::Object(whole))) = (&mut object, serde_json::to_value(&view)) {
        for (name, value) in whole {
            object.entry(name).or_insert(value);
        }
    }
    object
}
