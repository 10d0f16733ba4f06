//! A sandbox in a program that runs no helper and has changed nothing.
//!
//! A separate test program, because a test program doesn't call `init` and must not adopt orphans for another test.

use crate::common;
use crate::common::{STUBBORN, Sink, alive, options, pids, sh};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ralph_loop_domain::ports::{ExecEnd, Sandbox as _};
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use std::ops::ControlFlow;

#[test]
fn program_without_helpers_is_not_restarted() {
    let dir = tempfile::tempdir().unwrap();
    let refused = LocalSandbox::start(dir.path(), LocalOptions::new("refused", &ralph_loop_testkit::vars()))
        .unwrap_err()
        .to_string();
    for way in ["`ralph_loop_sandbox::init()`", "`LocalOptions::guard_exe`"] {
        assert!(refused.contains(way), "{refused}");
    }
}

#[test]
fn the_process_stays_as_it_was() {
    let before = process();
    let dir = tempfile::tempdir().unwrap();
    let sandbox = LocalSandbox::start(dir.path(), options("unchanged")).unwrap();
    let outcome = sandbox.exec(&sh("sleep 1000 & true"), &mut Sink::default()).unwrap();
    assert_eq!((outcome.end, outcome.survivors), (ExecEnd::Exited(0), 1));
    assert_eq!(process(), before);
    drop(sandbox);
    assert_eq!(process(), before);
    assert!(!prctl::get_child_subreaper().unwrap());
}

/// What a library could change of a process: signal handling, umask, limits, folder and name.
fn process() -> Vec<String> {
    // Of this thread: others may be starting one, with signals blocked for a moment.
    let read = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/{name}")).unwrap();
    let kept = ["SigIgn:", "SigCgt:", "SigBlk:", "Umask:", "NoNewPrivs:", "Seccomp:"];
    let mut found: Vec<String> = read("status")
        .lines()
        .filter(|line| kept.iter().any(|name| line.starts_with(name)))
        .map(str::to_owned)
        .collect();
    found.extend([read("limits"), read("oom_score_adj"), read("comm")]);
    found.push(std::fs::read_link("/proc/self/cwd").unwrap().display().to_string());
    found.push(format!("{:?}", prctl::get_child_subreaper()));
    found
}

/// Without adoption: found by the run's variable, or by the session of the command.
#[test]
fn leftovers_of_a_killed_guard_are_ended_without_adoption() {
    for (way, id) in [("", "lost-1"), ("env -i PATH=$PATH ", "lost-2")] {
        let dir = tempfile::tempdir().unwrap();
        let id = format!("{id}-{}", std::process::id());
        let sandbox = LocalSandbox::start(dir.path(), options(&id)).unwrap();
        let guard = Pid::from_raw(i32::try_from(sandbox.guard_pid().unwrap()).unwrap());
        let file = dir.path().join("pids");
        let mut sink = Sink::asking(|| {
            if pids(&file).len() == 2 {
                kill(guard, Signal::SIGKILL).ok();
            }
            ControlFlow::Continue(())
        });
        // The second case has no variable, but stays in the session.
        let stubborn = if way.is_empty() { STUBBORN.to_owned() } else { STUBBORN.replace("setsid ", "") };
        let script = format!("{way}sh -c '{}' & sleep 1000", stubborn.replace('\'', r"'\''"));
        let outcome = sandbox.exec(&sh(&script), &mut sink).unwrap();
        drop(sink);
        assert_eq!(outcome.end, ExecEnd::GuardLost, "{way}");
        let left = pids(&file);
        assert_eq!(left.len(), 2);
        assert!(!left.iter().any(|pid| alive(*pid)), "{way}: {left:?}");
    }
}

/// A child of the program that looks like a command of ours (its own session, another memory mark) isn't ours.
#[test]
fn other_children_are_left_alone_when_a_guard_is_killed() {
    #[allow(clippy::disallowed_methods)]
    let mut mine = std::process::Command::new("setsid")
        .args(["sh", "-c", "echo 700 > /proc/self/oom_score_adj; exec sleep 1000"])
        .spawn()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let sandbox = LocalSandbox::start(dir.path(), options("mine")).unwrap();
    let guard = Pid::from_raw(i32::try_from(sandbox.guard_pid().unwrap()).unwrap());
    let mine_id = i32::try_from(mine.id()).unwrap();
    common::until("it has its mark", || {
        std::fs::read_to_string(format!("/proc/{mine_id}/oom_score_adj")).is_ok_and(|mark| mark == "700\n")
    });
    let started = dir.path().join("pids");
    let mut sink = Sink::asking(|| {
        if pids(&started).len() == 1 {
            kill(guard, Signal::SIGKILL).ok();
        }
        ControlFlow::Continue(())
    });
    let outcome = sandbox.exec(&sh("echo $$ > pids; exec sleep 1000"), &mut sink).unwrap();
    drop(sink);
    assert_eq!(outcome.end, ExecEnd::GuardLost);
    assert!(alive(mine_id));
    mine.kill().unwrap();
    mine.wait().unwrap();
}
