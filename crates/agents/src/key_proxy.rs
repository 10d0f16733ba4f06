//! Keeps API keys out of the sandbox: a session has a placeholder and the address of this server, which puts the key
//! in the placeholder's place and talks to the configured server only.

use ralph_loop_http::{
    Client, ClientOptions, Failure, HeaderName, HeaderValue, Method, ProxySettings, Request, Url, random_word,
};
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

const HEAD: u64 = 64 * 1024;
/// Requests hold whole conversations, with pictures.
const BODY: u64 = 64 * 1024 * 1024;
/// How long a server may be silent. A model may think for minutes.
const SILENCE: Duration = Duration::from_secs(30 * 60);

/// The variables of a CLI that takes a key and the address of its server.
struct Variables {
    keys: &'static [&'static str],
    server: &'static str,
    usual: &'static str,
    /// Settings with which the CLI uses something else than these.
    unless: &'static [&'static str],
}

fn variables(cli: &str) -> Option<Variables> {
    match cli {
        "claude" => Some(Variables {
            keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
            server: "ANTHROPIC_BASE_URL",
            usual: "https://api.anthropic.com",
            unless: &["CLAUDE_CODE_OAUTH_TOKEN"],
        }),
        _ => None,
    }
}

/// A key that stays outside.
struct Route {
    placeholder: String,
    key: String,
    server: Url,
}

/// The keys of a run's agents, by placeholder.
#[derive(Default)]
pub struct KeyProxy {
    routes: Vec<Route>,
    proxy: ProxySettings,
}

/// Without the keys.
impl std::fmt::Debug for KeyProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyProxy").field("routes", &self.routes.len()).finish_non_exhaustive()
    }
}

impl KeyProxy {
    /// Knows no key yet; the user's variables name the proxy to servers on other machines.
    pub fn new(var: &dyn Fn(&str) -> Option<String>) -> Self {
        Self { routes: Vec::new(), proxy: ProxySettings::from_vars(var) }
    }

    /// Whether it has anything to serve.
    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    /// Takes the keys of the program `cli` from the user's variables. Returns what its sessions get instead, if this
    /// server is at `address` for them; nothing if the CLI can't be sent to another address.
    pub fn take(
        &mut self,
        cli: &str,
        address: &str,
        var: impl Fn(&str) -> Option<String>,
    ) -> Vec<(String, String)> {
        let is_set = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        let Some(known) =
            variables(cli).filter(|known| !known.unless.iter().any(|name| is_set(name).is_some()))
        else {
            return Vec::new();
        };
        let server = is_set(known.server).unwrap_or_else(|| known.usual.to_owned());
        let Ok(server) = server.trim().trim_end_matches('/').parse::<Url>() else { return Vec::new() };
        let mut instead = Vec::new();
        for (name, key) in known.keys.iter().filter_map(|name| Some((name, is_set(name)?))) {
            let placeholder = format!("ralph-{}", random_word());
            instead.push(((*name).to_owned(), placeholder.clone()));
            self.routes.push(Route { placeholder, key, server: server.clone() });
        }
        if !instead.is_empty() {
            instead.push((known.server.to_owned(), address.to_owned()));
        }
        instead
    }

    /// Answers one request of a sandboxed client.
    pub fn serve(&self, client: UnixStream) {
        if let Err(error) = self.answer(&client) {
            tracing::debug!(%error, "a model request through the key proxy failed");
        }
        client.shutdown(std::net::Shutdown::Both).ok();
    }

    fn answer(&self, client: &UnixStream) -> io::Result<()> {
        client.set_read_timeout(Some(SILENCE))?;
        client.set_write_timeout(Some(SILENCE))?;
        let asked = match read(client)? {
            Ok(asked) => asked,
            Err((status, why)) => return refuse(client, status, why),
        };
        let request = match self.outgoing(asked) {
            Ok(request) => request,
            Err((status, why)) => return refuse(client, status, why),
        };
        let options = ClientOptions { proxy: self.proxy.clone(), ..ClientOptions::default() };
        let server = Client::new(options).map_err(io::Error::other)?;
        let mut gone = || match has_left(client) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let mut response = match server.send(&request, SILENCE, &mut gone) {
            Ok(response) => response,
            Err(Failure::Stopped(())) => return Ok(()),
            Err(Failure::TimedOut) => {
                return refuse(client, "504 Gateway Timeout", "the server didn't answer");
            }
            Err(Failure::Transport(error)) => return refuse(client, "502 Bad Gateway", &error.to_string()),
        };
        let mut head = format!("HTTP/1.1 {}\r\n", response.status_code()).into_bytes();
        for (name, value) in response.headers() {
            if !is_of_one_connection(name.as_str()) && name.as_str() != "content-length" {
                head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
            }
        }
        head.extend(b"connection: close\r\ntransfer-encoding: chunked\r\n\r\n");
        let mut client = client;
        client.write_all(&head)?;
        loop {
            match response.chunk(SILENCE, &mut gone) {
                // An empty chunk would end the body.
                Ok(Some(piece)) if piece.is_empty() => {}
                Ok(Some(piece)) => {
                    client.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
                    client.write_all(&piece)?;
                    client.write_all(b"\r\n")?;
                }
                Ok(None) => return client.write_all(b"0\r\n\r\n"),
                // Without the last chunk, the client knows that something is missing.
                Err(_) => return Ok(()),
            }
        }
    }

    /// The request with the key, for the server of its placeholder.
    fn outgoing(&self, asked: Asked) -> Result<Request, Refusal> {
        let has = |route: &&Route| asked.headers.iter().any(|(_, value)| value.contains(&route.placeholder));
        let route = self
            .routes
            .iter()
            .find(has)
            .ok_or(("401 Unauthorized", "the request has no key that ralph gave to this session"))?;
        let bad = |_| ("400 Bad Request", "the request is not one of HTTP");
        let method = Method::from_bytes(asked.method.as_bytes()).map_err(|_| bad(()))?;
        let target = format!("{}{}", route.server.as_str().trim_end_matches('/'), asked.target);
        let url: Url = target.parse().map_err(|_| bad(()))?;
        if (url.host_str(), url.port_or_known_default(), url.scheme())
            != (route.server.host_str(), route.server.port_or_known_default(), route.server.scheme())
        {
            return Err(bad(()));
        }
        let mut request = Request::new(method, url);
        let mut kind = HeaderValue::from_static("application/octet-stream");
        for (name, value) in asked.headers {
            let lower = name.to_ascii_lowercase();
            if is_of_one_connection(&lower) || matches!(lower.as_str(), "host" | "content-length" | "expect")
            {
                continue;
            }
            let value = value.replace(&route.placeholder, &route.key);
            let value = HeaderValue::from_str(&value).map_err(|_| bad(()))?;
            let name = HeaderName::from_bytes(lower.as_bytes()).map_err(|_| bad(()))?;
            if lower == "content-type" {
                kind = value.clone();
            }
            request = request.header(name, value);
        }
        if !asked.body.is_empty() {
            request = request.body(kind, asked.body);
        }
        Ok(request)
    }
}

/// A status, and why.
type Refusal = (&'static str, &'static str);

struct Asked {
    method: String,
    /// Path and query.
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

fn read(client: &UnixStream) -> io::Result<Result<Asked, Refusal>> {
    let mut from = BufReader::new(client);
    let mut head = (&mut from).take(HEAD);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Ok(Err((
                "431 Request Header Fields Too Large",
                "the request's head is too long or incomplete",
            )));
        }
        match line.trim_end_matches(['\r', '\n']) {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let bad = Err(("400 Bad Request", "the request is not one of HTTP"));
    let mut lines = lines.into_iter();
    let first = lines.next().unwrap_or_default();
    let words: Vec<&str> = first.split_ascii_whitespace().collect();
    let [method, target, _] = words.as_slice() else { return Ok(bad) };
    if !target.starts_with('/') {
        return Ok(bad);
    }
    let fields =
        lines.map(|line| line.split_once(':').map(|(n, v)| (n.trim().to_owned(), v.trim().to_owned())));
    let Some(headers) = fields.collect::<Option<Vec<_>>>() else { return Ok(bad) };
    let named =
        |name: &str| headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str());
    if named("transfer-encoding").is_some() {
        return Ok(Err(("411 Length Required", "the request's body has no length")));
    }
    let length: u64 = match named("content-length").map(str::parse) {
        None => 0,
        Some(Ok(length)) if length <= BODY => length,
        Some(Ok(_)) => return Ok(Err(("413 Content Too Large", "the request's body is too long"))),
        Some(Err(_)) => return Ok(bad),
    };
    let (method, target) = ((*method).to_owned(), (*target).to_owned());
    let mut body = Vec::new();
    if from.take(length).read_to_end(&mut body)? as u64 != length {
        return Ok(Err(("400 Bad Request", "the request's body is incomplete")));
    }
    Ok(Ok(Asked { method, target, headers, body }))
}

/// Headers that are about a connection, not about the message.
fn is_of_one_connection(name: &str) -> bool {
    matches!(name, "connection" | "keep-alive" | "te" | "trailer" | "transfer-encoding" | "upgrade")
        || name.starts_with("proxy-")
}

fn refuse(mut client: &UnixStream, status: &str, why: &str) -> io::Result<()> {
    let body = format!("ralph: {why}\n");
    let length = body.len();
    write!(
        client,
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Whether the client has closed its end.
fn has_left(client: &UnixStream) -> bool {
    use nix::sys::socket::{MsgFlags, recv};
    recv(client.as_raw_fd(), &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT) == Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Sends `request` through a proxy for a server that records what it gets; returns that and the answer.
    fn ask(request: impl Fn(&str) -> String) -> (String, String) {
        let upstream = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = upstream.local_addr().unwrap().port();
        let mut proxy = KeyProxy::default();
        let vars = |name: &str| match name {
            "ANTHROPIC_API_KEY" => Some("sk-real".to_owned()),
            "ANTHROPIC_BASE_URL" => Some(format!("http://127.0.0.1:{port}/gate/")),
            _ => None,
        };
        let instead = proxy.take("claude", "http://127.0.0.1:1", vars);
        let [(key, placeholder), (address, _)] = instead.as_slice() else { panic!("{instead:?}") };
        assert_eq!((key.as_str(), address.as_str()), ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"));
        assert!(!placeholder.contains("sk-real"));
        upstream.set_nonblocking(true).unwrap();
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(request(placeholder).as_bytes()).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                loop {
                    match upstream.accept() {
                        Ok((mut stream, _)) => {
                            stream.set_nonblocking(false).unwrap();
                            let mut got = String::new();
                            let mut from = BufReader::new(stream.try_clone().unwrap());
                            while !got.ends_with("\r\n\r\n") && from.read_line(&mut got).unwrap() > 0 {}
                            let mut body = vec![0; if got.contains("content-length: 2") { 2 } else { 0 }];
                            from.read_exact(&mut body).unwrap();
                            got.push_str(&String::from_utf8(body).unwrap());
                            stream.write_all(b"HTTP/1.1 429 Too Many\r\nretry-after: 7\r\nconnection: close\r\n\r\nwait").unwrap();
                            return got;
                        }
                        Err(_) if done.load(std::sync::atomic::Ordering::SeqCst) => return String::new(),
                        Err(_) => std::thread::yield_now(),
                    }
                }
            });
            proxy.serve(theirs);
            done.store(true, std::sync::atomic::Ordering::SeqCst);
            let mut answer = String::new();
            ours.read_to_string(&mut answer).unwrap();
            (server.join().unwrap(), answer)
        })
    }

    #[test]
    fn the_key_takes_the_place_of_its_placeholder() {
        let (got, answer) = ask(|placeholder| {
            format!(
                "POST /v1/messages?beta=true HTTP/1.1\r\nHost: evil.example\r\nX-Api-Key: {placeholder}\r\nContent-Length: 2\r\n\r\n{{}}"
            )
        });
        assert!(got.starts_with("POST /gate/v1/messages?beta=true HTTP/1.1\r\n"), "{got}");
        assert!(got.contains("x-api-key: sk-real\r\n") && got.ends_with("\r\n\r\n{}"), "{got}");
        assert!(got.contains("host: 127.0.0.1:") && !got.contains("evil"), "{got}");
        assert!(answer.starts_with("HTTP/1.1 429 Too Many Requests\r\nretry-after: 7\r\n"), "{answer}");
        assert!(answer.ends_with("4\r\nwait\r\n0\r\n\r\n"), "{answer}");
    }

    #[test]
    fn requests_without_the_placeholder_or_for_another_server_are_refused() {
        for (request, status) in [
            ("GET / HTTP/1.1\r\nX-Api-Key: sk-guess\r\n\r\n", "401"),
            ("GET http://evil.example/ HTTP/1.1\r\nX-Api-Key: KEY\r\n\r\n", "400"),
            ("GET @evil.example/ HTTP/1.1\r\nX-Api-Key: KEY\r\n\r\n", "400"),
            ("CONNECT evil.example:443 HTTP/1.1\r\nX-Api-Key: KEY\r\n\r\n", "400"),
            ("POST / HTTP/1.1\r\nX-Api-Key: KEY\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "411"),
            ("POST / HTTP/1.1\r\nX-Api-Key: KEY\r\nContent-Length: 999999999999\r\n\r\n", "413"),
        ] {
            let (got, answer) = ask(|placeholder| request.replace("KEY", placeholder));
            assert_eq!(got, "", "{request}");
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
        }
    }

    #[test]
    fn only_clis_with_a_key_and_an_address_are_served() {
        let take = |cli: &str, set: &[&str]| {
            let var = |name: &str| set.contains(&name).then(|| "value".to_owned());
            KeyProxy::default().take(cli, "http://127.0.0.1:1", var).len()
        };
        assert_eq!(take("claude", &[]), 0, "a login");
        assert_eq!(take("claude", &["ANTHROPIC_API_KEY"]), 2);
        assert_eq!(take("claude", &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"]), 0);
        assert_eq!(take("claude", &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"]), 0, "not an address");
        assert_eq!(take("mine", &["ANTHROPIC_API_KEY"]), 0);
    }
}
