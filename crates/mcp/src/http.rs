//! The same over streamable HTTP, for a web server that knows who asks: it checks the token before a request comes here, and chooses
//! the role.

use crate::server::RalphServer;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use std::sync::Arc;

/// A service for one role, to be nested below a path. Requests whose `Host` is not one of `hosts` are refused, and so is every
/// browser's page from elsewhere: a page must not reach a server on this machine by a name of its own.
pub fn http_service(
    server: RalphServer,
    hosts: Vec<String>,
) -> StreamableHttpService<RalphServer, LocalSessionManager> {
    let mut config = StreamableHttpServerConfig::default().enforce_origin_validation();
    config.allowed_hosts = hosts;
    StreamableHttpService::new(move || Ok(server.clone()), Arc::new(LocalSessionManager::default()), config)
}
