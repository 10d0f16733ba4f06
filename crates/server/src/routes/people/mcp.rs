//! `/mcp`: the Model Context Protocol over streamable HTTP. Requests authenticate as usual, and changes go
//! through the dashboard's routes with their roles, queue and audit log.

use crate::auth::{Caller, check_origin};
use crate::http::extract::Body;
use crate::http::problem::Problem;
use crate::people::Role;
use crate::routes::create;
use crate::routes::prepare::{known_repo, repos_of};
use crate::routes::steer::control;
use crate::server::Server;
use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use ralph_loop_app::{App, AppError};
use ralph_loop_mcp::{RalphServer, RunService};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::RunId;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Host names accepted on a local-only server, against DNS rebinding.
const LOCAL_HOSTS: &[&str] = &["localhost", "127.0.0.1", "[::1]", "::1"];
/// Folders listed if one must be chosen.
const FOLDERS_SHOWN: usize = 12;

pub(crate) async fn mcp(State(server): State<Arc<Server>>, caller: Caller, request: Request) -> Response {
    if let Err(problem) = check_origin(request.headers()) {
        return problem.into_response();
    }
    let role = match caller.person.role {
        Role::Viewer => ralph_loop_mcp::Role::Viewer,
        Role::Operator | Role::Admin => ralph_loop_mcp::Role::Operator,
    };
    let app = App::new(server.app.environment().clone().with_face("mcp"));
    let hosts = if server.is_local { LOCAL_HOSTS } else { &[] };
    let desk = WebDesk { server, caller, runtime: Handle::current() };
    let service = ralph_loop_mcp::http_service(RalphServer::at_desk(app, Arc::new(desk), role), hosts);
    service.handle(request).await.map(axum::body::Body::new)
}

/// The server from one caller's point of view.
#[derive(Debug)]
struct WebDesk {
    server: Arc<Server>,
    caller: Caller,
    runtime: Handle,
}

impl RunService for WebDesk {
    fn folder(&self, named: Option<&str>, must_be_clear: bool) -> Result<PathBuf, AppError> {
        let found = self.runtime.block_on(async {
            if let Some(named) = named {
                return known_repo(&self.server, named).await;
            }
            let known = repos_of(&self.server).await?;
            match known.as_slice() {
                [only] => Ok(PathBuf::from(only)),
                [first, ..] if !must_be_clear => Ok(PathBuf::from(first)),
                [] if !must_be_clear => Ok(self.server.home.path().to_owned()),
                [] => {
                    Err(Problem::bad("this server knows no folder").hint("`ralph serve --repo DIR` adds one"))
                }
                several => {
                    let shown: Vec<&str> = several.iter().map(String::as_str).take(FOLDERS_SHOWN).collect();
                    Err(Problem::bad("several folders match")
                        .hint(format!("say it in `folder`: {}", shown.join(", "))))
                }
            }
        });
        found.map_err(|problem| to_app_error(&problem))
    }

    fn start(&self, wanted: &Map<String, Value>) -> Result<Value, AppError> {
        let named = wanted.get("folder").and_then(Value::as_str);
        let folder = self.folder(named, true)?;
        let body = body(json!({
            "repo": folder,
            "text": wanted.get("task"),
            "task_file": wanted.get("file"),
            "verify": wanted.get("verify").cloned().unwrap_or_else(|| json!([])),
            "agents": wanted.get("agents").cloned().unwrap_or_else(|| json!([])),
            "race": wanted.get("race").cloned().unwrap_or_else(|| json!([])),
            "best": wanted.get("best"),
            "limits": {"max_iterations": wanted.get("max_iterations"), "max_cost_usd": wanted.get("max_cost_usd")},
            "place": if wanted.get("worktree") == Some(&json!(false)) { "in_place" } else { "worktree" },
        }))?;
        let asked =
            create::create(State(self.server.clone()), self.caller.clone(), HeaderMap::new(), Body(body));
        let (_, row) = self.runtime.block_on(asked).map_err(|problem| to_app_error(&problem))?;
        let row = serde_json::to_value(&row.0).unwrap_or_default();
        let race = row["id"].as_str().and_then(|run| RunId::parse(run).ok());
        let race = race
            .and_then(|run| ralph_loop_app::race::races::of_run(self.server.app.environment(), &run).ok()?);
        let named = |race: ralph_loop_app::race::RaceView| -> Value {
            race.runs.iter().map(|one| json!({"name": one.name, "run_id": one.run_id})).collect()
        };
        Ok(json!({
            "race": race.map(named),
            "run_id": row.get("run_id").or_else(|| row.get("id")),
            "status": row.get("status"),
            "next": "call watch_run to follow it, or run_status for its state",
        }))
    }

    fn steer(&self, run: &RunId, kind: &'static str, text: Option<&str>) -> Result<Value, AppError> {
        let body = body(json!({"kind": kind, "text": text}))?;
        let path = Path(run.to_string());
        let asked = control::control(State(self.server.clone()), self.caller.clone(), path, Body(body));
        let (_, answer) = self.runtime.block_on(asked).map_err(|problem| to_app_error(&problem))?;
        let mut answer = serde_json::to_value(&answer.0).unwrap_or_default();
        answer["run_id"] = json!(run);
        Ok(answer)
    }
}

/// A request body as the dashboard would send it.
fn body<T: DeserializeOwned>(value: Value) -> Result<T, AppError> {
    serde_json::from_value(value)
        .map_err(|e| AppError::usage("invalid arguments").cause(one_line(&e.to_string(), 200)))
}

fn to_app_error(problem: &Problem) -> AppError {
    let error = AppError::usage(problem.detail());
    match problem.hint_text() {
        Some(hint) => error.hint(hint),
        None => error,
    }
}
