//! Workers: how they take runs, hand them over, and are admitted and revoked.

use crate::surface::fleet::cluster::{PARTS, World};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ralph_loop_fleet::{dispatch, enrol, lease, runs, workers};
use ralph_loop_testkit::TestEnv;
use ralph_loop_testkit::env::until;
use std::process::Child;
use std::time::Duration;

fn term(child: &Child) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
}

#[test]
fn workers_share_runs_and_hand_over_on_exit() {
    let slow = format!("touch \"$HOME/begun\"; sleep 0.3\n{PARTS}");
    let Some(world) = World::new(&slow) else { return };
    let world = world.with_lease(60);
    let all: Vec<_> = (0..3).map(|at| world.add_of_issue(&format!("w{at:03}"))).collect();
    let mut first = world.spawn(0, &["--jobs", "3", "--name", "w0"], None);
    until("work", || world.machines[0].path("home/begun").exists().then_some(()));
    term(&first);
    let second = world.spawn(1, &["--jobs", "3", "--name", "w1"], None);
    assert!(first.wait().unwrap().success(), "{}", world.log(0));
    for (run, _) in &all {
        until("the end of the run", || (world.find(run).status == "over").then_some(()));
    }
    for (run, issue) in &all {
        world.assert_done_once(run, *issue);
        let sessions = world.events(run).iter().filter(|event| event["kind"] == "session_ended").count();
        assert_eq!(sessions, 3, "an iteration is handed over whole");
    }
    let known = world.fleet.wait(workers::list(world.fleet.pool())).unwrap();
    assert_eq!(
        known.iter().map(|worker| worker.id.as_str()).filter(|id| ["w0", "w1"].contains(id)).count(),
        2
    );
    term(&second);
    let mut second = second;
    second.wait().unwrap();
}

#[test]
fn run_of_a_killed_worker_moves_to_another() {
    let Some(world) = World::new(&format!("touch \"$HOME/begun\"; sleep 0.2\n{PARTS}")) else { return };
    let (run, issue) = world.add_of_issue("kill");
    let mut first = world.spawn(0, &["--name", "w0"], None);
    until("work", || world.machines[0].path("home/begun").exists().then_some(()));
    // The machine is lost with all of its processes: the lock names the driver.
    let _ = first.kill();
    first.wait().unwrap();
    kill_drivers(&world, run.as_str());
    let second = world.spawn(1, &["--name", "w1"], None);
    until("the end of the run", || (world.find(&run).status == "over").then_some(()));
    world.assert_done_once(&run, issue);
    term(&second);
    let mut second = second;
    second.wait().unwrap();
}

#[test]
fn draining_worker_ends_and_its_successor_works() {
    let Some(world) = World::new(PARTS) else { return };
    let pool = world.fleet.pool();
    let mut first = world.spawn(0, &["--name", "w0"], None);
    until("the worker", || {
        let known = world.fleet.wait(workers::list(pool)).unwrap();
        known.iter().any(|worker| worker.id == "w0").then_some(())
    });
    assert!(world.fleet.wait(workers::drain(pool, "w0")).unwrap());
    assert!(first.wait().unwrap().success(), "{}", world.log(0));
    let run = world.add("drai");
    assert_eq!(world.fleet.wait(dispatch::next_run(pool, "w0")).unwrap(), None, "it takes nothing");
    let mut second = world.spawn(0, &["--name", "w0"], None);
    until("the end of the run", || (world.find(&run).status == "over").then_some(()));
    term(&second);
    assert!(second.wait().unwrap().success(), "{}", world.log(0));
}

/// Kills the process that drives a run on machine 0, found by its lock.
fn kill_drivers(world: &World, run: &str) {
    let lock = world.machines[0].path("state/ralph/runs").join(run).join("lock");
    let place = std::fs::read_to_string(lock).unwrap_or_default();
    if let Some(holder) = ralph_loop_journal::lock::holder(std::path::Path::new(place.trim())) {
        let _ = kill(Pid::from_raw(i32::try_from(holder.pid).unwrap()), Signal::SIGKILL);
    }
}

#[test]
fn token_admits_one_worker_until_revoked() {
    let Some(world) = World::new(PARTS) else { return };
    let pool = world.fleet.pool();
    let run = world.add("rvok");
    let (login, held) = world
        .fleet
        .wait(async {
            let token = enrol::new_token(pool).await?;
            let login = enrol::enrol(pool, &token, "w9").await?;
            assert!(enrol::enrol(pool, &token, "w8").await.is_err(), "a token is good once");
            let other = enrol::new_token(pool).await?;
            assert!(enrol::enrol(pool, &other, "w9").await.is_err(), "the name is taken");
            // It sees the run once the run is assigned to it.
            let said = workers::Report {
                id: "w9".into(),
                labels: Vec::new(),
                capacity: 1,
                load: 0.0,
                health: "ok".into(),
                draining: false,
                begins: false,
            };
            workers::report(pool, &said).await?;
            assert_eq!(dispatch::next_run(pool, "w9").await?.as_deref(), Some(run.as_str()));
            let held = lease::take(pool, run.as_str(), "w9/1", Duration::from_secs(60)).await?;
            Ok((login, held))
        })
        .unwrap();
    let url = enrol::address(&world.postgres.url, &login).unwrap();
    let theirs = ralph_loop_fleet::Fleet::open(&url).unwrap();
    assert!(theirs.wait(enrol::new_token(theirs.pool())).is_err(), "a worker can't create tokens");
    assert!(theirs.wait(lease::renew(theirs.pool(), &held, Duration::from_secs(60))).unwrap());
    assert!(world.fleet.wait(enrol::revoke(pool, "w9")).unwrap());
    assert!(ralph_loop_fleet::Fleet::open(&url).is_err(), "its login is gone");
    assert!(
        !world.fleet.wait(ralph_loop_fleet::seal::append(pool, &held, 0, b"x\n")).unwrap(),
        "its hold is an old one"
    );
    let mut command = world.worker(0, &["--once", run.as_str()], None);
    let refused = TestEnv::finish(command.env("RALPH_WORKER", "w9")).exits(4);
    assert!(
        refused.stderr.contains("was revoked") || refused.stdout.contains("was revoked"),
        "{}",
        refused.stderr
    );
}

#[test]
fn worker_skips_runs_with_a_newer_journal() {
    let Some(world) = World::new(PARTS) else { return };
    let run = world.add("newr");
    world.fleet.wait(runs::written_by(world.fleet.pool(), run.as_str(), 10_000)).unwrap();
    let refused = TestEnv::finish(&mut world.worker(0, &["--once", run.as_str()], None)).exits(4);
    assert!(refused.stderr.contains("newer version"), "{}", refused.stderr);
    assert_eq!(world.find(&run).epoch, 0, "it was not taken");
}
