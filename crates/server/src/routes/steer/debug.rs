//! The fixed commands of `debug` mode, in the run's sandbox.

use crate::auth::Caller;
use crate::http::extract::{Answer, Body};
use crate::http::problem::Problem;
use crate::people::Role;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::steering::debug;
use ralph_loop_app::steering::debug::DebugCommand;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Command names.
pub(crate) const COMMANDS: &[&str] = DebugCommand::WORDS;

/// Which command.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct DebugBody {
    /// rerun_tests, lint, typecheck or logs.
    command: String,
}

/// The results.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DebugAnswer {
    /// One per command line.
    results: Vec<DebugLine>,
}

/// The result of one command.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DebugLine {
    /// The command, or the name of a log.
    command: String,
    /// Its exit code.
    exit_code: Option<i32>,
    /// The end of what it printed.
    output: String,
}

pub(crate) async fn debug(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(run): Path<String>,
    Body(body): Body<DebugBody>,
) -> Answer<Json<DebugAnswer>> {
    caller.may(Role::Operator)?;
    let command = DebugCommand::parse(&body.command).ok_or_else(|| {
        Problem::refused("that is none of the listed commands")
            .hint(format!("one of {}", COMMANDS.join(", ")))
    })?;
    let entry = server.entry(&run)?;
    let own = server.clone();
    let results = server
        .blocking(move || {
            let env = own.app.environment();
            let reading = RunSnapshot::load(env, entry)?;
            let mode = reading.state.spec.settings.mode;
            if !mode.runs_commands() {
                return Err(Problem::forbidden(format!("the mode of this run is {}", mode.as_str()))
                    .hint("`mode: debug` in the task or the configuration allows the listed commands"));
            }
            let alone = own.command_alone(&reading.entry.run_id);
            let _alone = alone.ok_or_else(|| {
                Problem::conflict("another command runs, of this run or too many of others")
                    .hint("try again when it has ended; each takes at most ten minutes")
            })?;
            caller.note(&own, "debug", Some(reading.entry.run_id.as_str()), Some(body.command))?;
            Ok(debug::run(env, &reading, command)?)
        })
        .await?;
    let line =
        |r: debug::DebugResult| DebugLine { command: r.command, exit_code: r.exit_code, output: r.output };
    Ok(Json(DebugAnswer { results: results.into_iter().map(line).collect() }))
}
