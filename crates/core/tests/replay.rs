//! Runs made again from their record: those of today are the same, and another rule is noticed.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and is a border"
)]

mod support;

use ralph_core::replay::{Replay, replay};
use ralph_domain::event::SessionEnd;
use ralph_domain::ports::{Sandbox, SessionRequest};
use ralph_journal::layout::RunDir;
use support::{Machine, PROMISE, completed, three_sessions, write};

type Session = fn(&SessionRequest<'_>, &dyn Sandbox) -> (SessionEnd, String);

/// The same each time: it is stuck, and ends at a person or a limit.
fn circles(_: &SessionRequest<'_>, sandbox: &dyn Sandbox) -> (SessionEnd, String) {
    write(sandbox, "result.txt", "never\nand\nnever\n");
    completed("The same again.")
}

/// A limit first, then an empty answer, then the work.
fn interrupted(request: &SessionRequest<'_>, sandbox: &dyn Sandbox) -> (SessionEnd, String) {
    match (request.iteration, request.attempt) {
        (1, 1) => (SessionEnd::RateLimited { reset_at: None, reason: "slow down".into() }, String::new()),
        (1, 2) => (SessionEnd::Empty, String::new()),
        (1, _) => {
            write(sandbox, "result.txt", "half\nway\nthere\n");
            (SessionEnd::Failed { reason: "it broke".into() }, String::new())
        }
        _ => {
            write(sandbox, "result.txt", "done\nand\ntested\n");
            completed(PROMISE)
        }
    }
}

const RUNS: &[(&str, Session)] =
    &[("proven", three_sessions), ("stuck", circles), ("interrupted", interrupted)];

fn differences(found: &Replay) -> String {
    let line = |one: &ralph_core::replay::Difference| {
        format!("event {} ({}): then `{}`, today `{}`", one.seq, one.what, one.recorded, one.today)
    };
    found.differences.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_of_today_is_the_same_when_it_is_made_again() {
    for (name, session) in RUNS {
        let machine = Machine::new(session);
        machine.run();
        let found = replay(&RunDir::at(&machine.run_dir())).unwrap();
        assert_eq!(differences(&found), "", "{name}");
        assert!(found.decisions > 5 && found.prompts > 1, "{name}: {found:?}");
    }
}

#[test]
fn another_rule_is_noticed() {
    let machine = Machine::new(three_sessions);
    machine.run();
    let spec = machine.run_dir().join("spec.json");
    let text = std::fs::read_to_string(&spec).unwrap();
    std::fs::write(
        &spec,
        text.replace("\"completion_promise\": \"COMPLETE\"", "\"completion_promise\": \"FINISHED\""),
    )
    .unwrap();
    let found = replay(&RunDir::at(&machine.run_dir())).unwrap();
    let prompts = found.differences.iter().filter(|one| one.what == "prompt: rules").count();
    assert_eq!(prompts, 3, "{found:?}");
    assert!(found.differences[0].today.contains("FINISHED"), "{found:?}");
}
