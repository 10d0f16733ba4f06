//! Which run goes to which worker: by label, free places and fairness between people and repos. The queue carries the word
//! to the worker; who may drive is decided by the lease alone, so a word that comes twice or too late does no harm.

use crate::error::FleetError;
use apalis::prelude::TaskBuilder;
use ralph_loop_protocol::event::EventBody;
use serde::{Deserialize, Serialize};
use sqlx::PgPool;
use std::collections::BTreeMap;

/// Runs that are given out at a time.
const BATCH: i64 = 200;
/// A number of our own for the lock under which runs are given out.
const LOCK: i64 = 0x7261_6c70_6802;
/// Seconds in which a worker says that it lives.
const ALIVE: &str = "15 seconds";
/// Seconds in which a worker takes what it was given; then another one gets it.
const TAKEN: &str = "10 seconds";

/// Where workers hear that there is a word for them; it names the worker. Who does not hear it finds the word a little later.
pub const GIVEN: &str = "ralph_given";

/// Where whoever gives out runs hears that there is one more. Who does not hear it looks a little later.
pub const WAITS: &str = "ralph_waits";

/// The word to a worker that it may take a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// The run.
    pub run: String,
}

/// The queue of a worker.
pub fn queue_of(worker: &str) -> String {
    format!("ralph:worker:{worker}")
}

/// A run that waits.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Waiting {
    pub run: String,
    pub person: String,
    pub repo: String,
    pub needs: Vec<String>,
    pub kinds: i64,
    pub source: String,
    pub at_once: Option<i32>,
}

/// A worker that may have a free place.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct Place {
    pub id: String,
    pub labels: Vec<String>,
    pub free: i64,
    pub kinds: i64,
}

/// Who has how many runs under way: person, repo, source, number.
pub(crate) type Busy = (String, String, String, i64);

/// Gives out what waits; how many. Of several that call this at once, one does it.
pub async fn dispatch(pool: &PgPool) -> Result<usize, FleetError> {
    let mut whole = pool.begin().await?;
    let mine: bool =
        sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)").bind(LOCK).fetch_one(&mut *whole).await?;
    match mine {
        true => give_out(whole).await,
        false => Ok(0),
    }
}

/// The same for whoever has a place that was not free a moment ago: somebody who gives out at this moment may not know of it, so
/// this comes after them.
pub async fn dispatch_next(pool: &PgPool) -> Result<usize, FleetError> {
    let mut whole = pool.begin().await?;
    sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(LOCK).execute(&mut *whole).await?;
    give_out(whole).await
}

async fn give_out(mut whole: sqlx::PgTransaction<'_>) -> Result<usize, FleetError> {
    // Whose lease has run out waits again; so does what its worker has not taken.
    sqlx::query(
        "UPDATE ralph_seal.runs r SET status = 'queued', worker = NULL, assigned_at = NULL FROM ralph_seal.leases l
         WHERE l.run = r.run AND r.status = 'driven' AND (l.until IS NULL OR l.until <= now())",
    )
    .execute(&mut *whole)
    .await?;
    sqlx::query(sqlx::AssertSqlSafe(format!(
        "UPDATE ralph_seal.runs SET worker = NULL, assigned_at = NULL
         WHERE status = 'queued' AND assigned_at < now() - interval '{TAKEN}'"
    )))
    .execute(&mut *whole)
    .await?;
    let waiting: Vec<Waiting> = sqlx::query_as(
        "SELECT run, person, repo, needs, kinds, source, at_once FROM ralph_seal.runs
         WHERE status = 'queued' AND assigned_at IS NULL AND not_before <= now() ORDER BY queued_at LIMIT $1",
    )
    .bind(BATCH)
    .fetch_all(&mut *whole)
    .await?;
    if waiting.is_empty() {
        whole.commit().await?;
        return Ok(0);
    }
    let places: Vec<Place> = sqlx::query_as(sqlx::AssertSqlSafe(format!(
        "SELECT w.id, w.labels, w.kinds, w.capacity - (SELECT count(*) FROM ralph_seal.runs r
            WHERE r.worker = w.id AND r.status IN ('queued', 'driven')) AS free
         FROM ralph_seal.workers w
         WHERE w.seen > now() - interval '{ALIVE}' AND NOT w.draining AND NOT w.revoked AND w.health = 'ok'"
    )))
    .fetch_all(&mut *whole)
    .await?;
    let busy: Vec<Busy> = sqlx::query_as(
        "SELECT person, repo, source, count(*) FROM ralph_seal.runs
         WHERE status = 'driven' OR (status = 'queued' AND assigned_at IS NOT NULL) GROUP BY person, repo, source",
    )
    .fetch_all(&mut *whole)
    .await?;
    let given = pair(waiting, places, &busy);
    for (run, worker) in &given {
        sqlx::query(
            "UPDATE ralph_seal.runs SET worker = $2, assigned_at = now(),
                given_role = (SELECT role FROM ralph_seal.workers WHERE id = $2)
             WHERE run = $1",
        )
        .bind(run)
        .bind(worker)
        .execute(&mut *whole)
        .await?;
        let word = serde_json::to_vec(&Dispatch { run: run.clone() }).unwrap_or_default();
        // Its time has come by every clock: that of this machine may be wrong.
        let task = TaskBuilder::new(word).run_at_timestamp(0).build();
        apalis_postgres::queries::push_tasks(&mut *whole, &queue_of(worker), vec![task])
            .await
            .map_err(|e| FleetError::Database(e.to_string()))?;
        sqlx::query("SELECT pg_notify($1, $2)").bind(GIVEN).bind(worker).execute(&mut *whole).await?;
    }
    // Words that were heard are of no more use.
    sqlx::query(
        "DELETE FROM apalis.jobs WHERE job_type LIKE 'ralph:worker:%' AND done_at < now() - interval '10 minutes'",
    )
    .execute(&mut *whole)
    .await?;
    whole.commit().await?;
    Ok(given.len())
}

/// Whether a worker can take a run.
fn fits(run: &Waiting, place: &Place) -> bool {
    let repos: Vec<&str> = place.labels.iter().filter_map(|label| label.strip_prefix("repo:")).collect();
    let repo = run.repo.trim_end_matches('/').trim_end_matches(".git");
    place.free > 0
        && place.kinds >= run.kinds
        && run.needs.iter().all(|need| place.labels.contains(need))
        && (repos.is_empty() || repos.iter().any(|known| repo.ends_with(known)))
}

/// Who gets what: whoever has least goes first, then whose repo has least, then who waits longest; to the emptiest worker.
pub(crate) fn pair(
    mut waiting: Vec<Waiting>,
    mut places: Vec<Place>,
    busy: &[Busy],
) -> Vec<(String, String)> {
    let mut by_person: BTreeMap<String, i64> = BTreeMap::new();
    let (mut by_repo, mut by_source) = (by_person.clone(), by_person.clone());
    for (person, repo, source, count) in busy {
        *by_person.entry(person.clone()).or_default() += count;
        *by_repo.entry(repo.clone()).or_default() += count;
        *by_source.entry(source.clone()).or_default() += count;
    }
    let mut given = Vec::new();
    loop {
        let has = |of: &BTreeMap<String, i64>, key: &str| of.get(key).copied().unwrap_or(0);
        let next = waiting
            .iter()
            .enumerate()
            .filter(|(_, run)| run.at_once.is_none_or(|most| has(&by_source, &run.source) < i64::from(most)))
            .filter(|(_, run)| places.iter().any(|place| fits(run, place)))
            .min_by_key(|(at, run)| (has(&by_person, &run.person), has(&by_repo, &run.repo), *at))
            .map(|(at, _)| at);
        let Some(at) = next else { return given };
        let run = waiting.remove(at);
        let best = places.iter_mut().filter(|place| fits(&run, place)).max_by_key(|place| place.free);
        let Some(place) = best else { return given };
        place.free -= 1;
        *by_person.entry(run.person).or_default() += 1;
        *by_repo.entry(run.repo).or_default() += 1;
        *by_source.entry(run.source).or_default() += 1;
        given.push((run.run, place.id.clone()));
    }
}

/// How many kinds of events this program knows.
pub fn known_kinds() -> usize {
    EventBody::KINDS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(run: &str, person: &str, needs: &[&str]) -> Waiting {
        let needs = needs.iter().map(|need| (*need).to_owned()).collect();
        Waiting {
            run: run.into(),
            person: person.into(),
            repo: "https://h/o/r.git".into(),
            needs,
            kinds: 3,
            source: "nightly".into(),
            at_once: None,
        }
    }

    fn place(id: &str, free: i64, labels: &[&str]) -> Place {
        Place { id: id.into(), labels: labels.iter().map(|l| (*l).to_owned()).collect(), free, kinds: 3 }
    }

    #[test]
    fn who_has_least_goes_first_and_the_emptiest_worker_gets_it() {
        let all = vec![waiting("a1", "ana", &[]), waiting("a2", "ana", &[]), waiting("b1", "bo", &[])];
        let given = pair(all, vec![place("w1", 1, &[]), place("w2", 2, &[])], &[]);
        let runs: Vec<&str> = given.iter().map(|(run, _)| run.as_str()).collect();
        assert_eq!(runs, ["a1", "b1", "a2"]);
        assert_eq!(given[0].1, "w2");
    }

    #[test]
    fn labels_repos_and_versions_keep_a_run_from_a_worker() {
        let gpu = || vec![waiting("r", "ana", &["gpu"])];
        assert!(pair(gpu(), vec![place("w", 1, &["fast"])], &[]).is_empty());
        assert_eq!(pair(gpu(), vec![place("w", 1, &["gpu"])], &[]).len(), 1);
        assert!(pair(gpu(), vec![place("w", 1, &["gpu", "repo:o/other"])], &[]).is_empty());
        assert_eq!(pair(gpu(), vec![place("w", 1, &["gpu", "repo:o/r"])], &[]).len(), 1);
        let old = Place { kinds: 2, ..place("w", 1, &["gpu"]) };
        assert!(pair(gpu(), vec![old], &[]).is_empty());
    }

    #[test]
    fn a_source_has_no_more_runs_at_once_than_it_may() {
        let one = |run: &str| Waiting { at_once: Some(1), ..waiting(run, "ana", &[]) };
        let given = pair(vec![one("r1"), one("r2")], vec![place("w", 9, &[])], &[]);
        assert_eq!(given.len(), 1);
        let busy = [("ana".to_owned(), "x".to_owned(), "nightly".to_owned(), 1)];
        assert!(pair(vec![one("r1")], vec![place("w", 9, &[])], &busy).is_empty());
    }

    #[test]
    fn what_waits_longest_does_not_stand_in_the_way_of_what_fits() {
        let all = vec![waiting("r1", "ana", &["gpu"]), waiting("r2", "ana", &[])];
        assert_eq!(pair(all, vec![place("w", 1, &[])], &[]), [("r2".to_owned(), "w".to_owned())]);
    }
}
