//! Nothing that a command starts outlives it.

use crate::common;
use crate::common::{STUBBORN, Sink, alive, fresh, pids, run, sh};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ralph_loop_domain::ports::{ExecEnd, Sandbox as _, StopCause};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

#[test]
fn after_a_normal_end() {
    let b = fresh();
    let output = b.sh(&format!("{STUBBORN} exit 3"));
    assert_eq!(output.outcome.end, ExecEnd::Exited(3));
    assert!(output.outcome.survivors >= 2, "{}", output.outcome.survivors);
    b.assert_two_dead();
}

#[test]
fn after_a_timeout() {
    let b = fresh();
    let mut request = sh(&format!("{STUBBORN} sleep 1000"));
    request.timeout = Some(Duration::from_secs(3));
    request.grace = Duration::from_millis(200);
    let outcome = run(&b.sandbox, &request).outcome;
    assert_eq!(outcome.end, ExecEnd::TimedOut);
    b.assert_two_dead();
}

#[test]
fn after_a_silence() {
    let b = fresh();
    let mut request =
        sh(&format!("for i in 1 2 3 4 5 6; do echo $i; sleep 0.6; done; {STUBBORN} sleep 1000"));
    request.idle_timeout = Some(Duration::from_secs(3));
    request.grace = Duration::ZERO;
    let output = run(&b.sandbox, &request);
    assert_eq!(output.outcome.end, ExecEnd::IdleTimedOut);
    assert_eq!(output.stdout.lines().count(), 6, "talking keeps it alive");
    b.assert_two_dead();
}

#[test]
fn after_a_stop() {
    let b = fresh();
    let file = b.path().join("pids");
    let mut sink = Sink::asking(|| {
        if pids(&file).len() == 2 {
            ControlFlow::Break(StopCause::Rotated)
        } else {
            ControlFlow::Continue(())
        }
    });
    let mut request = sh(&format!("{STUBBORN} sleep 1000"));
    request.grace = Duration::from_millis(100);
    let outcome = b.sandbox.exec(&request, &mut sink).unwrap();
    drop(sink);
    assert_eq!(outcome.end, ExecEnd::Stopped(StopCause::Rotated));
    b.assert_two_dead();
}

#[test]
fn the_whole_tree_may_use_the_grace() {
    let b = fresh();
    // The shell dies of the signal at once; the agent below it saves its work first.
    let mut request = sh(
        "sh -c 'trap \"sleep 0.3; echo saved > work; exit\" TERM; echo ready; while :; do sleep 0.01; done' & wait",
    );
    request.timeout = Some(Duration::from_secs(3));
    // Waiting for all of it would exceed a test's time limit.
    request.grace = Duration::from_secs(1000);
    let output = run(&b.sandbox, &request);
    assert_eq!(output.outcome.end, ExecEnd::TimedOut);
    assert_eq!(std::fs::read_to_string(b.path().join("work")).unwrap(), "saved\n");
}

#[test]
fn output_during_the_grace_is_kept() {
    let b = fresh();
    let mut request = sh("trap 'echo last words; exit 7' TERM; echo first; while :; do sleep 0.01; done");
    request.timeout = Some(Duration::from_secs(3));
    let output = run(&b.sandbox, &request);
    assert_eq!(output.stdout, "first\nlast words\n");
    assert_eq!(output.outcome.end, ExecEnd::TimedOut);
}

#[test]
fn a_stopped_process_ends_too() {
    let b = fresh();
    let output = b.sh("sleep 1000 & echo $! >> pids; kill -STOP $!; echo $$ >> pids");
    assert_eq!(output.outcome.survivors, 1);
    b.assert_two_dead();
}

#[test]
fn after_the_guard_is_killed() {
    // With the run's variable, without it, and without it in a session that the orphan created.
    for way in ["", "env -i PATH=$PATH ", "exec env -i PATH=$PATH setsid "] {
        let b = fresh();
        let guard = b.sandbox.guard_pid().unwrap();
        let file = b.path().join("pids");
        let script = format!("{way}sh -c '{}' & sleep 1000", STUBBORN.replace('\'', r"'\''"));
        let mut sink = Sink::asking(|| {
            if pids(&file).len() == 2 {
                kill(Pid::from_raw(i32::try_from(guard).unwrap()), Signal::SIGKILL).unwrap();
            }
            ControlFlow::Continue(())
        });
        let outcome = b.sandbox.exec(&sh(&script), &mut sink).unwrap();
        drop(sink);
        assert_eq!(outcome.end, ExecEnd::GuardLost);
        assert!(outcome.survivors >= 2, "{way}: {}", outcome.survivors);
        b.assert_two_dead();
        assert_eq!(b.sh("echo again").stdout, "again\n", "a new guard is there");
        assert_ne!(b.sandbox.guard_pid(), Some(guard));
    }
}

#[test]
fn a_guard_killed_between_commands_is_replaced() {
    let b = fresh();
    let guard = b.sandbox.guard_pid().unwrap();
    kill(Pid::from_raw(i32::try_from(guard).unwrap()), Signal::SIGKILL).unwrap();
    common::until("the guard is dead", || !alive(i32::try_from(guard).unwrap()));
    assert_eq!(b.sh("echo on").stdout, "on\n");
}

#[test]
fn other_children_of_this_process_are_left_alone() {
    #[allow(clippy::disallowed_methods)]
    let mut mine = std::process::Command::new("setsid").args(["sleep", "1000"]).spawn().unwrap();
    let other = fresh();
    let b = fresh();
    let guard = b.sandbox.guard_pid().unwrap();
    let killed = Cell::new(false);
    let mut sink = Sink::asking(|| {
        if !killed.replace(true) {
            return ControlFlow::Continue(());
        }
        kill(Pid::from_raw(i32::try_from(guard).unwrap()), Signal::SIGKILL).ok();
        ControlFlow::Continue(())
    });
    let outcome = b.sandbox.exec(&sh("sleep 1000"), &mut sink).unwrap();
    assert_eq!(outcome.end, ExecEnd::GuardLost);
    assert!(alive(i32::try_from(mine.id()).unwrap()));
    assert!(alive(i32::try_from(other.sandbox.guard_pid().unwrap()).unwrap()));
    mine.kill().unwrap();
    mine.wait().unwrap();
}

#[test]
fn twenty_kills_of_the_guard_at_random_times() {
    let b = fresh();
    let mut random = 0x2545_f491_u32;
    let mut lost = 0;
    for _ in 0..20 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let Some(guard) = b.sandbox.guard_pid() else {
            b.sh("true");
            continue;
        };
        let delay = Duration::from_micros(u64::from(random % 60_000));
        let killer = std::thread::spawn(move || {
            let millis = u8::try_from(delay.as_millis()).unwrap();
            nix::poll::poll(&mut [], millis).unwrap();
            kill(Pid::from_raw(i32::try_from(guard).unwrap()), Signal::SIGKILL).ok();
        });
        let script = "for i in 1 2 3 4 5 6; do setsid sh -c 'trap \"\" TERM; echo $$ >> pids; sleep 1000' & sleep 0.01; done";
        lost += u32::from(b.sh(script).outcome.end == ExecEnd::GuardLost);
        killer.join().unwrap();
        for pid in b.pids() {
            assert!(!alive(pid), "{pid} lives");
        }
    }
    assert!(lost > 5, "only {lost} of 20 hit");
}

#[test]
fn a_sink_that_panics_leaves_nothing_behind() {
    let b = fresh();
    let file = b.path().join("pids");
    let mut sink = Sink::asking(|| {
        assert!(pids(&file).len() < 2, "on purpose");
        ControlFlow::Continue(())
    });
    let request = sh(&format!("{STUBBORN} sleep 1000"));
    let caught =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| b.sandbox.exec(&request, &mut sink)));
    let panic = caught.unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
    drop(sink);
    b.assert_two_dead();
    assert_eq!(b.sh("echo on").stdout, "on\n");
}

#[test]
fn fork_bombs_die() {
    for bomb in [
        // Grows to 2^9 processes that stay in the group.
        "fork for 1..9; sleep 1000",
        // 64 chains of processes, each replaced by its child all the time, in the same group.
        "fork for 1..6; while (1) { exit if fork }",
        // The same, each in its own session, ignoring TERM.
        "$SIG{TERM} = 'IGNORE'; use POSIX; fork for 1..5; while (1) { exit if fork; POSIX::setsid() }",
        // A deep chain: each waits for its child.
        "for (1..400) { my $p = fork; if ($p) { wait; exit } } sleep 1000",
    ] {
        let b = fresh();
        let script = format!("perl -e '{}' & sleep 0.3", bomb.replace('\'', r"'\''"));
        let begun = Instant::now();
        let output = b.sh(&script);
        assert_eq!(output.outcome.end, ExecEnd::Exited(0), "{bomb}");
        assert!(output.outcome.survivors > 0, "{bomb}");
        let guard = b.sandbox.guard_pid().unwrap();
        let children = std::fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).unwrap();
        assert_eq!(children, "", "{bomb}");
        println!("{:?}, {} killed: {bomb}", begun.elapsed(), output.outcome.survivors);
    }
}

#[test]
fn sweep_finds_the_run_s_processes_wherever_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let id = format!("sweep-{}", std::process::id());
    #[allow(clippy::disallowed_methods)]
    let mut lost = std::process::Command::new("sh")
        .args(["-c", common::STUBBORN])
        .current_dir(dir.path())
        .env("RALPH_RUN", &id)
        .spawn()
        .unwrap();
    lost.wait().unwrap();
    #[allow(clippy::disallowed_methods)]
    let mut similar =
        std::process::Command::new("sleep").arg("1000").env("RALPH_RUN", format!("{id}x")).spawn().unwrap();
    let found = pids(&dir.path().join("pids"));
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|pid| alive(*pid)));
    assert!(ralph_loop_sandbox::sweep(&id) >= 2);
    assert!(!found.iter().any(|pid| alive(*pid)));
    assert_eq!(ralph_loop_sandbox::sweep(&id), 0);
    assert!(alive(i32::try_from(similar.id()).unwrap()));
    similar.kill().unwrap();
    similar.wait().unwrap();
}
