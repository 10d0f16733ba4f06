//! Different machines: clocks that differ, a full disk, two versions in one fleet.

use crate::surface::fleet::cluster::{PARTS, World};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ralph_loop_fleet::{dispatch, workers};
use ralph_loop_testkit::TestEnv;
use ralph_loop_testkit::env::until;
use std::path::{Path, PathBuf};
use std::process::Child;

/// Shifts the wall clock of a process and its children.
const SHIM: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int done = real(id, at);
    const char *skew = getenv("TEST_CLOCK_SKEW");
    if (done == 0 && id == CLOCK_REALTIME && skew) at->tv_sec += atol(skew);
    return done;
}
"#;

/// Builds the shim; `None` without a compiler.
fn shim(world: &World) -> Option<PathBuf> {
    let (source, library) = (world.home.path("clock.c"), world.home.path("clock.so"));
    std::fs::write(&source, SHIM).unwrap();
    let mut command = world.home.command("cc", &world.home.path("home"));
    command.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
    let built = command.output().is_ok_and(|done| done.status.success());
    if !built {
        ralph_loop_testkit::skip("no C compiler here: the clock of a process cannot be moved");
    }
    built.then_some(library)
}

fn end(mut child: Child) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    child.wait().unwrap();
}

#[test]
fn clocks_that_differ_by_hours_are_harmless() {
    for (name, skews) in [("ahead", ["7200", "-7200"]), ("behnd", ["-7200", "7200"])] {
        let Some(mut world) = World::new(PARTS) else { return };
        let Some(library) = shim(&world) else { return };
        for (machine, skew) in skews.into_iter().enumerate() {
            world.vars[machine] = vec![
                ("LD_PRELOAD".to_owned(), library.display().to_string()),
                ("TEST_CLOCK_SKEW".to_owned(), skew.to_owned()),
            ];
        }
        let (run, issue) = world.add_of_issue(name);
        let mut first = world.spawn(0, &["--once", run.as_str()], Some("checkpoint.after#2"));
        until("the fault", || first.try_wait().unwrap());
        world.drive(1, &run);
        world.assert_done_once(&run, issue);
    }
}

/// A small disk; `false` if it can't be created.
fn small_disk(world: &World, folder: &Path) -> bool {
    let mut mount = world.home.command("mount", &world.home.path("home"));
    let done = TestEnv::finish(mount.args(["-t", "tmpfs", "-o", "size=12m", "tmpfs"]).arg(folder));
    if done.code != Some(0) {
        ralph_loop_testkit::skip(&format!(
            "a full disk needs a small tmpfs, and it cannot be mounted here: {}",
            done.stderr.trim()
        ));
    }
    done.code == Some(0)
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn run_of_a_worker_with_a_full_disk_continues_elsewhere() {
    let fills = "[ $RALPH_ITERATION = 2 ] && [ -e \"$HOME/../small\" ] && cat /dev/zero > \"$HOME/../state/ballast\" 2>/dev/null";
    let Some(world) = World::new(&format!("{fills}\n{PARTS}")) else { return };
    let state = world.machines[0].path("state");
    if !small_disk(&world, &state) {
        return;
    }
    let _unmount = Unmount(state);
    std::fs::write(world.machines[0].path("small"), "").unwrap();
    let (run, issue) = world.add_of_issue("full");
    let ended = world.spawn(0, &["--once", run.as_str()], None).wait().unwrap();
    assert!(!ended.success(), "{}", world.log(0));
    assert!(world.find(&run).problem.is_some(), "{:?}", world.find(&run));
    world.drive(1, &run);
    world.assert_done_once(&run, issue);
}

#[test]
fn worker_with_little_disk_takes_no_run() {
    let Some(world) = World::new(PARTS) else { return };
    let state = world.machines[0].path("state");
    if !small_disk(&world, &state) {
        return;
    }
    let _unmount = Unmount(state);
    let run = world.add("room");
    let small = world.spawn(0, &["--name", "w0"], None);
    let pool = world.fleet.pool();
    let of = |name: &str| {
        let all = world.fleet.wait(workers::list(pool)).unwrap();
        all.into_iter().find(|worker| worker.id == name)
    };
    let said = until("its word", || of("w0").map(|worker| worker.health).filter(|health| health != "ok"));
    assert!(said.contains("nearly full"), "{said}");
    assert_eq!(world.fleet.wait(dispatch::next_run(pool, "w0")).unwrap(), None);
    let large = world.spawn(1, &["--name", "w1"], None);
    until("the end of the run", || (world.find(&run).status == "over").then_some(()));
    end(small);
    end(large);
}

/// `scripts/two-builds` sets the two; this build replaces the one that isn't set.
#[test]
#[allow(clippy::disallowed_methods, reason = "tests are a border, too")]
fn two_builds_share_a_fleet_and_the_older_one_leaves_newer_runs_alone() {
    let build = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
    let builds = [build("RALPH_OLDER_BUILD"), build("RALPH_NEWER_BUILD")];
    if builds.iter().all(Option::is_none) {
        return ralph_loop_testkit::skip("there is no second build; `scripts/two-builds` makes one");
    }
    let builds = builds.map(|build| build.unwrap_or_else(|| crate::RALPH.into()));
    let Some(world) = World::with_builds(&format!("touch \"$HOME/begun\"; sleep 0.3\n{PARTS}"), builds)
    else {
        return;
    };
    // Started by the older one, handed over to the newer one.
    let (run, issue) = world.add_of_issue("rolA");
    let mut older = world.spawn(0, &["--name", "w0"], None);
    until("work", || world.machines[0].path("home/begun").exists().then_some(()));
    let newer = world.spawn(1, &["--name", "w1"], None);
    kill(Pid::from_raw(i32::try_from(older.id()).unwrap()), Signal::SIGTERM).unwrap();
    assert!(older.wait().unwrap().success(), "{}", world.log(0));
    until("the end of the run", || (world.find(&run).status == "over").then_some(()));
    world.assert_done_once(&run, issue);
    // Started by the newer one: the older one doesn't touch it, neither as a worker nor as the server.
    let (run, issue) = world.add_of_issue("rolB");
    until("the newer one has it", || {
        (world.find(&run).worker.as_deref() == Some("w1") && world.find(&run).head > 0).then_some(())
    });
    kill(Pid::from_raw(i32::try_from(newer.id()).unwrap()), Signal::SIGTERM).unwrap();
    let mut newer = newer;
    newer.wait().unwrap();
    let known = world.fleet.wait(workers::list(world.fleet.pool())).unwrap();
    let kinds = |name: &str| known.iter().find(|worker| worker.id == name).unwrap().kinds;
    if world.find(&run).status != "over" {
        if kinds("w1") > kinds("w0") {
            let refused = TestEnv::finish(&mut world.worker(0, &["--once", run.as_str()], None)).exits(4);
            assert!(refused.stderr.contains("newer version"), "{}", refused.stderr);
        }
        let older = world.spawn(0, &["--name", "w0"], None);
        let newer = world.spawn(1, &["--name", "w1"], None);
        until("the end of the run", || (world.find(&run).status == "over").then_some(()));
        end(older);
        end(newer);
    }
    world.assert_done_once(&run, issue);
}
