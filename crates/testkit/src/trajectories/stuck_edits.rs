//! Circling runs that edit files: every family is a small program over a scene, with the iteration from which it circles.

use super::runner::{Check, Failing};
use super::scene::Scene;

/// Iterations that a circling run goes on for.
const LONG: usize = 9;

fn red(scene: &mut Scene) {
    scene.good_start(1, 3);
    scene.fail_new();
}

/// The same function is rewritten again and again; the same test fails.
pub fn same_failure_rewrite(s: &mut Scene) {
    red(s);
    let path = s.source("core");
    s.add_lines(&path, 6);
    s.circles_from_here();
    for _ in 0..LONG {
        let count = s.rng.between(5, 8);
        s.rewrite_tail(&path, count);
        s.step();
    }
}

/// Code is added to the same file again and again; the same test fails.
pub fn same_failure_growing(s: &mut Scene) {
    red(s);
    let path = s.source("api");
    s.circles_from_here();
    for _ in 0..LONG {
        let count = s.rng.between(4, 12);
        s.add_lines(&path, count);
        s.step();
    }
}

/// Edits here and there without aim; the same tests fail.
pub fn same_failure_scattered(s: &mut Scene) {
    red(s);
    s.fail_new();
    s.circles_from_here();
    for _ in 0..LONG + 3 {
        for _ in 0..s.rng.between(1, 2) {
            let stem = s.rng.pick(&["core", "api", "store", "util"]).to_owned();
            let (path, from) = (s.source(&stem), s.rng.below(8));
            s.rewrite_from(&path, from, 4);
        }
        s.step();
    }
}

/// One or two numbers are tweaked; the same test fails.
pub fn one_line_tweaks(s: &mut Scene) {
    red(s);
    let path = s.source("util");
    s.circles_from_here();
    for _ in 0..LONG {
        s.rewrite_tail(&path, 1);
        s.step();
    }
}

fn circle(s: &mut Scene, period: usize, notes: bool) {
    s.good_start(1, 3);
    if s.rng.chance(50) {
        s.fail_new();
    }
    let path = s.source("store");
    let states: Vec<String> = (0..period)
        .map(|_| {
            let count = s.rng.between(4, 9);
            s.rewrite_tail(&path, count);
            s.files[&path].clone()
        })
        .collect();
    s.circles_from_here();
    for n in 0..LONG + 2 {
        s.files.insert(path.clone(), states[n % period].clone());
        if notes {
            let words = s.words();
            s.append("progress.txt", &format!("- iteration {n}: {words}\n- still open\n- see above\n"));
        }
        s.step();
    }
}

/// A, B, A, B.
pub fn abab(s: &mut Scene) {
    circle(s, 2, false);
}
/// A, B, C, A, B, C.
pub fn abcabc(s: &mut Scene) {
    circle(s, 3, false);
}
/// A, B, C, D, A, B, C, D.
pub fn abcdabcd(s: &mut Scene) {
    circle(s, 4, false);
}
/// A, B, A, B in the code, with new notes each time.
pub fn abab_with_notes(s: &mut Scene) {
    circle(s, 2, true);
}

/// Two agents undo each other's work.
pub fn agents_undo_each_other(s: &mut Scene) {
    s.good_start(1, 3);
    let path = s.source("api");
    let states: Vec<String> = (0..2)
        .map(|_| {
            s.rewrite_tail(&path, 7);
            s.files[&path].clone()
        })
        .collect();
    let red = s.rng.chance(50);
    if red {
        s.fail_new();
    }
    s.circles_from_here();
    for n in 0..LONG {
        s.files.insert(path.clone(), states[n % 2].clone());
        s.step().agent = if n % 2 == 0 { "a" } else { "b" };
    }
}

/// Only comments change; the same test fails.
pub fn comments_only(s: &mut Scene) {
    red(s);
    let path = s.source("core");
    s.circles_from_here();
    for _ in 0..LONG {
        let mut text = String::new();
        for _ in 0..s.rng.between(2, 5) {
            let words = s.words();
            text.push_str(&format!("{}{words}\n", s.eco.comment()));
        }
        s.append(&path, &text);
        s.step();
    }
}

/// Blanks go in and out while everything passes.
pub fn whitespace(s: &mut Scene) {
    s.good_start(1, 3);
    let path = s.source("core");
    s.circles_from_here();
    for _ in 0..LONG {
        s.reindent(&path);
        s.step();
    }
}

/// Tests are switched off, and on again; a counter makes every tree new.
pub fn test_skipping(s: &mut Scene) {
    s.good_start(1, 3);
    s.fail_new();
    let path = s.eco.test("core");
    s.add_lines(&path, 8);
    s.circles_from_here();
    for n in 0..LONG {
        s.rewrite_tail(&path, 4);
        let check = match n % 2 {
            0 => s.tests(),
            _ => Check::Tests { passed: s.passed.clone(), failed: Vec::new() },
        };
        s.step_with(check);
    }
}

/// Mending one test breaks the other, and back.
pub fn whack_a_mole(s: &mut Scene) {
    s.good_start(1, 3);
    s.fail_new();
    s.fail_new();
    let path = s.source("store");
    s.circles_from_here();
    let pair = std::mem::take(&mut s.failed);
    for n in 0..LONG {
        let from = s.rng.below(6);
        s.rewrite_from(&path, from, 5);
        let (bad, good) = (&pair[n % 2], &pair[(n + 1) % 2]);
        let mut passed = s.passed.clone();
        passed.push(good.name.clone());
        let check = Check::Tests { passed, failed: vec![bad.clone()] };
        s.step_with(check);
    }
}

/// Nothing but notes, while a test fails or nothing is promised.
pub fn notes_only(s: &mut Scene) {
    s.good_start(1, 3);
    if s.rng.chance(60) {
        s.fail_new();
    }
    let file = s.rng.pick(&["progress.txt", "NOTES.md", "docs/plan.md"]).to_owned();
    s.circles_from_here();
    for n in 0..LONG {
        let mut text = format!("\n## Session {n}\n");
        for _ in 0..s.rng.between(3, 6) {
            let words = s.words();
            text.push_str(&format!("- {words}\n"));
        }
        s.append(&file, &text);
        s.step();
    }
}

/// The same failure behind times, addresses and temporary folders, with a rewrite each time.
pub fn noisy_failure(s: &mut Scene) {
    red(s);
    if s.rng.chance(50) {
        s.fail_new();
    }
    let path = s.source("core");
    s.add_lines(&path, 7);
    s.circles_from_here();
    for _ in 0..LONG {
        s.rewrite_tail(&path, 6);
        for Failing { says, .. } in &mut s.failed {
            let base = says.split(" [").next().unwrap_or_default().to_owned();
            *says = format!(
                "{base} [pid {} at 0x{} in /tmp/tmp{}/db.sock, request {}-{}-{}, {} ms]",
                s.rng.between(100, 99_999),
                s.rng.hex(12),
                s.rng.hex(8),
                s.rng.hex(8),
                s.rng.hex(4),
                s.rng.hex(12),
                s.rng.between(1, 5000)
            );
        }
        s.step();
    }
}

/// Everything passes, and the same lines are written anew each time.
pub fn endless_polish(s: &mut Scene) {
    s.good_start(1, 3);
    let path = s.source("util");
    s.add_lines(&path, 8);
    s.circles_from_here();
    for _ in 0..LONG {
        s.rewrite_tail(&path, 8);
        s.step();
    }
}

/// The build stays broken in the same way while the same file is edited.
pub fn broken_build(s: &mut Scene) {
    s.good_start(1, 3);
    let path = s.source("api");
    s.add_lines(&path, 6);
    let errors = vec![
        (path.clone(), "cannot find value `frame` in this scope".to_owned()),
        (path.clone(), "mismatched types: expected an entry, found a row".to_owned()),
    ];
    s.circles_from_here();
    for _ in 0..LONG {
        s.rewrite_tail(&path, 5);
        s.step_with(Check::Broken(errors.clone()));
    }
}

/// Good work for long, then the same failure for ever.
pub fn late_wall(s: &mut Scene) {
    s.good_start(6, 9);
    s.fail_new();
    let path = s.source("store");
    s.add_lines(&path, 6);
    s.circles_from_here();
    for _ in 0..LONG {
        let count = s.rng.between(4, 7);
        s.rewrite_tail(&path, count);
        s.step();
    }
}

/// The same words and the same failure, with small edits in the same file.
pub fn same_plan(s: &mut Scene) {
    red(s);
    let path = s.source("core");
    s.circles_from_here();
    let plan = s.words();
    for n in 0..LONG {
        let count = s.rng.between(3, 6);
        s.add_lines(&path, count);
        s.step().message = format!("{plan} (attempt {n})");
    }
}

/// Every change breaks one test more.
pub fn worse_and_worse(s: &mut Scene) {
    for _ in 0..6 {
        let test = s.new_test();
        s.passed.push(test);
    }
    s.good_start(1, 2);
    let path = s.source("core");
    s.circles_from_here();
    for n in 0..LONG.min(s.passed.len()) {
        s.rewrite_from(&path, n, 3);
        let name = s.passed.remove(0);
        s.failed.push(Failing { name, says: "assert expected entry to be ready but it was missing".into() });
        s.step();
    }
}

/// A limit that never comes nearer.
pub fn limit_out_of_reach(s: &mut Scene) {
    s.good_start(1, 2);
    let path = s.source("api");
    s.add_lines(&path, 8);
    s.circles_from_here();
    for _ in 0..LONG {
        s.rewrite_tail(&path, 6);
        let measured = s.rng.between(308, 313);
        s.step_with(Check::Plain(format!("p99 {measured}ms exceeds the limit of 200ms"), false));
    }
}
