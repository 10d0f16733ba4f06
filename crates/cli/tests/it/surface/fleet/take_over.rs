//! Takeover from a worker that was killed or frozen between the seal and an effect.

use crate::surface::fleet::cluster::{PARTS, World};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ralph_loop_testkit::env::{is_alive, until};
use ralph_loop_testkit::torture;
use std::process::Child;

/// Boundaries between a seal and an effect, and between an effect and its journal entry.
const POINTS: &[&str] = &[
    "work.started",
    "work.session",
    "checkpoint.before",
    "checkpoint.kept",
    "checkpoint.after",
    "push.intended",
    "push.done",
    "pr.intended",
    "pr.written",
    "comment.intended",
    "pr.commented",
    "publish.after",
];

fn is_stopped(child: &Child) -> bool {
    ralph_loop_journal::lock::is_stopped(child.id())
}

/// What happens to the worker at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Killed,
    /// It sleeps past its lease, and wakes up when another one has finished the run.
    Frozen,
    /// It keeps running, and none of its messages reach the database until another worker has finished the run.
    CutOff,
}

/// The worker on machine 0 meets its fate at `point`, another machine continues, and the first one comes back.
fn taken_over(world: &World, name: &str, point: &str, fate: Fate) {
    let (run, issue) = world.add_of_issue(name);
    let fault = if fate == Fate::Killed { point.to_owned() } else { format!("freeze:{point}") };
    let mut first = world.spawn(0, &["--once", run.as_str()], Some(&fault));
    until("the fault", || match fate {
        Fate::Killed => first.try_wait().unwrap().map(|_| ()),
        _ => {
            assert_eq!(first.try_wait().unwrap(), None, "{point} {fate:?}: {}", world.log(0));
            is_stopped(&first).then_some(())
        }
    });
    assert_eq!(world.find(&run).status, "driven", "{point} {fate:?}: {}", world.log(0));
    let wake =
        |first: &Child| kill(Pid::from_raw(i32::try_from(first.id()).unwrap()), Signal::SIGCONT).unwrap();
    if fate == Fate::CutOff {
        world.cut();
        wake(&first);
    }
    world.drive(1, &run);
    world.assert_done_once(&run, issue);
    let sealed = world.events(&run).len();
    match fate {
        Fate::Killed => return,
        // It wakes up between its seal and its effect: the host recognizes the repeated effect, and nothing else follows.
        Fate::Frozen => wake(&first),
        // Its delayed messages arrive now.
        Fate::CutOff => world.mend(),
    }
    let status = first.wait().unwrap();
    assert!(!status.success(), "{point} {fate:?}: {status}");
    world.assert_done_once(&run, issue);
    assert_eq!(world.events(&run).len(), sealed, "{point} {fate:?}");
}

#[test]
fn run_of_a_killed_worker_continues_elsewhere_from_every_point() {
    let Some(world) = World::new(PARTS) else { return };
    let short = ["work.started", "checkpoint.before", "push.intended", "pr.intended", "comment.intended"];
    let points = if torture::full() { POINTS } else { &short[..] };
    for (at, point) in points.iter().enumerate() {
        taken_over(&world, &format!("k{at:03}"), point, Fate::Killed);
    }
}

#[test]
fn frozen_worker_that_wakes_up_does_nothing_twice() {
    let Some(world) = World::new(PARTS) else { return };
    let short = ["work.started", "push.intended", "pr.intended", "comment.intended"];
    let points = if torture::full() { POINTS } else { &short[..] };
    for (at, point) in points.iter().enumerate() {
        taken_over(&world, &format!("f{at:03}"), point, Fate::Frozen);
    }
}

#[test]
fn disconnected_worker_that_returns_does_nothing_twice() {
    let Some(world) = World::with_wire(PARTS) else { return };
    let short = ["work.started", "push.intended", "pr.intended", "comment.intended"];
    let points = if torture::full() { POINTS } else { &short[..] };
    for (at, point) in points.iter().enumerate() {
        taken_over(&world, &format!("c{at:03}"), point, Fate::CutOff);
    }
}

#[test]
fn worker_with_packet_loss_does_nothing_twice() {
    let Some(world) = World::with_net(PARTS) else { return };
    let short = ["push.intended", "comment.intended"];
    let points = if torture::full() { POINTS } else { &short[..] };
    for (at, point) in points.iter().enumerate() {
        taken_over(&world, &format!("n{at:03}"), point, Fate::CutOff);
    }
}

/// Random boundary, iteration and fate. 200 rounds in the long form (`RALPH_TORTURE=full`).
#[test]
fn run_is_driven_once_despite_failures() {
    let Some(world) = World::with_wire(PARTS) else { return };
    let mut random = torture::Random::new(18);
    for round in 0..torture::rounds(3, 200) {
        let fate = random.one_of(&[Fate::Killed, Fate::Frozen, Fate::CutOff]);
        let point = random.one_of(POINTS);
        let again = point.starts_with("work.") || point.starts_with("checkpoint.");
        let times = if again { 1 + random.below(3) } else { 1 };
        println!("round {round}: {fate:?} at {point}#{times}");
        taken_over(&world, &format!("r{round:03}"), &format!("{point}#{times}"), fate);
    }
}

#[test]
fn the_guard_ends_the_agent_of_a_frozen_driver_when_the_lease_runs_out() {
    let Some(world) = World::new("echo $$ > \"$HOME/agent.pid\"; sleep 600") else { return };
    let run = world.add("gard");
    let mut driver = world.spawn(0, &["--once", run.as_str()], None);
    let file = world.machines[0].path("home/agent.pid");
    let agent: u32 = until("the agent", || std::fs::read_to_string(&file).ok()?.trim().parse().ok());
    kill(Pid::from_raw(i32::try_from(driver.id()).unwrap()), Signal::SIGSTOP).unwrap();
    until("the end of the agent", || (!is_alive(agent)).then_some(()));
    assert!(is_stopped(&driver), "the driver is still frozen");
    // No other worker has taken the run over: after it wakes up, it may hold the run again. The test doesn't wait for that.
    driver.kill().unwrap();
    driver.wait().unwrap();
}

#[test]
fn workers_wait_for_a_restarting_database() {
    let Some(world) = World::new(&format!(
        "touch \"$HOME/begun\"; while [ ! -f \"$HOME/go\" ]; do sleep 0.05; done\n{PARTS}"
    )) else {
        return;
    };
    let mut world = world.with_lease(60);
    let (run, issue) = world.add_of_issue("rest");
    let driver = world.spawn(0, &["--once", run.as_str()], None);
    until("the agent", || world.machines[0].path("home/begun").exists().then_some(()));
    world.postgres.restart();
    // The test's own connections broke with the restart; it checks whether the worker reconnects.
    world.fleet = ralph_loop_fleet::Fleet::open(&world.postgres.url).unwrap();
    std::fs::write(world.machines[0].path("home/go"), "").unwrap();
    let mut driver = driver;
    let status = driver.wait().unwrap();
    assert!(status.success(), "{}", world.log(0));
    world.assert_done_once(&run, issue);
}

#[test]
fn lost_machine_loses_no_finished_iteration() {
    let Some(world) = World::new(PARTS) else { return };
    world.with_lease(10).lose_a_machine("disk");
}
