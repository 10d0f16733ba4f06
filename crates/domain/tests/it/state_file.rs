//! The state in the files of a run: files of earlier versions are read, and written in the same format.

use ralph_loop_domain::state::{RunFacts, RunState};
use serde_json::Value;

/// A state with every fact, written by a version without groups.
const WRITTEN: &str = include_str!("fixtures/state.json");

#[test]
fn a_state_of_an_earlier_version_is_read_and_written_the_same_way() {
    let before: Value = serde_json::from_str(WRITTEN).unwrap();
    let state: RunState = serde_json::from_str(WRITTEN).unwrap();
    assert_eq!(serde_json::to_value(&state).unwrap(), before);
    let from_value: RunState = serde_json::from_value(before).unwrap();
    assert_eq!(from_value, state);
}

#[test]
fn every_fact_is_read_into_its_group() {
    let state: RunState = serde_json::from_str(WRITTEN).unwrap();
    let RunFacts { iterations, work, agents, stuck, people, spending, result, .. } = &*state;
    assert_eq!((iterations.count, iterations.overloads, iterations.history.len()), (2, 3, 2));
    assert_eq!(iterations.current.as_ref().map(|current| current.iteration), Some(3));
    assert_eq!(work.commit.as_ref().map(|commit| commit.as_str()), Some("c-t3"));
    assert_eq!(work.checks.keys().collect::<Vec<_>>(), ["lint", "tests"]);
    assert_eq!(agents.failing[&"b".into()], 2);
    assert_eq!((stuck.scores.max, stuck.traces.len()), (4.5, 2));
    assert_eq!(people.inbox, 9_007_199_254_740_993, "every digit of it");
    assert_eq!(state.handover.answered.first(), Some(&9_007_199_254_740_993));
    assert_eq!(spending.totals.sessions, 3);
    assert_eq!(result.setup_hint.as_ref().map(|hint| hint.1), Some(1));
}

#[test]
fn older_state_without_a_new_fact_is_read() {
    let mut before: Value = serde_json::from_str(WRITTEN).unwrap();
    let facts = before.as_object_mut().unwrap();
    for later in [
        "epoch",
        "placed",
        "spec_place",
        "surroundings",
        "claimed_in_words",
        "kept_back",
        "branch_kept",
        "compute",
        "scores",
        "climbed",
        "rung_at",
        "noticed",
        "benched",
        "substitute",
        "findings",
        "failing",
        "doctor_asked",
        "diagnosed_at",
        "criticised_at",
        "suspended_by",
        "question",
        "gave_up",
        "handover",
        "setup_hint",
        "telling",
    ] {
        assert!(facts.remove(later).is_some(), "{later} is not in the file");
    }
    let state: RunState = serde_json::from_value(before).unwrap();
    assert_eq!(state.stuck.findings, []);
    assert_eq!(state.iterations.count, 2);
}

#[test]
fn state_without_a_required_fact_is_refused() {
    let mut before: Value = serde_json::from_str(WRITTEN).unwrap();
    before.as_object_mut().unwrap().remove("iterations");
    let error = serde_json::from_value::<RunState>(before).unwrap_err();
    assert!(error.to_string().contains("missing field `iterations`"), "{error}");
}
