//! Makes a call: tries, waits, and error messages.

use super::KeySource;
use super::failure::Failure;
use super::provider::Route;
use super::retry::{self, Again, RETRIES, WAIT_MAX};
use super::sse::SseParser;
use super::streamed_text::StreamedText;
use super::timeouts::{Timeouts, WHOLE, connection_failure};
use super::wire::{self, WireFault, WireReply, WireRequest};
use ralph_loop_domain::model::{
    ModelClient, ModelError, ModelErrorKind, ModelReply, ModelRequest, ModelSink, ReplyPart,
};
use ralph_loop_domain::ports::StopCause;
use ralph_loop_http::{
    Bytes, Client, ClientOptions, HeaderName, HeaderValue, Method, ProxySettings, Request, Response, redact,
};
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::config::{Profile, Wire};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const ANSWER_MAX: usize = 32 * 1024 * 1024;
/// How long a connection stays open for the next call.
const IDLE: Duration = Duration::from_secs(50);
const ERROR_MAX: usize = 64 * 1024;

/// Calls models over HTTP. Blocks the calling thread, which must not belong to an async runtime.
pub struct HttpModelClient {
    keys: Arc<dyn KeySource>,
    /// Created by the first call, so that runs without model calls pay nothing.
    http: Mutex<Option<Arc<Client>>>,
    backoff: Duration,
}

impl std::fmt::Debug for HttpModelClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpModelClient").field("backoff", &self.backoff).finish_non_exhaustive()
    }
}

impl HttpModelClient {
    /// A client that looks up keys and URLs in `keys`.
    pub fn new(keys: impl KeySource + 'static) -> Self {
        Self { keys: Arc::new(keys), http: Mutex::default(), backoff: Duration::from_secs(1) }
    }

    /// Sets the first wait between tries; later ones double.
    #[must_use]
    pub fn with_backoff(self, backoff: Duration) -> Self {
        Self { backoff, ..self }
    }

    fn http(&self) -> Result<Arc<Client>, ModelError> {
        let failed = |message: String| ModelError { kind: ModelErrorKind::BadRequest, message, hint: None };
        if ralph_loop_http::in_async_runtime() {
            return Err(failed("a model call blocks: make it on a separate thread".into()));
        }
        let mut slot = self.http.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = &*slot {
            return Ok(Arc::clone(client));
        }
        let proxy = ProxySettings::from_vars(&|name| self.keys.get(name));
        let options = ClientOptions { idle_timeout: IDLE, proxy, ..ClientOptions::default() };
        let made = Client::new(options).map_err(|e| failed(format!("no connection can be made: {e}")))?;
        Ok(Arc::clone(slot.insert(Arc::new(made))))
    }
}

impl ModelClient for HttpModelClient {
    fn call(
        &self,
        profile: &Profile,
        request: &ModelRequest,
        sink: &mut dyn ModelSink,
    ) -> Result<ModelReply, ModelError> {
        let route = Route::of(profile, &*self.keys)?;
        let key = route.key(profile, &*self.keys)?;
        let http = self.http()?;
        let call =
            ModelCall { profile, request, route: &route, key: key.as_ref(), timeouts: Timeouts::of(profile) };
        call.run(&http, self.backoff, sink)
    }
}

type Unanswered = ralph_loop_http::Failure<StopCause>;

enum Tried {
    Failed(Failure),
    Stopped(StopCause),
}

impl From<Failure> for Tried {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

struct ModelCall<'a> {
    profile: &'a Profile,
    request: &'a ModelRequest,
    route: &'a Route,
    /// The key and its variable.
    key: Option<&'a (String, String)>,
    timeouts: Timeouts,
}

impl ModelCall<'_> {
    fn run(&self, http: &Client, base: Duration, sink: &mut dyn ModelSink) -> Result<ModelReply, ModelError> {
        let retries = self.profile.max_retries.unwrap_or(RETRIES);
        let mut streamed = StreamedText::default();
        let mut with_schema = true;
        let mut tries = 0;
        loop {
            tries += 1;
            streamed.restart();
            let failure = match self.attempt(http, with_schema, &mut streamed, sink) {
                Ok(answer) => return Ok(reply(answer, tries)),
                Err(Tried::Stopped(cause)) => return Err(self.stopped(cause)),
                Err(Tried::Failed(failure)) => failure,
            };
            if failure.about_schema && with_schema && self.request.json_schema.is_some() {
                // Not every server accepts every schema. The caller checks the answer anyway.
                with_schema = false;
                tracing::debug!(
                    profile = self.profile.name,
                    tries,
                    "model call is tried again without its schema"
                );
                continue;
            }
            let wait = match failure.again {
                Again::Never => return Err(self.error(failure, tries)),
                Again::Once if tries > 1 => return Err(self.error(failure, tries)),
                Again::Once | Again::Soon => retry::backoff(base, tries),
                Again::After(wait) => wait,
            };
            if tries > retries || wait > WAIT_MAX {
                return Err(self.error(failure, tries));
            }
            let reason = self.cleaned(&format!("{} {}", self.name(), failure.said));
            tracing::debug!(profile = self.profile.name, tries, ?wait, reason, "model call is tried again");
            sink.waiting(wait, &reason);
            http.pause_watched(wait, &mut || sink.poll()).map_err(|cause| self.stopped(cause))?;
        }
    }

    fn attempt(
        &self,
        http: &Client,
        with_schema: bool,
        streamed: &mut StreamedText,
        sink: &mut dyn ModelSink,
    ) -> Result<WireReply, Tried> {
        let started = Instant::now();
        let asked =
            WireRequest { profile: self.profile, route: self.route, request: self.request, with_schema };
        let out = wire::outgoing(&asked);
        let url = self
            .route
            .url(&out.path)
            .ok_or_else(|| Failure::of(ModelErrorKind::BadRequest, "cannot be addressed so"))?;
        let request = self
            .headers(Request::new(Method::POST, url))?
            .body(HeaderValue::from_static("application/json"), out.body.to_string())
            .connect_timeout(self.timeouts.connect);
        let limit = self.timeouts.connect + self.timeouts.first_byte;
        let mut response = match http.send(&request, limit, &mut || sink.poll()) {
            Ok(response) => response,
            Err(Unanswered::Stopped(cause)) => return Err(Tried::Stopped(cause)),
            Err(Unanswered::TimedOut) => return Err(self.silent("first_byte", self.timeouts.first_byte)),
            Err(Unanswered::Transport(error)) => {
                return Err(connection_failure(&error, self.route, self.timeouts).into());
            }
        };
        let status = response.status();
        if status != 200 {
            let body = self.error_body(&mut response, sink)?;
            let header = |name: &str| response.header(name).map(str::to_owned);
            return Err(Failure::of_status(status, &header, &body).into());
        }
        let events = match response.header("content-type") {
            Some(kind) => kind.contains("event-stream"),
            None => self.request.stream,
        };
        let cost = response
            .header("x-litellm-response-cost")
            .and_then(|c| c.parse::<f64>().ok())
            .filter(|c| *c > 0.0)
            .map(Usd::from_dollars);
        let mut answer = if events {
            self.read_events(&mut response, started, streamed, sink)?
        } else {
            let body = self.read_whole(&mut response, started, sink)?;
            let answer = self.understood(&body)?;
            for part in &answer.parts {
                if let ReplyPart::Text { text } = part {
                    streamed.push(text, sink);
                }
            }
            answer
        };
        answer.cost = answer.cost.or(cost);
        Ok(answer)
    }

    fn understood(&self, body: &[u8]) -> Result<WireReply, Tried> {
        let value = serde_json::from_slice(body).map_err(|e| {
            let seen = ralph_loop_protocol::display::text::one_line(&String::from_utf8_lossy(body), 120);
            self.garbled(&format!("the answer is not JSON ({e}): {seen}"))
        })?;
        let turn = self.request.messages.len();
        wire::whole(self.route.wire, &value, turn).map_err(|fault| self.fault(fault))
    }

    fn read_events(
        &self,
        response: &mut Response<'_>,
        started: Instant,
        streamed: &mut StreamedText,
        sink: &mut dyn ModelSink,
    ) -> Result<WireReply, Tried> {
        let mut parser = SseParser::new();
        let mut reader = wire::reader(self.route.wire, self.request.messages.len());
        let mut read = 0;
        let mut events = Vec::new();
        loop {
            let chunk = self.chunk(response, started, &mut read, sink)?;
            let over = chunk.is_none();
            match chunk {
                Some(bytes) => {
                    parser.push(&bytes, |e| events.push(e)).map_err(|e| self.garbled(&e.to_string()))?;
                }
                None => events.extend(parser.finish()),
            }
            for event in events.drain(..) {
                reader
                    .event(&event, &mut |text| streamed.push(text, sink))
                    .map_err(|fault| self.fault(fault))?;
            }
            if over || reader.complete() {
                return reader.finish().map_err(|fault| {
                    let fault =
                        if fault == WireFault::Cut { wire::stray_error(parser.stray()) } else { fault };
                    self.fault(fault)
                });
            }
        }
    }

    fn read_whole(
        &self,
        response: &mut Response<'_>,
        started: Instant,
        sink: &mut dyn ModelSink,
    ) -> Result<Vec<u8>, Tried> {
        let mut body = Vec::new();
        let mut read = 0;
        while let Some(bytes) = self.chunk(response, started, &mut read, sink)? {
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// The next bytes of the answer; `None` at its end.
    fn chunk(
        &self,
        response: &mut Response<'_>,
        started: Instant,
        read: &mut usize,
        sink: &mut dyn ModelSink,
    ) -> Result<Option<Bytes>, Tried> {
        let (word, limit) = match *read {
            0 => ("first_byte", self.timeouts.first_byte),
            _ => ("stall", self.timeouts.stall),
        };
        let left = WHOLE.saturating_sub(started.elapsed());
        let chunk = match response.chunk(limit.min(left), &mut || sink.poll()) {
            Ok(chunk) => chunk,
            Err(Unanswered::Stopped(cause)) => return Err(Tried::Stopped(cause)),
            Err(Unanswered::TimedOut) => return Err(self.silent(word, limit)),
            Err(Unanswered::Transport(_)) => return Err(self.fault(WireFault::Cut)),
        };
        *read += chunk.as_ref().map_or(0, Bytes::len);
        if *read > ANSWER_MAX {
            return Err(Failure::of(
                ModelErrorKind::Garbled,
                format!("answers without end: more than {} MiB", ANSWER_MAX / 1024 / 1024),
            )
            .into());
        }
        Ok(chunk)
    }

    /// The body of an error, as far as it comes; the status alone is enough.
    fn error_body(&self, response: &mut Response<'_>, sink: &mut dyn ModelSink) -> Result<String, Tried> {
        let mut body: Vec<u8> = Vec::new();
        while body.len() < ERROR_MAX {
            match response.chunk(self.timeouts.connect, &mut || sink.poll()) {
                Ok(Some(bytes)) => body.extend_from_slice(&bytes),
                Err(Unanswered::Stopped(cause)) => return Err(Tried::Stopped(cause)),
                Ok(None) | Err(_) => break,
            }
        }
        body.truncate(ERROR_MAX);
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn headers(&self, request: Request) -> Result<Request, Failure> {
        let accept = if self.request.stream { "text/event-stream" } else { "application/json" };
        let mut request = request.header(HeaderName::from_static("accept"), HeaderValue::from_static(accept));
        if self.route.wire == Wire::Anthropic {
            let version = HeaderName::from_static("anthropic-version");
            request = request.header(version, HeaderValue::from_static("2023-06-01"));
        }
        let Some((key, variable)) = self.key else { return Ok(request) };
        let own = self.route.provider.name == "anthropic" && variable != "ANTHROPIC_AUTH_TOKEN";
        let (name, value) = match self.route.wire {
            Wire::Anthropic if own => (HeaderName::from_static("x-api-key"), key.clone()),
            Wire::Gemini => (HeaderName::from_static("x-goog-api-key"), key.clone()),
            _ => (HeaderName::from_static("authorization"), format!("Bearer {key}")),
        };
        let mut value = HeaderValue::from_str(&value).map_err(|_| {
            Failure::of(ModelErrorKind::Auth, format!("was not asked: {variable} holds no usable key"))
                .hint(format!("set {variable} again: a key is one line of plain letters and digits"))
        })?;
        value.set_sensitive(true);
        Ok(request.header(name, value))
    }

    fn fault(&self, fault: WireFault) -> Tried {
        match fault {
            WireFault::Said(value) => Failure::of_event(&value).into(),
            WireFault::Garbled(what) => self.garbled(&what),
            WireFault::Cut => Failure::passing(ModelErrorKind::Overloaded, "cut the answer off").into(),
        }
    }

    fn garbled(&self, what: &str) -> Tried {
        let hint = format!(
            "check that `base_url` of profile `{}` speaks {}; `wire` chooses another",
            self.profile.name,
            self.route.wire.as_str()
        );
        Failure { again: Again::Once, ..Failure::of(ModelErrorKind::Garbled, what) }.hint(hint).into()
    }

    fn silent(&self, word: &str, limit: Duration) -> Tried {
        Failure::passing(ModelErrorKind::TimedOut, format!("was silent for {} s", limit.as_secs()))
            .hint(format!("`timeouts: {{{word}: …}}` in profile `{}` gives it longer", self.profile.name))
            .into()
    }

    fn stopped(&self, cause: StopCause) -> ModelError {
        let message = format!("the call of {} was ended", self.name());
        ModelError { kind: ModelErrorKind::Stopped(cause), message, hint: None }
    }

    /// Provider, model and server.
    fn name(&self) -> String {
        format!("{}/{} at {}", self.route.provider.name, self.route.model, self.route.server())
    }

    /// Text without the key, which some providers repeat in their errors.
    fn cleaned(&self, text: &str) -> String {
        redact(text, self.key.map(|(key, _)| key), "[key]")
    }

    fn error(&self, failure: Failure, tries: u32) -> ModelError {
        let times = if tries > 1 { format!(" ({tries} tries)") } else { String::new() };
        let message = self.cleaned(&format!("{} {}{times}", self.name(), failure.said));
        let hint = failure.hint.or_else(|| self.hint(&failure.kind));
        ModelError { kind: failure.kind, message, hint }
    }

    fn hint(&self, kind: &ModelErrorKind) -> Option<String> {
        let profile = &self.profile.name;
        let provider = self.route.provider.name;
        let key = self.key.map_or("`api_key_env`", |(_, variable)| variable.as_str());
        Some(match kind {
            ModelErrorKind::RateLimited { .. } => {
                "wait, or name another profile as `fallback` in models.yaml".to_owned()
            }
            ModelErrorKind::Overloaded => {
                "this is usually temporary; until then a `fallback` profile takes over".to_owned()
            }
            ModelErrorKind::Auth => format!("check {key}: the server does not accept it for this model"),
            ModelErrorKind::Billing => format!("add credit with {provider}, or choose another profile"),
            ModelErrorKind::ContextTooLong => "send less: fewer context files or a shorter task".to_owned(),
            ModelErrorKind::NotFound => {
                format!(
                    "check `litellm_model` and `base_url` of profile `{profile}`; `ralph models` shows both"
                )
            }
            ModelErrorKind::BadRequest => {
                format!(
                    "check the settings of profile `{profile}`; `ralph models check {profile}` tries them"
                )
            }
            _ => return None,
        })
    }
}

fn reply(answer: WireReply, tries: u32) -> ModelReply {
    let WireReply { parts, stop, tokens, cost, model } = answer;
    ModelReply { parts, stop, tokens, cost, model, tries }
}
