//! The prompt: fixed order, bounded, the same bytes for the same state.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use ralph_core::prompt::{Files, assemble};
use ralph_domain::state::RunState;
use support::{Machine, three_sessions};

fn after_two_iterations() -> (Machine, RunState) {
    let mut machine = Machine::new(three_sessions);
    machine.config.max_iterations = Some(2);
    machine.run();
    let run = machine.dir().run(&"r1".into());
    let state = ralph_journal::snapshot::load(&machine.dir(), &run).unwrap();
    (machine, state)
}

#[test]
fn the_first_prompt_reads_like_this() {
    let machine = Machine::new(three_sessions);
    insta::assert_snapshot!("first_prompt", assemble(&RunState::new(machine.spec()), &Files::default()));
}

#[test]
fn a_later_prompt_reads_like_this() {
    let (machine, state) = after_two_iterations();
    let run = machine.dir().run(&"r1".into());
    let mut files = Files::read(&machine.dir(), &run, &state);
    files.guardrails = "# Guardrails\n\n### guardrail: keep it small\n".into();
    files.progress = "# Progress\n\n- half of it\n".into();
    files.notes = "# Notes\n\nThe database is read-only.\n".into();
    let mut state = state;
    state.nudges = vec!["Look at the drain path.".into()];
    insta::assert_snapshot!("later_prompt", assemble(&state, &files));
}

#[test]
fn the_same_state_gives_the_same_bytes() {
    let (machine, state) = after_two_iterations();
    let run = machine.dir().run(&"r1".into());
    let one = assemble(&state, &Files::read(&machine.dir(), &run, &state));
    let two = assemble(&state.clone(), &Files::read(&machine.dir(), &run, &state));
    assert_eq!(one, two);
}

#[test]
fn what_never_changes_stands_first() {
    let (machine, state) = after_two_iterations();
    let first = assemble(&RunState::new(machine.spec()), &Files::default());
    let later = assemble(&state, &Files::default());
    let same = first.bytes().zip(later.bytes()).take_while(|(a, b)| a == b).count();
    let task_ends = first.find("Make it done.").unwrap() + "Make it done.".len();
    assert!(same >= task_ends, "a provider can cache rules and task");
}

#[test]
fn whatever_grows_is_cut_with_the_path_of_the_whole() {
    let (machine, mut state) = after_two_iterations();
    state.spec.task.text = "x".repeat(1_000_000);
    let big = "a line of text that repeats\n".repeat(100_000);
    let files = Files {
        context: Vec::new(),
        guardrails: big.clone(),
        progress: big.clone(),
        notes: big.clone(),
        errors: big.clone(),
        failing: vec![("tests".into(), "exit code 1".into(), "iterations/1/check-tests.log".into(), big)],
    };
    let prompt = assemble(&state, &files);
    assert!(prompt.len() < 200_000, "{}", prompt.len());
    for path in [
        "`PROMPT.md`",
        "`.ralph/guardrails.md`",
        "`.ralph/progress.md`",
        "`.ralph/errors.log`",
        "iterations/1/check-tests.log",
    ] {
        assert!(prompt.contains(path), "{path}");
    }
    drop(machine);
}
