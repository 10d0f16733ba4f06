//! Waits for a run and reports its events.

use crate::answers::Outcome;
use ralph_loop_app::App;
use ralph_loop_app::read::status;
use ralph_loop_protocol::describe::describe;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::Seq;
use serde_json::json;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::Instant;

const LOOK: Duration = Duration::from_millis(300);

pub(crate) trait Listener {
    /// Reports an event: its number, and a sentence; false if the client disconnected.
    fn send_progress(&mut self, number: u64, sentence: String) -> impl Future<Output = bool> + Send;
}

/// Waits until a run is over, needs the user, or the time is up.
pub(crate) async fn watch(
    app: App,
    folder: PathBuf,
    run: Option<String>,
    longest: Duration,
    listener: &mut impl Listener,
) -> Outcome {
    let (first_app, first_folder) = (app.clone(), folder.clone());
    let open = blocking(move || first_app.open(&first_folder, run.as_deref())).await?;
    let id = open.entry.run_id.to_string();
    let mut follower = open.handle.follow(Seq(0));
    let deadline = Instant::now() + longest;
    let mut number = 0_u64;
    // The status already covers earlier events.
    let mut new = false;
    loop {
        let events = follower.poll()?;
        for event in &events {
            number += 1;
            if let Some((_, sentence)) = describe(event).filter(|_| new)
                && !listener.send_progress(number, one_line(&sentence, 300)).await
            {
                return Ok(json!({"run_id": id, "watched": "the client disconnected"}));
            }
        }
        new = true;
        let (app, folder, id) = (app.clone(), folder.clone(), id.clone());
        let facts = blocking(move || {
            app.facts(&folder, Some(&id)).map(|facts| {
                let over = facts.state.result.finished.is_some()
                    || facts.state.people.needs_human.is_some()
                    || facts.driver.is_none();
                (over, status::with_race(app.environment(), &facts))
            })
        })
        .await?;
        if facts.0 || Instant::now() >= deadline {
            return Ok(facts.1);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Runs blocking work off the async runtime.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ralph_loop_app::AppError> + Send + 'static,
) -> Result<T, ralph_loop_app::AppError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(ralph_loop_app::AppError::environment(format!("the work was cut off: {error}"))),
    }
}
