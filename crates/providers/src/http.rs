//! Calls to a vendor: retries, waits, and error messages.
//!
//! Keys appear only in headers and are redacted from server messages.

use crate::error::ProviderError;
use ralph_loop_http::{
    Bytes, Client, ClientOptions, Failure, HeaderMap, HeaderName, HeaderValue, Method, ProxySettings,
    Request, TransportError, Url, redact,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// How often a retryable call is tried.
const TRIES: u32 = 5;
/// Longer waits that a server requires become an error.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The longest answer, and the largest file.
const ANSWER_MAX: usize = 32 * 1024 * 1024;
const FILE_MAX: usize = 300 * 1024 * 1024;

/// Called often during waits; `Break` ends the wait.
pub(crate) type Watch<'a> = ralph_loop_http::Watch<'a, ()>;

pub(crate) fn never_stop() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[derive(Debug, Clone)]
pub enum Body {
    Nothing,
    Json(Value),
    Bytes { kind: String, bytes: Bytes },
}

#[derive(Debug, Clone)]
pub struct VendorRequest {
    /// Its purpose, to follow "could not".
    pub what: String,
    pub method: Method,
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
    pub limit: Duration,
    /// Longest answer.
    pub max: usize,
    /// Statuses besides 2xx that are an answer.
    pub also: &'static [u16],
    pub tries: u32,
}

impl VendorRequest {
    pub fn new(what: impl Into<String>, method: Method, url: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            method,
            url: url.into(),
            headers: Vec::new(),
            body: Body::Nothing,
            limit: Duration::from_secs(60),
            max: ANSWER_MAX,
            also: &[],
            tries: TRIES,
        }
    }
    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
    pub fn json(self, value: Value) -> Self {
        Self { body: Body::Json(value), ..self }
    }
    pub fn bytes(self, kind: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { body: Body::Bytes { kind: kind.into(), bytes: bytes.into() }, ..self }
    }
    pub fn also(self, also: &'static [u16]) -> Self {
        Self { also, ..self }
    }
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }
    pub fn file(self) -> Self {
        Self { max: FILE_MAX, ..self }
    }
    /// Never retried: doing it twice would do harm.
    pub fn once(self) -> Self {
        Self { tries: 1, ..self }
    }
}

#[derive(Debug)]
pub struct VendorResponse {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl VendorResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

#[derive(Debug)]
pub struct VendorClient {
    vendor: &'static str,
    client: Client,
    proxy: ProxySettings,
    /// Redacted from messages.
    secrets: Vec<String>,
    backoff: Duration,
}

impl VendorClient {
    pub fn new(
        vendor: &'static str,
        secrets: Vec<String>,
        backoff: Duration,
        proxy: ProxySettings,
    ) -> Result<Self, ProviderError> {
        let client = Client::new(ClientOptions { proxy: proxy.clone(), ..ClientOptions::default() });
        let client = client.map_err(|error| ProviderError::Garbled {
            vendor,
            what: "be asked".into(),
            reason: error.to_string(),
        })?;
        Ok(Self { vendor, client, proxy, secrets, backoff })
    }

    pub fn another(&self) -> Result<Self, ProviderError> {
        Self::new(self.vendor, self.secrets.clone(), self.backoff, self.proxy.clone())
    }

    pub fn hide(&mut self, secret: &str) {
        self.secrets.push(secret.to_owned());
    }

    pub fn json<T: DeserializeOwned>(&self, call: &VendorRequest) -> Result<T, ProviderError> {
        let answer = self.send(call, &mut never_stop)?;
        self.understood(&call.what, &answer.body)
    }

    /// Like [`VendorClient::json`]; `None` if it doesn't exist.
    pub fn json_or_none<T: DeserializeOwned>(&self, call: VendorRequest) -> Result<Option<T>, ProviderError> {
        let call = call.also(&[404]);
        let answer = self.send(&call, &mut never_stop)?;
        if answer.status == 404 { Ok(None) } else { self.understood(&call.what, &answer.body).map(Some) }
    }

    pub fn understood<T: DeserializeOwned>(&self, what: &str, body: &[u8]) -> Result<T, ProviderError> {
        serde_json::from_slice(body).map_err(|e| self.garbled(what, e.to_string()))
    }

    pub fn garbled(&self, what: &str, reason: impl Into<String>) -> ProviderError {
        ProviderError::Garbled {
            vendor: self.vendor,
            what: what.to_owned(),
            reason: self.clean(&reason.into()),
        }
    }

    pub fn send(&self, call: &VendorRequest, watch: Watch<'_>) -> Result<VendorResponse, ProviderError> {
        let request = self.request(call)?;
        let (mut tries, started) = (0, Instant::now());
        loop {
            tries += 1;
            let error = match self.attempt(call, &request, tries, watch) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wait = error.wait(self.backoff, tries);
            // A server that answers slowly uses up each try, so all together are limited as well.
            let too_long = started.elapsed() + wait >= call.limit.saturating_mul(2);
            if !error.passes() || tries >= call.tries || wait > WAIT_MAX || too_long {
                return Err(error);
            }
            tracing::debug!(vendor = self.vendor, what = call.what, tries, ?wait, %error, "trying again");
            self.pause(wait, watch)?;
        }
    }

    pub fn pause_after(&self, error: &ProviderError, tries: u32) -> Result<(), ProviderError> {
        self.pause(error.wait(self.backoff, tries).min(WAIT_MAX), &mut never_stop)
    }

    pub fn pause(&self, wait: Duration, watch: Watch<'_>) -> Result<(), ProviderError> {
        self.client.pause_watched(wait, watch).map_err(|()| ProviderError::Cut)
    }

    /// Waits a moment; fails once a wait that began at `begun` has taken `limit`.
    pub fn tick(&self, begun: Instant, limit: Duration, what: &str) -> Result<(), ProviderError> {
        if begun.elapsed() >= limit {
            return Err(ProviderError::TimedOut { vendor: self.vendor, what: what.into(), limit });
        }
        self.pause(self.backoff.min(Duration::from_secs(1)), &mut never_stop)
    }

    fn attempt(
        &self,
        call: &VendorRequest,
        request: &Request,
        tries: u32,
        watch: Watch<'_>,
    ) -> Result<VendorResponse, ProviderError> {
        let (status, headers, body) = self
            .client
            .fetch(request, call.limit, call.max, watch)
            .map_err(|failure| self.failed(call, failure, tries))?;
        let answer = VendorResponse { status, headers, body };
        if (200..300).contains(&status) || call.also.contains(&status) {
            return Ok(answer);
        }
        Err(self.refused(call, &answer, tries))
    }

    fn request(&self, call: &VendorRequest) -> Result<Request, ProviderError> {
        let url = Url::parse(&call.url).map_err(|e| self.garbled(&call.what, format!("the address: {e}")))?;
        let unusable = |name: &str| {
            self.garbled(&call.what, format!("`{name}` isn't a valid header value: is the key complete?"))
        };
        let mut request = Request::new(call.method.clone(), url);
        for (name, value) in &call.headers {
            let mut value = HeaderValue::from_str(value).map_err(|_| unusable(name))?;
            value.set_sensitive(true);
            request = request.header(HeaderName::from_static(name), value);
        }
        Ok(match &call.body {
            Body::Nothing => request,
            Body::Json(value) => {
                request.body(HeaderValue::from_static("application/json"), value.to_string())
            }
            Body::Bytes { kind, bytes } => {
                let kind = HeaderValue::from_str(kind).map_err(|_| unusable("content-type"))?;
                request.body(kind, bytes.clone())
            }
        })
    }

    fn failed(&self, call: &VendorRequest, failure: Failure<()>, tries: u32) -> ProviderError {
        let (vendor, what) = (self.vendor, call.what.clone());
        let error = match failure {
            Failure::Stopped(()) => return ProviderError::Cut,
            Failure::TimedOut => return ProviderError::TimedOut { vendor, what, limit: call.limit },
            Failure::Transport(TransportError::TooLong) => return self.garbled(&what, "it has no end"),
            Failure::Transport(error) => error,
        };
        let server = Url::parse(&call.url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        ProviderError::Unreachable { vendor, what, server, reason: self.clean(&error.to_string()), tries }
    }

    fn refused(&self, call: &VendorRequest, answer: &VendorResponse, tries: u32) -> ProviderError {
        let hint = match answer.status {
            401 | 403 => "check the key and what it may do",
            402 => "check the account's credit",
            404 => "it may be gone; list the sandboxes to see",
            409 => "another operation is in progress; try again later",
            413 | 507 => "it is too large for the sandbox",
            429 => "too many calls or sandboxes at once: wait, or ask the vendor for more",
            500.. => "the vendor has trouble; try again later",
            _ => "compare the request with the vendor's limits",
        };
        let said = self.clean(&said(&answer.body));
        let after = retry_after(&answer.headers);
        ProviderError::Refused {
            vendor: self.vendor,
            what: call.what.clone(),
            status: answer.status,
            said,
            tries,
            hint,
            after,
        }
    }

    fn clean(&self, text: &str) -> String {
        ralph_loop_protocol::display::text::one_line(&redact(text, &self.secrets, "[key]"), 300)
    }
}

fn said(body: &[u8]) -> String {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return String::from_utf8_lossy(body).into_owned();
    };
    let found = [&value["message"], &value["error"]["message"], &value["error"]];
    match found.into_iter().find(|v| !v.is_null()) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => value.to_string(),
    }
}

/// `Retry-After`, in seconds; Daytona adds the limit's name to the header.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let named = |(name, value): (&HeaderName, &HeaderValue)| {
        if !name.as_str().starts_with("retry-after") {
            return None;
        }
        Duration::try_from_secs_f64(value.to_str().ok()?.trim().parse().ok()?).ok()
    };
    headers.iter().filter_map(named).max()
}
