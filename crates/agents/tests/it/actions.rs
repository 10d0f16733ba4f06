//! Sessions of kind `actions`, with a closure as the model and a workspace in memory.

use crate::support::model::{Fake, Session, config, failure, models, prices, reply};
use proptest::prelude::*;
use ralph_loop_agents::ActionsAgent;
use ralph_loop_domain::model::{Message, ModelErrorKind, ReplyPart, StopReason, TextPart, UserPart};
use ralph_loop_domain::ports::{Agent as _, Ask, ExecRequest, SessionReport, StopCause};
use ralph_loop_domain::text::claim::promises;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::{CostBasis, Usd};
use ralph_loop_sandbox::{MemoryExit, MemoryFiles, MemorySandbox};
use ralph_loop_task::config::AgentConfig;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Commands of the workspace: `sh -c LINE` prints its line, and fails if the line says `fail`.
fn sandbox() -> (MemorySandbox, Arc<Mutex<Vec<ExecRequest>>>) {
    let asked: Arc<Mutex<Vec<ExecRequest>>> = Arc::default();
    let seen = Arc::clone(&asked);
    let sandbox = MemorySandbox::new(move |request: &ExecRequest, _: &mut MemoryFiles| {
        seen.lock().unwrap().push(request.clone());
        let line = request.argv.get(2)?;
        Some(MemoryExit {
            code: if line.contains("fail") { 3 } else { 0 },
            stdout: format!("out of {line}\n").into_bytes(),
            stderr: Vec::new(),
        })
    });
    (sandbox, asked)
}

fn answer(actions: Value) -> String {
    json!({ "summary": "Did it.", "actions": actions }).to_string()
}

fn play(actions: Value) -> (SessionReport, Session, MemorySandbox) {
    let (sandbox, _) = sandbox();
    let mut session = Session::default();
    let report = session.play(&Fake::says(&[&answer(actions)]), &sandbox);
    (report, session, sandbox)
}

fn file(sandbox: &MemorySandbox, path: &str) -> Option<String> {
    sandbox.files(|files| files.get(path).map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
}

#[test]
fn the_preamble_shows_the_contract_and_never_changes() {
    let agent = |config: AgentConfig| ActionsAgent::new(config, models(), prices(), Fake::says(&[""]));
    let first = agent(config()).preamble();
    insta::assert_snapshot!("preamble", first);
    assert_eq!(agent(config()).preamble(), first);
    let own = agent(AgentConfig { system_prompt: Some("Be terse.".into()), ..config() }).preamble();
    assert!(own.starts_with("Be terse.\n\n## How you answer\n"), "{own}");
    assert!(own.contains(r#""required":["summary","actions"]"#), "the contract stays");
    // The examples shown to a model are valid answers.
    let examples: Vec<&str> = first.lines().filter(|line| line.starts_with("{\"summary\"")).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        ralph_loop_agents::actions::intake::read(example).unwrap();
    }
}

#[test]
fn every_action_in_its_order() {
    let (sandbox, asked) = sandbox();
    sandbox.files(|files| files.set("src/a.rs", "one\ntwo\n"));
    let text = json!({
        "summary": "Did it.",
        "actions": [
            { "type": "write", "path": "b.md", "content": "1\n" },
            { "type": "write", "path": "b.md", "content": "2\n", "append": true },
            { "type": "patch", "path": "src/a.rs", "patch": "@@ -1,2 +1,2 @@\n one\n-two\n+2\n" },
            { "type": "run", "command": "make test", "cwd": "src", "timeout_s": 5 },
            { "type": "commit", "message": "a: two", "paths": ["src/a.rs"] },
            { "type": "stop_success", "reason": "all boxes" },
        ],
        "claims": { "checkboxes_checked": ["M1.1", "M1.2", " M1.1 "], "milestones_completed": ["M1"] },
    });
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session { folder: folder.path().to_owned(), ..Session::default() };
    let report = session.play(&Fake::says(&[&text.to_string()]), &sandbox);
    assert_eq!(report.end, SessionEnd::Completed);
    assert_eq!(report.final_message, "Did it.");
    assert_eq!(file(&sandbox, "b.md").as_deref(), Some("1\n2\n"));
    assert_eq!(file(&sandbox, "src/a.rs").as_deref(), Some("one\n2\n"));
    let exec = &asked.lock().unwrap()[0];
    assert_eq!(exec.argv, ["sh", "-c", "make test"]);
    assert_eq!((exec.cwd.to_str(), exec.timeout), (Some("src"), Some(Duration::from_secs(5))));
    let wishes = &report.wishes;
    assert!(wishes.done);
    assert_eq!(wishes.claims, ["M1.1", "M1.2", "M1"]);
    let [part] = wishes.commit_parts.as_slice() else { panic!("{wishes:?}") };
    assert_eq!((part.message.as_str(), part.paths.as_slice()), ("a: two", &["src/a.rs".to_owned()][..]));
    assert_eq!((&wishes.commit_message, &wishes.ask), (&None, &None));
    let told = &session.told;
    let words: Vec<&str> = told.started.iter().map(|action| action.action.as_str()).collect();
    assert_eq!(words, ["write", "write", "patch", "run", "commit", "stop_success"]);
    assert!(told.finished.iter().all(|end| end.ok));
    assert_eq!(told.finished[3].exit_code, Some(0));
    assert_eq!(
        told.activities,
        [
            "asking zai/cheap",
            "editing b.md",
            "editing b.md",
            "editing src/a.rs",
            "running `make test`",
            "commit: a: two",
            "stop_success: all boxes"
        ]
    );
    let line = &told.actions[3];
    assert_eq!((&line["n"], &line["type"], &line["ok"]), (&json!(4), &json!("run"), &json!(true)));
    assert_eq!(line["input"]["command"], "make test");
    assert_eq!(line["result"], "exit code 0\nout of make test\n");
    assert!(line["duration_ms"].is_u64());
    assert_eq!(line["output_file"], "action-4.log");
    assert_eq!(std::fs::read_to_string(folder.path().join("action-4.log")).unwrap(), "out of make test\n");
    assert!(told.output.starts_with("out of make test\n") && told.output.ends_with("Did it.\n"));
    let response = &report.response;
    assert_eq!((&response["format"], &response["profile"]), (&json!("actions"), &json!("cheap")));
    assert_eq!((&response["model"], &response["repairs"]), (&json!("zai/cheap"), &json!(0)));
    assert_eq!(response["answer"], text);
    assert_eq!(response["results"].as_array().unwrap().len(), 6);
}

#[test]
fn a_failing_action_stops_the_rest_and_says_so() {
    let (report, session, sandbox) = play(json!([
        { "type": "write", "path": "a", "content": "x" },
        { "type": "run", "command": "fail loudly" },
        { "type": "write", "path": "b", "content": "x" },
        { "type": "commit", "message": "m" },
        { "type": "stop_success", "reason": "r" },
    ]));
    assert_eq!(report.end, SessionEnd::Completed, "the session itself went well");
    assert_eq!(
        report.final_message,
        "Did it. But action 2 (run fail loudly) failed: exit code 3 out of fail loudly (3 actions after it not run)"
    );
    assert_eq!(file(&sandbox, "b"), None);
    assert!(!report.wishes.done && report.wishes.commit_message.is_none());
    assert_eq!(session.told.started.len(), 2);
    assert_eq!(session.told.actions.len(), 5, "what was not run is recorded, too");
    assert_eq!(session.told.actions[2]["skipped"], true);
    assert_eq!(session.told.actions[4]["result"], "not run: action 2 failed");
    assert_eq!(session.told.finished[1].exit_code, Some(3));
}

#[test]
fn continue_on_error_runs_the_rest_without_success() {
    let (report, session, sandbox) = play(json!([
        { "type": "run", "command": "fail", "continue_on_error": true },
        { "type": "patch", "path": "none", "patch": "@@\n-a\n+b\n", "continue_on_error": true },
        { "type": "write", "path": "../x", "content": "x", "continue_on_error": true },
        { "type": "write", "path": "b", "content": "x" },
        { "type": "stop_success", "reason": "r" },
    ]));
    assert_eq!(file(&sandbox, "b").as_deref(), Some("x"));
    assert!(!report.wishes.done);
    let ok: Vec<bool> = session.told.finished.iter().map(|end| end.ok).collect();
    assert_eq!(ok, [false, false, false, true, false]);
    assert!(session.told.finished[4].result.contains("does not count"));
    assert!(
        report.final_message.contains("action 1 (run fail) failed: exit code 3"),
        "{}",
        report.final_message
    );
}

#[test]
fn a_promise_in_the_summary_counts_only_where_nothing_failed() {
    let promise = "Done.\n<promise>COMPLETE</promise>";
    let (sandbox, _) = sandbox();
    for (command, counts) in [("ok", true), ("fail\n<promise>COMPLETE</promise>\n", false)] {
        let text =
            json!({ "summary": promise, "actions": [{ "type": "run", "command": command }] }).to_string();
        let report = Session::default().play(&Fake::says(&[&text]), &sandbox);
        assert_eq!(promises(&report.final_message, "COMPLETE"), counts, "{}", report.final_message);
    }
}

#[test]
fn asks_end_the_list() {
    for (word, ask) in [
        ("rotate", Ask::Rotate { reason: "why".into() }),
        ("pause", Ask::Pause { reason: "why".into() }),
        ("stop_failure", Ask::GiveUp { reason: "why".into() }),
    ] {
        let (report, session, sandbox) = play(json!([
            { "type": word, "reason": "why" },
            { "type": "write", "path": "a", "content": "x" },
        ]));
        assert_eq!((report.wishes.ask, report.wishes.done), (Some(ask), false));
        assert_eq!(file(&sandbox, "a"), None);
        assert_eq!(session.told.actions[1]["result"], format!("not run: it came after `{word}`"));
        assert_eq!(report.final_message, "Did it.");
    }
}

#[test]
fn no_actions_is_a_session_that_did_nothing() {
    let (report, _, _) = play(json!([]));
    assert_eq!((report.end, report.final_message.as_str()), (SessionEnd::Completed, "Did it."));
}

#[test]
fn evil_writes_and_patches_are_refused_and_nothing_changes() {
    let protected: Vec<String> = ["tests/**", "Makefile", "ci/"].map(String::from).to_vec();
    for path in [
        "../x",
        "a/../../x",
        ".git/hooks/x",
        ".git",
        ".GIT/config",
        "a/.git/x",
        "tests/x/y.rs",
        "Makefile",
        "./Makefile",
        "ci/x",
        ".ralph/runs/1/events.jsonl",
        ".ralph/errors.log",
        ".ralph/guardrails.md",
        ".RALPH/progress.md",
        "a\\..\\b",
        "~/x",
        "a/",
        ".",
        "a\u{7}b",
    ] {
        for action in [
            json!({ "type": "write", "path": path, "content": "evil" }),
            json!({ "type": "patch", "path": path, "patch": "@@ -0,0 +1 @@\n+evil\n" }),
        ] {
            let (sandbox, _) = sandbox();
            sandbox.files(|files| files.set("Makefile", "all:\n"));
            let before = sandbox.snapshot();
            let mut session = Session { protected: protected.clone(), ..Session::default() };
            session.play(&Fake::says(&[&answer(json!([action]))]), &sandbox);
            assert!(!session.told.finished[0].ok, "{path}");
            assert!(session.told.finished[0].result.len() > 20, "a reason: {path}");
            assert_eq!(sandbox.snapshot(), before, "{path}");
        }
    }
    let (_, session, _) = play(json!([{ "type": "run", "command": "ls", "cwd": "../.." }]));
    assert!(session.told.finished[0].result.contains("leads out of the workspace"));
    let allowed = json!([
        { "type": "write", "path": ".ralph/progress.md", "content": "now" },
        { "type": "write", "path": ".ralph/guardrails.md", "content": "lesson", "append": true },
    ]);
    let (_, session, _) = play(allowed);
    assert!(session.told.finished.iter().all(|end| end.ok), "{:?}", session.told.finished);
}

#[test]
fn a_patch_that_does_not_fit_leaves_the_file_as_it_was() {
    let (sandbox, _) = sandbox();
    sandbox.files(|files| files.set("a", "x\r\ny\n\u{e4}"));
    let before = sandbox.snapshot();
    let two = "@@ -2 +2 @@\n-y\n+z\n@@ -3 +3 @@\n-nothing\n+x\n";
    for patch in [two, "@@ -1 +1 @@\n-x\n+y\n", "--- a/b\n+++ b/b\n@@ -2 +2 @@\n-y\n+z\n", "nonsense"] {
        let text = answer(json!([{ "type": "patch", "path": "a", "patch": patch }]));
        let mut session = Session::default();
        session.play(&Fake::says(&[&text]), &sandbox);
        assert!(!session.told.finished[0].ok, "{patch}");
        assert_eq!(sandbox.snapshot(), before, "{patch}");
    }
    let text = answer(json!([{ "type": "patch", "path": "a", "patch":
        "--- a/a\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-x\r\n-y\n-\u{e4}\n\\ No newline at end of file\n" }]));
    Session::default().play(&Fake::says(&[&text]), &sandbox);
    assert_eq!(file(&sandbox, "a"), None, "a deletion");
}

#[test]
fn the_prompt_is_cut_where_it_stays_the_same() {
    let (sandbox, _) = sandbox();
    let client = Fake::says(&[&answer(json!([]))]);
    let mut session = Session { prompt: "rules slow now".into(), stable: vec![6, 11], ..Session::default() };
    session.play(&client, &sandbox);
    let request = client.request(0);
    assert_eq!(request.system, [TextPart::cached("rules ")]);
    let parts = vec![UserPart::Text(TextPart::cached("slow ")), UserPart::Text(TextPart::plain("now"))];
    assert_eq!(request.messages, [Message::User { parts }]);
    assert_eq!(request.json_schema.unwrap()["title"], "the action contract");
    assert!(request.stream && request.tools.is_empty());
}

#[test]
fn invalid_answer_is_repaired_and_all_calls_count() {
    let (sandbox, _) = sandbox();
    let good = answer(json!([{ "type": "write", "path": "a", "content": "x" }]));
    let client =
        Fake::says(&["I would rather chat.", r#"{"summary":"s","actions":[{"type":"runn"}]}"#, &good]);
    let mut session = Session::default();
    let report = session.play(&client, &sandbox);
    assert_eq!((report.end, client.calls()), (SessionEnd::Completed, 3));
    assert_eq!(file(&sandbox, "a").as_deref(), Some("x"));
    assert_eq!(report.response["repairs"], 2);
    assert_eq!(report.usage.tokens.unwrap().total(), 3 * 1111);
    assert_eq!(report.usage.cost, Some(Usd::from_dollars(3.0 * 0.001_111)));
    assert_eq!(report.usage.basis, CostBasis::Estimated);
    let messages = client.request(2).messages;
    assert_eq!(messages.len(), 3, "the prompt, its own answer, what is wrong with it");
    let Message::Assistant { parts } = &messages[1] else { panic!("its own answer") };
    assert_eq!(parts[0], ReplyPart::Text { text: r#"{"summary":"s","actions":[{"type":"runn"}]}"#.into() });
    let Message::User { parts } = &messages[2] else { panic!("our words") };
    let UserPart::Text(said) = &parts[0] else { panic!("text") };
    insta::assert_snapshot!(said.text, @r#"
    That answer breaks the contract, so none of it ran:

    actions[0].type: "runn" is not one of run, patch, write, commit, rotate, pause, stop_success, stop_failure; did you mean "run"?

    Answer again with exactly one JSON object of the schema.
    "#);
    assert_eq!(client.request(2).system, client.request(0).system, "the cached part stays the same");
}

#[test]
fn repairs_come_to_an_end_as_a_recorded_failure() {
    let (sandbox, _) = sandbox();
    for repairs in [0, 1, 2] {
        let client = Fake::says(&["no"]);
        let mut session = Session::default();
        session.config.max_repairs = repairs;
        let report = session.play(&client, &sandbox);
        assert_eq!(client.calls(), repairs as usize + 1);
        let SessionEnd::Failed { reason } = &report.end else { panic!("{:?}", report.end) };
        assert!(
            reason.contains("breaks the contract") && reason.contains("contains no JSON object"),
            "{reason}"
        );
        assert_eq!(report.response["answer"], "no");
        assert_eq!(report.response["repairs"], repairs);
        assert_eq!(report.usage.tokens.unwrap().input, 1000 * (u64::from(repairs) + 1));
    }
}

#[test]
fn no_repair_without_money() {
    let (sandbox, _) = sandbox();
    let client = Fake::says(&["no"]);
    let mut session = Session { budget_left: Some(Usd::from_dollars(0.001)), ..Session::default() };
    let report = session.play(&client, &sandbox);
    assert_eq!(client.calls(), 1);
    assert!(report.end.reason().unwrap().contains("no money left for a repair"), "{:?}", report.end);
}

#[test]
fn truncated_answer_is_reported() {
    let (sandbox, _) = sandbox();
    let good = answer(json!([]));
    let client = Fake::new(move |n, _, _, _| match n {
        0 => Ok(ralph_loop_domain::model::ModelReply {
            stop: StopReason::MaxTokens,
            ..reply(r#"{"summary":"s","actions":[{"type":"write","path":"a","content":"xxx"#)
        }),
        _ => Ok(reply(&good)),
    });
    let mut session = Session::default();
    assert_eq!(session.play(&client, &sandbox).end, SessionEnd::Completed);
    let Message::User { parts } = &client.request(1).messages[2] else { panic!("our words") };
    let UserPart::Text(said) = &parts[0] else { panic!("text") };
    assert!(said.text.contains("cut at the longest") && said.text.contains("`patch` instead of `write`"));
    assert!(session.told.activities[1].contains("cut at the longest"), "{:?}", session.told.activities);
}

#[test]
fn empty_and_declined_answers_have_their_own_ends() {
    let (sandbox, _) = sandbox();
    for nothing in ["", " \n\t"] {
        let client = Fake::says(&[nothing]);
        assert_eq!(Session::default().play(&client, &sandbox).end, SessionEnd::Empty);
        assert_eq!(client.calls(), 1);
    }
    let client = Fake::new(|_, _, _, _| {
        Ok(ralph_loop_domain::model::ModelReply { stop: StopReason::Refusal, ..reply("I cannot help.") })
    });
    let report = Session::default().play(&client, &sandbox);
    assert_eq!(report.end, SessionEnd::Refused { reason: "the model declined: I cannot help.".into() });
    let client = Fake::says(&["no", "", "no"]);
    let report = Session::default().play(&client, &sandbox);
    assert!(matches!(report.end, SessionEnd::Failed { .. }), "an empty repair is a failed one");
    assert_eq!(client.calls(), 3);
}

#[test]
fn the_fallback_takes_over_once_and_stays() {
    let (sandbox, _) = sandbox();
    let good = answer(json!([]));
    let client = Fake::new(move |n, profile, _, _| match (profile.name.as_str(), n) {
        ("cheap", _) => Err(failure(ModelErrorKind::Overloaded)),
        (_, 1) => Ok(reply("chat")),
        _ => Ok(reply(&good)),
    });
    let mut session = Session::default();
    session.config.fallback_profile = Some("strong".into());
    let report = session.play(&client, &sandbox);
    assert_eq!(report.end, SessionEnd::Completed);
    assert_eq!(client.profiles(), ["cheap", "strong", "strong"]);
    assert_eq!(session.told.activities[1], "strong takes over: no luck with zai/cheap");
    assert_eq!(report.response["profile"], "strong");
    let client = Fake::new(|_, _, _, _| Err(failure(ModelErrorKind::Auth)));
    let report = session.play(&client, &sandbox);
    assert_eq!(report.end, SessionEnd::Auth { reason: "no luck with zai/cheap (set a key)".into() });
    assert_eq!(client.calls(), 2, "once");
    assert_eq!(report.usage.basis, CostBasis::Unknown);
    let client = Fake::new(|_, _, _, _| Err(failure(ModelErrorKind::ContextTooLong)));
    let report = session.play(&client, &sandbox);
    assert!(matches!(report.end, SessionEnd::ContextTooLong { .. }));
    assert_eq!(client.calls(), 1, "another model would not help");
}

#[test]
fn requested_model_is_used() {
    let (sandbox, _) = sandbox();
    let client = Fake::says(&[&answer(json!([]))]);
    for (asked, model) in [(None, "zai/cheap"), (Some("strong"), "zai/strong"), (Some("x/y"), "x/y")] {
        let report = Session { model: asked, ..Session::default() }.play(&client, &sandbox);
        assert_eq!(report.response["model"], model);
        assert_eq!(report.usage.model.as_deref(), Some(model));
    }
    let report = Session { model: Some("strnog"), ..Session::default() }.play(&client, &sandbox);
    assert!(report.end.reason().unwrap().contains("did you mean `strong`?"), "{:?}", report.end);
}

#[test]
fn provider_cost_takes_precedence() {
    let (sandbox, _) = sandbox();
    let good = answer(json!([]));
    let client = Fake::new(move |_, _, _, _| {
        Ok(ralph_loop_domain::model::ModelReply { cost: Some(Usd::from_dollars(0.5)), ..reply(&good) })
    });
    let report = Session::default().play(&client, &sandbox);
    assert_eq!((report.usage.cost, report.usage.basis), (Some(Usd::from_dollars(0.5)), CostBasis::Reported));
    let client = Fake::says(&[&answer(json!([]))]);
    let report = Session { model: Some("x/y"), ..Session::default() }.play(&client, &sandbox);
    assert_eq!((report.usage.cost, report.usage.basis), (None, CostBasis::Unknown));
}

#[test]
fn text_is_streamed_and_waits_are_reported() {
    let (sandbox, _) = sandbox();
    let good = answer(json!([]));
    let client = Fake::new(move |_, _, _, sink| {
        sink.waiting(Duration::from_secs(90), "rate limit");
        good.as_bytes().chunks(7).for_each(|piece| sink.text(&String::from_utf8_lossy(piece)));
        Ok(reply(&good))
    });
    let mut session = Session::default();
    session.play(&client, &sandbox);
    assert_eq!(session.told.tokens, answer(json!([])));
    assert!(session.told.activities.contains(&"waiting 1 min 30 s for the model: rate limit".to_owned()));
}

#[test]
fn a_stop_ends_the_call_the_commands_and_what_is_between() {
    let (sandbox, asked) = sandbox();
    let text = answer(json!([
        { "type": "run", "command": "one" },
        { "type": "write", "path": "a", "content": "x" },
    ]));
    // Before the call, within it, before each action and within the command.
    for at in 1..=5 {
        let text = text.clone();
        let client = Fake::new(move |_, _, _, sink| match sink.poll() {
            std::ops::ControlFlow::Break(cause) => Err(failure(ModelErrorKind::Stopped(cause))),
            std::ops::ControlFlow::Continue(()) => Ok(reply(&text)),
        });
        let mut session = Session::default();
        session.told.stop_at = Some((at, StopCause::Rotated));
        let report = session.play(&client, &sandbox);
        assert_eq!(report.end, SessionEnd::Stopped { cause: StopCause::Rotated }, "{at}");
        assert_eq!(file(&sandbox, "a"), None, "{at}");
        if at > 2 {
            assert_eq!(session.told.actions.last().unwrap()["result"], "not run: the session had to end");
        }
    }
    assert_eq!(asked.lock().unwrap().len(), 1, "only the last of them came as far as the command");
}

#[test]
fn the_sessions_time_ends_it() {
    let (sandbox, _) = sandbox();
    let client = Fake::says(&[&answer(json!([]))]);
    let report = Session { timeout: Duration::ZERO, ..Session::default() }.play(&client, &sandbox);
    assert_eq!((report.end, client.calls()), (SessionEnd::TimedOut, 0));
    // A call that continues until its sink ends it.
    let client = Fake::new(|_, _, _, sink| {
        loop {
            if let std::ops::ControlFlow::Break(cause) = sink.poll() {
                return Err(failure(ModelErrorKind::Stopped(cause)));
            }
        }
    });
    let report = Session { timeout: Duration::from_millis(20), ..Session::default() }.play(&client, &sandbox);
    assert_eq!((report.end, client.calls()), (SessionEnd::TimedOut, 1));
}

#[test]
fn large_answers_stay_small_in_the_records() {
    let big = "x".repeat(3_000_000);
    let (report, session, sandbox) = play(json!([
        { "type": "write", "path": "big", "content": big },
        { "type": "run", "command": format!("echo {big}") },
    ]));
    assert_eq!(file(&sandbox, "big").unwrap().len(), 3_000_000);
    assert!(report.response.to_string().len() <= 256 * 1024);
    assert_eq!(session.told.actions.len(), 2, "and each line is bounded, as the sink asserts");
}

/// Random lists of actions, mostly problematic ones.
fn any_actions() -> impl Strategy<Value = Vec<Value>> {
    let path = prop::sample::select(vec![
        "a",
        "b/c",
        "../x",
        "..",
        ".git/config",
        ".ralph/x",
        "keep/x",
        "./keep/../a",
        "b",
        "ü",
        "a/b/../../..",
        "",
    ]);
    let action = prop_oneof![
        (path.clone(), ".{0,10}", any::<bool>()).prop_map(
            |(path, content, append)| json!({ "type": "write", "path": path, "content": content, "append": append,
                "continue_on_error": true })
        ),
        (path.clone(), "(?s)(@@\n)?[-+ ab\n]{0,20}").prop_map(
            |(path, patch)| json!({ "type": "patch", "path": path, "patch": patch, "continue_on_error": true })
        ),
        (path, "[a-f ]{1,9}").prop_map(|(cwd, command)| json!({ "type": "run", "command": command, "cwd": cwd })),
    ];
    prop::collection::vec(action, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_the_answer_the_session_is_reported(text in "(?s).{0,80}") {
        let (sandbox, _) = sandbox();
        let report = Session::default().play(&Fake::says(&[&text]), &sandbox);
        prop_assert!(!matches!(report.end, SessionEnd::Completed), "no such text is the contract");
    }

    #[test]
    fn whatever_the_actions_only_free_files_change(actions in any_actions()) {
        let (sandbox, _) = sandbox();
        sandbox.files(|files| { files.set("keep/x", "kept"); files.set(".ralph/x", "kept"); });
        let mut session = Session { protected: vec!["keep/".into()], ..Session::default() };
        session.play(&Fake::says(&[&answer(json!(actions))]), &sandbox);
        prop_assert_eq!(file(&sandbox, "keep/x"), Some("kept".to_owned()));
        prop_assert_eq!(file(&sandbox, ".ralph/x"), Some("kept".to_owned()));
        let paths = sandbox.files(|files| files.iter().map(|(path, _)| path.to_owned()).collect::<Vec<_>>());
        let free = ["a", "b", "b/c", "keep/x", ".ralph/x", "ü"];
        prop_assert!(paths.iter().all(|path| free.contains(&path.as_str())), "{:?}", paths);
    }
}
