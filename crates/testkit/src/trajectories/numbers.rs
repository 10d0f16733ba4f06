//! Runs whose check is a script that no table knows: its numbers move, tremble, count the runs, or stand still; and runs whose
//! failure is not the work's own.

use super::runner::Check;
use super::scene::Scene;

/// A script's output that passes only where `passed` says so.
fn says(s: &mut Scene, words: String, passed: bool) {
    s.step_with(Check::Plain(words, passed));
}

/// Rewrites some lines of the same file.
fn work(s: &mut Scene, stem: &str) {
    let (path, count) = (s.source(stem), s.rng.between(4, 9));
    s.rewrite_tail(&path, count);
}

/// Healthy: one or two more cases are ok each time, in the same file.
pub fn cases_ok(s: &mut Scene) {
    let whole = s.rng.between(12, 20);
    let mut ok = 1;
    while ok < whole {
        work(s, "core");
        says(s, format!("{ok}/{whole} cases ok"), false);
        ok += s.rng.between(1, 2);
    }
}

/// Healthy: an accuracy rises, sometimes it stands for an iteration.
pub fn accuracy(s: &mut Scene) {
    let mut value = s.rng.between(300, 400);
    for _ in 0..10 {
        work(s, "core");
        says(s, format!("evaluating 5000 samples\naccuracy 0.{value}"), false);
        if s.rng.chance(75) {
            value += s.rng.between(15, 50);
        }
    }
}

/// Healthy: fewer are left, in every second iteration at least.
pub fn items_left(s: &mut Scene) {
    let mut left = s.rng.between(9, 14);
    while left > 1 {
        work(s, "api");
        says(s, format!("checked everything\n{left} left"), false);
        if s.rng.chance(70) {
            left -= 1;
        } else {
            work(s, "api");
            says(s, format!("checked everything\n{left} left"), false);
            left -= 1;
        }
    }
}

/// Healthy: a latency falls; no limit is named beside it.
pub fn latency(s: &mut Scene) {
    let mut p99 = s.rng.between(400, 600);
    for _ in 0..11 {
        work(s, "core");
        says(s, format!("p99 {p99} ms"), false);
        p99 -= p99 * s.rng.between(3, 9) / 100;
    }
}

/// Healthy: counts of a home-made runner.
pub fn own_counts(s: &mut Scene) {
    let whole = s.rng.between(10, 14);
    for ok in 1..whole {
        work(s, "store");
        says(s, format!("{} failed, {ok} passed", whole - ok), false);
    }
}

/// Circling: the same words, a new file each time; nobody counts anything.
pub fn new_files(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for n in 0..14 {
        let (path, count) = (s.source(&format!("attempt_{n}")), s.rng.between(20, 40));
        s.add_lines(&path, count);
        says(s, "the service does not start: configuration is incomplete".into(), false);
    }
}

/// Circling: a number trembles around the same value, and a second run on the same files tells another one.
pub fn trembling(s: &mut Scene) {
    s.good_start(1, 2);
    s.circles_from_here();
    for _ in 0..12 {
        work(s, "core");
        let (one, other) = (s.rng.between(90, 99), s.rng.between(100, 110));
        let swap = s.rng.chance(50);
        let (first, second) = if swap { (other, one) } else { (one, other) };
        let step = s.step_with(Check::Plain(format!("p99 {first} ms: too slow"), false));
        step.again = Some(format!("p99 {second} ms: too slow"));
    }
}

/// Circling: the script counts its own runs and tells the time; the result stays.
pub fn counter(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for n in 0..10 {
        work(s, "util");
        let took = s.rng.between(2, 40);
        says(s, format!("run {} took {took} s\n3/10 cases ok", n + 4), false);
    }
}

/// Circling: the own checks pass, and the final check refuses the work for the same reason each time.
pub fn refused_at_the_end(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for _ in 0..8 {
        work(s, "core");
        let step = s.step();
        step.refused =
            Some("setup command `make deps` failed in a clean checkout: see proof/setup-1.log".into());
    }
}

/// Circling: a program that the check needs is gone, whatever is edited.
pub fn missing_tool(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for n in 0..8 {
        let (path, count) = (s.source(&format!("part{n}")), s.rng.between(5, 20));
        s.add_lines(&path, count);
        says(s, "sh: 1: frobnicate-test: not found".into(), false);
    }
}

/// Healthy: the number falls back now and then, and comes back better.
pub fn two_up_one_down(s: &mut Scene) {
    let mut ok: i64 = 2;
    for n in 0..10 {
        work(s, "core");
        ok += if n % 4 == 2 { -1 } else { 2 };
        says(s, format!("{ok} of 40 queries correct"), false);
    }
}
