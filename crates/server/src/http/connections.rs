//! Accepts connections. Slow heads and bodies time out, and connections without a login never take the room of others.

use crate::http::network::{self, Network};
use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::ConnectInfo;
use axum::http::Request;
use futures_util::{StreamExt as _, stream};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use nix::sys::resource::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How long a client may take to send the head of a request, and its body.
const HEAD: Duration = Duration::from_secs(10);
const BODY: Duration = Duration::from_secs(30);
/// Connections of one address that haven't logged in.
const STRANGERS: usize = 128;
/// Connections, if the limit of open files allows as many.
const MOST: u64 = 8192;
/// Pause when the system gives no connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The open connections.
#[derive(Debug)]
struct Room {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    count: usize,
    /// Connections that haven't logged in, oldest first.
    strangers: BTreeMap<u64, (IpAddr, Arc<Notify>)>,
}

impl Open {
    /// Closes the oldest connection without a login, of one address or of all. Returns whether there was one.
    fn close_oldest(&mut self, of: Option<IpAddr>) -> bool {
        let oldest = self.strangers.iter().find(|(_, (from, _))| of.is_none_or(|of| of == *from));
        let Some(id) = oldest.map(|(id, _)| *id) else { return false };
        if let Some((_, close)) = self.strangers.remove(&id) {
            close.notify_one();
        }
        true
    }
}

/// A connection. It counts until its last request has ended.
#[derive(Debug)]
pub(crate) struct Connection {
    id: u64,
    room: Arc<Room>,
    close: Arc<Notify>,
}

impl Connection {
    /// A user has logged in on it, so it isn't closed for the sake of others.
    pub(crate) fn is_known(&self) {
        self.room.lock().strangers.remove(&self.id);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.room.lock();
        open.strangers.remove(&self.id);
        open.count -= 1;
    }
}

impl Room {
    fn of(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Makes room for a connection; `None` if users have all of it. A proxy's connections are many clients'.
    fn admit(self: &Arc<Self>, from: IpAddr, is_proxy: bool) -> Option<Connection> {
        let mut open = self.lock();
        let of_address = || open.strangers.values().filter(|(known, _)| *known == from).count();
        if !is_proxy && of_address() >= STRANGERS {
            open.close_oldest(Some(from));
        }
        if open.count >= self.most && !open.close_oldest(None) {
            return None;
        }
        let (id, close) = (open.next, Arc::new(Notify::new()));
        open.next += 1;
        open.count += 1;
        open.strangers.insert(id, (from, close.clone()));
        drop(open);
        Some(Connection { id, room: self.clone(), close })
    }
}

/// Three quarters of the files that this process may open; records and the index need some, too.
fn room_for() -> usize {
    let files = getrlimit(Resource::RLIMIT_NOFILE).map_or(1024, |(soft, _)| soft);
    usize::try_from((files / 4 * 3).min(MOST)).unwrap_or(usize::MAX)
}

/// Serves until the server closes, then lets open requests end.
pub(crate) async fn serve(
    listener: TcpListener,
    router: Router,
    proxies: Vec<Network>,
    mut closing: watch::Receiver<bool>,
) {
    let (room, proxies): (_, Arc<[Network]>) = (Room::of(room_for()), proxies.into());
    let stop = closing.clone();
    let mut all = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = closing.changed() => break,
            Some(_) = all.join_next() => continue,
        };
        match accepted {
            Ok((stream, peer)) => {
                let from = peer.ip().to_canonical();
                let Some(connection) = room.admit(from, network::is_trusted(&proxies, from)) else {
                    continue;
                };
                all.spawn(attend(
                    stream,
                    peer,
                    Arc::new(connection),
                    router.clone(),
                    proxies.clone(),
                    stop.clone(),
                ));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    while all.join_next().await.is_some() {}
}

async fn attend(
    stream: TcpStream,
    peer: SocketAddr,
    connection: Arc<Connection>,
    router: Router,
    proxies: Arc<[Network]>,
    mut closing: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let (router, given) = (TowerToHyperService::new(router), connection.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(in_time);
        let from = network::client(peer.ip(), request.headers(), &proxies);
        request.extensions_mut().insert(ConnectInfo(SocketAddr::new(from, peer.port())));
        request.extensions_mut().insert(given.clone());
        router.call(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let mut is_closing = false;
    loop {
        tokio::select! {
            // Its errors are the client's.
            _ = serving.as_mut() => return,
            () = connection.close.notified() => return,
            _ = closing.changed(), if !is_closing => {
                is_closing = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}

/// The body, which fails if it takes too long.
fn in_time(body: Incoming) -> Body {
    if body.is_end_stream() {
        return Body::empty();
    }
    let (data, end) = (Body::new(body).into_data_stream(), Instant::now() + BODY);
    let late = || axum::Error::new(std::io::Error::from(std::io::ErrorKind::TimedOut));
    Body::from_stream(stream::unfold(Some(data), move |data| async move {
        let mut data = data?;
        match tokio::time::timeout_at(end, data.next()).await {
            Ok(next) => Some((next?, Some(data))),
            Err(_) => Some((Err(late()), None)),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn is_closed(connection: &Connection) -> bool {
        connection.close.notified().now_or_never().is_some()
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn an_address_without_a_login_takes_no_room_of_others() {
        let room = Room::of(1000);
        let user = room.admit(address(1), false).unwrap();
        user.is_known();
        let other = room.admit(address(2), false).unwrap();
        let mut strangers: Vec<Connection> =
            (0..=STRANGERS).map(|_| room.admit(address(1), false).unwrap()).collect();
        assert!(is_closed(&strangers[0]), "the oldest one of this address");
        assert!(!strangers[1..].iter().chain([&user, &other]).any(is_closed));
        let proxied: Vec<_> = (0..=STRANGERS).map(|_| room.admit(address(3), true).unwrap()).collect();
        assert!(!proxied.iter().any(is_closed), "many clients come through a proxy");
        strangers.clear();
        drop((proxied, user, other));
        assert_eq!(room.lock().count, 0);
    }

    #[test]
    fn a_full_server_closes_the_oldest_connection_without_a_login() {
        let room = Room::of(3);
        let user = room.admit(address(1), false).unwrap();
        user.is_known();
        let first = room.admit(address(2), false).unwrap();
        let second = room.admit(address(3), false).unwrap();
        let third = room.admit(address(4), false).unwrap();
        assert!(is_closed(&first) && ![&user, &second, &third].into_iter().any(is_closed));
        drop(first);
        second.is_known();
        third.is_known();
        assert!(room.admit(address(5), false).is_none(), "users have all of it");
    }
}
