//! The connection: one runtime on the caller's thread, clients by what they may do, waits that listen to the sink.

use super::failure::Failure;
use super::provider::Route;
use ralph_domain::config::Profile;
use ralph_domain::model::{ModelErrorKind, ModelSink};
use ralph_domain::ports::StopCause;
use ralph_domain::text::deepest_cause;
use reqwest::redirect::Policy;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, Runtime};

/// How often a wait asks the sink.
const POLL: Duration = Duration::from_millis(100);
/// Time-outs where the profile says nothing.
const CONNECT: u64 = 10;
const FIRST_BYTE: u64 = 120;
const STALL: u64 = 60;
/// No try lasts longer, however steadily its bytes drip.
pub(crate) const WHOLE: Duration = Duration::from_secs(30 * 60);

/// How long each part of a try may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub connect: Duration,
    pub first_byte: Duration,
    pub stall: Duration,
}

impl Timeouts {
    /// As a profile says.
    pub fn of(profile: &Profile) -> Self {
        let said = profile.timeouts.unwrap_or_default();
        let secs = |said: Option<u64>, usual| Duration::from_secs(said.unwrap_or(usual).clamp(1, 3600));
        Self {
            connect: secs(said.connect, CONNECT),
            first_byte: secs(said.first_byte, FIRST_BYTE),
            stall: secs(said.stall, STALL),
        }
    }
}

/// Why a wait ended without its result.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The time was up.
    TimedOut,
    /// The sink wanted it.
    Stopped(StopCause),
}

/// The runtime and its clients. Connections stay open between calls.
#[derive(Debug)]
pub(crate) struct Transport {
    pub runtime: Runtime,
    clients: Mutex<BTreeMap<(bool, Duration), reqwest::Client>>,
}

impl Transport {
    /// Starts the runtime; no thread is added.
    pub fn start() -> std::io::Result<Self> {
        // A second install is refused, which is fine: any provider will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, clients: Mutex::default() })
    }

    /// The client for a route. Calls that stay on this machine never go through a proxy.
    pub fn client(&self, route: &Route, timeouts: Timeouts) -> Result<reqwest::Client, Failure> {
        let key = (route.is_loopback(), timeouts.connect);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&key) {
            return Ok(client.clone());
        }
        let builder = || {
            let builder = reqwest::Client::builder()
                .redirect(Policy::none())
                .connect_timeout(timeouts.connect)
                .pool_idle_timeout(Duration::from_secs(50))
                .user_agent(concat!("ralph/", env!("CARGO_PKG_VERSION")));
            if route.is_loopback() { builder.no_proxy() } else { builder }
        };
        // Without certificates on the machine, servers without TLS can still be asked.
        let plain = route.base.scheme() == "http";
        let built =
            builder().build().or_else(|e| if plain { builder().tls_certs_only([]).build() } else { Err(e) });
        let client = built.map_err(|e| {
            Failure::of(
                ModelErrorKind::NotFound,
                format!("cannot be asked: TLS cannot be set up ({})", deepest_cause(&e)),
            )
            .hint("install the machine's certificates (`ca-certificates`)")
        })?;
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// Waits for `work`, asking the sink before and all the while.
pub(crate) async fn watched<F: Future>(
    work: F,
    limit: Duration,
    sink: &mut dyn ModelSink,
) -> Result<F::Output, Ended> {
    let mut work = pin!(work);
    let end = Instant::now() + limit;
    loop {
        if let ControlFlow::Break(cause) = sink.poll() {
            return Err(Ended::Stopped(cause));
        }
        let left = end.saturating_duration_since(Instant::now());
        match tokio::time::timeout(POLL.min(left), work.as_mut()).await {
            Ok(output) => return Ok(output),
            Err(_) if left <= POLL => return Err(Ended::TimedOut),
            Err(_) => {}
        }
    }
}

/// Sleeps, unless the sink ends it.
pub(crate) async fn sleep(wait: Duration, sink: &mut dyn ModelSink) -> Result<(), StopCause> {
    match watched(std::future::pending::<()>(), wait, sink).await {
        Err(Ended::Stopped(cause)) => Err(cause),
        Ok(()) | Err(Ended::TimedOut) => Ok(()),
    }
}

/// What a failed connection means.
pub(crate) fn connection_failure(error: &reqwest::Error, route: &Route, timeouts: Timeouts) -> Failure {
    let cause = deepest_cause(error);
    if error.is_connect() && error.is_timeout() {
        return Failure::passing(
            ModelErrorKind::TimedOut,
            format!("did not take the connection within {} s", timeouts.connect.as_secs()),
        )
        .hint("check the network and `base_url`; `timeouts: {connect: …}` gives it longer");
    }
    if cause.contains("certificate") {
        return Failure::of(ModelErrorKind::NotFound, format!("is not trusted: {cause}"))
            .hint("the server's certificate is not known to this machine: check `base_url`, or install its authority");
    }
    if error.is_connect() {
        return Failure::passing(ModelErrorKind::Overloaded, format!("cannot be reached: {cause}")).hint(
            if route.is_loopback() {
                format!("start the server at {}, or fix `base_url`", route.server())
            } else {
                "check the network and `base_url`".to_owned()
            },
        );
    }
    Failure::passing(ModelErrorKind::Overloaded, format!("broke the connection: {cause}"))
}
