//! The client against servers on this machine.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use ralph_loop_http::{
    Client, ClientOptions, Failure, HeaderName, HeaderValue, Method, ProxySettings, Request, TransportError,
    Url, never_stop,
};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(200);

/// A server that sends `answer` to every connection and reports the heads of the requests.
fn server(answer: &'static str) -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (heads, heard) = channel();
    std::thread::spawn(move || {
        // Keeps connections open: a client that reads to the end of an answer without a length waits for it.
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = String::new();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            while lines.read_line(&mut head).is_ok_and(|read| read > 2) {}
            let _ = heads.send(head);
            let _ = stream.write_all(answer.as_bytes());
            open.push(stream);
        }
    });
    (address, heard)
}

fn get(address: impl std::fmt::Display) -> Request {
    Request::new(Method::GET, Url::parse(&format!("http://{address}/a")).unwrap())
}

fn client(proxy: ProxySettings) -> Client {
    Client::new(ClientOptions { proxy, ..ClientOptions::default() }).unwrap()
}

fn fetch(client: &Client, request: &Request, max: usize) -> Result<(u16, String), Failure> {
    let (status, _, body) = client.fetch(request, LIMIT, max, &mut never_stop)?;
    Ok((status, String::from_utf8(body).unwrap()))
}

#[test]
fn headers_and_bodies_round_trip() {
    let (address, heads) = server("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
    let client = client(ProxySettings::NONE);
    let url = Url::parse(&format!("http://{address}/a")).unwrap();
    let request = Request::new(Method::POST, url)
        .header(HeaderName::from_static("x-key"), HeaderValue::from_static("k"))
        .body(HeaderValue::from_static("text/plain"), "body");
    assert_eq!(fetch(&client, &request, 100).unwrap(), (200, "hello".into()));
    let head = heads.recv().unwrap().to_lowercase();
    for line in [
        "post /a http/1.1",
        "x-key: k",
        "content-type: text/plain",
        "content-length: 4",
        "user-agent: ralph/",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
}

#[test]
fn a_longer_answer_than_allowed_is_not_read() {
    let (address, _) = server("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello");
    let failure = fetch(&client(ProxySettings::NONE), &get(address), 4).unwrap_err();
    assert!(matches!(failure, Failure::Transport(TransportError::TooLong)), "{failure:?}");
}

#[test]
fn redirects_are_not_followed() {
    let (address, _) =
        server("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(fetch(&client(ProxySettings::NONE), &get(address), 4).unwrap().0, 302);
}

#[test]
fn silence_ends_at_the_limit_and_a_wait_when_the_watch_says_so() {
    let (address, _) = server("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhe");
    let client = client(ProxySettings::NONE);
    let mut response = client.send(&get(address), LIMIT, &mut never_stop).unwrap();
    assert_eq!(response.chunk(LIMIT, &mut never_stop).unwrap().unwrap().as_ref(), b"he");
    let late = response.chunk(Duration::from_millis(20), &mut never_stop);
    assert!(matches!(late, Err(Failure::TimedOut)), "{late:?}");
    let mut asked = 0;
    let stopped = response.chunk(LIMIT, &mut || {
        asked += 1;
        if asked > 2 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(stopped, Err(Failure::Stopped("enough"))), "{stopped:?}");
    assert_eq!(client.pause_watched(LIMIT, &mut || ControlFlow::Break(7)), Err(7));
}

#[test]
fn unreachable_server_counts_as_unsent() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    match fetch(&client(ProxySettings::NONE), &get(closed), 4) {
        Err(Failure::Transport(error)) => {
            assert!(error.is_unsent(), "{error:?}");
            assert!(!error.to_string().contains("127.0.0.1"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn proxy_variables_are_used_except_for_this_machine() {
    let (proxy, asked) = server("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nproxy");
    let (direct, _) = server("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\ndirect");
    let vars = |name: &str| match name {
        "HTTP_PROXY" => Some(format!("http://me:hunter2@{proxy}")),
        "NO_PROXY" => Some("direct.invalid".into()),
        _ => None,
    };
    let client = client(ProxySettings::from_vars(&vars));
    assert_eq!(fetch(&client, &get("server.invalid"), 100).unwrap().1, "proxy");
    let head = asked.recv().unwrap();
    assert!(head.starts_with("GET http://server.invalid/a HTTP/1.1"), "{head}");
    assert!(head.to_lowercase().contains("proxy-authorization: basic "), "{head}");
    assert_eq!(fetch(&client, &get(direct), 100).unwrap().1, "direct");
    let failure = fetch(&client, &get("direct.invalid"), 100).unwrap_err();
    assert!(matches!(failure, Failure::Transport(TransportError::Connect { .. })), "{failure:?}");
}

/// Everything that is logged.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn log_has_method_server_and_status_but_no_secrets() {
    let (address, _heads) =
        server("HTTP/1.1 404 Not Found\r\nx-reply: reply-header\r\ncontent-length: 10\r\n\r\nreply-body");
    let log = Log::default();
    let kept = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_ansi(false)
        .with_writer(move || kept.clone())
        .finish();
    let url = |server: &str| {
        Url::parse(&format!("http://user-name:pass-word@{server}/path-key?token=query-key")).unwrap()
    };
    let request = |server: &str| {
        Request::new(Method::POST, url(server))
            .header(HeaderName::from_static("authorization"), HeaderValue::from_static("Bearer header-key"))
            .body(HeaderValue::from_static("text/plain"), "body-key")
    };
    // Nothing listens on a port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    tracing::subscriber::with_default(subscriber, || {
        let client = client(ProxySettings::NONE);
        assert_eq!(fetch(&client, &request(&address.to_string()), 100).unwrap().0, 404);
        assert!(matches!(fetch(&client, &request(&free.to_string()), 100), Err(Failure::Transport(_))));
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for word in [
        "method=POST",
        "host=\"127.0.0.1\"",
        &format!("port={}", address.port()),
        "status=404",
        "took=",
        "http failed",
    ] {
        assert!(log.contains(word), "{word}: {log}");
    }
    for secret in [
        "user-name",
        "pass-word",
        "path-key",
        "query-key",
        "header-key",
        "body-key",
        "reply-header",
        "reply-body",
    ] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}
