//! The dashboard's embedded files, or a placeholder that says how to build them.

use crate::http::page;
use crate::http::page::PageFile;
use crate::http::problem::Problem;
use crate::people::random_bytes;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use std::io::Read as _;

/// Placeholder for the nonce in the built page.
const NONCE: &str = "__CSP_NONCE__";

pub(crate) async fn page(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if !matches!(method, Method::GET | Method::HEAD) {
        return Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no such route or method").into_response();
    }
    let path = uri.path().trim_start_matches('/');
    if path.starts_with("api/") {
        return Problem::missing("no such route").hint("`/api/docs` lists them").into_response();
    }
    match page::find(path) {
        Some(file) if path != "index.html" => asset(file, &headers),
        _ if path.starts_with("assets/") => Problem::missing("no such file").into_response(),
        // All other paths are routes of the page.
        _ => index(),
    }
}

fn asset(file: &'static PageFile, asked: &HeaderMap) -> Response {
    let takes = asked.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let as_it_is = !file.gzipped || takes.is_some_and(|takes| takes.contains("gzip"));
    let mut response = if as_it_is { file.bytes.into_response() } else { unpacked(file).into_response() };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(file.kind));
    // Asset names change with their content, so they can be cached.
    let kept =
        if file.name.starts_with("assets/") { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(kept));
    if file.gzipped && as_it_is {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

/// For the few clients that don't accept compression.
fn unpacked(file: &PageFile) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Embedded data is valid.
    let _ = GzDecoder::new(file.bytes).read_to_end(&mut bytes);
    bytes
}

fn index() -> Response {
    let Ok(nonce) = random_bytes::<16>().map(|bytes| ralph_loop_protocol::id::hex(&bytes)) else {
        return Problem::internal("this machine gives no random bytes").into_response();
    };
    let text = page::index().replace(NONCE, &nonce);
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; font-src 'self'; \
         connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let mut response = text.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}
