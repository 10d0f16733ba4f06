//! A whole run: status, task, iterations, proof.

use super::proof;
use crate::error::CommandError;
use crate::output::Out;
use crate::text::proof_text;
use crate::text::run_text as view;
use crate::text::words::{ago, card, heading, home_path, local, row, size};
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::status;
use ralph_loop_app::read::timeline::RunTimeline;
use ralph_loop_app::trust::repo_file;
use ralph_loop_protocol::display::text::{count, duration};
use ralph_loop_task::config::{AgentSelection, Completion};
use serde_json::{Value, json};

/// Iterations listed.
const SHOWN: usize = 200;

pub fn show(facts: &RunSnapshot, story: &RunTimeline, out: &Out) -> Result<(), CommandError> {
    let proof_path = facts.entry.run_dir().proof();
    if out.json {
        let proof =
            repo_file::read_record(&proof_path).ok().and_then(|t| serde_json::from_slice::<Value>(&t).ok());
        out.value(&json!({
            "run_id": facts.entry.run_id,
            "status": status::object(facts),
            "spec": facts.state.spec,
            "iterations": story.iterations,
            "proof": proof,
        }));
        return Ok(());
    }
    view::run_line(facts, out);
    view::now_line(facts, facts.state.result.finished.is_none(), out);
    task(facts, out);
    settings(facts, out);
    view::setup(facts, out);
    if !story.iterations.is_empty() {
        heading(out, "Iterations");
        let first = story.iterations.len().saturating_sub(SHOWN);
        if first > 0 {
            out.line(format!("  … {first} earlier ones (`--json` lists all)"));
        }
        for at in first..story.iterations.len() {
            card(out, &facts.state, &story.iterations[at], at.checked_sub(1).map(|b| &story.iterations[b]));
        }
    }
    if let Some(proof) = proof::read(&proof_path) {
        proof_text::print(&proof, facts.now, out);
    }
    view::places(facts, out);
    Ok(())
}

fn task(facts: &RunSnapshot, out: &Out) {
    let spec = &facts.state.spec;
    heading(out, "Task");
    let version =
        if spec.spec_version > 1 { format!(", version {}", spec.spec_version) } else { String::new() };
    row(out, "file", &format!("{} ({}{version})", spec.task.source, size(spec.task.text.len() as u64)));
    row(
        out,
        "asked for",
        &format!("{} ({})", local(spec.created_at, facts.now), ago(spec.created_at, facts.now)),
    );
    row(out, "spec", &home_path(&facts.entry.run_dir().spec()));
}

fn settings(facts: &RunSnapshot, out: &Out) {
    let spec = &facts.state.spec;
    let settings = &spec.settings;
    heading(out, "Settings");
    let base = facts.state.baseline.as_ref().map_or_else(String::new, |b| {
        format!(", from {} at {}", b.branch.as_deref().unwrap_or("a detached HEAD"), b.head.short())
    });
    let branch = spec.branch.as_deref().map_or_else(String::new, |b| format!(", commits on {b}"));
    row(out, "place", &format!("{}{branch}{base}", spec.place.as_str()));
    let names: Vec<&str> = settings.agents.iter().map(|a| a.name.as_str()).collect();
    let order = match settings.agent_selection {
        AgentSelection::RoundRobin => "in turn",
        AgentSelection::Priority => "the first that is free",
        AgentSelection::Roles => "by their roles",
    };
    row(out, "agents", &format!("{} ({order})", names.join(", ")));
    for verifier in &settings.verifiers {
        let required = if settings.required_verifiers.contains(&verifier.name) { " (required)" } else { "" };
        row(out, "check", &format!("{}{required}: {}", verifier.name, verifier.command_line()));
    }
    row(
        out,
        "done when",
        &match settings.completion {
            Completion::Promise => {
                format!("the agent promises `{}` and the required checks pass", settings.completion_promise)
            }
            Completion::Claim => "everything is claimed or promised, and the required checks pass".to_owned(),
            Completion::Checks => "the required checks pass".to_owned(),
            Completion::Metric => {
                "every number has reached its target, and the required checks pass".to_owned()
            }
        },
    );
    let budgets = &settings.budgets;
    let iterations = count(budgets.max_iterations as usize, "iteration");
    row(
        out,
        "budgets",
        &format!("{iterations}, {} of work, {}", duration(budgets.max_wall_time), budgets.max_cost),
    );
    if !settings.tests.is_usual() {
        row(out, "tests", settings.tests.as_str());
    }
    if let Some(level) = settings.require_proof {
        row(out, "proof", &format!("must be {}", level.as_str()));
    }
    if !settings.protected_paths.is_empty() {
        row(out, "protected", &settings.protected_paths.join(", "));
    }
    let sandbox = &settings.sandbox;
    if sandbox.provider().is_elsewhere() {
        let image = sandbox.image.as_deref().map_or_else(String::new, |image| format!(", image {image}"));
        row(out, "sandbox", &format!("{}{image}", sandbox.provider().as_str()));
        return;
    }
    row(
        out,
        "isolation",
        &serde_json::to_value(settings.isolation)
            .ok()
            .and_then(|v| v.as_str().map(str::to_owned))
            .unwrap_or_default(),
    );
}
