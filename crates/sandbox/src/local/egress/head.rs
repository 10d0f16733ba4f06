//! Parses the head of a request to the proxy.

use std::io::{self, Read};

const MOST: usize = 32 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ProxyRequest {
    Connect {
        host: String,
        port: u16,
    },
    /// One unencrypted request; `head` is what the server gets.
    Forward {
        host: String,
        port: u16,
        head: Vec<u8>,
    },
    /// A bridge that can connect to ports inside.
    Reach,
    /// A connection that a bridge was asked for.
    Carry {
        id: u64,
        reached: bool,
    },
}

/// Reads up to the end of a head, and no byte after it.
pub(super) fn read(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    let mut byte = [0];
    loop {
        if from.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&byte);
        if head.ends_with(b"\r\n\r\n")
            || head.ends_with(b"\n\n")
            || (head.ends_with(b"\n") && head.starts_with(b"RALPH-"))
        {
            return Ok(head);
        }
        if head.len() > MOST {
            return Err(io::Error::other("the request is too long"));
        }
    }
}

/// Parses a head; the error is for the client.
pub(super) fn wish(head: &[u8]) -> Result<ProxyRequest, &'static str> {
    let text = std::str::from_utf8(head).map_err(|_| "the request is not text")?;
    let (line, fields) = text.split_once('\n').ok_or("the request has no line")?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    match words.as_slice() {
        ["RALPH-REACH"] => Ok(ProxyRequest::Reach),
        ["RALPH-CARRY", id, reached] => {
            let id = id.parse().map_err(|_| "no such connection")?;
            Ok(ProxyRequest::Carry { id, reached: *reached == "ok" })
        }
        ["CONNECT", to, _] => {
            let (host, port) = host_and_port(to, None).ok_or("CONNECT needs host:port")?;
            Ok(ProxyRequest::Connect { host, port })
        }
        [method, target, version] => {
            let rest = strip_scheme(target).ok_or("only http:// and CONNECT go through this proxy")?;
            let (authority, path) = match rest.find(['/', '?']) {
                Some(at) => rest.split_at(at),
                None => (rest, "/"),
            };
            let (host, port) = host_and_port(authority, Some(80)).ok_or("the address has no host")?;
            let slash = if path.starts_with('/') { "" } else { "/" };
            let mut out =
                format!("{method} {slash}{path} {version}\r\nHost: {authority}\r\nConnection: close\r\n");
            for field in fields.lines().take_while(|line| !line.trim().is_empty()) {
                let name = field.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
                // The host is the checked one; the connection carries only this request.
                if !name.starts_with("proxy-")
                    && !matches!(name.as_str(), "host" | "connection" | "keep-alive")
                {
                    out.push_str(field.trim_end());
                    out.push_str("\r\n");
                }
            }
            out.push_str("\r\n");
            Ok(ProxyRequest::Forward { host, port, head: out.into_bytes() })
        }
        _ => Err("the request is not one of HTTP"),
    }
}

fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_once("://")?;
    scheme.eq_ignore_ascii_case("http").then_some(rest)
}

/// `host:port`, `[::1]:port`, or a host with the usual port. No user name.
fn host_and_port(text: &str, usual: Option<u16>) -> Option<(String, u16)> {
    if text.is_empty() || text.contains('@') {
        return None;
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && !port.ends_with(']') => {
            (host, port.parse().ok().filter(|port| *port > 0)?)
        }
        _ => (text, usual?),
    };
    is_host(host).then(|| (host.to_owned(), port))
}

/// A single name or address, and nothing ambiguous.
fn is_host(text: &str) -> bool {
    let is_name = || text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'));
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    is_name() || bare.parse::<std::net::Ipv6Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxy_requests_are_parsed() {
        let connect = wish(b"CONNECT example.org:443 HTTP/1.1\r\nHost: other.org\r\n\r\n").unwrap();
        assert_eq!(connect, ProxyRequest::Connect { host: "example.org".into(), port: 443 });
        let v6 = wish(b"CONNECT [::1]:443 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(v6, ProxyRequest::Connect { host: "[::1]".into(), port: 443 });
        let text = b"GET http://example.org:8080/a?b HTTP/1.1\r\nHost: evil.org\r\nProxy-Authorization: x\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n";
        let ProxyRequest::Forward { host, port, head } = wish(text).unwrap() else { panic!("no forward") };
        assert_eq!((host.as_str(), port), ("example.org", 8080));
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "GET /a?b HTTP/1.1\r\nHost: example.org:8080\r\nConnection: close\r\nAccept: */*\r\n\r\n"
        );
        for (bad, why) in [
            ("GET / HTTP/1.1\r\n\r\n", "only http:// and CONNECT go through this proxy"),
            ("GET https://x.org/ HTTP/1.1\r\n\r\n", "only http:// and CONNECT go through this proxy"),
            ("CONNECT x.org HTTP/1.1\r\n\r\n", "CONNECT needs host:port"),
            ("GET http://a@b/ HTTP/1.1\r\n\r\n", "the address has no host"),
            ("CONNECT a@b:443 HTTP/1.1\r\n\r\n", "CONNECT needs host:port"),
            ("CONNECT [:x/1.:1]:443 HTTP/1.1\r\n\r\n", "CONNECT needs host:port"),
            ("CONNECT a\0b:443 HTTP/1.1\r\n\r\n", "CONNECT needs host:port"),
            ("GET http://a%2eb/ HTTP/1.1\r\n\r\n", "the address has no host"),
            ("x\r\n\r\n", "the request is not one of HTTP"),
        ] {
            assert_eq!(wish(bad.as_bytes()).unwrap_err(), why, "{bad}");
        }
    }
}
