//! Reads a run for one viewer off the async threads.

use super::FromQuery;
use super::frames::{event_frame, missed_frame, output_frame};
use crate::http::problem::Problem;
use jiff::tz::TimeZone;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_journal::live::stream::{Cursor, RunStream, StreamItem, StreamStart};
use ralph_loop_protocol::id::Seq;

/// A viewer's position in a run.
#[derive(Debug)]
pub(super) struct Reader {
    run: RunDir,
    zone: TimeZone,
    stream: Option<RunStream>,
}

/// One piece of new data.
#[derive(Debug)]
pub(super) struct Frame {
    /// The event's number, if it is one.
    pub(super) seq: Option<u64>,
    /// The frame.
    pub(super) text: String,
}

impl Reader {
    /// Starts where the viewer wants.
    pub(super) async fn open(run: RunDir, zone: TimeZone, from: FromQuery) -> Result<Self, Problem> {
        let start = match (from.from, from.live) {
            (None, _) => StreamStart::Tail,
            (Some(seq), Some(live)) => StreamStart::After(Cursor { seq: Seq(seq.saturating_sub(1)), live }),
            (Some(0 | 1), None) => StreamStart::Beginning,
            (Some(seq), None) => StreamStart::From(Seq(seq)),
        };
        let mut reader = Self { run, zone, stream: None };
        reader.reopen(start).await?;
        Ok(reader)
    }

    /// A bounded part of the new data.
    pub(super) async fn next(&mut self) -> Result<Vec<Frame>, Problem> {
        let Some(mut stream) = self.stream.take() else { return Ok(Vec::new()) };
        let zone = self.zone.clone();
        let (stream, items) = blocking(move || {
            let items = stream.poll().map(|items| items.iter().map(|item| frame(item, &zone)).collect());
            (stream, items)
        })
        .await?;
        self.stream = Some(stream);
        Ok(items?)
    }

    /// The last event returned.
    pub(super) fn seq(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.cursor().seq.0)
    }

    /// Skips to the end; the gap is read another way.
    pub(super) async fn skip(&mut self) -> Result<(), Problem> {
        self.reopen(StreamStart::Tail).await
    }

    async fn reopen(&mut self, start: StreamStart) -> Result<(), Problem> {
        let run = self.run.clone();
        self.stream = Some(blocking(move || RunStream::open(&run, start)).await??);
        Ok(())
    }
}

fn frame(item: &StreamItem, zone: &TimeZone) -> Frame {
    match item {
        StreamItem::Event(line) => Frame { seq: Some(line.event.seq.0), text: event_frame(line, zone) },
        StreamItem::Live(record) => Frame { seq: None, text: output_frame(record) },
        StreamItem::Missed(records) => Frame { seq: None, text: missed_frame(*records) },
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|_| Problem::internal("reading the run failed"))
}
