//! Families that were written last, when most rules stood. All of them are held out.

use super::runner::{Check, Failing};
use super::scene::{Scene, tool};
use ralph_loop_protocol::event::SessionEnd;

/// Circling: debug output goes in and out of ever other files; the same test fails.
pub fn debug_prints(s: &mut Scene) {
    s.good_start(1, 3);
    s.fail_new();
    let clean = s.files.clone();
    s.circles_from_here();
    for n in 0..12 {
        s.files = clean.clone();
        let path = s.source(["core", "api", "store", "util"][n % 4]);
        let count = s.rng.between(3, 6);
        s.add_lines(&path, count);
        s.step();
    }
}

/// Circling: a dependency is set to ever other versions; the build breaks in the same way.
pub fn version_roulette(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for n in 0..9 {
        let lock = s.eco.lock();
        s.files.insert(
            "manifest.toml".into(),
            format!(
                "[package]\nname = \"app\"\n[dependencies]\nwire = \"{}.{}\"\nextra = \"1\"\n",
                n / 3,
                n * 7 % 10
            ),
        );
        let hash = s.rng.hex(40);
        s.files.insert(lock.into(), format!("wire {n} {hash}\n"));
        let errors =
            vec![("wire/frame".to_owned(), "the trait `Encode` is not implemented for `Frame`".to_owned())];
        s.step_with(Check::Broken(errors));
    }
}

/// Circling: one copy of the same file after the other, and the same test fails.
pub fn copies(s: &mut Scene) {
    s.good_start(1, 3);
    s.fail_new();
    s.circles_from_here();
    for n in 0..14 {
        let path = s.source(&format!("core_fixed_{n}"));
        let count = s.rng.between(20, 30);
        s.add_lines(&path, count);
        s.step();
    }
}

/// Circling: every session runs past its time and leaves half an edit.
pub fn timeouts(s: &mut Scene) {
    s.good_start(1, 3);
    s.fail_new();
    let path = s.source("store");
    s.add_lines(&path, 5);
    s.circles_from_here();
    for _ in 0..9 {
        let count = s.rng.between(3, 6);
        s.rewrite_tail(&path, count);
        let step = s.step();
        step.end = SessionEnd::TimedOut;
        step.message.clear();
    }
}

/// Circling: nothing, a note, some blanks, nothing, another note.
pub fn half_silence(s: &mut Scene) {
    s.good_start(1, 3);
    let path = s.source("util");
    s.circles_from_here();
    for n in 0..10 {
        match n % 3 {
            0 => {}
            1 => {
                let words = s.words();
                s.append("NOTES.md", &format!("- {words}\n- open\n- next\n"));
            }
            _ => s.reindent(&path),
        }
        s.step();
    }
}

/// Circling: tests are removed and written again, with other code around them each time.
pub fn tests_come_and_go(s: &mut Scene) {
    s.good_start(2, 3);
    let extra = s.new_test();
    let path = s.eco.test("api");
    s.add_lines(&path, 10);
    s.circles_from_here();
    for n in 0..9 {
        s.rewrite_tail(&path, 5);
        let mut passed = s.passed.clone();
        if n % 2 == 0 {
            passed.push(extra.clone());
        }
        s.step_with(Check::Tests { passed, failed: Vec::new() });
    }
}

/// Circling: the agent asks a question and stops, every time.
pub fn asks_and_stops(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for _ in 0..8 {
        s.step().message = "Should I go on with the first or the second option?".into();
    }
}

/// Healthy: one file after the other moves to a new interface; everything passes all the time.
pub fn migration(s: &mut Scene) {
    for n in 0..9 {
        let path = s.source(&format!("view{n}"));
        s.add_lines(&path, 20);
    }
    s.step();
    for n in 0..9 {
        let path = s.source(&format!("view{n}"));
        s.rewrite_from(&path, 3, 6);
        s.step().message = "Moved the next view to the new interface.".into();
    }
}

/// Healthy: two attempts are taken back, each once, with progress after.
pub fn two_reverts(s: &mut Scene) {
    for _ in 0..2 {
        s.good_start(1, 2);
        let path = s.source("util");
        let good = s.files.get(&path).cloned().unwrap_or_default();
        s.add_lines(&path, 9);
        s.fail_new();
        s.step();
        s.files.insert(path, good);
        s.failed.clear();
        s.step();
    }
    s.good_start(2, 3);
}

/// Healthy: a build is asked for by a plain request until it is over, then the code is fixed.
pub fn polls_a_build(s: &mut Scene) {
    for _ in 0..6 {
        let polls = s.rng.between(4, 8);
        let path = s.source("api");
        s.add_lines(&path, 6);
        let test = s.new_test();
        s.passed.push(test);
        s.step().calls = (0..polls)
            .map(|_| tool("Bash", "curl -s https://ci.example.com/builds/12", "running", false))
            .collect();
    }
}

/// Healthy: old tests are removed with the code they tested, then new ones come.
pub fn old_tests_go(s: &mut Scene) {
    s.good_start(3, 4);
    for _ in 0..2 {
        s.passed.remove(0);
        let path = s.source("store");
        s.rewrite_from(&path, 0, 4);
        s.step();
    }
    s.good_start(5, 6);
}

/// Healthy: the same test fails for ever other reasons, while the same function is written anew each time.
pub fn many_reasons(s: &mut Scene) {
    s.good_start(1, 2);
    let name = s.fail_new();
    let path = s.source("core");
    s.add_lines(&path, 10);
    for reason in
        ["no header", "wrong checksum", "frame out of order", "trailing bytes", "length is too short"]
    {
        let count = s.rng.between(2, 4);
        s.add_lines(&path, count);
        let failed = vec![Failing { name: name.clone(), says: format!("decode failed: {reason}") }];
        let check = Check::Tests { passed: s.passed.clone(), failed };
        s.step_with(check);
    }
    s.mend();
    s.add_lines(&path, 6);
    s.step();
}

/// Healthy: snapshots are recorded again with each piece of real work.
pub fn snapshots(s: &mut Scene) {
    for n in 0..8 {
        let text = format!("snapshot {}\n", n % 2).repeat(4);
        s.files.insert("src/__snapshots__/app.snap".into(), text);
        let path = s.source(["core", "api"][n % 2]);
        let count = s.rng.between(6, 18);
        s.add_lines(&path, count);
        if n % 2 == 1 {
            let test = s.new_test();
            s.passed.push(test);
        }
        s.step();
    }
}

/// Healthy: good work with an empty session here and a crash there.
pub fn stumbles(s: &mut Scene) {
    for _ in 0..3 {
        s.good_start(1, 2);
        let step = s.step();
        step.end = SessionEnd::Empty;
        step.message.clear();
        let reason = format!("lost the connection ({} ms)", s.rng.between(10, 900));
        s.step().end = SessionEnd::Failed { reason };
    }
    s.good_start(1, 2);
}
