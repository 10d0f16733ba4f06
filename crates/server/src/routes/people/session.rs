//! Login and logout.

use crate::auth::{Caller, check_origin, cookie, refuse_guessing};
use crate::http::extract::{Answer, Body};
use crate::http::problem::Problem;
use crate::people::{AGE, COOKIE, Role};
use crate::server::Server;
use axum::Json;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;

/// A token, or a code that works once.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Login {
    /// The token.
    #[serde(default)]
    token: Option<String>,
    /// The code.
    #[serde(default)]
    code: Option<String>,
}

/// Who is logged in.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Me {
    /// The name.
    name: String,
    /// The role.
    role: Role,
    /// The session's CSRF token for `x-ralph-csrf`.
    csrf: Option<String>,
    /// The version of this server.
    version: &'static str,
    /// Whether it is filled with scripted runs.
    demo: bool,
    /// Commands of `debug` mode.
    debug_commands: &'static [&'static str],
}

pub(crate) async fn login(
    State(server): State<Arc<Server>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    Body(login): Body<Login>,
) -> Answer<Response> {
    check_origin(&headers)?;
    let ip = from.ip();
    let person = match (&login.token, &login.code) {
        (Some(token), None) => server.people.by_token(token.trim(), server.now()),
        (None, Some(code)) => server.codes.take(code).then(|| server.people.owner()),
        _ => return Err(Problem::bad("either `token` or `code` is needed, and not both")),
    };
    let Some(person) = person else {
        refuse_guessing(&server, ip)?;
        server.limiter.failed(ip);
        server.note_as("unknown", &ip.to_string(), "login refused", None, None)?;
        let what = if login.code.is_some() {
            "that code does not work (any more)"
        } else {
            "that token is none of this server"
        };
        return Err(Problem::new(StatusCode::UNAUTHORIZED, what)
            .hint("`ralph serve` prints the token; a code works once, for one minute"));
    };
    server.note_as(&person.name, &ip.to_string(), "login", None, None)?;
    let cookie = server.sessions.issue(&server.people, &person.name, server.now())?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie_text(&cookie, AGE, &headers))]).into_response())
}

pub(crate) async fn logout(
    State(server): State<Arc<Server>>,
    caller: Caller,
    headers: HeaderMap,
) -> Answer<Response> {
    caller.note(&server, "logout", None, None)?;
    if let Some(cookie) = cookie(&headers) {
        server.sessions.end(cookie, server.now())?;
    }
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie_text("", 0, &headers))]).into_response())
}

pub(crate) async fn me(State(server): State<Arc<Server>>, caller: Caller) -> Json<Me> {
    Json(Me {
        name: caller.person.name,
        role: caller.person.role,
        csrf: caller.csrf,
        version: env!("CARGO_PKG_VERSION"),
        demo: server.demo,
        debug_commands: crate::routes::steer::debug::COMMANDS,
    })
}

/// Hidden from scripts, not sent by other sites, and sent only over TLS if the server uses it.
fn cookie_text(value: &str, age: i64, headers: &HeaderMap) -> String {
    let proto = headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    let secure = if proto == Some("https") { "; Secure" } else { "" };
    format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}")
}
