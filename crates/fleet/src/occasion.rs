//! Acts on triggers: an issue that gets a label, a comment that steers, a schedule that is due. Each takes one transaction, so
//! that nothing acts twice on one occasion or is lost halfway.

use crate::delivery::{self, Asked, Delivery, branch_place, thread};
use crate::error::FleetError;
use crate::letters;
use crate::runs::{self, NewRun};
use crate::schedule::Cron;
use crate::trigger::{Limits, RepoTrigger, Schedule, Triggers};
use jiff::Timestamp;
use ralph_loop_app::trust::pinned::{Pinned, PinnedTask};
use ralph_loop_app::{Overrides, RunRequest, TaskInput, Workplace};
use ralph_loop_protocol::control::{Control, Letter};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::dialect::Publish;
use serde_json::Value;
use sqlx::{PgConnection, PgPool};

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Done {
    /// Nothing was to be done, and why.
    Nothing(&'static str),
    /// This run waits for its turn.
    Started(RunId),
    /// This run received the comment.
    Steered(String),
    /// These runs look at their checks and reviews now.
    Looks(Vec<String>),
}

/// Does what a delivery asks for, once.
pub async fn act(
    pool: &PgPool,
    triggers: &Triggers,
    delivery: Delivery<'_>,
    now: Timestamp,
) -> Result<Done, FleetError> {
    let Ok(body) = serde_json::from_slice::<Value>(delivery.body) else {
        return Ok(Done::Nothing("its body isn't valid JSON"));
    };
    let mut whole = pool.begin().await?;
    // The same delivery may come twice. The id isn't signed, so a replay could use another one. The signed body therefore yields
    // a second occasion for what it asks.
    let key = format!("delivery:{}", one_line(delivery.id, 100));
    if !is_first(&mut whole, &key).await? {
        return Ok(Done::Nothing("this delivery was already handled"));
    }
    let done = match delivery::read(triggers, delivery.event, &body) {
        Asked::Nothing(why) => Done::Nothing(why),
        Asked::Start { repo, issue, title, text, person, occasion, at } => match triggers.repo(&repo) {
            None => Done::Nothing("no such repo"),
            Some(repo) => start(&mut whole, repo, (issue, title, text), person, (occasion, at), now).await?,
        },
        Asked::Steer { thread, person, comment, control } => {
            steer(&mut whole, &thread, person, comment, *control).await?
        }
        Asked::News { places } => Done::Looks(look(&mut whole, &places).await?),
    };
    // What did nothing leaves nothing behind: sent again once the file names its sender, it counts.
    if !matches!(done, Done::Nothing(_)) {
        whole.commit().await?;
    }
    Ok(done)
}

async fn is_first(db: &mut PgConnection, key: &str) -> Result<bool, FleetError> {
    let first = sqlx::query("INSERT INTO ralph_seal.occasions (key) VALUES ($1) ON CONFLICT DO NOTHING")
        .bind(key)
        .execute(db)
        .await?;
    Ok(first.rows_affected() == 1)
}

async fn start(
    db: &mut PgConnection,
    repo: &RepoTrigger,
    (issue, title, text): (u64, String, PinnedTask),
    person: String,
    (occasion, at): (String, Timestamp),
    now: Timestamp,
) -> Result<Done, FleetError> {
    let place = thread(&repo.repo, issue);
    // Two words for one issue are heard one after the other.
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
        .bind(&place)
        .execute(&mut *db)
        .await?;
    // Deliveries may overtake each other: what is older than what was acted on is past.
    let later: Option<i64> = sqlx::query_scalar(
        // A run that was deleted is over.
        "SELECT 1::bigint FROM ralph_seal.threads t LEFT JOIN ralph_seal.runs r ON r.run = t.run
         WHERE t.place = $1 AND (t.at >= to_timestamp($2) OR COALESCE(r.status, 'over') <> 'over')",
    )
    .bind(&place)
    .bind(seconds(at))
    .fetch_optional(&mut *db)
    .await?;
    if later.is_some() {
        return Ok(Done::Nothing("a run of this issue is active, or a later comment was handled"));
    }
    let run = ralph_loop_core::run_id::new(now);
    let new = NewRun {
        run: run.clone(),
        request: RunRequest {
            task: TaskInput::Issue(issue.to_string()),
            place: clone(&repo.clone),
            publish: Some(Publish::Pr),
            overrides: overrides(&repo.limits, &repo.verify),
            asked_by: Some(format!("{person} via github")),
            pinned: Some(Pinned { by: person.clone(), at, task: text }),
            ..RunRequest::default()
        },
        title,
        person,
        labels: repo.labels.clone(),
        secrets: repo.secrets.clone(),
        profiles: [None, None],
        source: format!("label:{}", repo.repo),
        at_once: repo.limits.at_once,
        occasion: Some(occasion),
    };
    if !runs::add_in(db, &new).await? {
        return Ok(Done::Nothing("this occasion was met before"));
    }
    put_thread(db, &place, run.as_str(), at).await?;
    Ok(Done::Started(run))
}

fn seconds(at: Timestamp) -> f64 {
    at.as_second() as f64
}

async fn put_thread(db: &mut PgConnection, place: &str, run: &str, at: Timestamp) -> Result<(), FleetError> {
    sqlx::query(
        "INSERT INTO ralph_seal.threads (place, run, at) VALUES ($1, $2, to_timestamp($3))
         ON CONFLICT (place) DO UPDATE SET run = $2, at = to_timestamp($3)",
    )
    .bind(place)
    .bind(run)
    .bind(seconds(at))
    .execute(db)
    .await?;
    Ok(())
}

/// A word to the run of an issue or pull request. Notes and hints count whenever they come; of words that change what a run
/// does, one that a later one has overtaken is past.
async fn steer(
    db: &mut PgConnection,
    thread: &str,
    person: String,
    comment: i64,
    control: Control,
) -> Result<Done, FleetError> {
    let known: Option<(String, i64)> =
        sqlx::query_as("SELECT run, comment FROM ralph_seal.threads WHERE place = $1 FOR UPDATE")
            .bind(thread)
            .fetch_optional(&mut *db)
            .await?;
    let Some((run, last)) = known else { return Ok(Done::Nothing("no run belongs to it")) };
    // A comment is for the run of its time: sent once more, it is none for the next one of that issue.
    if !is_first(db, &format!("comment:{thread}:{comment}")).await? {
        return Ok(Done::Nothing("this comment was heard before"));
    }
    if !matches!(control, Control::Note { .. } | Control::Nudge { .. }) {
        if comment <= last {
            return Ok(Done::Nothing("a later word was heard"));
        }
        sqlx::query("UPDATE ralph_seal.threads SET comment = $2 WHERE place = $1")
            .bind(thread)
            .bind(comment)
            .execute(&mut *db)
            .await?;
    }
    let letter = Letter { id: format!("comment:{comment}"), from: format!("{person} via github"), control };
    letters::send_in(db, &run, &letter).await?;
    Ok(Done::Steered(run))
}

/// Lets runs look at their checks and reviews now.
async fn look(db: &mut PgConnection, places: &[String]) -> Result<Vec<String>, FleetError> {
    Ok(sqlx::query_scalar(
        "UPDATE ralph_seal.runs SET news = news + 1
         WHERE run IN (SELECT run FROM ralph_seal.threads WHERE place = ANY($1)) AND status <> 'over'
         RETURNING run",
    )
    .bind(places)
    .fetch_all(db)
    .await?)
}

/// Notes which pull request and which branch belong to a run, as its journal tells; lines that were read once are enough.
pub async fn belongs(pool: &PgPool, repo: &str, run: &str, lines: &[u8]) -> Result<(), FleetError> {
    let mut db = pool.acquire().await?;
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Ok(event) = serde_json::from_slice::<Event>(line) else { continue };
        let place = match &event.body {
            EventBody::PrWritten(pr) => thread(repo, pr.number),
            EventBody::Pushed(pushed) => branch_place(repo, &pushed.branch),
            _ => continue,
        };
        put_thread(&mut db, &place, run, event.at).await?;
    }
    Ok(())
}

/// Marks the runs of these repos: their code host pushes updates, so they poll only now and then.
pub async fn are_told(pool: &PgPool, triggers: &Triggers) -> Result<(), FleetError> {
    let clones: Vec<&str> = triggers.repos.iter().map(|repo| repo.clone.as_str()).collect();
    sqlx::query(
        "UPDATE ralph_seal.runs SET told = true WHERE NOT told AND status <> 'over' AND repo = ANY($1)",
    )
    .bind(clones)
    .execute(pool)
    .await?;
    Ok(())
}

fn clone(from: &str) -> Workplace {
    Workplace::Clone { from: from.to_owned(), depth: None, sparse: Vec::new() }
}

fn overrides(limits: &Limits, verify: &[String]) -> Overrides {
    Overrides {
        max_iterations: limits.max_iterations,
        max_cost: limits.max_cost_usd,
        max_seconds: limits.max_minutes.map(|minutes| minutes.saturating_mul(60)),
        verify: verify.to_vec(),
        ..Overrides::default()
    }
}

/// Starts what is due in the minute of `now`, or has become due since it was last looked; the runs that were added. Called as often
/// as one likes.
pub async fn due(
    pool: &PgPool,
    triggers: &Triggers,
    (looked, now): (Timestamp, Timestamp),
) -> Result<Vec<RunId>, FleetError> {
    let mut added = Vec::new();
    for schedule in &triggers.schedules {
        let (Ok(cron), Ok(zone)) = (Cron::parse(&schedule.cron), schedule.zone()) else { continue };
        let Some(occasion) = cron.due(looked, now, &zone) else { continue };
        let new = scheduled(schedule, format!("schedule:{}:{occasion}", schedule.name), now);
        if runs::add(pool, &new).await? {
            added.push(new.run);
        }
    }
    Ok(added)
}

/// Forgets deliveries that no code host sends again. The occasions for what they asked stay known.
pub async fn forget_old(pool: &PgPool) -> Result<u64, FleetError> {
    let old = "DELETE FROM ralph_seal.occasions WHERE starts_with(key, 'delivery:') AND at < now() - interval '30 days'";
    Ok(sqlx::query(old).execute(pool).await?.rows_affected())
}

fn scheduled(schedule: &Schedule, occasion: String, now: Timestamp) -> NewRun {
    NewRun {
        run: ralph_loop_core::run_id::new(now),
        request: RunRequest {
            task: TaskInput::Text(schedule.task.clone()),
            place: clone(&schedule.clone),
            publish: schedule.publish,
            overrides: overrides(&schedule.limits, &schedule.verify),
            asked_by: Some(format!("schedule {}", schedule.name)),
            ..RunRequest::default()
        },
        title: one_line(schedule.task.trim_start_matches('#').trim(), 80),
        person: format!("schedule {}", schedule.name),
        labels: schedule.labels.clone(),
        secrets: schedule.secrets.clone(),
        profiles: [None, None],
        source: format!("schedule:{}", schedule.name),
        at_once: schedule.limits.at_once,
        occasion: Some(occasion),
    }
}
