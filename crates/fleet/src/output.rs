//! Live output on its way from a run to the servers. Some of it may be lost; what an iteration printed is kept with its record.

use crate::error::FleetError;
use crate::lease::Lease;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::layout::{RunDir, StateHome};
use ralph_loop_journal::live::stream::{RunStream, StreamItem, StreamStart};
use ralph_loop_journal::live::{self, LiveRecord};
use ralph_loop_protocol::id::RunId;
use sqlx::PgPool;

/// Bytes sent at once.
const PIECE: usize = 60 * 1024;
/// Pieces read at once.
const BATCH: i64 = 500;
/// Pieces that are read again, because their numbers may become visible out of order.
const AGAIN: i64 = 64;
/// In a copy: the hold whose output it has. Another one counts its records again.
const EPOCH: &str = "live-epoch";

/// Reads a run's output where it is driven.
#[derive(Debug)]
pub(crate) struct Sender {
    stream: Option<RunStream>,
    dir: RunDir,
}

impl Sender {
    /// Sends what is printed from now on.
    pub(crate) fn new(dir: &RunDir) -> Self {
        let stream = dir.spec().is_file().then(|| RunStream::open(dir, StreamStart::Tail).ok()).flatten();
        Self { stream, dir: dir.clone() }
    }

    /// What was printed since the last call, in pieces.
    pub(crate) fn next(&mut self) -> Vec<Vec<u8>> {
        if self.stream.is_none() && self.dir.spec().is_file() {
            self.stream = RunStream::open(&self.dir, StreamStart::Beginning).ok();
        }
        let Some(stream) = &mut self.stream else { return Vec::new() };
        let items = stream.poll().unwrap_or_else(|error| {
            tracing::warn!(%error, "the live output can't be read");
            Vec::new()
        });
        let mut pieces: Vec<Vec<u8>> = Vec::new();
        for item in items {
            let StreamItem::Live(record) = item else { continue };
            let Ok(mut line) = serde_json::to_vec(&record) else { continue };
            line.push(b'\n');
            match pieces.last_mut().filter(|piece| piece.len() + line.len() <= PIECE) {
                Some(piece) => piece.extend_from_slice(&line),
                None => pieces.push(line),
            }
        }
        pieces
    }
}

/// Sends a piece, if the run is still held.
pub(crate) async fn send(pool: &PgPool, lease: &Lease, piece: &[u8]) -> Result<(), FleetError> {
    sqlx::query("SELECT ralph_seal.output($1, $2, $3)")
        .bind(&lease.run)
        .bind(lease.epoch)
        .bind(piece)
        .execute(pool)
        .await?;
    Ok(())
}

/// Copies output into the records of a server.
#[derive(Debug, Default)]
pub struct Receiver {
    last: i64,
}

struct Piece {
    n: i64,
    run: String,
    epoch: i64,
    lines: Vec<u8>,
}

from_row!(Piece: n, run, epoch, lines);

impl Receiver {
    /// Copies what has come since the last call.
    pub async fn turn(&mut self, pool: &PgPool, home: &StateHome) -> Result<(), FleetError> {
        loop {
            let pieces: Vec<Piece> = sqlx::query_as(
                "SELECT n, run, epoch, lines FROM ralph_seal.output WHERE n > $1 ORDER BY n LIMIT $2",
            )
            .bind(self.last - AGAIN)
            .bind(BATCH)
            .fetch_all(pool)
            .await?;
            for piece in &pieces {
                let Ok(run) = RunId::parse(&piece.run) else { continue };
                // The copy of the journal makes the record.
                if crate::mirror::is_mirrored(&home.record(&run))
                    && let Err(error) = keep(&home.record(&run), piece.epoch, &piece.lines)
                {
                    tracing::warn!(%error, %run, "live output can't be copied");
                }
            }
            let before = self.last;
            self.last = pieces.last().map_or(before, |piece| piece.n.max(before));
            if self.last == before || pieces.len() < usize::try_from(BATCH).unwrap_or(usize::MAX) {
                return Ok(());
            }
        }
    }

    /// Forgets what every server has read.
    pub async fn tidy(pool: &PgPool) -> Result<(), FleetError> {
        sqlx::query("DELETE FROM ralph_seal.output WHERE at < now() - interval '10 minutes'")
            .execute(pool)
            .await?;
        Ok(())
    }
}

/// Adds the records that are new here.
fn keep(record: &RunDir, epoch: i64, lines: &[u8]) -> std::io::Result<()> {
    let path = record.path().join(EPOCH);
    let known = std::fs::read_to_string(&path).ok().and_then(|text| text.parse::<i64>().ok());
    if known.is_some_and(|known| known > epoch) {
        return Ok(());
    }
    if known != Some(epoch) {
        for file in [record.live(), record.live_before()] {
            match std::fs::remove_file(file) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        artifacts::write_atomic(&path, epoch.to_string().as_bytes()).map_err(std::io::Error::other)?;
    }
    let last = live::last_number(record);
    let mut new = Vec::new();
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        if serde_json::from_slice::<LiveRecord>(line).is_ok_and(|one| one.n > last) {
            new.extend_from_slice(line);
        }
    }
    if new.is_empty() { Ok(()) } else { live::append(record, &new) }
}
