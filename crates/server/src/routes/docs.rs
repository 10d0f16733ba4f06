//! The API description: OpenAPI for programs, a plain page for readers.

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use serde_json::Value;
use std::fmt::Write as _;

/// Derived from the types by `scripts/generate`.
const OPENAPI: &str = include_str!("../../schemas/openapi.json");

pub(crate) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// A page without scripts or external content.
pub(crate) async fn docs() -> Html<String> {
    let document: Value = serde_json::from_str(OPENAPI).unwrap_or_default();
    let mut rows = String::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let role = operation["x-role"].as_str().unwrap_or("");
            let text = operation["summary"].as_str().unwrap_or("");
            let _ = write!(
                rows,
                "<tr><td><code>{}</code></td><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
                escape(&method.to_uppercase()),
                escape(path),
                escape(role),
                escape(text)
            );
        }
    }
    Html(format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>ralph API</title><h1>ralph API</h1>\
         <p>Log in with <code>Authorization: Bearer TOKEN</code>. Errors are <code>application/problem+json</code> with a \
         <code>hint</code>. Types and fields: <a href=\"/api/openapi.json\">openapi.json</a>.</p>\
         <table border=\"1\" cellpadding=\"6\"><tr><th>method<th>path<th>role<th>what</tr>{rows}</table></html>"
    ))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
