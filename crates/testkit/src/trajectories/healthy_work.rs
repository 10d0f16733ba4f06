//! Healthy runs that look like circling to a careless eye: notes, formatting, generated files, waiting, turns, silence.

use super::runner::Check;
use super::scene::{Scene, tool};

/// Plans first, in notes, while the same test is red; then the work.
pub fn planning(s: &mut Scene) {
    s.good_start(0, 1);
    s.fail_new();
    s.fail_new();
    for n in 0..s.rng.between(2, 4) {
        let mut text = format!("\n## Part {n}\n");
        for _ in 0..s.rng.between(4, 9) {
            let words = s.words();
            text.push_str(&format!("- {words}\n"));
        }
        s.append("PLAN.md", &text);
        s.step();
    }
    for _ in 0..2 {
        let path = s.source("core");
        s.add_lines(&path, 15);
        s.mend();
        s.step();
    }
    s.good_start(2, 3);
}

/// A formatter goes from file to file.
pub fn formatting(s: &mut Scene) {
    s.good_start(1, 2);
    for n in 0..7 {
        let path = s.source(&format!("old{n}"));
        s.add_lines(&path, 12);
    }
    s.step();
    for n in 0..7 {
        let path = s.source(&format!("old{n}"));
        s.reindent(&path);
        s.step();
    }
}

/// Formatting and work take turns in the same file.
pub fn format_after_work(s: &mut Scene) {
    for _ in 0..5 {
        let path = s.source("core");
        s.add_lines(&path, 9);
        let test = s.new_test();
        s.passed.push(test);
        s.step();
        s.reindent(&path);
        s.step();
    }
}

/// A generated file flips beside real work, and one test is red for long.
pub fn generated_flips(s: &mut Scene) {
    s.good_start(1, 2);
    s.fail_new();
    let lock = s.eco.lock();
    for n in 0..6 {
        s.files.insert(lock.into(), format!("version {}\n", n % 2));
        let path = s.source(&format!("feature{n}"));
        let count = s.rng.between(15, 40);
        s.add_lines(&path, count);
        s.step();
    }
    s.mend();
    s.good_start(1, 2);
}

/// Only generated files change for a while.
pub fn regenerated(s: &mut Scene) {
    s.good_start(1, 2);
    for n in 0..3 {
        let hash = s.rng.hex(40);
        s.append(s.eco.lock(), &format!("entry {n} {hash}\nnext {hash}\nlast {hash}\n"));
        s.step();
    }
    s.good_start(3, 4);
}

/// Two or three agents take turns and tell it in the same words.
pub fn turns(s: &mut Scene) {
    let agents = ["a", "b", "c"];
    let count = s.rng.between(2, 3);
    s.fail_new();
    for n in 0..9 {
        let stem = ["core", "api", "store"][n % count];
        let path = s.source(stem);
        let lines = s.rng.between(6, 20);
        s.add_lines(&path, lines);
        let test = s.new_test();
        s.passed.push(test);
        let step = s.step();
        step.agent = agents[n % count];
        step.message = "Took the next item of the list, wrote the code and its test.".into();
    }
}

/// Each session waits for CI by asking again and again, then fixes what it said.
pub fn waits_for_ci(s: &mut Scene) {
    for _ in 0..6 {
        let polls = s.rng.between(6, 12);
        let path = s.source("api");
        s.rewrite_from(&path, 2, 2);
        s.add_lines(&path, 4);
        let test = s.new_test();
        s.passed.push(test);
        s.step().calls =
            (0..polls).map(|_| tool("Bash", "sleep 30 && gh pr checks 12", "build pending", false)).collect();
    }
}

/// A session only waits; nothing changes in it. The next ones work.
pub fn only_waits(s: &mut Scene) {
    s.good_start(2, 3);
    for _ in 0..2 {
        s.step().calls = (0..9).map(|_| tool("BashOutput", "shell 3", "still building", false)).collect();
    }
    s.good_start(3, 4);
}

/// The same tests are run three times to see whether they hold.
pub fn runs_tests_again(s: &mut Scene) {
    for _ in 0..6 {
        let path = s.source("store");
        s.add_lines(&path, 7);
        let test = s.new_test();
        s.passed.push(test);
        s.step().calls = (0..3).map(|_| tool("Bash", "run the tests", "all pass", false)).collect();
    }
}

/// Criteria are met one by one; no runner counts anything.
pub fn criteria(s: &mut Scene) {
    for n in 0..8 {
        let path = s.source("core");
        s.add_lines(&path, 2);
        s.step_with(Check::Plain("acceptance: not all pages are served".into(), false)).met = n / 2;
    }
}

/// A wrong attempt is taken back once, then another way is found.
pub fn one_revert(s: &mut Scene) {
    s.good_start(1, 2);
    let path = s.source("util");
    s.add_lines(&path, 10);
    s.step();
    let good = s.files[&path].clone();
    s.rewrite_tail(&path, 8);
    s.fail_new();
    s.step();
    s.files.insert(path.clone(), good);
    s.failed.clear();
    s.step();
    s.good_start(4, 5);
}

/// A manual is written: nothing but prose, in several files.
pub fn manual(s: &mut Scene) {
    for n in 0..8 {
        let file = ["docs/guide.md", "docs/reference.md", "README.md"][n % 3];
        let mut text = format!("\n## Chapter {n}\n\n");
        for _ in 0..s.rng.between(5, 12) {
            let words = s.words();
            text.push_str(&format!("{words}\n"));
        }
        s.append(file, &text);
        s.step();
    }
}

/// Comments are added to one file after the other.
pub fn doc_comments(s: &mut Scene) {
    s.good_start(1, 2);
    for n in 0..6 {
        let path = s.source(&format!("item{n}"));
        s.add_lines(&path, 6);
    }
    s.step();
    for n in 0..6 {
        let path = s.source(&format!("item{n}"));
        let mut text = String::new();
        for _ in 0..5 {
            let words = s.words();
            text.push_str(&format!("{}{words}\n", s.eco.comment()));
        }
        s.append(&path, &text);
        s.step();
    }
}

/// Two sessions only read, then comes the work.
pub fn reads_first(s: &mut Scene) {
    s.fail_new();
    let path = s.source("core");
    s.add_lines(&path, 9);
    s.step();
    for n in 0..s.rng.between(1, 2) {
        s.step().calls =
            (0..5).map(|k| tool("Read", &format!("file {n} {k}"), &format!("text {k}"), false)).collect();
    }
    s.add_lines(&path, 12);
    s.mend();
    s.step();
    s.good_start(3, 4);
}

/// Steady work in one file; everything passes all the time, and no test is added.
pub fn feature(s: &mut Scene) {
    s.good_start(1, 2);
    for n in 0..8 {
        let path = s.source("api");
        let count = s.rng.between(10, 40);
        s.add_lines(&path, count);
        if n % 3 == 1 {
            let (path, from) = (s.source("api"), s.rng.below(10));
            s.rewrite_from(&path, from, 3);
        }
        s.step();
    }
}

/// One empty session, one that timed out, between good ones.
pub fn hiccups(s: &mut Scene) {
    use ralph_loop_protocol::event::SessionEnd;
    s.good_start(2, 3);
    let step = s.step();
    step.end = SessionEnd::Empty;
    step.message.clear();
    s.step().end = SessionEnd::TimedOut;
    s.good_start(3, 4);
}

/// One or two lines at a time, each in another file; everything passes.
pub fn small_fixes(s: &mut Scene) {
    s.good_start(1, 2);
    for n in 0..8 {
        let path = s.source(&format!("page{n}"));
        s.add_lines(&path, 2);
        s.step();
    }
}

/// A feature is built, then its own lines are fixed here and there; everything passes, no test is added.
pub fn refines_its_own(s: &mut Scene) {
    s.good_start(1, 2);
    let path = s.source("core");
    for _ in 0..3 {
        s.add_lines(&path, 30);
        s.step();
    }
    for _ in 0..6 {
        let all = s.files[&path].lines().count();
        for _ in 0..2 {
            let from = all - 1 - s.rng.below(85);
            s.rewrite_from(&path, from, 4);
        }
        s.step();
    }
}
