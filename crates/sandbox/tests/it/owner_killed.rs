//! The owner of a sandbox is killed: the lock is released only when nothing of the run lives.
#![allow(clippy::disallowed_methods, reason = "the owner is a separate process")]

use crate::common;
use crate::common::{PROBE, STUBBORN, alive, pids, until};
use std::fs::{File, TryLockError};
use std::path::Path;
use std::process::{Child, Command};

fn own(root: &Path, script: &str) -> Child {
    let lock = root.join("lock");
    Command::new(PROBE).arg("own").arg(root).arg(lock).arg(script).spawn().unwrap()
}

/// Waits for the lock and returns those of `pids` that live at that moment.
fn alive_when_free(root: &Path) -> Vec<i32> {
    let lock = File::open(root.join("lock")).unwrap();
    until("the lock is free", || match lock.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(other) => panic!("{other}"),
    });
    pids(&root.join("pids")).into_iter().filter(|pid| alive(*pid)).collect()
}

#[test]
fn nothing_lives_when_the_lock_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let mut owner = own(dir.path(), &format!("{STUBBORN} sleep 1000"));
    until("the command runs", || pids(&dir.path().join("pids")).len() == 2);
    assert!(File::open(dir.path().join("lock")).unwrap().try_lock().is_err(), "the lock is held");
    owner.kill().unwrap();
    owner.wait().unwrap();
    assert_eq!(alive_when_free(dir.path()), Vec::<i32>::new());
}

#[test]
fn twenty_random_kills_leave_no_survivor() {
    let mut random = 0x9e37_79b9_u32;
    for round in 0..20 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let dir = tempfile::tempdir().unwrap();
        let script = "for i in 1 2 3; do setsid sh -c 'trap \"\" TERM; echo $$ >> pids; (echo x; sleep 1000) & sleep 1000' & sleep 0.01; done";
        let mut owner = own(dir.path(), script);
        until("it has begun", || dir.path().join("pids").exists());
        nix::poll::poll(&mut [], u8::try_from(random % 90).unwrap()).unwrap();
        owner.kill().unwrap();
        owner.wait().unwrap();
        assert_eq!(alive_when_free(dir.path()), Vec::<i32>::new(), "round {round}");
        assert_eq!(ralph_loop_sandbox::sweep("probe-unused"), 0);
    }
}

#[test]
fn dropping_the_sandbox_frees_the_lock_and_ends_the_guard() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    let file = File::create(&path).unwrap();
    file.lock().unwrap();
    let mut options = common::options("drop");
    options.lock_fd = Some(file.into());
    let sandbox = ralph_loop_sandbox::LocalSandbox::start(dir.path(), options).unwrap();
    let guard = i32::try_from(sandbox.guard_pid().unwrap()).unwrap();
    let other = File::open(&path).unwrap();
    assert!(other.try_lock().is_err());
    drop(sandbox);
    assert!(!alive(guard));
    other.try_lock().unwrap();
}

#[test]
fn expired_lease_ends_everything_and_starts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let clock = ralph_loop_sandbox::LeaseClock::start(std::time::Duration::from_secs(600)).unwrap();
    let mut options = common::options("lease");
    options.lease_fd = Some(clock.for_guard().unwrap());
    let sandbox = ralph_loop_sandbox::LocalSandbox::start(dir.path(), options).unwrap();
    let guard = i32::try_from(sandbox.guard_pid().unwrap()).unwrap();
    assert!(!clock.is_over());
    clock.extend(ralph_loop_sandbox::LeaseClock::now(), std::time::Duration::from_millis(300)).unwrap();
    let command = common::sh(&format!("{STUBBORN} sleep 1000"));
    let ended =
        ralph_loop_domain::ports::Sandbox::exec(&sandbox, &command, &mut common::Sink::default()).unwrap();
    assert_eq!(ended.end, ralph_loop_domain::ports::ExecEnd::GuardLost);
    until("the guard is gone", || !alive(guard));
    assert_eq!(pids(&dir.path().join("pids")).into_iter().filter(|pid| alive(*pid)).count(), 0);
    // Another guard under the same expired lease starts nothing.
    let late = common::sh("sleep 5; echo > late");
    let late = ralph_loop_domain::ports::Sandbox::exec(&sandbox, &late, &mut common::Sink::default());
    assert!(late.is_err() || late.is_ok_and(|late| late.end == ralph_loop_domain::ports::ExecEnd::GuardLost));
    assert!(!dir.path().join("late").exists());
}
