//! Healthy runs that look like circling to a careless eye: red tests, the same command and exit code, flaky tests.

use super::runner::{Check, Failing};
use super::scene::Scene;

fn some_red(s: &mut Scene, least: usize, most: usize) {
    for _ in 0..s.rng.between(least, most) {
        s.fail_new();
    }
}

/// One more test passes each time, in the same file, with one or two lines.
pub fn slow_and_steady(s: &mut Scene) {
    some_red(s, 9, 12);
    let path = s.source("core");
    while s.failed.len() > 1 {
        let count = s.rng.between(1, 4);
        s.add_lines(&path, count);
        s.mend();
        s.step();
    }
}

/// One more test passes in every second or third iteration.
pub fn slower(s: &mut Scene) {
    some_red(s, 5, 6);
    let path = s.source("api");
    while s.failed.len() > 1 {
        for _ in 0..s.rng.between(1, 2) {
            let count = s.rng.between(3, 9);
            if s.rng.chance(50) {
                s.rewrite_tail(&path, count)
            } else {
                s.add_lines(&path, count)
            }
            s.step();
        }
        s.add_lines(&path, 5);
        s.mend();
        s.step();
    }
}

/// A large change: the same tests are red while it goes from file to file.
pub fn refactor_red(s: &mut Scene) {
    s.good_start(1, 2);
    some_red(s, 1, 3);
    for n in 0..s.rng.between(4, 6) {
        let path = s.source(&format!("part{n}"));
        let count = s.rng.between(30, 80);
        s.add_lines(&path, count);
        let core = s.source("core");
        s.rewrite_from(&core, n, 1);
        s.step();
    }
    while !s.failed.is_empty() {
        s.mend();
    }
    s.add_lines("src/last.x", 20);
    s.step();
    s.good_start(1, 2);
}

/// A large change: the build is broken in ever other places.
pub fn refactor_broken(s: &mut Scene) {
    s.good_start(1, 2);
    for n in 0..s.rng.between(4, 7) {
        let path = s.source(&format!("module{n}"));
        let count = s.rng.between(20, 60);
        s.add_lines(&path, count);
        let errors = (0..s.rng.between(2, 9))
            .map(|k| {
                (
                    s.source(&format!("module{}", n + k + 1)),
                    format!("cannot find `{}` in module{}", ["Frame", "Order", "Row"][k % 3], n + k),
                )
            })
            .collect();
        s.step_with(Check::Broken(errors));
    }
    s.good_start(2, 3);
}

/// One failing test after the other, with the same command, file and exit code; the runner stops at the first.
pub fn one_by_one(s: &mut Scene) {
    s.good_start(1, 2);
    let path = s.source("store");
    let count = s.rng.between(7, 9);
    let names: Vec<String> = (0..count).map(|_| s.new_test()).collect();
    for name in names {
        let lines = s.rng.between(3, 8);
        s.add_lines(&path, lines);
        let failed =
            vec![Failing { name, says: "assert expected row to be ready but it was missing".into() }];
        let check = Check::Tests { passed: s.passed.clone(), failed };
        s.step_with(check);
    }
    s.good_start(1, 1);
}

/// A test that fails now and then, beside real work.
pub fn flaky(s: &mut Scene) {
    s.good_start(1, 2);
    let flaky = s.passed[0].clone();
    for n in 0..10 {
        let stem = s.rng.pick(&["core", "api", "store", "util"]).to_owned();
        let (path, count) = (s.source(&stem), s.rng.between(4, 20));
        s.add_lines(&path, count);
        if n % 3 == 2 {
            let test = s.new_test();
            s.passed.push(test);
        }
        let fails = s.rng.chance(40);
        let check = if fails {
            let passed = s.passed.iter().filter(|p| **p != flaky).cloned().collect();
            let failed =
                vec![Failing { name: flaky.clone(), says: "timed out waiting for the queue".into() }];
            Check::Tests { passed, failed }
        } else {
            s.tests()
        };
        s.step_with(check);
    }
}

/// The same long test gets a step further each time.
pub fn step_by_step(s: &mut Scene) {
    s.good_start(1, 2);
    let name = s.fail_new();
    let path = s.source("api");
    for stage in [
        "login form",
        "cart page",
        "shipping choice",
        "payment sheet",
        "receipt mail",
        "refund link",
        "audit entry",
    ] {
        let count = s.rng.between(5, 15);
        s.add_lines(&path, count);
        let failed = vec![Failing { name: name.clone(), says: format!("the {stage} was not found") }];
        let check = Check::Tests { passed: s.passed.clone(), failed };
        s.step_with(check);
    }
    s.mend();
    s.add_lines(&path, 9);
    s.step();
}

/// Tests first: failing ones are added, then fixed.
pub fn test_first(s: &mut Scene) {
    for _ in 0..5 {
        s.fail_new();
        let test = s.eco.test("core");
        s.add_lines(&test, 6);
        s.step();
        s.mend();
        let path = s.source("core");
        s.add_lines(&path, 9);
        s.step();
    }
}

/// A linter's count falls; its output begins the same way each time.
pub fn fewer_problems(s: &mut Scene) {
    let mut count = s.rng.between(60, 90);
    let found: Vec<_> = (0..14).map(|n| (s.source("zeta"), format!("unused import number {n}"))).collect();
    for n in 0..9 {
        let stem = ["core", "api", "store", "util"][n % 2];
        let path = s.source(stem);
        s.rewrite_from(&path, n, 2);
        s.step_with(Check::Lint(found.clone(), count));
        count -= s.rng.between(2, 6);
    }
}

/// The build breaks for a while and comes back; later work goes on.
pub fn broken_in_between(s: &mut Scene) {
    s.good_start(2, 3);
    let path = s.source("core");
    for n in 0..2 {
        s.add_lines(&path, 12);
        let errors = vec![(path.clone(), format!("missing field `f{n}` in initializer"))];
        s.step_with(Check::Broken(errors));
    }
    s.good_start(4, 5);
}

/// The old code of one file is replaced piece by piece, red all the time, and green at the end.
pub fn rewrite_of_a_file(s: &mut Scene) {
    let path = s.source("core");
    s.add_lines(&path, 120);
    s.step();
    s.fail_new();
    for n in 0..3 {
        let check = s.tests();
        s.rewrite_from(&path, n * 30, 30);
        s.step_with(check);
    }
    s.rewrite_from(&path, 90, 25);
    s.mend();
    s.step();
    s.good_start(1, 3);
}

/// Tests are written for a while, all red; then the code.
pub fn many_tests_first(s: &mut Scene) {
    s.good_start(1, 2);
    let test = s.eco.test("core");
    for _ in 0..4 {
        s.fail_new();
        s.fail_new();
        s.add_lines(&test, 12);
        s.step();
    }
    let path = s.source("core");
    while !s.failed.is_empty() {
        s.mend();
        s.mend();
        s.add_lines(&path, 14);
        s.step();
    }
}

/// A measured number comes nearer to its limit, in the same function.
pub fn towards_a_limit(s: &mut Scene) {
    let path = s.source("core");
    s.add_lines(&path, 10);
    let mut measured = s.rng.between(400, 500);
    while measured > 200 {
        s.rewrite_tail(&path, 8);
        s.step_with(Check::Plain(format!("p99 {measured}ms exceeds the limit of 200ms"), false));
        measured = measured.saturating_sub(s.rng.between(20, 45));
    }
}
