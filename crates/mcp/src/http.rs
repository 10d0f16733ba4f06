//! The server over streamable HTTP, inside a web server that authenticates every request and creates a service for
//! that caller. There are no sessions that another caller could take over.

use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;

const BODY_MAX: usize = 1024 * 1024;

/// A service for one caller. Refuses requests whose `Host` isn't in `hosts` (an empty list accepts any), and every
/// browser page of another host, which must not reach a local server through DNS rebinding.
pub fn http_service<S: ServerHandler + Clone + Send + Sync + 'static>(
    server: S,
    hosts: &[&str],
) -> StreamableHttpService<S, NeverSessionManager> {
    let mut config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_MAX)
        .enforce_origin_validation();
    config.allowed_hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    config.allowed_origins = hosts.iter().map(|host| format!("http://{host}:*")).collect();
    StreamableHttpService::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), config)
}
