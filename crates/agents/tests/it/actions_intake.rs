//! Model answers against the action contract: what is accepted, what is refused, and the messages.

#[path = "../../../cli/tests/it/tasks/schemas/checker.rs"]
mod checker;

use checker::problems;
use proptest::prelude::*;
use ralph_loop_agents::actions::intake::read;
use ralph_loop_agents::actions::{Action, OnError};
use serde_json::{Value, json};

fn schema() -> Value {
    serde_json::from_str(include_str!("../../../../schemas/actions.schema.json")).unwrap()
}

fn with(action: Value) -> Value {
    json!({ "summary": "s", "actions": [action] })
}

fn error(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn the_whole_contract_is_read() {
    let answer = json!({
        "summary": "Did it.",
        "actions": [
            { "type": "run", "command": "npm test", "cwd": ".", "timeout_s": 90, "continue_on_error": true },
            { "type": "patch", "path": "a", "patch": "@@" },
            { "type": "write", "path": "b", "content": "", "append": true },
            { "type": "commit", "message": "m", "paths": ["a"] },
            { "type": "stop_success", "reason": "r" },
        ],
        "claims": { "checkboxes_checked": ["M1.1"], "milestones_completed": ["M1"] },
    });
    let (contract, value) = read(&answer.to_string()).unwrap();
    assert_eq!(value, answer);
    assert_eq!(contract.summary, "Did it.");
    assert_eq!(
        contract.actions.iter().map(Action::word).collect::<Vec<_>>(),
        ["run", "patch", "write", "commit", "stop_success"]
    );
    let Action::Run { timeout, on_error, .. } = &contract.actions[0] else { panic!("a command") };
    assert_eq!((timeout.as_secs(), *on_error), (90, OnError::Continue));
    assert_eq!(contract.claims.milestones_completed, ["M1"]);
}

#[test]
fn the_reader_and_the_schema_agree() {
    let schema = schema();
    let long = "x".repeat(2001);
    let many: Vec<Value> = (0..201).map(|_| json!({ "type": "rotate", "reason": "r" })).collect();
    let good = [
        json!({ "summary": "s", "actions": [] }),
        json!({ "summary": "s", "actions": [], "claims": {} }),
        json!({ "summary": "s", "actions": [], "claims": { "checkboxes_checked": ["a"] } }),
        json!({ "summary": "x".repeat(2000), "actions": many[..200] }),
        with(json!({ "type": "run", "command": "x" })),
        with(json!({ "type": "run", "command": "x", "cwd": "a/b", "timeout_s": 1 })),
        with(json!({ "type": "run", "command": "x", "timeout_s": 3600, "continue_on_error": false })),
        with(json!({ "type": "patch", "path": "a", "patch": "x", "continue_on_error": true })),
        with(json!({ "type": "write", "path": "a", "content": "" })),
        with(json!({ "type": "write", "path": ".ralph/guardrails.md", "append": true, "content": "x" })),
        with(json!({ "type": "commit", "message": "m" })),
        with(json!({ "type": "commit", "message": "m", "paths": ["a", "b"] })),
        with(json!({ "type": "rotate", "reason": "r" })),
        with(json!({ "type": "pause", "reason": "r" })),
        with(json!({ "type": "stop_success", "reason": "r" })),
        with(json!({ "type": "stop_failure", "reason": "x".repeat(2000) })),
    ];
    for good in good {
        read(&good.to_string()).unwrap_or_else(|e| panic!("{good}: {e}"));
        assert!(problems(&schema, &schema, &good, "").is_empty(), "{good}");
    }
    let bad = [
        json!({}),
        json!({ "summary": "s" }),
        json!({ "actions": [] }),
        json!({ "summary": "", "actions": [] }),
        json!({ "summary": long, "actions": [] }),
        json!({ "summary": 1, "actions": [] }),
        json!({ "summary": "s", "actions": {} }),
        json!({ "summary": "s", "actions": null }),
        json!({ "summary": "s", "actions": many }),
        json!({ "summary": "s", "actions": ["run"] }),
        json!({ "summary": "s", "actions": [], "claims": [] }),
        json!({ "summary": "s", "actions": [], "claims": null }),
        json!({ "summary": "s", "actions": [], "claims": { "checkboxes_checked": [1] } }),
        json!({ "summary": "s", "actions": [], "claims": { "checkboxes_checked": "a" } }),
        json!({ "summary": "s", "actions": [], "claims": { "done": [] } }),
        json!({ "summary": "s", "actions": [], "thoughts": "x" }),
        with(json!({})),
        with(json!({ "type": 1 })),
        with(json!({ "type": "delete", "path": "a" })),
        with(json!({ "type": "run" })),
        with(json!({ "type": "run", "command": "" })),
        with(json!({ "type": "run", "command": ["ls"] })),
        with(json!({ "type": "run", "command": "x", "cwd": "/" })),
        with(json!({ "type": "run", "command": "x", "cwd": "" })),
        with(json!({ "type": "run", "command": "x", "timeout_s": 0 })),
        with(json!({ "type": "run", "command": "x", "timeout_s": 3601 })),
        with(json!({ "type": "run", "command": "x", "timeout_s": 1.5 })),
        with(json!({ "type": "run", "command": "x", "timeout_s": "9" })),
        with(json!({ "type": "run", "command": "x", "continue_on_error": 1 })),
        with(json!({ "type": "run", "command": "x", "reason": "r" })),
        with(json!({ "type": "patch", "path": "a" })),
        with(json!({ "type": "patch", "path": "/a", "patch": "x" })),
        with(json!({ "type": "patch", "path": "a", "patch": "" })),
        with(json!({ "type": "write", "path": "a" })),
        with(json!({ "type": "write", "path": "a", "content": null })),
        with(json!({ "type": "write", "path": "a", "content": "x", "append": "yes" })),
        with(json!({ "type": "write", "path": "", "content": "x" })),
        with(json!({ "type": "commit" })),
        with(json!({ "type": "commit", "message": long })),
        with(json!({ "type": "commit", "message": "m", "paths": "a" })),
        with(json!({ "type": "commit", "message": "m", "paths": ["/a"] })),
        with(json!({ "type": "pause" })),
        with(json!({ "type": "pause", "reason": "" })),
        with(json!({ "type": "stop_success", "reason": long })),
        with(json!({ "type": "stop_success", "reason": "r", "continue_on_error": true })),
    ];
    for bad in bad {
        assert!(read(&bad.to_string()).is_err(), "{bad}");
        assert!(!problems(&schema, &schema, &bad, "").is_empty(), "{bad}");
    }
    // JSON has one number type; our schema checker is stricter than the standard here.
    assert!(read(&with(json!({ "type": "run", "command": "x", "timeout_s": 9.0 })).to_string()).is_ok());
}

#[test]
fn messages_name_the_place_the_expectation_and_the_likely_word() {
    let answer = json!({
        "sumary": "s",
        "actions": [
            { "type": "run", "comand": "ls" },
            { "type": "exec", "command": "ls" },
            { "type": "patch", "path": "/etc/x", "patch": 7 },
            { "type": "wirte", "path": "a", "content": "b" },
            "stop",
        ],
        "claims": { "milestones_completed": [3] },
    });
    insta::assert_snapshot!(error(&answer.to_string()), @r#"
    sumary: unknown key; did you mean "summary"?
    summary: missing; expected a text
    actions[0].comand: unknown key; did you mean "command"?
    actions[0].command: missing; expected a text
    actions[1].type: "exec" is not one of run, patch, write, commit, rotate, pause, stop_success, stop_failure
    actions[2].path: expected a path relative to the workspace, found an absolute one
    actions[2].patch: expected a text, found a number
    actions[3].type: "wirte" is not one of run, patch, write, commit, rotate, pause, stop_success, stop_failure; did you mean "write"?
    and 2 more
    "#);
}

const OK: &str = r#"{"summary":"s","actions":[]}"#;

#[test]
fn the_object_may_stand_alone_in_a_fence_or_between_words() {
    for text in [
        OK.to_owned(),
        format!("\n  {OK}\n\n"),
        format!("```json\n{OK}\n```"),
        format!("```\n{OK}\n```\n"),
        format!("Here it is:\n\n```json\n{OK}\n```\nDone."),
        format!("I will fn main() {{ }} and so on. {OK}"),
        format!("A hash {{\"a\" => 1}} first.\n{OK}"),
        format!("\u{feff}{OK}"),
    ] {
        assert!(read(&text).is_ok(), "{text}");
    }
}

#[test]
fn anything_else_is_refused_with_what_is_wrong() {
    for (text, words) in [
        ("I could not do it.".to_owned(), "contains no JSON object"),
        ("{}{}".to_owned(), "holds 2 JSON objects"),
        (format!("{OK}\n{OK}"), "holds 2 JSON objects; answer with exactly one"),
        (format!("For example {{\"a\": 1}}.\n{OK}"), "holds 2 JSON objects"),
        (format!("[{OK}]"), "the answer is a list; expected an object"),
        ("null".to_owned(), "the answer is null"),
        (
            r#"{"summary":"s","actions":[{"type":"run","command":"ls"}"#.to_owned(),
            "ends before it is complete",
        ),
        (
            r#"{"summary":"s","actions":[{"type":"run","command":"ls"},]}"#.to_owned(),
            "trailing comma, in line 1, near",
        ),
        ("{\"summary\":\"a\nb\",\"actions\":[]}".to_owned(), "control character"),
        (r#"{"summary":"s","actions":[],"actions":[]}"#.to_owned(), r#"the key "actions" appears twice"#),
        (
            r#"{"summary":"s","actions":[{"type":"run","type":"pause"}]}"#.to_owned(),
            r#"the key "type" appears twice"#,
        ),
        (
            "x {\n\"summary\": \"s\",\n\"actions\": [nope]}".to_owned(),
            "in line 3, near `\"actions\": [nope]}`",
        ),
    ] {
        let found = error(&text);
        assert!(found.contains(words), "{text}: {found}");
    }
}

#[test]
fn deep_and_wide_texts_are_refused_before_they_are_built() {
    for (text, why) in [
        ("{".repeat(300_000), "contains no JSON object"),
        ("[".repeat(300_000), "contains no JSON object"),
        ("{\"a\":".repeat(100_000), "recursion limit exceeded"),
        ("{\"a\":[{".repeat(50_000), "key must be a string"),
    ] {
        assert!(error(&text).contains(why), "{why}: {}", error(&text));
    }
    assert!(error(&" ".repeat(9 * 1024 * 1024)).contains("at most 8 MiB"));
}

/// Random JSON, mostly with words of the contract.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "summary", "actions", "claims", "type", "run", "patch", "write", "path", "content", "command",
        "reason", "rotate", "../x", "a",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((word.clone(), inner), 0..5)
                .prop_map(|pairs| pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn any_text_never_panics(text in "(?s).{0,200}") {
        let _ = read(&text).map_err(|e| e.to_string());
    }

    #[test]
    fn any_json_is_judged_as_the_schema_judges(value in any_json()) {
        let schema = schema();
        let fits = problems(&schema, &schema, &value, "").is_empty();
        prop_assert_eq!(read(&value.to_string()).is_ok(), fits, "{}", value);
    }

    #[test]
    fn a_contract_with_a_piece_cut_off_never_panics(cut in 0usize..200, text in "[^{}]{0,20}") {
        let whole = with(json!({ "type": "write", "path": "ä", "content": "ö\n\"}{" })).to_string();
        let cut = ralph_loop_protocol::display::text::head(&whole, cut);
        let _ = read(&format!("{text}{cut}")).map_err(|e| e.to_string());
    }
}
