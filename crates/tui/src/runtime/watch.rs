//! Watches one local or server run: its stream and its view.

use super::Inbound;
use super::feed::Feed;
use crate::data::Problem;
use crate::msg::Msg;
use crate::remote::{Server, ServerStream};
use ralph_loop_app::race::races;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::{App, AppError, ErrorKind};
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::live::stream::{RunStream, StreamItem, StreamStart};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// View polling intervals for driven and stopped runs.
const LOOKS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(3));
/// Longest wait for new output.
const WAIT: Duration = Duration::from_millis(500);
/// Delay before reconnecting.
const AGAIN: Duration = Duration::from_secs(2);

/// Watches one run at a time.
pub struct Watcher {
    source: Source,
    to: Sender<Inbound>,
    /// Number of the current watch.
    turn: Arc<AtomicU64>,
}

/// Where runs are.
#[derive(Clone)]
struct Source {
    app: App,
    folder: PathBuf,
    server: Option<Server>,
}

impl Watcher {
    pub fn new(app: App, folder: &Path, server: Option<Server>, to: Sender<Inbound>) -> Self {
        Self { source: Source { app, folder: folder.to_owned(), server }, to, turn: Arc::default() }
    }

    /// Watches only this run.
    pub fn watch(&self, run: String) {
        let turn = self.turn.fetch_add(1, Ordering::AcqRel) + 1;
        let source = self.source.clone();
        let zone = source.app.environment().zone();
        let feed = Feed { to: self.to.clone(), counts: self.turn.clone(), turn, zone };
        std::thread::spawn(move || {
            let over = match &source.server {
                Some(server) => follow_on_server(server, &run, &feed),
                None => follow(&source, &run, &feed),
            };
            if let Err(error) = over {
                feed.tell(Msg::ViewFailed(error.into()));
            }
        });
    }

    pub fn stop(&self) {
        self.turn.fetch_add(1, Ordering::AcqRel);
    }
}

fn follow(source: &Source, run: &str, feed: &Feed) -> Result<(), AppError> {
    let entry = source.app.open(&source.folder, Some(run))?.entry;
    let env = source.app.environment();
    // Race membership never changes.
    let races = races::of_run(env, &entry.run_id).is_ok_and(|race| race.is_some());
    let look = |source: &Source, entry: &Registration, feed: &Feed| {
        if races && let Ok(Some(race)) = races::of_run(env, &entry.run_id) {
            feed.tell(Msg::Race(Box::new(race)));
        }
        look(source, entry, feed)
    };
    let mut driven = look(source, &entry, feed)?;
    let mut looked = Instant::now();
    let mut stream = RunStream::open(&entry.run_dir(), StreamStart::Beginning)?;
    while feed.is_wanted() {
        let items = stream.wait(WAIT)?;
        let events = items.iter().any(|item| matches!(item, StreamItem::Event(_)));
        if !items.is_empty() && !feed.items(&items) {
            return Ok(());
        }
        let due = if driven { LOOKS.0 } else { LOOKS.1 };
        if events || looked.elapsed() >= due {
            driven = look(source, &entry, feed)?;
            looked = Instant::now();
        }
    }
    Ok(())
}

/// Sends the run's view; returns whether a process drives it.
fn look(source: &Source, entry: &Registration, feed: &Feed) -> Result<bool, AppError> {
    let reading = RunSnapshot::load(source.app.environment(), entry.clone())?;
    let view = reading.view();
    if view.status.is_over() {
        reading.mark_seen();
    }
    let driven = view.driven;
    feed.hand_over(Msg::View(Box::new(view)));
    Ok(driven)
}

/// Follows a run over the network: reconnects on failure, ends on a refusal.
fn follow_on_server(server: &Server, run: &str, feed: &Feed) -> Result<(), AppError> {
    let mut stream = ServerStream::new(server, run)?;
    while feed.is_wanted() {
        let followed = look_on_server(server, run, feed).and_then(|begun| match begun {
            true => watch_on_server(server, &mut stream, run, feed),
            false => Ok(()),
        });
        match followed {
            Ok(()) => {}
            // An unreachable server may come back; a refusal won't change.
            Err(error) if error.kind == ErrorKind::Environment => {
                let problem = Problem::from(error);
                let fix = format!("`ralph` tries again every {} s; {}", AGAIN.as_secs(), problem.fix);
                feed.tell(Msg::ViewFailed(Problem { fix, ..problem }));
            }
            Err(error) => return Err(error),
        }
        let until = Instant::now() + AGAIN;
        while feed.is_wanted() && Instant::now() < until {
            std::thread::park_timeout(WAIT);
        }
    }
    Ok(())
}

fn watch_on_server(
    server: &Server,
    stream: &mut ServerStream,
    run: &str,
    feed: &Feed,
) -> Result<(), AppError> {
    let (mut looked, mut failed) = (Instant::now(), None);
    stream.follow(WAIT, &mut |items| {
        if !feed.is_wanted() || (!items.is_empty() && !feed.items(&items)) {
            return ControlFlow::Break(());
        }
        let events = items.iter().any(|item| matches!(item, StreamItem::Event(_)));
        if (events && looked.elapsed() >= WAIT) || looked.elapsed() >= LOOKS.0 {
            looked = Instant::now();
            if let Err(error) = look_on_server(server, run, feed) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    failed.map_or(Ok(()), Err)
}

/// Sends the run's view; returns whether it has started.
fn look_on_server(server: &Server, run: &str, feed: &Feed) -> Result<bool, AppError> {
    let Some(view) = server.view(run)? else {
        let fix = "it starts when its turn comes; q leaves it in the queue";
        feed.tell(Msg::ViewFailed(Problem::new(format!("run {run} is queued and has not begun"), fix)));
        return Ok(false);
    };
    if let Some(race) = server.race(run)? {
        feed.tell(Msg::Race(Box::new(race)));
    }
    feed.hand_over(Msg::View(Box::new(view)));
    Ok(true)
}
