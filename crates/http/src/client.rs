//! Requests and their answers.

use crate::error::{StartError, TransportError};
use crate::proxy::ProxySettings;
use crate::tls;
use crate::wait::{Failure, Watch, in_async_runtime, never_stop, watched};
use crate::{Bytes, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Url, is_loopback};
use reqwest::redirect::Policy;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// Settings for all requests of a client.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// How long a server may take to accept a connection.
    pub connect_timeout: Duration,
    /// How long an unused connection stays open.
    pub idle_timeout: Duration,
    /// Proxy settings for servers on other machines.
    pub proxy: ProxySettings,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(20),
            proxy: ProxySettings::NONE,
        }
    }
}

/// A request; it can be sent several times.
#[derive(Debug)]
pub struct Request {
    inner: reqwest::Request,
    connect_timeout: Option<Duration>,
}

impl Request {
    /// A request without headers and body.
    pub fn new(method: Method, url: Url) -> Self {
        Self { inner: reqwest::Request::new(method, url), connect_timeout: None }
    }

    /// Sets a header, replacing one of the same name.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.inner.headers_mut().insert(name, value);
        self
    }

    #[must_use]
    pub fn body(mut self, kind: HeaderValue, bytes: impl Into<Bytes>) -> Self {
        *self.inner.body_mut() = Some(bytes.into().into());
        self.header(reqwest::header::CONTENT_TYPE, kind)
    }

    /// Sets another connection timeout than the client's.
    #[must_use]
    pub fn connect_timeout(self, limit: Duration) -> Self {
        Self { connect_timeout: Some(limit), ..self }
    }
}

/// A client: one runtime on the caller's thread, connections that stay open between requests. Nothing is set up
/// before the first request.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    options: ClientOptions,
    /// By whether they stay on this machine and by their connection timeout.
    clients: Mutex<BTreeMap<(bool, Duration), reqwest::Client>>,
}

impl Client {
    /// A client; starts no thread.
    pub fn new(options: ClientOptions) -> Result<Self, StartError> {
        if in_async_runtime() {
            return Err(StartError::InAsyncRuntime);
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, options, clients: Mutex::default() })
    }

    /// Sends a request and waits at most `limit` for the head of the answer.
    pub fn send<S>(
        &self,
        request: &Request,
        limit: Duration,
        watch: Watch<'_, S>,
    ) -> Result<Response<'_>, Failure<S>> {
        let broken = || TransportError::Broken { reason: "the body cannot be sent twice".into() };
        let mut sent = request.inner.try_clone().ok_or_else(broken)?;
        // They are never sent, and the libraries would log them.
        let _ = (sent.url_mut().set_username(""), sent.url_mut().set_password(None));
        let connect = request.connect_timeout.unwrap_or(self.options.connect_timeout);
        let client = self.client_for(sent.url(), connect)?;
        let begun = Instant::now();
        let execute = async {
            // The runtime doesn't run between requests: notice connections that servers closed in the meantime before
            // reusing one.
            for _ in 0..2 {
                tokio::task::yield_now().await;
            }
            client.execute(sent).await
        };
        let sent = self.runtime.block_on(watched(execute, limit, watch));
        let inner = sent.and_then(|inner| inner.map_err(|error| self.failed(error).into()));
        log(&request.inner, &inner, begun.elapsed());
        Ok(Response { client: self, inner: inner? })
    }

    /// Sends a request and reads the whole answer, of at most `max` bytes, within `limit`.
    pub fn fetch<S>(
        &self,
        request: &Request,
        limit: Duration,
        max: usize,
        watch: Watch<'_, S>,
    ) -> Result<(u16, HeaderMap, Vec<u8>), Failure<S>> {
        let started = Instant::now();
        let mut response = self.send(request, limit, watch)?;
        let mut body = Vec::new();
        while let Some(piece) = response.chunk(limit.saturating_sub(started.elapsed()), watch)? {
            if body.len() + piece.len() > max {
                return Err(TransportError::TooLong.into());
            }
            body.extend_from_slice(&piece);
        }
        Ok((response.status(), response.headers().clone(), body))
    }

    /// Waits; fails if the watch ends it.
    pub fn pause_watched<S>(&self, wait: Duration, watch: Watch<'_, S>) -> Result<(), S> {
        match self.runtime.block_on(watched(std::future::pending::<()>(), wait, watch)) {
            Err(Failure::Stopped(why)) => Err(why),
            _ => Ok(()),
        }
    }

    pub fn pause(&self, wait: Duration) {
        let Ok(()) = self.pause_watched(wait, &mut never_stop);
    }

    /// Closes at once, without waiting for a name lookup.
    pub fn close(self) {
        self.runtime.shutdown_background();
    }

    fn failed(&self, error: reqwest::Error) -> TransportError {
        TransportError::of(error, &self.options.proxy)
    }

    fn client_for(&self, url: &Url, connect: Duration) -> Result<reqwest::Client, TransportError> {
        let local = url.host_str().is_some_and(is_loopback);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&(local, connect)) {
            return Ok(client.clone());
        }
        // Without certificates on the machine, servers without TLS still work.
        let (config, complete) = match tls::client_config() {
            Ok(config) => (config, true),
            Err(_) if url.scheme() == "http" => (tls::config_without_roots()?, false),
            Err(error) => return Err(error.into()),
        };
        let mut builder = reqwest::Client::builder()
            .redirect(Policy::none())
            .connect_timeout(connect)
            .pool_idle_timeout(self.options.idle_timeout)
            .user_agent(concat!("ralph/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(rustls::ClientConfig::clone(&config))
            // Otherwise the process's variables would choose one.
            .no_proxy();
        if !local {
            builder = self.options.proxy.rules().into_iter().fold(builder, reqwest::ClientBuilder::proxy);
        }
        let client = builder.build().map_err(|error| self.failed(error))?;
        if complete {
            clients.insert((local, connect), client.clone());
        }
        Ok(client)
    }
}

/// Logs a request and its result. Of the URL only the server: its path, query and user may hold secrets, as headers
/// and bodies do.
fn log<S>(request: &reqwest::Request, inner: &Result<reqwest::Response, Failure<S>>, took: Duration) {
    let (method, host, port) = (request.method(), request.url().host_str(), request.url().port());
    match inner {
        Ok(response) => {
            tracing::debug!(%method, host, port, status = response.status().as_u16(), ?took, "http")
        }
        Err(Failure::Transport(error)) => {
            tracing::debug!(%method, host, port, %error, ?took, "http failed");
        }
        Err(Failure::TimedOut) => tracing::debug!(%method, host, port, ?took, "http timed out"),
        Err(Failure::Stopped(_)) => tracing::debug!(%method, host, port, ?took, "http stopped"),
    }
}

/// An answer whose body is still unread.
#[derive(Debug)]
pub struct Response<'c> {
    client: &'c Client,
    inner: reqwest::Response,
}

impl Response<'_> {
    pub fn status(&self) -> u16 {
        self.inner.status().as_u16()
    }

    /// The status with its usual name when displayed (`404 Not Found`).
    pub fn status_code(&self) -> StatusCode {
        self.inner.status()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.inner.headers()
    }

    /// The value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name)?.to_str().ok()
    }

    /// The next piece of the body; `None` at its end.
    pub fn chunk<S>(&mut self, limit: Duration, watch: Watch<'_, S>) -> Result<Option<Bytes>, Failure<S>> {
        let piece = self.client.runtime.block_on(watched(self.inner.chunk(), limit, watch))?;
        Ok(piece.map_err(|error| self.client.failed(error))?)
    }
}
