//! People's controls on their way to a run that may be on any machine.

use crate::error::FleetError;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_journal::inbox;
use ralph_loop_protocol::control::Letter;
use sqlx::{PgConnection, PgExecutor, PgPool};

/// Sends a control. A control that is sent twice with one id takes effect once. A resting run resumes.
pub async fn send(pool: &PgPool, run: &str, letter: &Letter) -> Result<(), FleetError> {
    let mut whole = pool.begin().await?;
    send_in(&mut whole, run, letter).await?;
    Ok(whole.commit().await?)
}

/// The same, as part of what the caller does to the database.
pub async fn send_in(db: &mut PgConnection, run: &str, letter: &Letter) -> Result<(), FleetError> {
    let text = serde_json::to_string(letter).map_err(|e| FleetError::Database(e.to_string()))?;
    // Serialize the senders of a run: a reader that has seen letter 5 has also seen letter 4.
    sqlx::query("SELECT 1 FROM ralph_seal.runs WHERE run = $1 FOR UPDATE")
        .bind(run)
        .execute(&mut *db)
        .await?;
    let known = sqlx::query(
        "INSERT INTO ralph_seal.letters (run, id, letter)
         SELECT $1, $2, $3 WHERE EXISTS (SELECT 1 FROM ralph_seal.runs WHERE run = $1)
         ON CONFLICT DO NOTHING",
    )
    .bind(run)
    .bind(&letter.id)
    .bind(text)
    .execute(&mut *db)
    .await?;
    if known.rows_affected() == 1 {
        sqlx::query("UPDATE ralph_seal.runs SET status = 'queued', fails = 0, not_before = now() WHERE run = $1 AND status = 'resting'")
            .bind(run)
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

/// Letters after the `after`-th, with their numbers; one that this version cannot read is none.
pub async fn after(
    db: impl PgExecutor<'_>,
    run: &str,
    after: i64,
) -> Result<Vec<(i64, Option<Letter>)>, FleetError> {
    let rows: Vec<(i64, String)> = sqlx::query_as(
        "SELECT n, letter FROM ralph_seal.letters WHERE run = $1 AND n > $2 ORDER BY n LIMIT 100",
    )
    .bind(run)
    .bind(after)
    .fetch_all(db)
    .await?;
    Ok(rows.into_iter().map(|(n, text)| (n, serde_json::from_str(&text).ok())).collect())
}

/// Puts letters into the inbox on this machine; the number of the last one. The run knows those again that it has carried out.
pub fn deliver(dir: &RunDir, letters: Vec<(i64, Option<Letter>)>) -> Option<i64> {
    let mut last = None;
    for (n, letter) in letters {
        last = Some(n);
        let Some(letter) = letter else { continue };
        if let Err(error) = inbox::send_as(dir, &letter.id, &letter.from, letter.control) {
            tracing::warn!(%error, "a control could not be put into the inbox");
        }
    }
    last
}
