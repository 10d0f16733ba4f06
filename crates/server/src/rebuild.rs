//! Rebuilds the index from run records.

use crate::home::ServerHome;
use crate::index::{Index, Indexed, entries, read_run};
use crate::scheduler::read_queue;
use ralph_loop_app::{App, AppError};
use ralph_loop_journal::folder::registry;
use std::path::{Path, PathBuf};

/// Rows written at once.
const BATCH: usize = 500;

/// A rebuilt index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltIndex {
    /// Number of runs.
    pub runs: usize,
    /// Where the damaged one was moved.
    pub set_aside: Option<PathBuf>,
}

/// Rebuilds the index; a relative file in `RALPH_DB_URL` is in `folder`.
pub fn rebuild_index(
    app: &App,
    folder: &Path,
    mut progress: impl FnMut(usize, usize),
) -> Result<RebuiltIndex, AppError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| AppError::environment(format!("can't open the index: {e}")))?;
    let env = app.environment();
    let home = env.state_home()?;
    let own = ServerHome::make(&home)?;
    let failed = |error: sqlx::Error| AppError::environment(format!("can't write the index: {error}"));
    let url = env.vars().filled("RALPH_DB_URL");
    let index =
        runtime.block_on(async { Index::open(url.as_deref(), folder, &own).await?.emptied().await })?;
    let ids = entries(&home);
    let mut batch = Vec::new();
    let mut count = 0;
    for (at, run) in ids.iter().enumerate() {
        let Some(entry) = registry::find(&home, run) else { continue };
        batch.push(read_run(env, &entry).0);
        count += 1;
        if batch.len() >= BATCH {
            runtime.block_on(index.put(&batch)).map_err(failed)?;
            batch.clear();
            progress(at + 1, ids.len());
        }
    }
    let waiting = read_queue(&own.queue());
    let mut place = 0;
    for queued in waiting.iter().filter(|queued| registry::find(&home, &queued.id).is_none()) {
        place += u32::from(queued.problem.is_none());
        let row = queued.row(queued.problem.is_none().then_some(place));
        batch.push(Indexed { row, spend: None });
        count += 1;
    }
    runtime.block_on(index.put(&batch)).map_err(failed)?;
    runtime.block_on(index.close());
    Ok(RebuiltIndex { runs: count, set_aside: index.set_aside().map(Path::to_owned) })
}
