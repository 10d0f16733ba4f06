//! HTTP calls: retries, limits, pages.
//!
//! The token appears in a header, is sent only to the API's own origin, and is redacted from the host's messages.
#![allow(clippy::disallowed_methods, reason = "the home of the clock for code hosts")]

use super::{address, errors, limits};
use crate::error::{Result, refused, unavailable};
use jiff::Timestamp;
use ralph_loop_domain::ports::ForgeError;
use ralph_loop_http::{
    Backoff, Client, ClientOptions, Failure, HeaderMap, HeaderName, HeaderValue, Method, ProxySettings,
    Request, Url, never_stop,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::{Duration, Instant};

/// How often a retryable call is tried.
const TRIES: u32 = 4;
/// The longest backoff.
const BACKOFF_MAX: Duration = Duration::from_secs(20);
/// A longer limit is reported instead of waited for.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The longest answer.
const ANSWER_MAX: usize = 32 * 1024 * 1024;
/// The longest log that is read to get its end.
const LOG_MAX: usize = 512 * 1024 * 1024;
/// Pages of a list: GitHub lists at most 3000 files of a pull request.
const PAGES_MAX: usize = 30;
/// A renamed repo redirects.
const MOVES_MAX: u32 = 3;

/// Whether a request may be repeated after its answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    Safe,
    /// Doing it twice does harm: repeated only if it certainly didn't reach the host.
    OnlyIfUnsent,
}

#[derive(Debug, Clone)]
pub(crate) struct ApiRequest {
    pub what: String,
    pub method: Method,
    pub url: String,
    pub body: Option<Value>,
    pub repeat: Repeat,
    /// Statuses besides 2xx that are an answer.
    pub also: &'static [u16],
}

impl ApiRequest {
    pub fn get(what: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            method: Method::GET,
            url: url.into(),
            body: None,
            repeat: Repeat::Safe,
            also: &[],
        }
    }
    pub fn with(method: Method, what: impl Into<String>, url: impl Into<String>, body: Value) -> Self {
        Self { method, body: Some(body), ..Self::get(what, url) }
    }
    pub fn once(self) -> Self {
        Self { repeat: Repeat::OnlyIfUnsent, ..self }
    }
    pub fn also(self, also: &'static [u16]) -> Self {
        Self { also, ..self }
    }
}

#[derive(Debug)]
pub(crate) struct ApiResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl ApiResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
    pub fn json<T: DeserializeOwned>(&self, what: &str) -> Result<T> {
        serde_json::from_slice(&self.body)
            .map_err(|e| unavailable(what, format!("the answer cannot be read: {e}")))
    }
}

pub(crate) trait TokenSource {
    /// The bearer token; `refused` is one that the host has just rejected.
    fn token(&self, http: &ApiClient, refused: Option<&str>) -> Result<String>;
    fn renews(&self) -> bool;
}

pub(crate) struct ApiClient {
    client: Client,
    backoff: Backoff,
    timeout: Duration,
    /// `owner/name`, for error messages.
    repo: String,
}

struct NoAnswer {
    reason: String,
    /// The host can't have seen the request.
    unsent: bool,
}

impl ApiClient {
    pub fn new(repo: String, timeout: Duration, backoff: Duration, proxy: ProxySettings) -> Result<Self> {
        let client = Client::new(ClientOptions { proxy, ..ClientOptions::default() })
            .map_err(|error| unavailable("cannot talk to GitHub", error))?;
        Ok(Self { client, backoff: Backoff { first: backoff, max: BACKOFF_MAX }, timeout, repo })
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    pub fn send(&self, request: &ApiRequest, tokens: &dyn TokenSource) -> Result<ApiResponse> {
        let mut request = request.clone();
        let (mut tries, mut moves, mut renewed) = (0, 0, false);
        let mut token = tokens.token(self, None)?;
        loop {
            tries += 1;
            let again = tries < TRIES;
            let answer = match self.attempt(&request, &token) {
                Ok(answer) => answer,
                Err(lost) if again && (lost.unsent || request.repeat == Repeat::Safe) => {
                    self.pause(
                        &request,
                        tries,
                        self.backoff.wait(tries),
                        &errors::clean(&lost.reason, &token),
                    );
                    continue;
                }
                Err(lost) => return Err(unavailable(request.what, errors::clean(&lost.reason, &token))),
            };
            let status = answer.status;
            tracing::debug!(repo = self.repo, what = request.what, status, tries, "forge call");
            if (200..300).contains(&status) || request.also.contains(&status) {
                return Ok(answer);
            }
            if matches!(status, 301 | 307 | 308)
                && moves < MOVES_MAX
                && let Some(to) = answer.header("location").and_then(|to| moved(&request.url, to))
            {
                (moves, tries, request.url) = (moves + 1, tries - 1, to);
                continue;
            }
            if status == 401 && tokens.renews() && !renewed {
                (renewed, token) = (true, tokens.token(self, Some(&token))?);
                continue;
            }
            if let Some(wait) = limits::wait(&answer, self.now()) {
                // Nothing was done yet, so even a non-repeatable request may be repeated.
                if again && wait <= WAIT_MAX {
                    self.pause(&request, tries, wait, "rate limit");
                    continue;
                }
                return Err(ForgeError::RateLimited { what: request.what, wait });
            }
            if status >= 500 && again && request.repeat == Repeat::Safe {
                self.pause(&request, tries, self.backoff.wait(tries), "the host has trouble");
                continue;
            }
            return Err(errors::error(&request, &answer, &self.repo, &token, tokens.renews()));
        }
    }

    fn pause(&self, request: &ApiRequest, tries: u32, wait: Duration, reason: &str) {
        tracing::debug!(
            repo = self.repo,
            what = request.what,
            tries,
            ?wait,
            reason,
            "forge call is tried again"
        );
        self.client.pause(wait);
    }

    pub fn json<T: DeserializeOwned>(&self, request: &ApiRequest, tokens: &dyn TokenSource) -> Result<T> {
        self.send(request, tokens)?.json(&request.what)
    }

    /// Reads a list to its end, or to a limit. `items` finds the list in a page.
    pub fn pages<T: DeserializeOwned>(
        &self,
        request: &ApiRequest,
        key: Option<&str>,
        tokens: &dyn TokenSource,
    ) -> Result<Vec<T>> {
        let mut request = request.clone();
        let mut found = Vec::new();
        for _ in 0..PAGES_MAX {
            let answer = self.send(&request, tokens)?;
            let mut page: Value = answer.json(&request.what)?;
            let list = match key {
                Some(key) => page.get_mut(key).map(Value::take).unwrap_or_default(),
                None => page,
            };
            let items: Vec<T> = serde_json::from_value(list)
                .map_err(|e| unavailable(request.what.clone(), format!("the answer cannot be read: {e}")))?;
            found.extend(items);
            match answer.header("link").and_then(next_query) {
                // Only takes the query: the token must go to the usual URL.
                Some(query) => {
                    let path = request.url.split('?').next().unwrap_or_default();
                    request.url = format!("{path}?{query}");
                }
                None => break,
            }
        }
        Ok(found)
    }

    /// The end of a text at a URL that carries its own permission. Sends no token.
    pub fn tail(&self, url: &str, max: usize) -> Option<String> {
        let (started, limit) = (Instant::now(), self.timeout * 4);
        let request = Request::new(Method::GET, Url::parse(url).ok()?);
        let mut response = self.client.send(&request, limit, &mut never_stop).ok()?;
        if !(200..300).contains(&response.status()) {
            return None;
        }
        let (mut kept, mut seen): (Vec<u8>, usize) = (Vec::new(), 0);
        while let Some(chunk) =
            response.chunk(limit.saturating_sub(started.elapsed()), &mut never_stop).ok()?
        {
            seen += chunk.len();
            kept.extend_from_slice(&chunk);
            if kept.len() > max.saturating_mul(2).max(64 * 1024) {
                kept.drain(..kept.len() - max);
            }
            if seen > LOG_MAX {
                break;
            }
        }
        Some(String::from_utf8_lossy(&kept).into_owned())
    }

    fn attempt(&self, call: &ApiRequest, token: &str) -> Result<ApiResponse, NoAnswer> {
        let broken = |reason: &str| NoAnswer { reason: reason.into(), unsent: true };
        let url = Url::parse(&call.url).map_err(|_| broken("the address is none"))?;
        let mut bearer = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| broken("the token isn't a valid header value: is it complete?"))?;
        bearer.set_sensitive(true);
        let header = |name| HeaderName::from_static(name);
        let mut request = Request::new(call.method.clone(), url)
            .header(header("accept"), HeaderValue::from_static("application/vnd.github+json"))
            .header(header("x-github-api-version"), HeaderValue::from_static("2022-11-28"))
            .header(header("authorization"), bearer);
        if let Some(body) = &call.body {
            request = request.body(HeaderValue::from_static("application/json"), body.to_string());
        }
        match self.client.fetch(&request, self.timeout, ANSWER_MAX, &mut never_stop) {
            Ok((status, headers, body)) => Ok(ApiResponse { status, headers, body }),
            Err(Failure::TimedOut) => Err(NoAnswer {
                reason: format!("no answer within {} s", self.timeout.as_secs()),
                unsent: false,
            }),
            Err(Failure::Transport(error)) => {
                Err(NoAnswer { reason: error.to_string(), unsent: error.is_unsent() })
            }
        }
    }
}

/// Retries `made` although doing it twice would do harm: after a lost answer, `look` says whether it happened.
pub(crate) fn once<T>(
    http: &ApiClient,
    mut made: impl FnMut() -> Result<T>,
    mut look: impl FnMut() -> Result<Option<T>>,
) -> Result<T> {
    let mut tries = 0;
    loop {
        tries += 1;
        let error = match made() {
            Err(error @ ForgeError::Unavailable { .. }) => error,
            ended => return ended,
        };
        if let Some(found) = look()? {
            return Ok(found);
        }
        if tries >= TRIES {
            return Err(error);
        }
        http.client.pause(http.backoff.wait(tries));
        // The host may have been slower than its answer.
        if let Some(found) = look()? {
            return Ok(found);
        }
    }
}

/// The new URL of something renamed, unless it is on another host.
fn moved(from: &str, to: &str) -> Option<String> {
    let from = Url::parse(from).ok()?;
    let to = from.join(to).ok()?;
    (to.origin() == from.origin()).then(|| to.to_string())
}

fn next_query(link: &str) -> Option<&str> {
    let next = link.split(',').find(|part| part.contains("rel=\"next\""))?;
    let url = next.split_once('<')?.1.split_once('>')?.0;
    url.split_once('?').map(|(_, query)| query)
}

/// A token is never sent unencrypted.
pub(crate) fn is_safe(url: &str) -> Result<()> {
    let secure = url.starts_with("https://")
        || (url.starts_with("http://") && address::host_of(url).is_some_and(address::is_at_home));
    if secure {
        return Ok(());
    }
    Err(refused(
        format!("cannot use `{}`", errors::clean(url, "")),
        "a token must not go over the network in the clear",
        "use an address with https://",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_redirects_stay_on_the_host() {
        let link = "<https://evil.example/repositories/1/pulls?page=2&per_page=100>; rel=\"next\", <https://x/?page=5>; rel=\"last\"";
        assert_eq!(next_query(link), Some("page=2&per_page=100"));
        assert_eq!(next_query("<https://x/?page=1>; rel=\"prev\""), None);
        assert_eq!(
            moved("https://api.x/repos/o/r", "/repositories/7").as_deref(),
            Some("https://api.x/repositories/7")
        );
        assert_eq!(moved("https://api.x/repos/o/r", "https://evil.example/7"), None);
    }

    #[test]
    fn token_is_not_sent_unencrypted() {
        assert!(is_safe("https://ghe.corp/api/v3").is_ok() && is_safe("http://127.0.0.1:80").is_ok());
        for address in ["http://ghe.corp/api/v3", "http://127.0.0.1.evil.example"] {
            let refused = is_safe(address).unwrap_err().to_string();
            assert!(refused.contains("a token must not go over the network in the clear"), "{refused}");
        }
    }
}
