//! The fleet: workers, runs, enrollment, webhooks.

use crate::auth::{Caller, refuse_guessing};
use crate::fleet::FleetSide;
use crate::fleet::fleet_secrets::needed;
use crate::http::extract::{Answer, Body};
use crate::http::problem::Problem;
use crate::people::Role;
use crate::row::RunRow;
use crate::scheduler::Queued;
use crate::server::Server;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, StatusCode};
use ralph_loop_fleet::delivery::{DELIVERY_MAX, Delivery, is_signed};
use ralph_loop_fleet::login::{EnrolRequest, Login};
use ralph_loop_fleet::occasion::{self, Done};
use ralph_loop_fleet::runs::NewRun;
use ralph_loop_fleet::{FleetError, enrol, runs, workers};
use ralph_loop_protocol::display::text::one_line;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;

/// Runs listed.
const RUNS: i64 = 500;

impl From<FleetError> for Problem {
    fn from(error: FleetError) -> Self {
        let status = match &error {
            FleetError::Setup { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            FleetError::NoRun { .. } => StatusCode::NOT_FOUND,
            FleetError::Held { .. } | FleetError::Over { .. } => StatusCode::CONFLICT,
            FleetError::Database(_) | FleetError::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        let error = ralph_loop_app::AppError::from(error);
        Self::new(status, error.message.clone()).hint(error.next())
    }
}

fn side(server: &Server) -> Result<Arc<FleetSide>, Problem> {
    server.fleet.clone().ok_or_else(|| {
        Problem::missing("this server has no fleet")
            .hint("RALPH_DB_URL (Postgres) and RALPH_ARTIFACTS turn it into one; see docs/SCALE.md")
    })
}

pub(crate) async fn list(State(server): State<Arc<Server>>, _: Caller) -> Answer<Json<Value>> {
    let Some(side) = &server.fleet else { return Ok(Json(json!({ "fleet": false, "workers": [] }))) };
    let pool = side.fleet.pool();
    let standby = side.fleet.within(side.fleet.has_synchronous_standby()).await.unwrap_or(false);
    Ok(Json(json!({
        "fleet": true, "workers": workers::list(pool).await?, "synchronous_standby": standby,
    })))
}

pub(crate) async fn fleet_runs(State(server): State<Arc<Server>>, _: Caller) -> Answer<Json<Value>> {
    let side = side(&server)?;
    Ok(Json(json!({ "runs": runs::list(side.fleet.pool(), RUNS).await? })))
}

pub(crate) async fn new_token(
    State(server): State<Arc<Server>>,
    caller: Caller,
) -> Answer<(StatusCode, Json<Value>)> {
    caller.may(Role::Admin)?;
    let side = side(&server)?;
    caller.note(&server, "worker token", None, None)?;
    let token = enrol::new_token(side.fleet.pool()).await?;
    Ok((StatusCode::CREATED, Json(json!({ "token": token }))))
}

/// Enrolls a worker by its token; wrong tokens are limited as usual.
pub(crate) async fn enrol_worker(
    State(server): State<Arc<Server>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    Body(body): Body<EnrolRequest>,
) -> Answer<Json<Login>> {
    let side = side(&server)?;
    if let Err(refused) = refuse_guessing(&server, from.ip())
        && !enrol::is_valid(side.fleet.pool(), &body.token).await?
    {
        return Err(refused);
    }
    if enrol::is_local(&side.url) && !from.ip().is_loopback() {
        return Err(Problem::refused(
            "the server's database URL points to its own machine, so workers elsewhere can't use it",
        )
        .hint("start the server with a RALPH_DB_URL that names the database's host as workers see it; the token stays good"));
    }
    server.note_as(&one_line(&body.worker, 60), &from.ip().to_string(), "enrol worker", None, None)?;
    let enrolled = match enrol::enrol(side.fleet.pool(), &body.token, &body.worker).await {
        Err(error @ FleetError::Setup { .. }) => {
            server.limiter.failed(from.ip());
            return Err(error.into());
        }
        other => other?,
    };
    let url = enrol::address(&side.url, &enrolled)?;
    Ok(Json(Login { worker: enrolled.worker, url }))
}

pub(crate) async fn revoke(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(worker): Path<String>,
) -> Answer<StatusCode> {
    caller.may(Role::Admin)?;
    let side = side(&server)?;
    caller.note(&server, "revoke worker", None, Some(one_line(&worker, 60)))?;
    known(enrol::revoke(side.fleet.pool(), &worker).await?)
}

pub(crate) async fn drain(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(worker): Path<String>,
) -> Answer<StatusCode> {
    caller.may(Role::Admin)?;
    let side = side(&server)?;
    caller.note(&server, "drain worker", None, Some(one_line(&worker, 60)))?;
    known(workers::drain(side.fleet.pool(), &worker).await?)
}

fn known(there: bool) -> Answer<StatusCode> {
    match there {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::missing("worker not found").hint("`GET /api/v1/fleet/workers` lists them")),
    }
}

/// GitHub webhooks, authenticated by their signature.
pub(crate) async fn github(
    State(server): State<Arc<Server>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<(StatusCode, Json<Value>)> {
    let side = side(&server)?;
    let Some(secret) = side.webhook_secret.as_deref().filter(|_| !side.triggers.repos.is_empty()) else {
        return Err(Problem::missing("no triggers are configured")
            .hint("RALPH_TRIGGERS and RALPH_WEBHOOK_SECRET set it up"));
    };
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let delivery = Delivery {
        id: header("x-github-delivery"),
        event: header("x-github-event"),
        signature: header("x-hub-signature-256"),
        body: &body,
    };
    if body.len() > DELIVERY_MAX || delivery.id.is_empty() || !is_signed(secret, delivery.signature, &body) {
        return Err(Problem::forbidden("the signature does not fit")
            .hint("the webhook's secret and RALPH_WEBHOOK_SECRET must be the same"));
    }
    if serde_json::from_slice::<Value>(&body).is_err() {
        return Err(Problem::bad("the delivery isn't JSON")
            .hint("choose the content type `application/json` in the webhook's settings"));
    }
    let done = occasion::act(side.fleet.pool(), &side.triggers, delivery, server.now()).await?;
    let (what, run) = match &done {
        Done::Nothing(why) => (*why, None),
        Done::Started(run) => ("a run was added", Some(run.to_string())),
        Done::Steered(run) => ("steered a run", Some(run.clone())),
        Done::Looks(runs) if runs.is_empty() => ("no run waits for it", None),
        Done::Looks(_) => ("runs look at their checks and reviews", None),
    };
    if run.is_some() {
        server.note_as("github", &from.ip().to_string(), "webhook", run.as_deref(), Some(what.to_owned()))?;
    }
    Ok((StatusCode::ACCEPTED, Json(json!({ "done": what, "run": run }))))
}

/// Passes a run to the fleet, if there is one and the repo isn't a local folder.
pub(in crate::routes) async fn hand_on(
    server: &Server,
    queued: &Queued,
    is_address: bool,
    labels: &[String],
) -> Result<Option<RunRow>, Problem> {
    let Some(side) = server.fleet.as_ref().filter(|_| is_address) else { return Ok(None) };
    let set: Vec<String> =
        server.secrets.list().into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect();
    let new = NewRun {
        run: queued.id.clone(),
        request: queued.request.clone(),
        title: queued.title.clone(),
        person: queued.person.clone(),
        labels: labels.to_vec(),
        secrets: needed(&queued.request, queued.auth, &set),
        profiles: queued.profiles.clone().into(),
        source: String::new(),
        at_once: None,
        occasion: None,
    };
    runs::add(side.fleet.pool(), &new).await?;
    Ok(Some(queued.row(None)))
}

/// The row of a fleet run without a local record: waiting, or just started.
pub(in crate::routes) async fn row_of(server: &Server, run: &str) -> Result<Option<RunRow>, Problem> {
    let Some(side) = &server.fleet else { return Ok(None) };
    Ok(runs::not_over(side.fleet.pool(), run).await?.as_ref().map(crate::fleet::fleet_work::row))
}

/// Removes a fleet run that hasn't started from the queue; `None` for other runs.
pub(in crate::routes) async fn take_out(
    server: &Server,
    caller: &Caller,
    run: &str,
    kind: &str,
) -> Result<Option<&'static str>, Problem> {
    let Some(side) = &server.fleet else { return Ok(None) };
    let pool = side.fleet.pool();
    let known = runs::find(pool, run).await?.filter(|known| known.head == 0 && known.status != "over");
    if known.is_none() {
        return Ok(None);
    }
    if !matches!(kind, "stop" | "cancel") {
        return Err(Problem::conflict("the run has not begun").hint("it can only be cancelled now"));
    }
    caller.note(server, kind, Some(run), None)?;
    if !runs::take_out(pool, run).await? {
        return Err(Problem::conflict("the run begins at this moment").hint("try again in a few seconds"));
    }
    server.live.remove(run).await.map_err(|error| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("the index could not be written: {error}"))
    })?;
    Ok(Some("ended"))
}
