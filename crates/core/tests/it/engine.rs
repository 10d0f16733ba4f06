//! The engine over ports in memory.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use crate::support::{Machine, PROMISE, completed, three_sessions, write};
use jiff::SignedDuration;
use proptest::prelude::*;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_journal::inbox;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::event::{EventBody, SessionEnd};
use ralph_loop_protocol::outcome::EndReason;
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn a_run_ends_when_the_checks_pass_and_not_when_the_agent_says_so() {
    let machine = Machine::new(three_sessions);
    let result = machine.run();
    assert_eq!((result.success, result.reason, result.iterations), (true, EndReason::Completed, 3));
    insta::assert_snapshot!(machine.kinds().join("\n"), @r"
    run_created
    driver_started
    prepared
    iteration_started
    session_ended
    checkpointed
    check_finished
    iteration_ended
    iteration_started
    session_ended
    checkpointed
    check_finished
    iteration_ended
    iteration_started
    session_ended
    checkpointed
    check_finished
    iteration_ended
    proof_started
    proof_finished
    published
    finished
    ");
}

#[test]
fn forgotten_promise_is_asked_for_once_in_the_same_iteration() {
    let asked = |answer: &'static str| {
        let mut machine = Machine::new(move |request, sandbox| {
            if request.prompt.starts_with("The required checks pass") {
                // What it changes now was never checked.
                write(sandbox, "result.txt", "undone\n");
                return completed(answer);
            }
            write(sandbox, "result.txt", "done\n");
            completed(if request.iteration == 1 { "Shall I continue?" } else { PROMISE })
        });
        machine.continues = true;
        let result = machine.run();
        let asked = machine.kinds().iter().filter(|kind| **kind == "promise_asked").count();
        (result.reason, result.iterations, asked)
    };
    assert_eq!(asked("<promise>COMPLETE</promise>"), (EndReason::Completed, 1, 1));
    assert_eq!(asked("The docs are missing."), (EndReason::Completed, 2, 1));
    // Failing checks are never asked about.
    let mut failing = Machine::new(|_, sandbox| {
        write(sandbox, "result.txt", "half\n");
        completed("Shall I continue?")
    });
    failing.continues = true;
    failing.run();
    assert!(!failing.kinds().contains(&"promise_asked"));
}

#[test]
fn a_limit_is_waited_out_exactly_and_counts_neither_as_iteration_nor_as_stagnation() {
    let calls = AtomicU32::new(0);
    let machine = Machine::new(move |request, sandbox| {
        if calls.fetch_add(1, Ordering::SeqCst) == 0 {
            let reset_at = Some(request.now + SignedDuration::from_secs(1234));
            return (SessionEnd::RateLimited { reset_at, reason: "limit".into() }, String::new());
        }
        write(sandbox, "result.txt", "done\n");
        completed(PROMISE)
    });
    let result = machine.run();
    assert_eq!((result.reason, result.iterations), (EndReason::Completed, 1));
    assert_eq!(machine.clock.seconds(), 1236, "the reset and the margin, not more");
    let text = std::fs::read_to_string(machine.dir().cooldowns()).unwrap();
    assert!(text.contains("\"cooldown_until\""), "{text}");
}

#[test]
fn the_next_run_in_the_folder_keeps_to_a_cooldown() {
    let machine = Machine::new(three_sessions);
    std::fs::create_dir_all(machine.dir().path()).unwrap();
    let until = machine.clock.now().as_second() + 500;
    let text = format!("{{\"a\":{{\"cooldown_until\":{until},\"reason\":\"limit\",\"observed_at\":1}}}}");
    std::fs::write(machine.dir().cooldowns(), text).unwrap();
    assert_eq!(machine.run().reason, EndReason::Completed);
    assert!(machine.clock.seconds() >= 500);
}

#[test]
fn a_person_may_end_a_wait_and_steer_the_next_prompt() {
    let machine = Machine::new(|request, sandbox| {
        if request.attempt == 1 {
            return (SessionEnd::RateLimited { reset_at: None, reason: "limit".into() }, String::new());
        }
        assert!(request.prompt.contains("Look at the drain path."), "{}", request.prompt);
        write(sandbox, "result.txt", "done\n");
        completed(PROMISE)
    });
    let run = machine.dir().run(&"r1".into());
    run.create().unwrap();
    // In the inbox before the run starts, as from another terminal.
    inbox::send(&run, "ana", Control::Nudge { text: "Look at the drain path.".into() }).unwrap();
    let result = machine.run();
    assert_eq!(result.reason, EndReason::Completed);
    let from: Vec<String> = machine
        .events()
        .iter()
        .filter_map(|e| match &e.body {
            EventBody::ControlReceived { letter, .. } => Some(letter.from.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(from, ["ana"]);
}

#[test]
fn a_stuck_run_tries_every_recovery_step_then_asks_the_user() {
    let mut machine = Machine::new(|_, sandbox| {
        write(sandbox, "scratch.txt", "looked\n");
        completed("I looked around.")
    });
    machine.config.max_iterations = Some(30);
    let result = machine.run();
    assert_eq!((result.reason, result.reason.exit_code()), (EndReason::NeedsHuman, 3));
    let kinds = machine.kinds();
    assert_eq!(kinds.iter().filter(|k| **k == "gutter").count(), 4, "one for each rung");
    assert_eq!(result.iterations, 7);
    let metrics = std::fs::read_to_string(machine.run_dir().join("iterations/3/metrics.json")).unwrap();
    let metrics: serde_json::Value = serde_json::from_str(&metrics).unwrap();
    assert_eq!(metrics["loop_score"], 0.8);
    inbox::send(&machine.dir().run(&"r1".into()), "ana", Control::Resume).unwrap();
    assert_eq!(machine.resume().reason, EndReason::NeedsHuman, "the second gutter has its own ladder");
    inbox::send(&machine.dir().run(&"r1".into()), "ana", Control::Resume).unwrap();
    assert_eq!(machine.resume().reason, EndReason::Stuck, "the third gutter in a row ends it");
}

#[test]
fn every_iteration_leaves_all_its_artifacts() {
    let machine = Machine::new(three_sessions);
    machine.run();
    for n in 1..=3 {
        for name in [
            "prompt.md",
            "response.json",
            "actions.jsonl",
            "git_diff.patch",
            "test_output.txt",
            "metrics.json",
            "pr_state.json",
            "output.log",
            "receipt.json",
        ] {
            let path = machine.run_dir().join(format!("iterations/{n}/{name}"));
            assert!(path.is_file(), "{}", path.display());
        }
    }
    let global = std::fs::read_to_string(machine.dir().join("changelog/global.md")).unwrap();
    assert_eq!(global.matches("## r1 · iteration").count(), 3);
}

#[test]
fn a_run_may_end_by_a_file_or_by_a_check_of_the_calling_program() {
    use ralph_loop_task::config::{Completion, Expect, VerifierConfig};
    let check =
        |name: &str, expect| VerifierConfig { expect: Some(expect), ..VerifierConfig::command(name, vec![]) };
    let mut machine = Machine::new(|request, sandbox| {
        let name = if request.iteration == 1 { "DONE.md" } else { "result.txt" };
        write(sandbox, name, "done\n");
        completed("worked")
    });
    machine.config.completion = Some(Completion::Checks);
    machine.config.verifiers = Some(vec![
        check("file", Expect::FileExists { path: "DONE.md".into() }),
        check("mine", Expect::Custom),
    ]);
    let mine: Box<dyn ralph_loop_domain::ports::CustomCheck> =
        Box::new(|sandbox: &dyn ralph_loop_domain::ports::Sandbox| {
            match sandbox.read(std::path::Path::new("result.txt")) {
                Ok(Some(_)) => Ok(()),
                _ => Err("there is no result".to_owned()),
            }
        });
    *machine.custom.lock().unwrap() = Some([("mine".to_owned(), mine)].into());
    let result = machine.run();
    assert_eq!((result.reason, result.iterations), (EndReason::Completed, 2));
    let why = machine.events().iter().find_map(|e| match &e.body {
        EventBody::CheckFinished { result, .. } if result.name == "mine" => result.why.clone(),
        _ => None,
    });
    assert_eq!(why.as_deref(), Some("there is no result"));
}

/// Cuts the journal at a byte and every artifact in half: the run continues and ends the same.
#[test]
fn a_journal_cut_at_any_byte_with_torn_artifacts_ends_the_same() {
    let finished = || {
        // It promises in its third session only: whatever the files of a lost future hold, three it takes.
        let mut machine = Machine::new(|request, sandbox| match request.iteration {
            2 => completed("Not yet."),
            _ => three_sessions(request, sandbox),
        });
        machine.sealed = false;
        machine.run();
        machine
    };
    let machine = finished();
    let whole = std::fs::read(machine.journal()).unwrap();
    let files = machine.sandbox.snapshot();
    let full = std::env::var("RALPH_TORTURE").is_ok_and(|v| v == "full");
    let last = whole.len() - 1 - whole[..whole.len() - 1].iter().rev().position(|b| *b == b'\n').unwrap();
    for cut in (0..last).step_by(if full { 1 } else { 37 }) {
        // A separate machine for each cut, with the files and commits of the lost future.
        let machine = finished();
        let whole = std::fs::read(machine.journal()).unwrap();
        std::fs::write(machine.journal(), &whole[..cut]).unwrap();
        tear(&machine.run_dir());
        let result = machine.resume();
        assert_eq!((result.reason, result.iterations), (EndReason::Completed, 3), "cut at {cut}");
        let events = machine.events();
        let mut ended: Vec<u32> = events
            .iter()
            .filter_map(|e| match &e.body {
                EventBody::IterationEnded { iteration, .. } => Some(*iteration),
                _ => None,
            })
            .collect();
        assert_eq!(ended, [1, 2, 3], "cut at {cut}");
        ended.dedup();
        assert!(events.windows(2).all(|w| w[1].seq == w[0].seq.next()), "cut at {cut}");
        assert_eq!(machine.sandbox.snapshot().get("result.txt"), files.get("result.txt"), "cut at {cut}");
    }
}

fn tear(dir: &std::path::Path) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            tear(&path);
        } else if !path.ends_with("events.jsonl") && !path.ends_with("spec.json") {
            let text = std::fs::read(&path).unwrap();
            std::fs::write(&path, &text[..text.len() / 2]).unwrap();
        }
    }
}

#[derive(Debug, Clone)]
enum Move {
    Half,
    Done,
    Break,
    Nothing,
    Promise,
    DoneAndPromise,
    Fail,
    Empty,
    Limit,
    Overload,
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        Just(Move::Half),
        Just(Move::Done),
        Just(Move::Break),
        Just(Move::Nothing),
        Just(Move::Promise),
        Just(Move::DoneAndPromise),
        Just(Move::Fail),
        Just(Move::Empty),
        Just(Move::Limit),
        Just(Move::Overload),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Whatever an agent does, a run ends for a documented reason, within its budgets, and success means proven.
    #[test]
    fn whatever_an_agent_does_success_means_proven(moves in prop::collection::vec(any_move(), 1..12)) {
        let calls = AtomicU32::new(0);
        let machine = Machine::new(move |request, sandbox| {
            let call = calls.fetch_add(1, Ordering::SeqCst) as usize;
            match &moves[call % moves.len()] {
                Move::Half => write(sandbox, "result.txt", &format!("half {call}\n")),
                Move::Done => write(sandbox, "result.txt", "done\n"),
                Move::Break => write(sandbox, "result.txt", "broken\n"),
                Move::Nothing => {}
                Move::Promise => return completed(PROMISE),
                Move::DoneAndPromise => {
                    write(sandbox, "result.txt", "done\n");
                    return completed(PROMISE);
                }
                Move::Fail => return (SessionEnd::Failed { reason: "boom".into() }, PROMISE.into()),
                Move::Empty => return (SessionEnd::Empty, String::new()),
                Move::Limit => {
                    let reset_at = Some(request.now + SignedDuration::from_secs(60));
                    return (SessionEnd::RateLimited { reset_at, reason: "limit".into() }, String::new());
                }
                Move::Overload => return (SessionEnd::Overloaded { reason: "busy".into() }, String::new()),
            }
            completed("worked")
        });
        let result = machine.run();
        prop_assert!(result.iterations <= 6);
        let done = machine.sandbox.snapshot().get("result.txt") == Some(&b"done\n"[..]);
        if result.success {
            prop_assert!(done);
            let proof = std::fs::read_to_string(machine.run_dir().join("proof.json")).unwrap();
            let proof: serde_json::Value = serde_json::from_str(&proof).unwrap();
            prop_assert_eq!(&proof["passed"], &serde_json::Value::Bool(true));
        }
        prop_assert!(matches!(
            result.reason,
            EndReason::Completed | EndReason::MaxIterations | EndReason::NoChange | EndReason::NeedsHuman | EndReason::Stuck | EndReason::Timeout | EndReason::Error
        ), "{:?}", result.reason);
        // The state that a reader folds is the state the driver had.
        let replayed = ralph_loop_journal::folder::snapshot::replay(&machine.dir().run(&"r1".into()), machine.spec()).unwrap();
        let loaded = ralph_loop_journal::folder::snapshot::load(&machine.dir().run(&"r1".into())).unwrap();
        prop_assert_eq!(replayed.spending.totals, loaded.spending.totals);
        prop_assert_eq!(&replayed.result.finished, &loaded.result.finished);
    }
}
