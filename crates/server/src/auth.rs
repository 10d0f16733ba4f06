//! Authentication: a bearer token or a browser session. Every route takes a [`Caller`], so none is reachable
//! without one.

use crate::http::connections::Connection;
use crate::http::problem::Problem;
use crate::people::{Person, Role, same};
use crate::server::Server;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Header that a browser's unsafe requests carry.
pub const CSRF: &str = "x-ralph-csrf";

/// An authenticated client.
#[derive(Debug, Clone)]
pub struct Caller {
    pub person: Person,
    /// CSRF token of the session; `None` for a bearer token.
    pub csrf: Option<String>,
    /// The client's address.
    pub from: IpAddr,
    pass: Pass,
    /// Counts as open as long as this user's request, also once it has become a WebSocket.
    _connection: Option<Arc<Connection>>,
}

/// How the client authenticated.
#[derive(Debug, Clone)]
enum Pass {
    /// A token, by a mark that changes with it.
    Token(String),
    /// The session cookie.
    Session(String),
}

impl Caller {
    /// Whether the token or session is still valid; long responses check again.
    pub fn is_still_here(&self, server: &Server) -> bool {
        let now = match &self.pass {
            Pass::Token(mark) => server
                .people
                .by_name(&self.person.name)
                .filter(|(_, known)| same(known.as_bytes(), mark.as_bytes()))
                .map(|(person, _)| person),
            Pass::Session(cookie) => {
                server.sessions.read(&server.people, cookie, server.now()).map(|ticket| ticket.person)
            }
        };
        now.as_ref() == Some(&self.person)
    }

    /// Refuses callers with a lower role.
    pub fn may(&self, role: Role) -> Result<(), Problem> {
        if self.person.role >= role {
            return Ok(());
        }
        let own = self.person.role.as_str();
        Err(Problem::forbidden(format!("this needs the role {}; yours is {own}", role.as_str()))
            .hint("ask an admin of this server for another token"))
    }

    /// Records what the caller does. If recording fails, the action must not happen.
    pub fn note(
        &self,
        server: &Server,
        action: &str,
        run: Option<&str>,
        detail: Option<String>,
    ) -> Result<(), Problem> {
        server.note_as(&self.person.name, &self.from.to_string(), action, run, detail)
    }

    pub fn actor(&self) -> String {
        format!("{} via web", self.person.name)
    }
}

impl FromRequestParts<Arc<Server>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, server: &Arc<Server>) -> Result<Self, Problem> {
        let from = address(parts);
        if let Some(token) = bearer(&parts.headers) {
            // Before the limit: what others do never refuses a valid token.
            let Some(person) = server.people.by_token(token, server.now()) else {
                refuse_guessing(server, from)?;
                server.limiter.failed(from);
                return Err(unknown("that token is none of this server"));
            };
            let connection = known(parts);
            let mark = server.people.by_name(&person.name).map(|(_, mark)| mark).unwrap_or_default();
            return Ok(Self { person, csrf: None, from, pass: Pass::Token(mark), _connection: connection });
        }
        let pass = cookie(&parts.headers).unwrap_or_default().to_owned();
        let ticket = server
            .sessions
            .read(&server.people, &pass, server.now())
            .ok_or_else(|| unknown("not logged in"))?;
        let connection = known(parts);
        let upgrade = parts.headers.contains_key(header::UPGRADE);
        if upgrade || !matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) {
            check_origin(&parts.headers)?;
        }
        if !matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS) {
            let sent = parts.headers.get(CSRF).map(|value| value.as_bytes()).unwrap_or_default();
            if !same(sent, ticket.csrf.as_bytes()) {
                return Err(Problem::forbidden(format!("the header `{CSRF}` is missing or wrong"))
                    .hint("load the page again; `GET /api/v1/me` has the value"));
            }
        }
        Ok(Self {
            person: ticket.person,
            csrf: Some(ticket.csrf),
            from,
            pass: Pass::Session(pass),
            _connection: connection,
        })
    }
}

/// Keeps the connection: it belongs to a user.
fn known(parts: &Parts) -> Option<Arc<Connection>> {
    let connection = parts.extensions.get::<Arc<Connection>>()?;
    connection.is_known();
    Some(connection.clone())
}

fn unknown(detail: &str) -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, detail)
        .hint("log in with the token that `ralph serve` printed, or one that an admin gave you")
}

/// Refuses an address after too many wrong tokens.
pub fn refuse_guessing(server: &Server, from: IpAddr) -> Result<(), Problem> {
    match server.limiter.wait(from) {
        None => Ok(()),
        Some(wait) => {
            let seconds = wait.as_secs().max(1);
            Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens from this address")
                .hint(format!("try again in {seconds} seconds"))
                .with("retry_after", seconds))
        }
    }
}

/// Whether the browser's request comes from a page of this server.
pub fn check_origin(headers: &HeaderMap) -> Result<(), Problem> {
    let text = |name| headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    let Some(origin) = text(header::ORIGIN) else {
        // Browsers always send it when it matters; other programs needn't.
        return match text(header::HeaderName::from_static("sec-fetch-site")) {
            None | Some("same-origin" | "none") => Ok(()),
            Some(_) => Err(foreign("another site")),
        };
    };
    let of_origin = origin.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
    // A proxy with another name forwards the browser's. Pages of other sites can't set that header without a
    // CORS preflight, which always fails.
    let hosts = [text(header::HOST), text(header::HeaderName::from_static("x-forwarded-host"))];
    let is_own = hosts.into_iter().flatten().any(|host| {
        let host = host.trim();
        !host.is_empty() && of_origin.eq_ignore_ascii_case(host)
    });
    if is_own { Ok(()) } else { Err(foreign(origin)) }
}

fn foreign(origin: &str) -> Problem {
    let shown = ralph_loop_protocol::display::text::one_line(origin, 100);
    Problem::forbidden(format!("the request came from a page of `{shown}`"))
        .hint("open this server's own page; behind a proxy, let it pass the Host header on")
}

/// Whether the request uses a local host name. Otherwise another site could point its name here (DNS
/// rebinding) and read what needs no token.
pub fn is_named_locally(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let host = host.to_str().unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(six) => six.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The client's address.
pub fn address(parts: &Parts) -> IpAddr {
    parts
        .extensions
        .get::<ConnectInfo<SocketAddr>>()
        .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.0.ip())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The session cookie of a request.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == crate::people::COOKIE).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_pages_of_this_server_may_act() {
        let ok = |pairs: &[(&'static str, &str)]| check_origin(&headers(pairs)).is_ok();
        assert!(ok(&[("origin", "http://127.0.0.1:8000"), ("host", "127.0.0.1:8000")]));
        assert!(ok(&[("host", "127.0.0.1:8000")]));
        assert!(!ok(&[("origin", "http://evil.example"), ("host", "127.0.0.1:8000")]));
        assert!(!ok(&[("origin", "http://127.0.0.1:8000.evil.example"), ("host", "127.0.0.1:8000")]));
        assert!(!ok(&[("origin", "null"), ("host", "127.0.0.1:8000")]));
        assert!(!ok(&[("origin", "http://"), ("host", "")]));
        let behind_proxy = [("host", "10.0.0.7:8000"), ("x-forwarded-host", "dash.example")];
        assert!(ok(&[&[("origin", "https://dash.example")][..], &behind_proxy].concat()));
        assert!(!ok(&[&[("origin", "https://evil.example")][..], &behind_proxy].concat()));
        assert!(!ok(&[("sec-fetch-site", "cross-site"), ("host", "127.0.0.1:8000")]));
    }

    #[test]
    fn a_foreign_host_name_for_this_machine_is_detected() {
        let named = |host: &str| is_named_locally(&headers(&[("host", host)]));
        for own in ["localhost", "LOCALHOST:8000", "127.0.0.1:8000", "127.8.8.8", "[::1]:8000", "[::1]"] {
            assert!(named(own), "{own}");
        }
        for other in [
            "evil.example:8000",
            "127.0.0.1.evil.example",
            "10.0.0.7",
            "",
            "[fd00::1]:8000",
            "localhost.evil",
        ] {
            assert!(!named(other), "{other}");
        }
        assert!(is_named_locally(&HeaderMap::new()));
    }

    #[test]
    fn the_right_cookie_is_found_among_others() {
        let found = headers(&[("cookie", "a=b; ralph_session=x.y; c=d")]);
        assert_eq!(cookie(&found), Some("x.y"));
        assert_eq!(cookie(&headers(&[("cookie", "xralph_session=1")])), None);
        assert_eq!(bearer(&headers(&[("authorization", "Bearer  t ")])), Some("t"));
        assert_eq!(bearer(&headers(&[("authorization", "Basic t")])), None);
    }
}
