//! Starts a scripted run from an empty list.

use crate::auth::Caller;
use crate::http::extract::{Answer, Body};
use crate::http::problem::Problem;
use crate::options::DemoScenario;
use crate::people::Role;
use crate::server::Server;
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which one.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct DemoBody {
    /// The scenario.
    scenario: DemoScenario,
}

/// A started run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DemoStarted {
    /// Its id.
    id: String,
}

pub(crate) async fn start(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Body(body): Body<DemoBody>,
) -> Answer<(StatusCode, Json<DemoStarted>)> {
    caller.may(Role::Operator)?;
    let Some(starter) = server.demos.clone() else {
        return Err(Problem::missing("this server has no scripted runs"));
    };
    caller.note(&server, "demo", None, Some(format!("{:?}", body.scenario)))?;
    let id = server.apart(move || starter.start(body.scenario).map_err(Problem::from)).await?;
    Ok((StatusCode::CREATED, Json(DemoStarted { id: id.to_string() })))
}
