//! Starts and stops a server: it listens first and loads what it needs while answering.

use crate::fleet::FleetSide;
use crate::fleet::{fleet_secrets, fleet_work};
use crate::home::ServerHome;
use crate::http::{connections, layers};
use crate::index::Index;
use crate::live::Live;
use crate::options::{Ready, ServeOptions};
use crate::otlp;
use crate::people::{People, Sessions, random_token};
use crate::readiness::Readiness;
use crate::routes;
use crate::scheduler::Scheduler;
use crate::secrets::Secrets;
use crate::server::{Server, ServerParts};
use axum::middleware;
use ralph_loop_app::{App, AppError};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_fleet::db;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

/// Pause between two probes, and how long one may take: an answer is at most three seconds old.
const PROBE_PAUSE: Duration = Duration::from_secs(1);
const PROBE_PATIENCE: Duration = Duration::from_secs(2);
/// How long open requests may take at shutdown.
const DRAIN: Duration = Duration::from_secs(5);
/// Threads for blocking work.
const BLOCKING: usize = 64;
/// File of the generated token.
const TOKEN_FILE: &str = "token";

/// Runs a server until a signal; calls `ready` once it listens. Its runs continue.
pub fn serve(app: &App, options: &ServeOptions, ready: impl FnOnce(&Ready)) -> Result<(), AppError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .max_blocking_threads(BLOCKING)
        .thread_stack_size(1024 * 1024)
        .enable_all()
        .build()
        .map_err(|e| AppError::environment(format!("can't start the server: {e}")))?;
    let ended = runtime.block_on(run(app, options, ready));
    // Remaining blocking work belongs to runs, which continue.
    runtime.shutdown_timeout(Duration::from_millis(200));
    ended
}

async fn run(app: &App, options: &ServeOptions, ready: impl FnOnce(&Ready)) -> Result<(), AppError> {
    let env = app.environment();
    let home = env.state_home()?;
    let own = ServerHome::make(&home)?;
    let mut claim = own.claim()?;
    let token = token(options, &own)?;
    let listener = listen(options).await?;
    let url = env.vars().filled("RALPH_DB_URL");
    let index = Arc::new(Index::open(url.as_deref(), &options.folder, &own).await?);
    let secrets = Arc::new(Secrets::open(&own, env.vars())?);
    let web = App::new(env.clone().with_face("web").for_server());
    let live = Live::new(web.clone(), home.clone(), index.clone());
    let scheduler = Scheduler::new(
        web.clone(),
        home.clone(),
        live.clone(),
        secrets.clone(),
        options.limits.clone(),
        &own.queue(),
    );
    let (close, closing) = watch::channel(false);
    let owner = env.vars().filled("USER").unwrap_or_else(|| "owner".to_owned());
    let now = SystemClock::default().now();
    let server = Server::new(ServerParts {
        app: web,
        people: People::open(&own, &owner, &token, now)?,
        sessions: Sessions::open(&own)?,
        home,
        own,
        live: live.clone(),
        scheduler: scheduler.clone(),
        secrets,
        closing,
        repos: options.repos.clone(),
        is_local: options.host.is_loopback(),
        demo: options.demo,
        demos: options.demos.clone(),
        fleet: FleetSide::open(env).await?,
    });
    live.begin(&tokio::runtime::Handle::current());
    tokio::spawn(scheduler.clone().work());
    otlp::begin(&server);
    begin_probes(&server).await;
    fleet_work::begin(&server);
    fleet_secrets::begin(&server);
    let address = listener.local_addr().map_err(|e| AppError::environment(format!("no address: {e}")))?;
    let info = ready_info(&server, address, token, index.set_aside())?;
    if let Err(error) = claim.name(&info.url) {
        tracing::warn!(%error, "couldn't write the lock of the server's folder");
    }
    ready(&info);
    let router =
        routes::router(server.clone()).layer(middleware::from_fn_with_state(server.clone(), layers::around));
    let proxies = options.trusted_proxies.clone();
    let serving = tokio::spawn(connections::serve(listener, router, proxies, server.closing.clone()));
    wait_for_signal().await;
    scheduler.drain();
    // Viewers are notified and reconnect.
    let _ = close.send(true);
    let _ = tokio::time::timeout(DRAIN, serving).await;
    live.stop();
    index.close().await;
    Ok(())
}

fn ready_info(
    server: &Server,
    address: SocketAddr,
    token: String,
    set_aside: Option<&Path>,
) -> Result<Ready, AppError> {
    let host = match address.ip() {
        ip if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V6(ip) => format!("[{ip}]"),
        IpAddr::V4(ip) => ip.to_string(),
    };
    let url = format!("http://{host}:{}", address.port());
    let login_url = format!("{url}/#code={}", server.codes.make()?);
    Ok(Ready { url, token, login_url, set_aside: set_aside.map(Path::to_owned) })
}

async fn listen(options: &ServeOptions) -> Result<TcpListener, AppError> {
    TcpListener::bind((options.host, options.port)).await.map_err(|e| {
        let error = AppError::environment(format!("cannot listen on {}:{}: {e}", options.host, options.port));
        match e.kind() {
            std::io::ErrorKind::AddrInUse => {
                error.hint("another server is there; `--port` chooses another port")
            }
            _ => error.hint("`--host` and `--port` choose another address"),
        }
    })
}

/// The owner's token. A public address requires a chosen one.
fn token(options: &ServeOptions, own: &ServerHome) -> Result<String, AppError> {
    if let Some(token) = &options.token {
        return Ok(token.trim().to_owned());
    }
    if !options.host.is_loopback() {
        return Err(AppError::usage(format!(
            "others can reach {}, and no token was given",
            options.host
        ))
        .hint("`--token-file FILE` or RALPH_SERVE_TOKEN names one (`openssl rand -hex 32` makes one); without `--host` only this machine can reach the server"));
    }
    let path = own.file(TOKEN_FILE);
    if let Some(bytes) = own.read_private(&path)? {
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        if !text.is_empty() {
            return Ok(text);
        }
    }
    let token = random_token()?;
    own.write_private(&path, token.as_bytes())?;
    Ok(token)
}

async fn wait_for_signal() {
    let (Ok(mut term), Ok(mut int), Ok(mut hup)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        _ = hup.recv() => {}
    }
}

/// Probes once, and then until the server ends.
async fn begin_probes(server: &Arc<Server>) {
    probe(server).await;
    let server = server.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(PROBE_PAUSE).await;
            probe(&server).await;
        }
    });
}

async fn probe(server: &Server) {
    let standby = async {
        let side = server.fleet.as_ref()?;
        let _ = timeout(PROBE_PATIENCE / 2, db::pulse(side.fleet.pool())).await;
        timeout(PROBE_PATIENCE / 2, side.fleet.has_synchronous_standby()).await.ok()?.ok()
    };
    let (index, standby) = tokio::join!(timeout(PROBE_PATIENCE, server.index.answers()), standby);
    let found = Readiness { index: index.unwrap_or(false), standby };
    server.probe.set(found);
}
