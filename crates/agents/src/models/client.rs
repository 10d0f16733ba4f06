//! One call to its end: tries, waits between them, and words for what went wrong.

use super::KeySource;
use super::failure::Failure;
use super::provider::Route;
use super::retry::{self, Again, RETRIES, WAIT_MAX};
use super::sse::SseParser;
use super::told::Told;
use super::transport::{self, Ended, Timeouts, Transport, WHOLE, connection_failure, watched};
use super::wire::{self, Answer, Asked, WireFault};
use ralph_domain::config::{Profile, Wire};
use ralph_domain::model::{
    ModelClient, ModelError, ModelErrorKind, ModelReply, ModelRequest, ModelSink, ReplyPart,
};
use ralph_domain::money::Usd;
use ralph_domain::ports::StopCause;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest answer that is read.
const ANSWER_MAX: usize = 32 * 1024 * 1024;
/// The longest body of an error that is read.
const ERROR_MAX: usize = 64 * 1024;

/// Calls models over HTTP. It blocks the calling thread, which must not be one of an async runtime.
pub struct HttpModelClient {
    keys: Arc<dyn KeySource>,
    /// Made by the first call, so that runs without model calls pay nothing.
    transport: Mutex<Option<Arc<Transport>>>,
    backoff: Duration,
}

impl std::fmt::Debug for HttpModelClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpModelClient").field("backoff", &self.backoff).finish_non_exhaustive()
    }
}

impl HttpModelClient {
    /// A client that looks keys and addresses up in `keys`.
    pub fn new(keys: impl KeySource + 'static) -> Self {
        Self { keys: Arc::new(keys), transport: Mutex::default(), backoff: Duration::from_secs(1) }
    }

    /// With another first wait between tries; later ones double.
    #[must_use]
    pub fn with_backoff(self, backoff: Duration) -> Self {
        Self { backoff, ..self }
    }

    fn transport(&self) -> Result<Arc<Transport>, ModelError> {
        let failed = |message: String| ModelError { kind: ModelErrorKind::BadRequest, message, hint: None };
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(failed("a model call blocks: make it on a thread of its own".into()));
        }
        let mut slot = self.transport.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(transport) = &*slot {
            return Ok(Arc::clone(transport));
        }
        let made = Transport::start().map_err(|e| failed(format!("no connection can be made: {e}")))?;
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
        let transport = self.transport()?;
        let call =
            Call { profile, request, route: &route, key: key.as_ref(), timeouts: Timeouts::of(profile) };
        transport.runtime.block_on(call.run(&transport, self.backoff, sink))
    }
}

/// Why a try gave no answer.
enum Tried {
    Failed(Failure),
    Stopped(StopCause),
}

impl From<Failure> for Tried {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

struct Call<'a> {
    profile: &'a Profile,
    request: &'a ModelRequest,
    route: &'a Route,
    /// The key and its variable.
    key: Option<&'a (String, String)>,
    timeouts: Timeouts,
}

impl Call<'_> {
    async fn run(
        &self,
        transport: &Transport,
        base: Duration,
        sink: &mut dyn ModelSink,
    ) -> Result<ModelReply, ModelError> {
        let retries = self.profile.max_retries.unwrap_or(RETRIES);
        let mut told = Told::default();
        let mut with_schema = true;
        let mut tries = 0;
        loop {
            tries += 1;
            told.again();
            let failure = match self.attempt(transport, with_schema, &mut told, sink).await {
                Ok(answer) => return Ok(reply(answer, tries)),
                Err(Tried::Stopped(cause)) => return Err(self.stopped(cause)),
                Err(Tried::Failed(failure)) => failure,
            };
            if failure.about_schema && with_schema && self.request.json_schema.is_some() {
                // Not every server takes every schema. The caller checks the answer anyway.
                with_schema = false;
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
            sink.waiting(wait, &reason);
            transport::sleep(wait, sink).await.map_err(|cause| self.stopped(cause))?;
        }
    }

    async fn attempt(
        &self,
        transport: &Transport,
        with_schema: bool,
        told: &mut Told,
        sink: &mut dyn ModelSink,
    ) -> Result<Answer, Tried> {
        let started = Instant::now();
        let asked = Asked { profile: self.profile, route: self.route, request: self.request, with_schema };
        let out = wire::outgoing(&asked);
        let url = self
            .route
            .url(&out.path)
            .ok_or_else(|| Failure::of(ModelErrorKind::BadRequest, "cannot be addressed so"))?;
        let send = transport
            .client(self.route, self.timeouts)?
            .post(url)
            .headers(self.headers()?)
            .body(out.body.to_string())
            .send();
        let limit = self.timeouts.connect + self.timeouts.first_byte;
        let mut response = match watched(send, limit, sink).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(connection_failure(&error, self.route, self.timeouts).into()),
            Err(ended) => return Err(self.ended(ended, "first_byte", self.timeouts.first_byte)),
        };
        let status = response.status().as_u16();
        if status != 200 {
            let body = self.error_body(&mut response, sink).await?;
            let header = |name: &str| header(response.headers(), name);
            return Err(Failure::of_status(status, &header, &body).into());
        }
        let events = match header(response.headers(), "content-type") {
            Some(kind) => kind.contains("event-stream"),
            None => self.request.stream,
        };
        let cost = header(response.headers(), "x-litellm-response-cost")
            .and_then(|c| c.parse::<f64>().ok())
            .filter(|c| *c > 0.0)
            .map(Usd::from_dollars);
        let mut answer = if events {
            self.read_events(&mut response, started, told, sink).await?
        } else {
            let body = self.read_whole(&mut response, started, sink).await?;
            let answer = self.understood(&body)?;
            for part in &answer.parts {
                if let ReplyPart::Text { text } = part {
                    told.piece(text, sink);
                }
            }
            answer
        };
        answer.cost = answer.cost.or(cost);
        Ok(answer)
    }

    fn understood(&self, body: &[u8]) -> Result<Answer, Tried> {
        let value = serde_json::from_slice(body).map_err(|e| {
            let seen = ralph_domain::text::one_line(&String::from_utf8_lossy(body), 120);
            self.garbled(&format!("the answer is not JSON ({e}): {seen}"))
        })?;
        let turn = self.request.messages.len();
        wire::whole(self.route.wire, &value, turn).map_err(|fault| self.fault(fault))
    }

    async fn read_events(
        &self,
        response: &mut reqwest::Response,
        started: Instant,
        told: &mut Told,
        sink: &mut dyn ModelSink,
    ) -> Result<Answer, Tried> {
        let mut parser = SseParser::new();
        let mut reader = wire::reader(self.route.wire, self.request.messages.len());
        let mut read = 0;
        let mut events = Vec::new();
        loop {
            let chunk = self.chunk(response, started, &mut read, sink).await?;
            let over = chunk.is_none();
            match chunk {
                Some(bytes) => {
                    parser.push(&bytes, |e| events.push(e)).map_err(|e| self.garbled(&e.to_string()))?;
                }
                None => events.extend(parser.finish()),
            }
            for event in events.drain(..) {
                reader
                    .event(&event, &mut |text| told.piece(text, sink))
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

    async fn read_whole(
        &self,
        response: &mut reqwest::Response,
        started: Instant,
        sink: &mut dyn ModelSink,
    ) -> Result<Vec<u8>, Tried> {
        let mut body = Vec::new();
        let mut read = 0;
        while let Some(bytes) = self.chunk(response, started, &mut read, sink).await? {
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// The next bytes of the answer; `None` at its end.
    async fn chunk(
        &self,
        response: &mut reqwest::Response,
        started: Instant,
        read: &mut usize,
        sink: &mut dyn ModelSink,
    ) -> Result<Option<impl AsRef<[u8]> + std::ops::Deref<Target = [u8]> + use<>>, Tried> {
        let (word, limit) = match *read {
            0 => ("first_byte", self.timeouts.first_byte),
            _ => ("stall", self.timeouts.stall),
        };
        let left = WHOLE.saturating_sub(started.elapsed());
        let chunk = match watched(response.chunk(), limit.min(left), sink).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(_)) => return Err(self.fault(WireFault::Cut)),
            Err(ended) => return Err(self.ended(ended, word, limit)),
        };
        *read += chunk.as_ref().map_or(0, |c| c.len());
        if *read > ANSWER_MAX {
            return Err(Failure::of(
                ModelErrorKind::Garbled,
                format!("answers without end: more than {} MiB", ANSWER_MAX / 1024 / 1024),
            )
            .into());
        }
        Ok(chunk)
    }

    /// The body of an error, as far as it comes; the status alone says enough to go on without it.
    async fn error_body(
        &self,
        response: &mut reqwest::Response,
        sink: &mut dyn ModelSink,
    ) -> Result<String, Tried> {
        let mut body: Vec<u8> = Vec::new();
        while body.len() < ERROR_MAX {
            match watched(response.chunk(), self.timeouts.connect, sink).await {
                Ok(Ok(Some(bytes))) => body.extend_from_slice(&bytes),
                Err(Ended::Stopped(cause)) => return Err(Tried::Stopped(cause)),
                Ok(_) | Err(Ended::TimedOut) => break,
            }
        }
        body.truncate(ERROR_MAX);
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn headers(&self) -> Result<HeaderMap, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let accept = if self.request.stream { "text/event-stream" } else { "application/json" };
        headers.insert("accept", HeaderValue::from_static(accept));
        if self.route.wire == Wire::Anthropic {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
        let Some((key, variable)) = self.key else { return Ok(headers) };
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
        headers.insert(name, value);
        Ok(headers)
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

    fn ended(&self, ended: Ended, word: &str, limit: Duration) -> Tried {
        match ended {
            Ended::Stopped(cause) => Tried::Stopped(cause),
            Ended::TimedOut => {
                Failure::passing(ModelErrorKind::TimedOut, format!("was silent for {} s", limit.as_secs()))
                    .hint(format!(
                        "`timeouts: {{{word}: …}}` in profile `{}` gives it longer",
                        self.profile.name
                    ))
                    .into()
            }
        }
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
        match self.key {
            Some((key, _)) if key.len() >= 4 => text.replace(key.as_str(), "[key]"),
            _ => text.to_owned(),
        }
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
                "it usually passes; a `fallback` profile takes over meanwhile".to_owned()
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

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned)
}

fn reply(answer: Answer, tries: u32) -> ModelReply {
    let Answer { parts, stop, tokens, cost, model } = answer;
    ModelReply { parts, stop, tokens, cost, model, tries }
}
