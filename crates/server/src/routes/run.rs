//! The state of one run.

use crate::auth::Caller;
use crate::http::extract::Answer;
use crate::http::problem::Problem;
use crate::live::LiveRun;
use crate::row::RunRow;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use ralph_loop_app::race::RaceView;
use ralph_loop_app::race::races;
use ralph_loop_domain::view::RunView;
use ralph_loop_task::config::Mode;
use serde::Serialize;
use std::sync::Arc;

/// The state of one run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunAnswer {
    /// As in lists.
    row: RunRow,
    /// Everything there is to show; null for a queued run.
    view: Option<RunView>,
    /// What users may do to it.
    mode: String,
    /// The version of its task, from 1.
    spec_version: u32,
    /// How it was requested.
    settings: Option<RunSettings>,
    /// The controls that currently apply.
    actions: Vec<&'static str>,
    /// The race it belongs to.
    race: Option<RaceView>,
}

/// How a run was requested.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunSettings {
    /// The agents.
    agents: Vec<String>,
    /// Sandbox strength on this machine.
    isolation: String,
    /// The sandbox provider.
    provider: String,
    /// What to do with the proven work.
    publish: String,
    /// Its workspace.
    place: String,
    /// The checks.
    verifiers: Vec<RunVerifier>,
}

/// A check.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunVerifier {
    /// Its name.
    name: String,
    /// The command in one line.
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
            // It may wait for a fleet worker.
            return match crate::routes::people::fleet::row_of(&server, &run).await? {
                Some(row) => Ok(Json(waiting(row))),
                None => Err(problem),
            };
        }
    };
    let (live, env) = (server.live.clone(), server.app.environment().clone());
    let answer = server
        .blocking(move || {
            // An unreadable race must not hide the run.
            let race = races::of_run(&env, &entry.run_id).ok().flatten();
            Ok(RunAnswer { race, ..live.with(&entry.run_id, answer)? })
        })
        .await?;
    Ok(Json(answer))
}

/// A run without anything to show yet.
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

/// The controls that currently apply.
fn actions(run: &LiveRun, mode: Mode) -> Vec<&'static str> {
    let state = &run.reading().state;
    if let Some(end) = &state.result.finished {
        // Workers don't resume finished runs.
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
