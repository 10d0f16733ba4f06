//! The WebSocket of a run.

use super::FromQuery;
use super::frames::reread_frame;
use super::reader::Reader;
use crate::auth::Caller;
use crate::http::problem::Problem;
use crate::server::Server;
use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::id::RunId;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Closes a connection that accepts nothing for this long.
const SEND_TIMEOUT: Duration = Duration::from_secs(20);
/// A batch that takes longer marks a slow viewer.
const SLOW: Duration = Duration::from_secs(2);
/// Lag allowed for a slow viewer, in events.
const LAG_MAX: u64 = 2048;
/// Interval between views.
const VIEW_PACE: Duration = Duration::from_millis(250);
/// Polling and ping interval.
const LOOK: Duration = Duration::from_secs(1);
const PING: Duration = Duration::from_secs(10);

/// Why a connection ends.
enum End {
    /// The client is gone or accepts nothing.
    Gone,
    /// An error on this side.
    Problem(Problem),
}

impl From<Problem> for End {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// Sends everything from the requested event on until one side closes.
pub async fn run_socket(
    server: Arc<Server>,
    caller: Caller,
    entry: Registration,
    from: FromQuery,
    socket: WebSocket,
) {
    let mut feed = RunSocket {
        run: entry.run_id.clone(),
        server,
        caller,
        socket,
        view_at: None,
        view_due: true,
        lags: false,
    };
    let ended = feed.serve(&entry, from).await;
    let (code, reason) = match ended {
        Err(End::Gone) => return,
        Err(End::Problem(problem)) => (1011, problem.detail().to_owned()),
        Ok(()) => (1012, "the server is shutting down; reconnect with `from`".to_owned()),
    };
    let reason = ralph_loop_protocol::display::text::head(&reason, 100).to_owned();
    let close = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    let _ = tokio::time::timeout(SLOW, feed.socket.send(close)).await;
}

struct RunSocket {
    run: RunId,
    server: Arc<Server>,
    caller: Caller,
    socket: WebSocket,
    view_at: Option<Instant>,
    view_due: bool,
    /// A frame other than events was accepted slowly.
    lags: bool,
}

impl RunSocket {
    async fn serve(&mut self, entry: &Registration, from: FromQuery) -> Result<(), End> {
        let mut viewer = self.server.live.view(&self.run);
        let mut closing = self.server.closing.clone();
        let zone = self.server.app.environment().zone();
        let mut reader = Reader::open(entry.run_dir(), zone, from).await?;
        let (head, view) = self.view().await?;
        let first = from.from.unwrap_or(reader.seq() + 1);
        self.send(format!("{{\"type\":\"hello\",\"head\":{head},\"from\":{first},\"view\":{view}}}")).await?;
        (self.view_at, self.view_due) = (Some(Instant::now()), false);
        let mut pinged = Instant::now();
        loop {
            // Even under constant traffic.
            if *closing.borrow() {
                return Ok(());
            }
            if pinged.elapsed() >= PING {
                pinged = Instant::now();
                self.check_caller()?;
                self.send_message(Message::Ping(Bytes::new())).await?;
            }
            if self.drain(&mut reader).await? {
                continue;
            }
            if self.view_due && self.view_at.is_none_or(|at| at.elapsed() >= VIEW_PACE) {
                let (_, view) = self.view().await?;
                self.send(format!("{{\"type\":\"view\",\"view\":{view}}}")).await?;
                (self.view_at, self.view_due) = (Some(Instant::now()), false);
            }
            let wait = if self.view_due { VIEW_PACE } else { LOOK };
            tokio::select! {
                () = viewer.changed() => {}
                () = tokio::time::sleep(wait) => {}
                _ = closing.changed() => return Ok(()),
                heard = self.socket.recv() => match heard {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(End::Gone),
                    Some(Ok(_)) => {}
                },
            }
        }
    }

    /// Sends new data; returns whether there was any.
    async fn drain(&mut self, reader: &mut Reader) -> Result<bool, End> {
        let frames = reader.next().await?;
        if frames.is_empty() {
            return Ok(false);
        }
        let begun = Instant::now();
        self.view_due |= frames.iter().any(|frame| frame.seq.is_some());
        for frame in frames {
            self.send(frame.text).await?;
        }
        if std::mem::take(&mut self.lags) || begun.elapsed() > SLOW {
            let head = self.view().await?.0;
            if head.saturating_sub(reader.seq()) > LAG_MAX {
                self.send(reread_frame(reader.seq() + 1)).await?;
                reader.skip().await?;
            }
        }
        Ok(true)
    }

    /// The last event's number, and the view as JSON.
    async fn view(&mut self) -> Result<(u64, String), Problem> {
        let (live, run) = (self.server.live.clone(), self.run.clone());
        self.server
            .blocking(move || {
                live.with(&run, |run| {
                    let view = run.view();
                    (view.seq.0, serde_json::to_string(&view).unwrap_or_default())
                })
                .map_err(Problem::from)
            })
            .await
    }

    /// Stops when the token or session is revoked.
    fn check_caller(&self) -> Result<(), End> {
        match self.caller.is_still_here(&self.server) {
            true => Ok(()),
            false => {
                Err(End::Problem(Problem::forbidden("the token was taken away, or the session has ended")))
            }
        }
    }

    async fn send(&mut self, text: String) -> Result<(), End> {
        self.send_message(Message::Text(text.into())).await
    }

    async fn send_message(&mut self, message: Message) -> Result<(), End> {
        let begun = Instant::now();
        match tokio::time::timeout(SEND_TIMEOUT, self.socket.send(message)).await {
            Ok(Ok(())) => {
                self.lags |= begun.elapsed() > SLOW;
                Ok(())
            }
            _ => Err(End::Gone),
        }
    }
}
