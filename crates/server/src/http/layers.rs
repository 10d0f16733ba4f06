//! Middleware for all responses: security headers and counters.

use crate::http::problem::Problem;
use crate::server::Server;
use axum::body::to_bytes;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;
use std::time::Instant;

/// Default response headers.
const HEADERS: [(&str, &str); 8] = [
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
];

/// Size limit of a plain-text refusal.
const SAID_MAX: usize = 4096;

/// Converts plain refusals (wrong method, invalid path, oversized body) to problems.
async fn as_problem(method: &str, response: Response) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let status = response.status();
    if !(status.is_client_error() || status.is_server_error())
        || kind.is_some_and(|kind| !kind.starts_with("text/plain"))
    {
        return response;
    }
    let (parts, body) = response.into_parts();
    let said = to_bytes(body, SAID_MAX).await.unwrap_or_default();
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    let detail = if said.is_empty() { format!("{method} is not taken here") } else { said };
    let mut told =
        Problem::new(status, detail).hint("`/api/docs` lists what each request takes").into_response();
    if let Some(allowed) = parts.headers.get(header::ALLOW) {
        told.headers_mut().insert(header::ALLOW, allowed.clone());
    }
    told
}

/// Counts a request and completes its response.
pub(crate) async fn around(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().map_or("page", |path| path.as_str()).to_owned();
    let mut response = next.run(request).await;
    // MCP has other rules and clients.
    if route != "/mcp" {
        response = as_problem(method.as_str(), response).await;
    }
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(HeaderName::from_static(name)).or_insert(HeaderValue::from_static(value));
    }
    server.metrics.answered(method.as_str(), &route, response.status().as_u16(), begun.elapsed());
    response
}
