//! Replays runs from their record: unchanged rules give the same run, and a changed rule is detected.
#![allow(clippy::disallowed_methods, reason = "a test fails by panicking, and is a border")]

use crate::support::{Machine, PROMISE, completed, three_sessions, write};
use ralph_loop_core::resume::replay::{Replay, replay};
use ralph_loop_domain::ports::{Sandbox, SessionRequest};
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_protocol::event::SessionEnd;
use std::path::Path;

type Session = fn(&SessionRequest<'_>, &dyn Sandbox) -> (SessionEnd, String);

/// Does the same each time, so the run gets stuck and ends with a question or a limit.
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
    let line = |one: &ralph_loop_core::resume::replay::Difference| {
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

/// Replays recorded runs of an earlier engine from `tests/recorded`: this engine makes the same decisions.
///
/// Record an intended change again with `RALPH_RECORD=1 cargo nextest run -p ralph-loop-core --test replay`.
#[test]
fn recorded_runs_are_decided_as_they_were() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded");
    for (name, session) in RUNS {
        let folder = kept.join(name);
        if std::env::var_os("RALPH_RECORD").is_some() {
            let machine = Machine::new(session);
            machine.run();
            let _ = std::fs::remove_dir_all(&folder);
            keep(&machine.run_dir(), &folder);
        }
        let found = replay(&RunDir::at(&folder)).unwrap();
        assert_eq!(
            differences(&found),
            "",
            "{name}: differs from the recording; the comment above says how to record it again"
        );
        assert!(found.decisions > 5 && found.prompts > 1, "{name}: {found:?}");
    }
}

/// Copies what a replay reads of a record.
fn keep(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        let wanted = ["spec.json", "events.jsonl", "prompt.md"].contains(&name.as_str())
            || (name.starts_with("check-") && name.ends_with(".log"));
        if path.is_dir() {
            keep(&path, &to.join(&name));
        } else if wanted {
            std::fs::create_dir_all(to).unwrap();
            std::fs::copy(&path, to.join(&name)).unwrap();
        }
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
