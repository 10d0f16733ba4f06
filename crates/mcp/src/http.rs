//! The same over streamable HTTP, for a web server that knows who asks: it checks the token of every request before it comes here,
//! and makes a service for that one caller. There are no sessions that somebody else could go on with.

use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;

/// Bytes of one message.
const BODY_MAX: usize = 1024 * 1024;

/// A service for one caller. Requests whose `Host` is not one of `hosts` are refused (any is taken where the list is empty), and so is
/// every browser's page of another host: it must not reach a server on this machine by a name of its own.
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
