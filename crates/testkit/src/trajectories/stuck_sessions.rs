//! Circling runs whose sessions do nothing: silence, refusals, denials, monologues, calls that repeat.

use super::runner::Check;
use super::scene::{Scene, tool};
use ralph_loop_protocol::event::SessionEnd;

const LONG: usize = 8;

/// No change, and everything passes; nothing is promised.
pub fn silent_passing(s: &mut Scene) {
    s.good_start(1, 4);
    s.circles_from_here();
    for _ in 0..LONG {
        s.step();
    }
}

/// No change, and a test fails.
pub fn silent_failing(s: &mut Scene) {
    s.good_start(1, 3);
    s.fail_new();
    let path = s.source("core");
    s.add_lines(&path, 9);
    s.step();
    s.circles_from_here();
    for _ in 0..LONG {
        s.step();
    }
}

/// Sessions that end without a word.
pub fn empty_sessions(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for _ in 0..LONG {
        let step = s.step();
        step.message.clear();
        step.end = SessionEnd::Empty;
    }
}

/// The model declines, each time in other words.
pub fn refused(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for _ in 0..LONG {
        let words = s.words();
        s.step().end = SessionEnd::Refused { reason: words };
    }
}

/// Permissions are denied, and only notes or nothing come of it.
pub fn denied(s: &mut Scene) {
    s.good_start(1, 2);
    s.circles_from_here();
    for _ in 0..LONG {
        let count = s.rng.between(1, 4) as u32;
        let result = "permission to use Write was denied";
        let path = format!("src/{}.x", s.rng.hex(3));
        let step = s.step();
        step.denials = count;
        step.calls = vec![tool("Write", &path, result, true)];
    }
}

/// The agent's process fails, with another time and address in its words each time.
pub fn crashes(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for _ in 0..LONG {
        let reason = format!(
            "segfault at 0x{} after {} ms (pid {})",
            s.rng.hex(12),
            s.rng.between(5, 900),
            s.rng.between(100, 9999)
        );
        s.step().end = SessionEnd::Failed { reason };
    }
}

/// Money goes, nothing comes; now and then a word of it.
pub fn cost_burn(s: &mut Scene) {
    s.good_start(1, 3);
    if s.rng.chance(50) {
        s.fail_new();
    }
    s.circles_from_here();
    for _ in 0..LONG {
        let cost = s.rng.between(110, 400) as f64 / 100.0;
        s.step().cost = cost;
    }
}

/// Talk without action.
pub fn monologue(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for _ in 0..LONG {
        let messages = s.rng.between(6, 14) as u32;
        s.step().monologue = messages;
    }
}

/// The same call with the same result, over and over.
pub fn repeated_calls(s: &mut Scene) {
    s.good_start(1, 3);
    if s.rng.chance(50) {
        s.fail_new();
    }
    let (name, input) = match s.rng.below(3) {
        0 => ("Read", "src/core"),
        1 => ("Bash", "ls -la build"),
        _ => ("Grep", "fn open"),
    };
    let timed = s.rng.chance(50);
    s.circles_from_here();
    for _ in 0..LONG {
        let times = s.rng.between(4, 9);
        let calls = (0..times)
            .map(|_| {
                let result = if !timed {
                    "3 entries found".to_owned()
                } else {
                    format!("12:{:02}:{:02} 3 entries found", s.rng.below(60), s.rng.below(60))
                };
                tool(name, input, &result, false)
            })
            .collect();
        s.step().calls = calls;
    }
}

/// The same failing call.
pub fn failing_calls(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for _ in 0..LONG {
        let calls = (0..s.rng.between(3, 6))
            .map(|_| {
                tool(
                    "Edit",
                    "core: replace `open`",
                    &format!("no match for the old text (0x{})", s.rng.hex(8)),
                    true,
                )
            })
            .collect();
        s.step().calls = calls;
    }
}

/// Two or three calls take turns.
pub fn alternating_calls(s: &mut Scene) {
    s.good_start(1, 3);
    let period = s.rng.between(2, 3);
    s.circles_from_here();
    for _ in 0..LONG {
        let rounds = s.rng.between(3, 5);
        let calls = (0..rounds * period)
            .map(|n| {
                tool(
                    "Read",
                    &format!("file {}", n % period),
                    &format!("content {}", ["x", "y", "z"][n % period]),
                    false,
                )
            })
            .collect();
        s.step().calls = calls;
    }
}

/// It promises every time, and the same check says no.
pub fn false_promises(s: &mut Scene) {
    s.good_start(1, 3);
    s.circles_from_here();
    for _ in 0..LONG {
        let step = s.step_with(Check::Plain("smoke test: the page is not served".into(), false));
        step.message = "Everything is done and verified.".into();
    }
}
