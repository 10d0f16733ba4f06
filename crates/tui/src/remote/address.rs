//! A server's URL and token.

use ralph_loop_app::AppError;
use ralph_loop_http::{Url, is_loopback};
use ralph_loop_protocol::display::text::one_line;

#[derive(Clone)]
pub struct ServerAddress {
    pub(super) base: Url,
    pub(super) token: String,
}

// Keeps the token out of messages and logs.
impl std::fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerAddress").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl ServerAddress {
    /// Parses a server URL. `unencrypted` allows sending the token to another machine without TLS.
    pub fn new(url: &str, token: &str, unencrypted: bool) -> Result<Self, AppError> {
        let shown = one_line(url, 200);
        let wrong = |why: &str| {
            AppError::usage(format!("`{shown}` isn't a valid server URL: {why}"))
                .hint("for example `--server https://ralph.example.com` or `--server http://localhost:8000`")
        };
        let mut base = Url::parse(url.trim()).map_err(|e| wrong(&e.to_string()))?;
        let host = base.host_str().unwrap_or_default().to_owned();
        if !matches!(base.scheme(), "http" | "https") || host.is_empty() {
            return Err(wrong("it begins with https:// or http://"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong("a token does not belong into an address"));
        }
        if base.scheme() == "http" && !is_loopback(&host) && !unencrypted {
            return Err(AppError::usage(format!("the token would go to {host} where others can read it"))
                .cause("the address begins with http://, and the server is on another machine")
                .hint(format!(
                    "use https://, or `ssh -L 8000:localhost:8000 {host}` and `--server http://localhost:8000`; `--unencrypted` sends it all the same"
                )));
        }
        if token.trim().is_empty() || token.trim().chars().any(|c| !c.is_ascii_graphic()) {
            return Err(AppError::usage("the token of the server is empty, or no token")
                .hint("use one word of ASCII characters; the server's admin creates tokens"));
        }
        base.set_query(None);
        base.set_fragment(None);
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        Ok(Self { base, token: token.trim().to_owned() })
    }

    /// Whether the URL points to this machine.
    pub fn is_here(url: &str) -> bool {
        Url::parse(url.trim()).is_ok_and(|url| url.host_str().is_some_and(is_loopback))
    }

    pub fn shown(&self) -> String {
        one_line(self.base.as_str().trim_end_matches('/'), 200)
    }

    pub fn host(&self) -> String {
        one_line(self.base.host_str().unwrap_or_default(), 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_sent_only_over_https_or_localhost() {
        let ok = |url: &str| ServerAddress::new(url, "t0ken", false);
        assert_eq!(ok("https://ralph.example.com").unwrap().shown(), "https://ralph.example.com");
        assert_eq!(ok("http://127.0.0.1:8000/").unwrap().shown(), "http://127.0.0.1:8000");
        assert_eq!(ok("https://a.example/ralph?x=1").unwrap().shown(), "https://a.example/ralph");
        let error = ok("http://ralph.example.com").unwrap_err();
        assert!(error.next().contains("--unencrypted"), "{error:?}");
        assert!(ServerAddress::new("http://ralph.example.com", "t", true).is_ok());
        for wrong in ["ralph.example.com", "ftp://a.example", "", "https://me:secret@a.example", "https://"] {
            assert!(ok(wrong).is_err(), "{wrong}");
        }
        for token in ["", " ", "two words", "é"] {
            assert!(ServerAddress::new("https://a.example", token, false).is_err(), "{token:?}");
        }
    }

    #[test]
    fn token_is_not_logged() {
        let address = ServerAddress::new("https://a.example", "s3cret", false).unwrap();
        assert!(!format!("{address:?}").contains("s3cret"));
    }

    #[test]
    fn only_local_hosts_are_local() {
        assert!(ServerAddress::is_here("http://localhost:1") && ServerAddress::is_here("http://[::1]:1"));
        assert!(!ServerAddress::is_here("http://localhost.example.com") && !ServerAddress::is_here("x"));
    }
}
