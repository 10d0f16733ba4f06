//! The state of one run.

use crate::auth::Caller;
use crate::extract::Answer;
use crate::live::LiveRun;
use crate::problem::Problem;
use crate::row::RunRow;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use ralph_loop_app::race::RaceView;
use ralph_loop_app::races;
use ralph_loop_domain::view::RunView;
use ralph_loop_task::config::Mode;
use serde::Serialize;
use std::sync::Arc;

/// The state of one run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunAnswer {
    /// As lists show it.
    row: RunRow,
    /// All that there is to show; nothing for one that waits for its turn.
    view: Option<RunView>,
    /// What people may do to it here.
    mode: String,
    /// The version of its task, from 1.
    spec_version: u32,
    /// How it was asked for.
    settings: Option<RunSettings>,
    /// The controls that make sense now.
    actions: Vec<&'static str>,
    /// The race that it is one of.
    race: Option<RaceView>,
}

/// How a run was asked for.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunSettings {
    /// Who may work.
    agents: Vec<String>,
    /// How strongly it is sandboxed on this machine.
    isolation: String,
    /// Who makes the sandbox.
    provider: String,
    /// What becomes of the proven work.
    publish: String,
    /// Where it works.
    place: String,
    /// What judges the work.
    verifiers: Vec<RunVerifier>,
}

/// What judges the work.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunVerifier {
    /// Its name.
    name: String,
    /// What is run, in one line.
    command: String,
    /// Whether it must pass.
    required: bool,
}

pub(crate) async fn view(
    State(server): State<Arc<Server>>,
    _: Caller,
    Path(run): Path<String>,
) -> Answer<Json<RunAnswer>> {
    if server.scheduler.is_waiting(&run) {
        let row = server.index.get(&run).await?.ok_or_else(|| Problem::missing("that run has just begun"))?;
        return Ok(Json(waiting(row)));
    }
    let entry = match server.entry(&run) {
        Ok(entry) => entry,
        Err(problem) => {
            // It may wait for a worker of the fleet.
            return match super::fleet::row_of(&server, &run).await? {
                Some(row) => Ok(Json(waiting(row))),
                None => Err(problem),
            };
        }
    };
    let (live, env) = (server.live.clone(), server.app.environment().clone());
    let answer = server
        .blocking(move || {
            // A race that cannot be read is no reason to say nothing of the run.
            let race = races::of_run(&env, &entry.run_id).ok().flatten();
            Ok(RunAnswer { race, ..live.with(&entry.run_id, answer)? })
        })
        .await?;
    Ok(Json(answer))
}

/// A run of which there is nothing to show yet.
fn waiting(row: RunRow) -> RunAnswer {
    let (mode, actions) = (row.mode.clone(), vec!["cancel"]);
    RunAnswer { row, view: None, mode, spec_version: 1, settings: None, actions, race: None }
}

fn answer(run: &LiveRun) -> RunAnswer {
    let spec = &run.reading().state.spec;
    let settings = &spec.settings;
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let verifiers = settings.verifiers.iter().map(|verifier| RunVerifier {
        name: verifier.name.clone(),
        command: verifier.command_line(),
        required: settings.required_verifiers.contains(&verifier.name),
    });
    RunAnswer {
        row: run.row().clone(),
        view: Some(run.view()),
        mode: settings.mode.as_str().to_owned(),
        spec_version: spec.spec_version,
        settings: Some(RunSettings {
            agents: settings.agents.iter().map(|agent| agent.name.to_string()).collect(),
            isolation: word(serde_json::to_value(settings.isolation).unwrap_or_default()),
            provider: settings.sandbox.provider().as_str().to_owned(),
            publish: word(serde_json::to_value(settings.handover.publish).unwrap_or_default()),
            place: spec.place.as_str().to_owned(),
            verifiers: verifiers.collect(),
        }),
        actions: actions(run, settings.mode),
        race: None,
    }
}

/// The controls that make sense now.
fn actions(run: &LiveRun, mode: Mode) -> Vec<&'static str> {
    let state = &run.reading().state;
    if let Some(end) = &state.result.finished {
        // No worker goes on with a run that is over.
        if ralph_loop_app::adopt::is_of_fleet(&run.reading().entry.run_dir()) {
            return Vec::new();
        }
        return if end.reason.is_budget() { vec!["budget", "diagnose"] } else { vec!["diagnose"] };
    }
    let mut actions = vec!["note", "guardrail", "edit", "model", "budget", "diagnose", "stop", "cancel"];
    match (run.row().driven, state.people.paused_by.is_some()) {
        (true, false) => actions.extend(["pause", "rotate", "skip", "cooldown"]),
        (true, true) | (false, _) => actions.push("resume"),
    }
    if state.people.needs_human.is_some() {
        actions.extend(["approve", "answer"]);
    }
    if state.stuck.diagnosed_at.is_some() {
        actions.push("apply");
    }
    if mode.takes_nudges() {
        actions.push("nudge");
    }
    if mode.runs_commands() {
        actions.push("debug");
    }
    actions
}
