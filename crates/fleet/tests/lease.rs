//! The lease and the seal under fire (four takers on one run, forced take-overs, and not a gap), and which run a worker gets.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and starts processes"
)]

use ralph_loop_app::{RunRequest, Workplace};
use ralph_loop_fleet::runs::{self, NewRun};
use ralph_loop_fleet::trigger::Triggers;
use ralph_loop_fleet::{Fleet, FleetError, dispatch, enrol, lease, occasion, seal, workers};
use ralph_loop_protocol::id::RunId;
use ralph_loop_testkit::postgres::Postgres;
use std::time::Duration;

/// A fleet with a separate Postgres.
fn fleet() -> Option<(Postgres, Fleet)> {
    let postgres = Postgres::start()?;
    let fleet = Fleet::open(&postgres.url).unwrap();
    Some((postgres, fleet))
}

fn add(fleet: &Fleet, run: &str, occasion: Option<&str>) -> bool {
    add_changed(fleet, run, |new| new.occasion = occasion.map(str::to_owned))
}

fn add_changed(fleet: &Fleet, run: &str, change: impl FnOnce(&mut NewRun)) -> bool {
    let place = Workplace::Clone { from: "https://h/o/r.git".into(), depth: None, sparse: Vec::new() };
    let mut new = NewRun {
        run: RunId::parse(run).unwrap(),
        request: RunRequest { place, ..RunRequest::default() },
        title: "t".into(),
        person: "ana".into(),
        labels: Vec::new(),
        secrets: Vec::new(),
        profiles: [None, None],
        source: String::new(),
        at_once: None,
        occasion: None,
    };
    change(&mut new);
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
                // A lease that expires at once, so that the next driver takes over.
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
fn finished_runs_cannot_be_taken() {
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

/// No driver takes a run that was taken out of the queue, in any order of calls.
#[test]
fn a_run_is_either_removed_or_driven() {
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
fn a_missed_schedule_runs_once() {
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

/// A worker that has just reported.
fn report(fleet: &Fleet, id: &str, labels: &[&str], capacity: i32) {
    change_report(fleet, id, labels, capacity, |_| {});
}

fn change_report(
    fleet: &Fleet,
    id: &str,
    labels: &[&str],
    capacity: i32,
    change: impl FnOnce(&mut workers::Report),
) {
    let mut said = workers::Report {
        id: id.into(),
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        capacity,
        load: 0.0,
        health: "ok".into(),
        draining: false,
        begins: true,
    };
    change(&mut said);
    fleet.wait(workers::report(fleet.pool(), &said)).unwrap();
}

fn next_run(fleet: &Fleet, worker: &str) -> Option<String> {
    fleet.wait(dispatch::next_run(fleet.pool(), worker)).unwrap()
}

fn missing(fleet: &Fleet, run: &str) -> Vec<String> {
    fleet.wait(runs::not_over(fleet.pool(), run)).unwrap().unwrap().missing
}

#[test]
fn many_waiting_runs_of_one_person_leave_others_their_turn() {
    let Some((_own, fleet)) = fleet() else { return };
    for at in 0..220 {
        add(&fleet, &format!("ana{at:03}"), None);
    }
    add_changed(&fleet, "bo", |new| new.person = "bo".into());
    report(&fleet, "w", &[], 3);
    let given: Vec<_> = std::iter::from_fn(|| next_run(&fleet, "w")).collect();
    assert_eq!(given, ["ana000", "bo", "ana001"], "and no more than it has places");
}

#[test]
fn runs_that_no_worker_can_take_name_the_label_and_block_no_others() {
    let Some((_own, fleet)) = fleet() else { return };
    let needs = |labels: &'static [&'static str]| {
        move |new: &mut NewRun| new.labels = labels.iter().map(|label| (*label).to_owned()).collect()
    };
    for at in 0..220 {
        add_changed(&fleet, &format!("gpu{at:03}"), needs(&["eu", "gpu"]));
    }
    add(&fleet, "plain", None);
    report(&fleet, "w1", &["eu"], 9);
    assert_eq!(next_run(&fleet, "w1").as_deref(), Some("plain"));
    assert_eq!(next_run(&fleet, "w1"), None);
    assert_eq!(missing(&fleet, "gpu000"), ["gpu"]);
    report(&fleet, "w2", &["gpu"], 9);
    assert_eq!(missing(&fleet, "gpu000"), ["eu", "gpu"], "none has both");
    assert_eq!(next_run(&fleet, "w2"), None);
    report(&fleet, "w3", &["eu", "gpu", "more"], 1);
    assert_eq!(missing(&fleet, "gpu000"), [""; 0]);
    assert_eq!(next_run(&fleet, "w3").as_deref(), Some("gpu000"));
}

#[test]
fn repos_and_versions_keep_a_run_from_a_worker() {
    let Some((_own, fleet)) = fleet() else { return };
    add(&fleet, "r1", None);
    for (id, label) in [("w1", "repo:o/other"), ("w2", "repo:ther/o/r"), ("w3", "repo:/r")] {
        report(&fleet, id, &[label], 9);
        assert_eq!(next_run(&fleet, id), None, "{label}");
    }
    report(&fleet, "w4", &["repo:o/other", "repo:o/r"], 9);
    let newest = fleet.wait(workers::list(fleet.pool())).unwrap()[0].kinds;
    fleet.wait(runs::written_by(fleet.pool(), "r1", newest + 1)).unwrap();
    assert_eq!(next_run(&fleet, "w4"), None, "its journal is newer than the worker");
    add(&fleet, "r2", None);
    assert_eq!(next_run(&fleet, "w4").as_deref(), Some("r2"));
}

#[test]
fn workers_that_cannot_work_are_given_nothing() {
    let Some((_own, fleet)) = fleet() else { return };
    add(&fleet, "r1", None);
    assert_eq!(next_run(&fleet, "unknown"), None);
    change_report(&fleet, "w1", &[], 1, |said| said.draining = true);
    change_report(&fleet, "w2", &[], 1, |said| said.health = "the disk is nearly full".into());
    report(&fleet, "w3", &[], 0);
    report(&fleet, "w4", &[], 1);
    fleet.wait(enrol::revoke(fleet.pool(), "w4")).unwrap();
    for worker in ["w1", "w2", "w3", "w4"] {
        assert_eq!(next_run(&fleet, worker), None, "{worker}");
    }
    report(&fleet, "w1", &[], 1);
    assert_eq!(next_run(&fleet, "w1").as_deref(), Some("r1"));
}

#[test]
fn a_run_that_its_worker_did_not_take_or_lost_goes_to_another() {
    let Some((_own, fleet)) = fleet() else { return };
    let pool = fleet.pool();
    let (none, long) = (Duration::ZERO, Duration::from_secs(60));
    let take = |holder: &str, time| fleet.wait(lease::take(pool, "r1", holder, time));
    add(&fleet, "r1", None);
    report(&fleet, "w1", &[], 1);
    report(&fleet, "w2", &[], 1);
    assert_eq!(next_run(&fleet, "w1").as_deref(), Some("r1"));
    assert_eq!(next_run(&fleet, "w2"), None, "given once");
    fleet.wait(runs::give_back(pool, "w1")).unwrap();
    assert_eq!(next_run(&fleet, "w2").as_deref(), Some("r1"));
    let passed = "UPDATE ralph_seal.runs SET not_before = now()";
    fleet.wait(async { Ok(sqlx::query(passed).execute(pool).await?) }).unwrap();
    assert_eq!(next_run(&fleet, "w1").as_deref(), Some("r1"), "the other one never took it");
    let held = take("w1/1", long).unwrap();
    assert_eq!(next_run(&fleet, "w2"), None, "it is held");
    assert!(fleet.wait(lease::release(pool, &held, "queued", None)).unwrap());
    assert_eq!(next_run(&fleet, "w2").as_deref(), Some("r1"), "handed over at once");
    take("w2/1", none).unwrap();
    assert_eq!(fleet.wait(runs::find(pool, "r1")).unwrap().unwrap().status, "queued", "its lease ran out");
    assert_eq!(next_run(&fleet, "w1").as_deref(), Some("r1"));
}

#[test]
fn workers_that_ask_at_once_get_different_runs_and_keep_to_the_limit_of_a_source() {
    let Some((own, fleet)) = fleet() else { return };
    for at in 0..40 {
        add(&fleet, &format!("free{at}"), None);
        add_changed(&fleet, &format!("limited{at}"), |new| {
            (new.source, new.at_once) = ("nightly".into(), Some(2));
            new.person = format!("p{}", at % 3);
        });
    }
    let workers: Vec<_> = (0..8)
        .map(|at| {
            let (name, fleet) = (format!("w{at}"), Fleet::open(&own.url).unwrap());
            report(&fleet, &name, &[], 80);
            std::thread::spawn(move || {
                let mut given = Vec::new();
                while let Some(run) = next_run(&fleet, &name) {
                    let holder = format!("{name}/{run}");
                    let time = Duration::from_secs(600);
                    fleet.wait(lease::take(fleet.pool(), &run, &holder, time)).unwrap();
                    given.push(run);
                }
                given
            })
        })
        .collect();
    let given: Vec<String> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
    let limited = given.iter().filter(|run| run.starts_with("limited")).count();
    assert_eq!((given.len() - limited, limited), (40, 2), "{given:?}");
    assert_eq!(given.iter().collect::<std::collections::BTreeSet<_>>().len(), 42);
}

#[test]
fn an_enrolled_worker_asks_for_itself_and_sees_what_it_was_given() {
    let Some((own, fleet)) = fleet() else { return };
    let pool = fleet.pool();
    add(&fleet, "r1", None);
    add(&fleet, "r2", None);
    let enrolled = |name: &str| {
        let login = async { enrol::enrol(pool, &enrol::new_token(pool).await?, name).await };
        let login = fleet.wait(login).unwrap();
        Fleet::open(&enrol::address(&own.url, &login).unwrap()).unwrap()
    };
    let [one, two] = ["one", "two"].map(enrolled);
    report(&one, "one", &[], 1);
    report(&two, "two", &[], 1);
    // This one works with the login of the server.
    report(&fleet, "own", &[], 1);
    assert_eq!(next_run(&two, "one"), None);
    assert_eq!(next_run(&two, "own"), None);
    assert_eq!(next_run(&one, "one").as_deref(), Some("r1"));
    let count = |of: &Fleet, query: &'static str| -> i64 {
        of.wait(async { Ok(sqlx::query_scalar(query).fetch_one(of.pool()).await?) }).unwrap()
    };
    let done = |of: &Fleet, query: &'static str| {
        of.wait(async {
            let mut whole = of.pool().begin().await?;
            Ok(sqlx::query(query).execute(&mut *whole).await?.rows_affected())
        })
    };
    let seen = "SELECT count(*) FROM ralph_seal.runs";
    assert_eq!((count(&one, seen), count(&two, seen)), (1, 0));
    for refused in [
        "UPDATE ralph_seal.runs SET given_role = current_user",
        "UPDATE ralph_seal.runs SET secrets = '{A_TOKEN}'",
        "DELETE FROM ralph_seal.events",
        "SELECT 1 FROM ralph_seal.tokens",
        "INSERT INTO ralph_seal.runs (run, request) VALUES ('mine', '{}')",
        "INSERT INTO ralph_seal.letters (run, id, letter) VALUES ('r1', 'x', '{}')",
        // That would keep the others from asking.
        "LOCK TABLE ralph_seal.version IN SHARE ROW EXCLUSIVE MODE",
        "LOCK TABLE ralph_seal.version IN ROW SHARE MODE",
    ] {
        assert!(done(&one, refused).is_err(), "{refused}");
        assert!(done(&two, refused).is_err(), "{refused}");
    }
    // No worker holds the run, and still only the one that was given it can.
    let long = Duration::from_secs(60);
    assert!(two.wait(lease::take(two.pool(), "r1", "two/1", long)).is_err());
    let held = one.wait(lease::take(one.pool(), "r1", "one/1", long)).unwrap();
    let for_years = "UPDATE ralph_seal.leases SET until = now() + interval '9 years'";
    assert!(done(&one, for_years).is_err(), "it renews its lease, and no more");
    let fault = |of: &Fleet| of.wait(lease::release_faulted(of.pool(), &held, lease::Fault::Crash, "x"));
    assert!(!fault(&two).unwrap() && fault(&one).unwrap(), "only its own hold");
    assert_eq!(next_run(&fleet, "own").as_deref(), Some("r2"));
}

/// Runs a statement of the test's own.
fn change(fleet: &Fleet, statement: &'static str) {
    fleet.wait(async { Ok(sqlx::query(statement).execute(fleet.pool()).await?) }).unwrap();
}

/// The status of a run, and the seconds until it may be given out.
fn held_back(fleet: &Fleet, run: &str) -> (String, f64) {
    let query =
        "SELECT status, extract(epoch FROM not_before - now())::float8 FROM ralph_seal.runs WHERE run = $1";
    fleet.wait(async { Ok(sqlx::query_as(query).bind(run).fetch_one(fleet.pool()).await?) }).unwrap()
}

#[test]
fn a_driver_that_keeps_dying_is_held_back_and_rests() {
    let Some((_own, fleet)) = fleet() else { return };
    let pool = fleet.pool();
    add(&fleet, "r1", None);
    report(&fleet, "w1", &[], 1);
    let long = Duration::from_secs(600);
    let dies = || {
        change(&fleet, "UPDATE ralph_seal.runs SET not_before = now()");
        assert_eq!(next_run(&fleet, "w1").as_deref(), Some("r1"));
        let held = fleet.wait(lease::take(pool, "r1", "w1/1", long)).unwrap();
        fleet.wait(lease::release_dead(pool, "r1", "w1/1")).unwrap();
        assert_eq!(next_run(&fleet, "w1"), None, "it is held back");
        held
    };
    for most in [10.0, 30.0, 120.0, 600.0] {
        dies();
        let (status, wait) = held_back(&fleet, "r1");
        assert!(status == "queued" && wait <= most && wait > most * 0.5, "{status} {wait} of {most}");
    }
    dies();
    assert_eq!(held_back(&fleet, "r1").0, "resting", "the fifth time");
    change(&fleet, "UPDATE ralph_seal.runs SET status = 'queued'");
    let held = fleet.wait(lease::take(pool, "r1", "w1/1", long)).unwrap();
    fleet.wait(lease::progressed(pool, &held)).unwrap();
    fleet.wait(lease::release_dead(pool, "r1", "w1/1")).unwrap();
    let (status, wait) = held_back(&fleet, "r1");
    assert!(status == "queued" && wait <= 10.0, "an iteration counts: {status} {wait}");
    assert!(!fleet.wait(lease::release_faulted(pool, &held, lease::Fault::Crash, "late")).unwrap(), "once");
}

#[test]
fn a_worker_that_cannot_drive_a_run_leaves_it_to_others() {
    let Some((_own, fleet)) = fleet() else { return };
    let pool = fleet.pool();
    add(&fleet, "r1", None);
    report(&fleet, "w1", &[], 1);
    report(&fleet, "w2", &[], 1);
    let long = Duration::from_secs(600);
    assert_eq!(next_run(&fleet, "w1").as_deref(), Some("r1"));
    let held = fleet.wait(lease::take(pool, "r1", "w1/1", long)).unwrap();
    assert!(fleet.wait(lease::release_faulted(pool, &held, lease::Fault::Worker, "no docker")).unwrap());
    assert_eq!(next_run(&fleet, "w1"), None, "not the same one");
    assert_eq!(next_run(&fleet, "w2").as_deref(), Some("r1"), "another one at once");
    for _ in 0..8 {
        let held = fleet.wait(lease::take(pool, "r1", "w2/1", long)).unwrap();
        assert!(fleet.wait(lease::release_faulted(pool, &held, lease::Fault::Outage, "no store")).unwrap());
    }
    let (status, wait) = held_back(&fleet, "r1");
    assert!(status == "queued" && wait > 10.0 && wait <= 60.0, "an outage is never counted: {status} {wait}");
}

#[test]
fn the_time_of_an_outage_expires_no_lease() {
    let Some((_own, fleet)) = fleet() else { return };
    let pool = fleet.pool();
    let outage = || {
        change(&fleet, "UPDATE ralph_seal.leases SET until = now() - interval '10 seconds'");
        change(&fleet, "UPDATE ralph_seal.pulse SET at = now() - interval '40 seconds'");
    };
    add(&fleet, "r1", None);
    report(&fleet, "w1", &[], 1);
    report(&fleet, "w2", &[], 1);
    assert_eq!(next_run(&fleet, "w1").as_deref(), Some("r1"));
    let holds = |worker: &str| {
        fleet.wait(lease::take(pool, "r1", &format!("{worker}/1"), Duration::from_secs(30))).unwrap();
    };
    holds("w1");
    outage();
    assert_eq!(next_run(&fleet, "w2"), None, "the worker that had it may still come");
    assert_eq!(next_run(&fleet, "w1").as_deref(), Some("r1"), "it has the files");
    holds("w1");
    outage();
    assert_eq!(next_run(&fleet, "w2"), None);
    change(&fleet, "UPDATE ralph_seal.pulse SET up_since = now() - interval '31 seconds'");
    assert_eq!(next_run(&fleet, "w2").as_deref(), Some("r1"), "one lease after the outage it is lost");
}

#[test]
fn a_dump_restores_strictly_and_ends_earlier_holds() {
    let Some((own, fleet)) = fleet() else { return };
    let pool = fleet.pool();
    let login =
        fleet.wait(async { enrol::enrol(pool, &enrol::new_token(pool).await?, "one").await }).unwrap();
    let long = Duration::from_secs(600);
    add(&fleet, "r1", None);
    let one = Fleet::open(&enrol::address(&own.url, &login).unwrap()).unwrap();
    report(&one, "one", &[], 1);
    assert_eq!(next_run(&one, "one").as_deref(), Some("r1"));
    let held = one.wait(lease::take(one.pool(), "r1", "one/1", long)).unwrap();
    assert!(one.wait(seal::append(one.pool(), &held, 0, b"one\n")).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("dump");
    let call = |program: &str, args: &[&str]| {
        let done = std::process::Command::new(program).args(args).arg(&dump).output().unwrap();
        assert!(done.status.success(), "{program}: {}", String::from_utf8_lossy(&done.stderr));
    };
    call("pg_dump", &["--schema=ralph_seal", "--format=custom", &own.url, "--file"]);
    let new = Postgres::start().unwrap();
    // The logins of a cluster aren't in a dump.
    call("pg_restore", &["--exit-on-error", "--dbname", &new.url]);
    let restored = Fleet::open(&new.url).unwrap();
    let one = Fleet::open(&enrol::address(&new.url, &login).unwrap()).unwrap();
    assert!(
        !one.wait(seal::append(one.pool(), &held, 4, b"late\n")).unwrap(),
        "a hold from before the restore"
    );
    report(&one, "one", &[], 1);
    assert_eq!(next_run(&one, "one").as_deref(), Some("r1"), "its login is the same");
    let held = one.wait(lease::take(one.pool(), "r1", "one/2", long)).unwrap();
    assert!(one.wait(seal::append(one.pool(), &held, 4, b"two\n")).unwrap());
    assert_eq!(restored.wait(seal::read_from(restored.pool(), "r1", 0)).unwrap(), b"one\ntwo\n");
    let again = Fleet::open(&new.url).unwrap();
    assert!(again.wait(lease::is_ours(again.pool(), &held)).unwrap(), "it moves in once");
}
