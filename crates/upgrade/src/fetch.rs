//! Files from a server: bounded, over TLS, along its redirects, tried again where the network failed.

use crate::error::UpgradeError;
use ralph_http::{
    Backoff, Client, ClientOptions, Failure, Method, ProxySettings, Request, Response, Url, is_loopback,
    never_stop,
};
use std::convert::Infallible;
use std::time::Duration;

/// How often a file is asked for.
const TRIES: u32 = 3;
/// Addresses that lead on to another.
const REDIRECTS: usize = 5;
/// How long a server may be silent.
const SILENCE: Duration = Duration::from_secs(60);
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(500), max: Duration::from_secs(5) };

/// Takes the pieces of a file; the first call of a try is told to begin anew.
pub(crate) trait Sink {
    /// Forgets what came.
    fn restart(&mut self) -> Result<(), UpgradeError>;
    /// Takes what comes.
    fn take(&mut self, bytes: &[u8]) -> Result<(), UpgradeError>;
}

impl Sink for Vec<u8> {
    fn restart(&mut self) -> Result<(), UpgradeError> {
        self.clear();
        Ok(())
    }
    fn take(&mut self, bytes: &[u8]) -> Result<(), UpgradeError> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// A way to servers.
#[derive(Debug)]
pub(crate) struct Fetcher {
    client: Client,
}

/// Why a try failed.
enum Failed {
    /// Trying again may help.
    Network(String),
    /// It will not.
    Refused(String),
    /// On our side.
    Here(UpgradeError),
}

impl Fetcher {
    pub(crate) fn new(vars: &dyn Fn(&str) -> Option<String>) -> Result<Self, UpgradeError> {
        let options = ClientOptions { proxy: ProxySettings::from_vars(vars), ..ClientOptions::default() };
        let client = Client::new(options).map_err(|error| UpgradeError::Fetch {
            what: "nothing".into(),
            host: "anywhere".into(),
            reason: error.to_string(),
        })?;
        Ok(Self { client })
    }

    /// Fetches a file of at most `max` bytes.
    pub(crate) fn fetch(
        &self,
        what: &str,
        url: &Url,
        max: u64,
        sink: &mut dyn Sink,
    ) -> Result<(), UpgradeError> {
        let mut tries = 1;
        loop {
            let reason = match self.once(url, max, sink) {
                Ok(()) => return Ok(()),
                Err(Failed::Here(error)) => return Err(error),
                Err(Failed::Network(_)) if tries < TRIES => {
                    self.client.pause(BACKOFF.wait(tries));
                    tries += 1;
                    continue;
                }
                Err(Failed::Network(reason) | Failed::Refused(reason)) => reason,
            };
            let host = url.host_str().unwrap_or("the server").to_owned();
            return Err(UpgradeError::Fetch { what: what.to_owned(), host, reason });
        }
    }

    fn once(&self, url: &Url, max: u64, sink: &mut dyn Sink) -> Result<(), Failed> {
        sink.restart().map_err(Failed::Here)?;
        let mut response = self.follow(url.clone())?;
        let announced: Option<u64> = response.header("content-length").and_then(|text| text.parse().ok());
        let mut came: u64 = 0;
        let too_long = || Failed::Refused(format!("it is longer than {max} bytes"));
        if announced.is_some_and(|length| length > max) {
            return Err(too_long());
        }
        while let Some(piece) = response.chunk(SILENCE, &mut never_stop).map_err(network)? {
            came += piece.len() as u64;
            if came > max {
                return Err(too_long());
            }
            sink.take(&piece).map_err(Failed::Here)?;
        }
        match announced {
            Some(length) if length != came => {
                Err(Failed::Network(format!("it ended after {came} of {length} bytes")))
            }
            _ => Ok(()),
        }
    }

    /// The answer at the end of the redirects. None leads from TLS to plain text.
    fn follow(&self, mut url: Url) -> Result<Response<'_>, Failed> {
        for _ in 0..=REDIRECTS {
            let request = Request::new(Method::GET, url.clone());
            let response = self.client.send(&request, SILENCE, &mut never_stop).map_err(network)?;
            match response.status() {
                200 => return Ok(response),
                301 | 302 | 303 | 307 | 308 => {
                    let next = response.header("location").and_then(|to| url.join(to).ok());
                    let next = next.filter(|next| may_follow(&url, next));
                    url = next
                        .ok_or_else(|| Failed::Refused("it leads to an address that is not used".into()))?;
                }
                500..=599 | 429 => return Err(Failed::Network(response.status_code().to_string())),
                _ => return Err(Failed::Refused(response.status_code().to_string())),
            }
        }
        Err(Failed::Refused("it leads on and on".into()))
    }
}

/// Whether an address may be asked at all: over TLS, or on this machine.
pub(crate) fn is_safe(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => url.host_str().is_some_and(is_loopback),
        _ => false,
    }
}

fn may_follow(from: &Url, to: &Url) -> bool {
    is_safe(to) && (to.scheme() == "https" || from.scheme() == "http")
}

fn network(failure: Failure<Infallible>) -> Failed {
    Failed::Network(match failure {
        Failure::TimedOut => "the server does not answer".into(),
        Failure::Transport(error) => error.to_string(),
        Failure::Stopped(never) => match never {},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_leads_nowhere_that_is_not_safe() {
        let url = |text: &str| Url::parse(text).unwrap();
        assert!(may_follow(&url("https://a.example/x"), &url("https://b.example/y")));
        assert!(may_follow(&url("http://127.0.0.1:1/x"), &url("http://127.0.0.1:2/y")));
        for to in ["http://b.example/y", "http://127.0.0.1/y", "file:///etc/passwd", "ftp://b.example/"] {
            assert!(!may_follow(&url("https://a.example/x"), &url(to)), "{to}");
        }
        assert!(!may_follow(&url("http://127.0.0.1/x"), &url("http://b.example/y")));
    }
}
