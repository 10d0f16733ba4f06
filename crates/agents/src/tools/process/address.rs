//! Finds URLs in the output of servers.

use regex_lite::Regex;
use std::sync::OnceLock;

/// The first local URL in `output`.
pub(crate) fn find(output: &str) -> Option<String> {
    static URL: OnceLock<Option<Regex>> = OnceLock::new();
    static PORT: OnceLock<Option<Regex>> = OnceLock::new();
    let plain = ralph_loop_protocol::display::sanitize::block(output);
    let url = URL.get_or_init(|| {
        Regex::new(r#"(https?)://(localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\])(:\d{1,5})?(/[^\s'"<>`)\]]*)?"#)
            .ok()
    });
    if let Some(found) = url.as_ref().and_then(|url| url.captures(&plain)) {
        let part = |at: usize| found.get(at).map_or("", |part| part.as_str());
        // Listen addresses are converted to ones that a browser can open.
        let host = match part(2) {
            "0.0.0.0" | "[::]" => "localhost",
            host => host,
        };
        return Some(format!("{}://{host}{}{}", part(1), part(3), part(4).trim_end_matches(['.', ',', ';'])));
    }
    let port = PORT.get_or_init(|| {
        Regex::new(r"(?i)(?:\b(?:listening|running|serving|started|server|ready|available)\b[^\n]{0,60}?(?:\bport[ :=]+|:))(\d{2,5})\b")
            .ok()
    });
    let found = port.as_ref().and_then(|port| port.captures(&plain))?;
    let number: u16 = found.get(1)?.as_str().parse().ok().filter(|port| *port >= 80)?;
    Some(format!("http://localhost:{number}"))
}

pub(crate) fn port(url: &str) -> Option<u16> {
    let (scheme, rest) = url.split_once("://")?;
    let host = rest.split('/').next()?;
    match host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
        Some((_, port)) => port.parse().ok(),
        None if scheme == "https" => Some(443),
        None => Some(80),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_in_server_output_are_found() {
        for (output, url) in [
            (
                "  ➜  \u{1b}[1mLocal\u{1b}[22m:   \u{1b}[36mhttp://localhost:\u{1b}[1m5173\u{1b}[22m/\u{1b}[39m\n",
                "http://localhost:5173/",
            ),
            ("Serving HTTP on 0.0.0.0 port 8000 (http://0.0.0.0:8000/) ...", "http://localhost:8000/"),
            ("- Local: http://localhost:3000", "http://localhost:3000"),
            (
                "see https://example.com/docs; ready on http://127.0.0.1:8080/app.",
                "http://127.0.0.1:8080/app",
            ),
            ("Server listening on port 4000", "http://localhost:4000"),
            ("listening on :9090", "http://localhost:9090"),
            ("Listening at [::]:7777", "http://localhost:7777"),
            ("http://[::1]:6000/x", "http://[::1]:6000/x"),
        ] {
            assert_eq!(find(output).as_deref(), Some(url), "{output}");
        }
        for output in ["", "compiled in 4000 ms", "https://example.com", "12:30:00 watching for changes"] {
            assert_eq!(find(output), None, "{output}");
        }
    }

    #[test]
    fn ports_of_addresses() {
        assert_eq!(port("http://localhost:5173/x:1"), Some(5173));
        assert_eq!((port("http://localhost/"), port("https://[::1]")), (Some(80), Some(443)));
        assert_eq!(port("http://[::1]:81/"), Some(81));
    }
}
