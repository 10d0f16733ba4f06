//! The lease and the seal under fire: four takers on one run, forced take-overs, and not a gap.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and starts processes"
)]

use ralph_loop_app::{PlaceRequest, RunRequest};
use ralph_loop_fleet::runs::{self, NewRun};
use ralph_loop_fleet::trigger::Triggers;
use ralph_loop_fleet::{Fleet, FleetError, dispatch, enrol, lease, occasion, seal, workers};
use ralph_loop_protocol::id::RunId;
use ralph_loop_testkit::postgres::Postgres;
use std::time::Duration;

/// A fleet on a Postgres of its own.
fn fleet() -> Option<(Postgres, Fleet)> {
    let postgres = Postgres::start()?;
    let fleet = Fleet::open(&postgres.url).unwrap();
    Some((postgres, fleet))
}

fn add(fleet: &Fleet, run: &str, occasion: Option<&str>) -> bool {
    let place = PlaceRequest::Clone { from: "https://h/o/r".into(), depth: None, sparse: Vec::new() };
    let new = NewRun {
        run: RunId::parse(run).unwrap(),
        request: RunRequest { place, ..RunRequest::default() },
        title: "t".into(),
        person: "ana".into(),
        labels: Vec::new(),
        secrets: Vec::new(),
        profiles: [None, None],
        source: String::new(),
        at_once: None,
        occasion: occasion.map(str::to_owned),
    };
    fleet.wait(runs::add(fleet.pool(), &new)).unwrap()
}

#[test]
fn four_that_want_one_run_leave_a_journal_without_a_gap() {
    let Some((_own, fleet)) = fleet() else { return };
    assert!(add(&fleet, "r1", None));
    let take = |name: usize| {
        let fleet = fleet.clone();
        move || {
            let (mut written, mut refused) = (0u64, 0u64);
            for round in 0..12 {
                // A lease that is over at once: whoever comes next takes it away.
                let taken = fleet.wait(lease::take(fleet.pool(), "r1", &format!("t{name}"), Duration::ZERO));
                let Ok(mut held) = taken else { continue };
                for line in 0..20 {
                    let text = format!("{name} {round} {line}\n");
                    let done =
                        fleet.wait(seal::append(fleet.pool(), &held, held.head, text.as_bytes())).unwrap();
                    if !done {
                        refused += 1;
                        break;
                    }
                    held.head += text.len() as i64;
                    written += 1;
                }
            }
            (written, refused)
        }
    };
    let threads: Vec<_> = (0..4).map(|name| std::thread::spawn(take(name))).collect();
    let (mut written, mut refused) = (0, 0);
    for thread in threads {
        let (some, none) = thread.join().unwrap();
        (written, refused) = (written + some, refused + none);
    }
    let rows: Vec<(i64, i64, i64)> = fleet.wait(seal::rows(fleet.pool(), "r1")).unwrap();
    assert_eq!(rows.len() as u64, written);
    let (mut end, mut last) = (0, 0);
    for (at, epoch, length) in rows {
        assert_eq!(at, end, "no gap and no overlap");
        assert!(epoch >= last, "no epoch goes back");
        (end, last) = (at + length, epoch);
    }
    assert_eq!(fleet.wait(seal::head(fleet.pool(), "r1")).unwrap(), Some(end));
    assert!(written > 0, "{refused} refused");
}

#[test]
fn an_old_epoch_a_wrong_head_and_a_run_out_lease_are_refused() {
    let Some((_own, fleet)) = fleet() else { return };
    let pool = fleet.pool();
    add(&fleet, "r1", None);
    let long = Duration::from_secs(60);
    fleet
        .wait(async {
            let first = lease::take(pool, "r1", "a", Duration::ZERO).await?;
            assert!(seal::append(pool, &first, 0, b"one\n").await?);
            assert!(!seal::append(pool, &first, 0, b"two\n").await?, "the head is further");
            assert!(!lease::renew(pool, &first, long).await?, "it had run out");
            let second = lease::take(pool, "r1", "b", long).await?;
            assert_eq!((second.epoch, second.head), (first.epoch + 1, 4));
            assert!(lease::take(pool, "r1", "c", long).await.is_err(), "it is held");
            assert!(!seal::append(pool, &first, 4, b"late\n").await?, "an old epoch");
            assert!(seal::append(pool, &second, 4, b"two\n").await?);
            assert!(!lease::release(pool, &first, "over", None).await?);
            assert!(lease::is_ours(pool, &second).await?, "who was replaced lets go of nothing");
            assert!(lease::release(pool, &second, "queued", None).await?);
            let third = lease::take(pool, "r1", "c", long).await?;
            assert_eq!(third.epoch, 3);
            assert!(matches!(lease::take(pool, "none", "c", long).await, Err(FleetError::NoRun { .. })));
            Ok(())
        })
        .unwrap();
    assert_eq!(fleet.wait(seal::read_from(pool, "r1", 0)).unwrap(), b"one\ntwo\n");
}

#[test]
fn nobody_takes_what_is_over() {
    let Some((_own, fleet)) = fleet() else { return };
    let pool = fleet.pool();
    let long = Duration::from_secs(60);
    for run in ["r1", "r2", "r3"] {
        add(&fleet, run, None);
    }
    fleet
        .wait(async {
            let is_over =
                |taken: Result<lease::Lease, FleetError>| matches!(taken, Err(FleetError::Over { .. }));
            // Given out, and taken out of the queue before its worker came.
            assert!(runs::take_out(pool, "r1").await?);
            assert!(is_over(lease::take(pool, "r1", "a/1", long).await));
            assert_eq!(runs::find(pool, "r1").await?.map(|run| run.epoch), Some(0), "nothing was changed");
            let held = lease::take(pool, "r2", "a/2", long).await?;
            assert!(!runs::take_out(pool, "r2").await?, "it has begun");
            assert!(lease::release(pool, &held, "over", None).await?);
            assert!(is_over(lease::take(pool, "r2", "b/1", long).await));
            // Only what is over is forgotten, with all of its rows.
            assert!(!runs::forget(pool, "r3").await?);
            assert!(runs::forget(pool, "r2").await?);
            assert!(matches!(lease::take(pool, "r2", "b/1", long).await, Err(FleetError::NoRun { .. })));
            Ok(())
        })
        .unwrap();
}

/// Whoever comes first, a run that was taken out is driven by nobody.
#[test]
fn taking_out_and_taking_at_once_leave_one_of_the_two() {
    let Some((_own, fleet)) = fleet() else { return };
    for round in 0..40 {
        let run = format!("r{round}");
        add(&fleet, &run, None);
        let (of_worker, name) = (fleet.clone(), run.clone());
        let worker = std::thread::spawn(move || {
            of_worker.wait(lease::take(of_worker.pool(), &name, "w/1", Duration::from_secs(60))).is_ok()
        });
        let out = fleet.wait(runs::take_out(fleet.pool(), &run)).unwrap();
        let taken = worker.join().unwrap();
        assert!(out != taken, "{run}: taken out {out}, taken {taken}");
    }
}

#[test]
fn deliveries_are_forgotten_after_their_time_and_occasions_are_not() {
    let Some((_own, fleet)) = fleet() else { return };
    let pool = fleet.pool();
    let keys = ["delivery:old", "delivery:new", "label:o/r#7:then"];
    fleet
        .wait(async {
            for key in keys {
                sqlx::query("INSERT INTO ralph_seal.occasions (key) VALUES ($1)")
                    .bind(key)
                    .execute(pool)
                    .await?;
            }
            sqlx::query(
                "UPDATE ralph_seal.occasions SET at = now() - interval '40 days' WHERE key <> 'delivery:new'",
            )
            .execute(pool)
            .await?;
            assert_eq!(occasion::forget_old(pool).await?, 1);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_schedule_that_nobody_could_look_at_is_made_up_for_once() {
    let Some((_own, fleet)) = fleet() else { return };
    let text =
        r#"{ "schedules": [{ "name": "n", "cron": "0 * * * *", "clone": "https://h/o/r", "task": "t" }] }"#;
    let triggers = Triggers::parse(text).unwrap();
    let due = |looked: &str, now: &str| {
        let times = (looked.parse().unwrap(), now.parse().unwrap());
        fleet.wait(occasion::due(fleet.pool(), &triggers, times)).unwrap().len()
    };
    assert_eq!(due("2026-11-17T02:59:57Z", "2026-11-17T02:59:57Z"), 0);
    // The database was away for four minutes.
    assert_eq!(due("2026-11-17T02:59:57Z", "2026-11-17T03:04:02Z"), 1);
    assert_eq!(due("2026-11-17T02:59:57Z", "2026-11-17T03:04:07Z"), 0, "by another server");
    assert_eq!(due("2026-11-17T03:04:02Z", "2026-11-17T03:04:12Z"), 0);
}

#[test]
fn one_occasion_starts_one_run() {
    let Some((_own, fleet)) = fleet() else { return };
    assert!(add(&fleet, "r1", Some("label:o/r#7")));
    assert!(!add(&fleet, "r2", Some("label:o/r#7")));
    assert!(!add(&fleet, "r1", None), "one id is one run");
    assert_eq!(fleet.wait(runs::list(fleet.pool(), 10)).unwrap().len(), 1);
}

#[test]
fn a_schedule_is_kept_once_by_however_many_servers() {
    let Some((_own, fleet)) = fleet() else { return };
    let text =
        r#"{ "schedules": [{ "name": "n", "cron": "*/2 * * * *", "clone": "https://h/o/r", "task": "t" }] }"#;
    let triggers = Triggers::parse(text).unwrap();
    let keeps = || {
        let (fleet, triggers) = (fleet.clone(), triggers.clone());
        std::thread::spawn(move || {
            let mut added = 0;
            for second in (0..360).step_by(5) {
                let now = jiff::Timestamp::from_second(1_800_000_000 + second).unwrap();
                added += fleet.wait(occasion::due(fleet.pool(), &triggers, (now, now))).unwrap().len();
            }
            added
        })
    };
    let added: usize = [keeps(), keeps()].into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(added, 3, "six minutes have three times");
    assert_eq!(fleet.wait(runs::list(fleet.pool(), 10)).unwrap().len(), 3);
}

#[test]
fn a_worker_that_was_let_in_hears_the_words_for_it_and_no_others() {
    let Some((own, fleet)) = fleet() else { return };
    let pool = fleet.pool();
    add(&fleet, "r1", None);
    let logins = fleet.wait(async {
        let mut logins = Vec::new();
        for name in ["one", "two"] {
            let login = enrol::enrol(pool, &enrol::new_token(pool).await?, name).await?;
            logins.push(enrol::address(&own.url, &login)?);
        }
        let said = workers::Report {
            id: "one".into(),
            labels: Vec::new(),
            capacity: 1,
            load: 0.0,
            health: "ok".into(),
            draining: false,
            begins: false,
        };
        workers::report(pool, &said).await?;
        assert_eq!(dispatch::dispatch(pool).await?, 1);
        Ok(logins)
    });
    let [one, two] = [0, 1].map(|at| Fleet::open(&logins.as_ref().unwrap()[at]).unwrap());
    let count = |of: &Fleet, query: &'static str| -> i64 {
        of.wait(async { Ok(sqlx::query_scalar(query).fetch_one(of.pool()).await?) }).unwrap()
    };
    let done = |of: &Fleet, query: &'static str| {
        of.wait(async { Ok(sqlx::query(query).execute(of.pool()).await?.rows_affected()) })
    };
    let words = "SELECT count(*) FROM apalis.jobs";
    assert_eq!((count(&one, words), count(&two, words)), (1, 0));
    assert_eq!(done(&two, "DELETE FROM apalis.jobs").unwrap(), 0);
    for refused in [
        "TRUNCATE apalis.jobs",
        "UPDATE ralph_seal.runs SET given_role = current_user",
        "UPDATE ralph_seal.runs SET secrets = '{A_TOKEN}'",
        "SELECT 1 FROM ralph_seal.tokens",
        "INSERT INTO ralph_seal.runs (run, request) VALUES ('mine', '{}')",
        "INSERT INTO ralph_seal.letters (run, id, letter) VALUES ('r1', 'x', '{}')",
        "INSERT INTO apalis.jobs (id, job_type, job) VALUES ('x', 'ralph:worker:one', '{}')",
    ] {
        assert!(done(&two, refused).is_err(), "{refused}");
        assert!(!refused.contains("SET") || done(&one, refused).is_err(), "{refused}");
    }
    assert_eq!(count(&one, words), 1);
    // Nobody holds the run, and still only whoever was given it can.
    let long = Duration::from_secs(60);
    assert!(two.wait(lease::take(two.pool(), "r1", "two/1", long)).is_err());
    assert!(one.wait(lease::take(one.pool(), "r1", "one/1", long)).is_ok());
}
