//! Users, secrets, the audit log and the scheduler, for admins.

use crate::audit::AuditEntry;
use crate::auth::Caller;
use crate::http::extract::{Answer, Body, QueryParams};
use crate::http::problem::Problem;
use crate::people::{PersonInfo, Role};
use crate::scheduler::SchedulerState;
use crate::server::Server;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Default and maximum audit entries.
const ENTRIES: (usize, usize) = (200, 2000);

/// Filter of the audit log.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// Maximum number of entries.
    limit: Option<usize>,
    /// Only entries before this time.
    before: Option<Timestamp>,
}

/// Entries of the audit log.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AuditAnswer {
    /// Newest first.
    entries: Vec<AuditEntry>,
}

pub(crate) async fn audit(
    State(server): State<Arc<Server>>,
    caller: Caller,
    QueryParams(query): QueryParams<AuditQuery>,
) -> Answer<Json<AuditAnswer>> {
    caller.may(Role::Admin)?;
    let own = server.clone();
    let limit = query.limit.unwrap_or(ENTRIES.0).clamp(1, ENTRIES.1);
    let entries = server.blocking(move || Ok(own.audit.latest(limit, query.before))).await?;
    Ok(Json(AuditAnswer { entries }))
}

/// All users.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PeopleAnswer {
    /// By name.
    people: Vec<PersonInfo>,
}

/// A new user.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPerson {
    /// The name.
    name: String,
    /// The role.
    role: Role,
}

/// A new user with the token.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PersonToken {
    /// The name.
    name: String,
    /// The role.
    role: Role,
    /// The token; shown once and not stored.
    token: String,
}

pub(crate) async fn people(State(server): State<Arc<Server>>, caller: Caller) -> Answer<Json<PeopleAnswer>> {
    caller.may(Role::Admin)?;
    Ok(Json(PeopleAnswer { people: server.people.list() }))
}

pub(crate) async fn add_person(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Body(new): Body<NewPerson>,
) -> Answer<(StatusCode, Json<PersonToken>)> {
    caller.may(Role::Admin)?;
    let detail = format!("{} as {}", new.name, new.role.as_str());
    caller.note(&server, "add person", None, Some(detail))?;
    let token = server.people.add(&new.name, new.role, server.now())?;
    Ok((StatusCode::CREATED, Json(PersonToken { name: new.name, role: new.role, token })))
}

pub(crate) async fn remove_person(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Answer<StatusCode> {
    caller.may(Role::Admin)?;
    caller.note(&server, "remove person", None, Some(name.clone()))?;
    match server.people.remove(&name)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::missing("user not found")
            .hint("the owner of the server has the token that `ralph serve` prints")),
    }
}

/// Which secrets are set.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SecretsAnswer {
    /// Every name that can be set.
    secrets: Vec<SecretInfo>,
}

/// Whether a secret is set.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SecretInfo {
    /// Its name.
    name: String,
    /// Whether it is set.
    set: bool,
}

/// A secret to store. Secrets are never returned.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretValue {
    /// The value.
    value: String,
}

pub(crate) async fn secrets(
    State(server): State<Arc<Server>>,
    caller: Caller,
) -> Answer<Json<SecretsAnswer>> {
    caller.may(Role::Admin)?;
    let all = server.secrets.list().into_iter().map(|(name, set)| SecretInfo { name, set });
    Ok(Json(SecretsAnswer { secrets: all.collect() }))
}

pub(crate) async fn set_secret(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(name): Path<String>,
    Body(secret): Body<SecretValue>,
) -> Answer<StatusCode> {
    caller.may(Role::Admin)?;
    caller.note(&server, "set secret", None, Some(name.clone()))?;
    server.secrets.set(&name, &secret.value)?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn unset_secret(
    State(server): State<Arc<Server>>,
    caller: Caller,
    Path(name): Path<String>,
) -> Answer<StatusCode> {
    caller.may(Role::Admin)?;
    caller.note(&server, "remove secret", None, Some(name.clone()))?;
    match server.secrets.unset(&name)? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::missing("that secret is not set here")),
    }
}

pub(crate) async fn scheduler(State(server): State<Arc<Server>>, _: Caller) -> Json<SchedulerState> {
    Json(server.scheduler.state())
}
