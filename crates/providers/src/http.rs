//! Calls over HTTP: retries, waits, time-outs, words for what went wrong.
//!
//! Keys stand in headers only and are taken out of everything that a server says.
#![allow(clippy::disallowed_methods, reason = "the home of waits for cloud providers")]

use crate::error::ProviderError;
use ralph_domain::text::deepest_cause;
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::ops::ControlFlow;
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// How often a wait asks whether to go on.
const POLL: Duration = Duration::from_millis(50);
const CONNECT: Duration = Duration::from_secs(10);
/// How often a call is tried where trying again can help.
const TRIES: u32 = 5;
/// A longer wait that a server names is not slept out.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// The longest answer that is read.
const ANSWER_MAX: usize = 300 * 1024 * 1024;

/// Asked often while something is waited for; `Break` ends the wait.
pub(crate) type Watch<'a> = &'a mut dyn FnMut() -> ControlFlow<()>;

/// Never ends a wait.
pub(crate) fn patient() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// What a request carries.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    Nothing,
    Json(Value),
    Bytes { kind: String, bytes: Vec<u8> },
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// What it is for, to follow "could not".
    pub what: String,
    pub method: Method,
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Body,
    pub limit: Duration,
    /// Statuses beside 2xx that are an answer.
    pub also: &'static [u16],
    pub tries: u32,
}

impl Call {
    pub fn new(what: impl Into<String>, method: Method, url: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            method,
            url: url.into(),
            headers: Vec::new(),
            body: Body::Nothing,
            limit: Duration::from_secs(60),
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
        Self { body: Body::Bytes { kind: kind.into(), bytes }, ..self }
    }
    pub fn also(self, also: &'static [u16]) -> Self {
        Self { also, ..self }
    }
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }
    /// Without a second try: doing it twice would do harm.
    pub fn once(self) -> Self {
        Self { tries: 1, ..self }
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// A connection of its own: one runtime on the caller's thread.
#[derive(Debug)]
pub(crate) struct Http {
    vendor: &'static str,
    runtime: Runtime,
    client: reqwest::Client,
    /// For calls that stay on this machine: they never go through a proxy.
    local: reqwest::Client,
    /// Taken out of messages.
    secrets: Vec<String>,
    backoff: Duration,
}

impl Http {
    pub fn new(vendor: &'static str, secrets: Vec<String>, backoff: Duration) -> Result<Self, ProviderError> {
        let broken = |reason: String| ProviderError::Garbled { vendor, what: "be asked".into(), reason };
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(broken("a call blocks: make it on a thread of its own".into()));
        }
        // A second install is refused, which is fine: any provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|e| broken(e.to_string()))?;
        let builder = |local: bool| {
            let builder = reqwest::Client::builder()
                .redirect(Policy::none())
                .connect_timeout(CONNECT)
                .pool_idle_timeout(Duration::from_secs(20))
                .user_agent(concat!("ralph/", env!("CARGO_PKG_VERSION")));
            if local { builder.no_proxy() } else { builder }
        };
        // Without certificates on the machine, servers without TLS can still be asked.
        let build = |local| {
            let built = builder(local).build().or_else(|_| builder(local).tls_certs_only([]).build());
            built.map_err(|e| broken(format!("TLS cannot be set up: {e}")))
        };
        Ok(Self { vendor, runtime, client: build(false)?, local: build(true)?, secrets, backoff })
    }

    /// Another connection, so that one more call can be made beside those of this one.
    pub fn another(&self) -> Result<Self, ProviderError> {
        Self::new(self.vendor, self.secrets.clone(), self.backoff)
    }

    /// Also takes this out of messages.
    pub fn hide(&mut self, secret: &str) {
        self.secrets.push(secret.to_owned());
    }

    /// Makes a call and reads its answer as JSON.
    pub fn json<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ProviderError> {
        let answer = self.send(call, &mut patient)?;
        self.understood(&call.what, &answer.body)
    }

    /// As [`Http::json`]; `None` where there is no such thing.
    pub fn json_or_none<T: DeserializeOwned>(&self, call: Call) -> Result<Option<T>, ProviderError> {
        let call = call.also(&[404]);
        let answer = self.send(&call, &mut patient)?;
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

    /// Makes a call, again where that can help.
    pub fn send(&self, call: &Call, watch: Watch<'_>) -> Result<Answer, ProviderError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.runtime.block_on(self.attempt(call, tries, watch)) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let wait = error.wait(self.backoff, tries);
            if !error.passes() || tries >= call.tries || wait > WAIT_MAX {
                return Err(error);
            }
            self.pause(wait, watch)?;
        }
    }

    /// Waits before the next try of something that failed.
    pub fn pause_after(&self, error: &ProviderError, tries: u32) -> Result<(), ProviderError> {
        self.pause(error.wait(self.backoff, tries).min(WAIT_MAX), &mut patient)
    }

    /// Waits, unless the watch ends it.
    pub fn pause(&self, wait: Duration, watch: Watch<'_>) -> Result<(), ProviderError> {
        match self.runtime.block_on(watched(std::future::pending::<()>(), wait, watch)) {
            Err(Ended::Cut) => Err(ProviderError::Cut),
            Ok(()) | Err(Ended::TimedOut) => Ok(()),
        }
    }

    async fn attempt(&self, call: &Call, tries: u32, watch: Watch<'_>) -> Result<Answer, ProviderError> {
        let ended = |ended: Ended| match ended {
            Ended::TimedOut => {
                ProviderError::TimedOut { vendor: self.vendor, what: call.what.clone(), limit: call.limit }
            }
            Ended::Cut => ProviderError::Cut,
        };
        let request = self.request(call)?;
        let started = Instant::now();
        let sent = watched(self.client.execute(request), call.limit, watch).await.map_err(ended)?;
        let mut response = sent.map_err(|error| self.unreachable(call, &error, tries))?;
        let mut body = Vec::new();
        loop {
            let left = call.limit.saturating_sub(started.elapsed());
            let chunk = watched(response.chunk(), left, watch).await.map_err(ended)?;
            match chunk.map_err(|error| self.unreachable(call, &error, tries))? {
                None => break,
                Some(bytes) if body.len() + bytes.len() <= ANSWER_MAX => body.extend_from_slice(&bytes),
                Some(_) => return Err(self.garbled(&call.what, "it has no end")),
            }
        }
        let status = response.status().as_u16();
        let answer = Answer { status, headers: response.headers().clone(), body };
        if response.status().is_success() || call.also.contains(&status) {
            return Ok(answer);
        }
        Err(self.refused(call, &answer, tries))
    }

    fn request(&self, call: &Call) -> Result<reqwest::Request, ProviderError> {
        let url = reqwest::Url::parse(&call.url)
            .map_err(|e| self.garbled(&call.what, format!("the address: {e}")))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &call.headers {
            let mut value = HeaderValue::from_str(value).map_err(|_| {
                self.garbled(&call.what, format!("`{name}` is no usable header: is the key whole?"))
            })?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        let at_home = url
            .host_str()
            .is_some_and(|host| matches!(host, "localhost" | "[::1]") || host.starts_with("127."));
        let client = if at_home { &self.local } else { &self.client };
        let builder = client.request(call.method.clone(), url).headers(headers);
        let builder = match &call.body {
            Body::Nothing => builder,
            Body::Json(value) => builder.header("content-type", "application/json").body(value.to_string()),
            Body::Bytes { kind, bytes } => builder.header("content-type", kind.as_str()).body(bytes.clone()),
        };
        builder.build().map_err(|e| self.garbled(&call.what, deepest_cause(&e)))
    }

    fn unreachable(&self, call: &Call, error: &reqwest::Error, tries: u32) -> ProviderError {
        let server =
            reqwest::Url::parse(&call.url).map(|url| url.origin().ascii_serialization()).unwrap_or_default();
        ProviderError::Unreachable {
            vendor: self.vendor,
            what: call.what.clone(),
            server,
            reason: self.clean(&deepest_cause(error)),
            tries,
        }
    }

    fn refused(&self, call: &Call, answer: &Answer, tries: u32) -> ProviderError {
        let hint = match answer.status {
            401 | 403 => "check the key and what it may do",
            402 => "check the account's credit",
            404 => "it may be gone; list the sandboxes to see",
            409 => "another operation on it goes on; try again later",
            413 | 507 => "it is too large for the sandbox",
            429 => "too many calls or sandboxes at once: wait, or ask the vendor for more",
            500.. => "the vendor has trouble; try again later",
            _ => "check what was asked for against the vendor's limits",
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
        let mut text = text.to_owned();
        for secret in self.secrets.iter().filter(|secret| secret.len() >= 4) {
            text = text.replace(secret.as_str(), "[key]");
        }
        ralph_domain::text::one_line(&text, 300)
    }
}

/// The vendors' ways to say what is wrong.
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

/// `Retry-After`, in seconds; Daytona adds the name of the limit to the header's.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let named = |(name, value): (&HeaderName, &HeaderValue)| {
        if !name.as_str().starts_with("retry-after") {
            return None;
        }
        Duration::try_from_secs_f64(value.to_str().ok()?.trim().parse().ok()?).ok()
    };
    headers.iter().filter_map(named).max()
}

enum Ended {
    TimedOut,
    Cut,
}

async fn watched<F: Future>(work: F, limit: Duration, watch: Watch<'_>) -> Result<F::Output, Ended> {
    let mut work = pin!(work);
    let end = Instant::now() + limit;
    loop {
        if watch().is_break() {
            return Err(Ended::Cut);
        }
        let left = end.saturating_duration_since(Instant::now());
        match tokio::time::timeout(POLL.min(left), work.as_mut()).await {
            Ok(output) => return Ok(output),
            Err(_) if left <= POLL => return Err(Ended::TimedOut),
            Err(_) => {}
        }
    }
}

/// A word that nobody else has: for boundaries, temporary names and marks of processes.
pub(crate) fn token() -> String {
    use std::hash::{BuildHasher as _, Hasher as _};
    // The hasher's seeds are random for each; nothing more is needed of chance here.
    let word = || std::hash::RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}
