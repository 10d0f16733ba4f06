//! Making the index anew from the records of the runs.

use crate::home::ServerHome;
use crate::index::{Index, Indexed, entries, read_run};
use crate::scheduler::read_queue;
use ralph_app::{App, AppError};
use ralph_journal::registry;

/// Rows that are written at a time.
const BATCH: usize = 500;

/// Makes the index anew; how many runs are in it.
pub fn rebuild_index(app: &App, mut progress: impl FnMut(usize, usize)) -> Result<usize, AppError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| AppError::environment(format!("the index cannot be opened: {e}")))?;
    let env = app.environment();
    let home = env.state_home()?;
    let own = ServerHome::make(&home)?;
    let failed = |error: sqlx::Error| AppError::environment(format!("the index cannot be written: {error}"));
    let index = runtime.block_on(Index::open(env.vars().filled("RALPH_DB_URL").as_deref(), &own))?;
    runtime.block_on(index.clear()).map_err(failed)?;
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
    Ok(count)
}
