//! The loop around the model: its ends, its budgets, who answers, and tools of the calling program.

use crate::agents::tools::support::{Script, Stage, calls, costing, fine, refused, says};
use ralph_loop_agents::tools::{CustomTool, ToolOutput};
use ralph_loop_domain::model::{
    Image, Message, ModelError, ModelErrorKind, ModelReply, StopReason, ToolSpec, UserPart,
};
use ralph_loop_domain::ports::{Agent as _, Sandbox, StopCause};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::money::{CostBasis, Usd};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

#[test]
fn done_writes_its_file_and_ends_the_session() {
    let stage = Stage::new();
    let played = stage.play(vec![
        calls(&[("writeFile", json!({"path": "a.txt", "content": "x"}))]),
        calls(&[("done", json!({"summary": "All of it."}))]),
    ]);
    assert_eq!(played.report.end, SessionEnd::Completed);
    assert!(played.report.wishes.done);
    assert_eq!((stage.read(".ralph/DONE.md").as_str(), stage.read("a.txt").as_str()), ("All of it.\n", "x"));
    assert_eq!(played.report.final_message, "All of it.");
    let response = &played.report.response;
    assert_eq!(
        (&response["format"], &response["profile"], &response["turns"], &response["tool_calls"]),
        (&json!("tools"), &json!("first"), &json!(2), &json!(2))
    );
    assert_eq!(played.report.usage.tokens.unwrap().input, 200);
    assert_eq!(played.report.usage.basis, CostBasis::Estimated);
    assert_eq!(played.told.started[0].action, "writeFile");
    assert_eq!(played.told.actions[0]["input"]["path"], "a.txt");
}

#[test]
fn model_stop_completes_the_session_and_silence_is_empty() {
    let stage = Stage::new();
    let played = stage.play(vec![calls(&[("exec", json!({"command": "true"}))]), says("Stopped here.")]);
    assert_eq!((played.report.end, played.report.wishes.done), (SessionEnd::Completed, false));
    assert_eq!(played.report.final_message, "Stopped here.");
    assert_eq!(played.told.tokens, "Stopped here.");
    assert_eq!(stage.play(vec![says(" ")]).report.end, SessionEnd::Empty);
    let declined = ModelReply { stop: StopReason::Refusal, ..says("I would rather not.") };
    assert_eq!(
        stage.play(vec![declined]).report.end,
        SessionEnd::Refused { reason: "I would rather not.".into() }
    );
}

#[test]
fn truncated_answer_is_continued_a_few_times() {
    let stage = Stage::new();
    let cut = ModelReply { stop: StopReason::MaxTokens, ..says("half a") };
    let played = stage.play(vec![cut.clone(), says("whole")]);
    assert_eq!(played.report.end, SessionEnd::Completed);
    assert!(matches!(stage.play(vec![cut; 4]).report.end, SessionEnd::Unfinished { .. }));
}

#[test]
fn token_limit_warns_then_ends_the_session() {
    let mut stage = Stage::new();
    stage.config.max_tokens_per_iteration = Some(1000);
    let look = || calls(&[("listFiles", json!({}))]);
    let played = stage.play(vec![costing(look(), 850), costing(look(), 200)]);
    assert!(played.result(1, 0).text.contains("850 of 1000 tokens"), "{}", played.result(1, 0).text);
    let SessionEnd::Unfinished { reason } = played.report.end else { panic!("{:?}", played.report.end) };
    assert_eq!(reason, "the session used 1050 tokens; 1000 are allowed");
    assert_eq!(played.report.response["stop"], "the session used 1050 tokens; 1000 are allowed");
}

#[test]
fn token_limit_holds_without_reported_usage() {
    let mut stage = Stage::new();
    stage.config.max_tokens_per_iteration = Some(500);
    let silent = ModelReply { tokens: None, ..calls(&[("exec", json!({"command": "seq 1 40"}))]) };
    let script = Script::answering(move |_, _, _| Ok(silent.clone()));
    let (report, _) = stage.session(&stage.agent(&script), "the task");
    assert!(matches!(report.end, SessionEnd::Unfinished { .. }), "{:?}", report.end);
    assert!(script.turns() < 50, "{}", script.turns());
}

#[test]
fn cost_limit_ends_the_session() {
    let mut stage = Stage::new();
    stage.budget = Some(Usd::from_dollars(0.5));
    let played = stage.play(vec![costing(calls(&[("listFiles", json!({}))]), 600_000)]);
    assert_eq!(
        played.report.end,
        SessionEnd::Unfinished { reason: "the session used 600000 tokens; 100000 are allowed".into() }
    );
    stage.config.max_tokens_per_iteration = Some(10_000_000);
    let played = stage.play(vec![costing(calls(&[("listFiles", json!({}))]), 600_000)]);
    assert_eq!(played.report.end, SessionEnd::Stopped { cause: StopCause::Budget });
    assert_eq!(played.report.usage.cost, Some(Usd::from_dollars(0.6)));
}

#[test]
fn fallback_model_takes_over_for_the_rest_of_the_session() {
    let mut stage = Stage::new();
    stage.config.fallback_profile = Some("second".into());
    let script = Script::answering(|turn, profile, _| match (profile.name.as_str(), turn) {
        ("first", 0) => Ok(calls(&[("exec", json!({"command": "echo one"}))])),
        ("first", _) => {
            Err(ModelError { kind: ModelErrorKind::Overloaded, message: "busy".into(), hint: None })
        }
        (_, 2) => Ok(calls(&[("exec", json!({"command": "echo two"}))])),
        _ => Ok(says("both")),
    });
    let (report, _) = stage.session(&stage.agent(&script), "the task");
    assert_eq!((report.end, report.response["profile"].as_str()), (SessionEnd::Completed, Some("second")));
    stage.config.fallback_profile = None;
    let script = Script::answering(|_, _, _| {
        Err(ModelError { kind: ModelErrorKind::Auth, message: "no key".into(), hint: None })
    });
    let (report, _) = stage.session(&stage.agent(&script), "the task");
    assert_eq!(report.end, SessionEnd::Auth { reason: "no key".into() });
}

#[test]
fn prompt_is_sent_in_cached_parts() {
    let mut stage = Stage::new();
    stage.stable = vec![6, 11];
    let script = Script::of(vec![says("ok")]);
    stage.session(&stage.agent(&script), "rules\nslow\nnow\n");
    let asked = script.asked(0);
    assert_eq!(
        (asked.system.len(), asked.system[0].text.as_str(), asked.system[0].cache),
        (1, "rules\n", true)
    );
    let Message::User { parts } = &asked.messages[0] else { panic!() };
    let parts: Vec<(&str, bool)> = parts
        .iter()
        .map(|part| match part {
            UserPart::Text(part) => (part.text.as_str(), part.cache),
            UserPart::Image(_) => panic!(),
        })
        .collect();
    assert_eq!(parts, [("slow\n", true), ("now\n", false)]);
    assert!(asked.stream && asked.tools.iter().any(|tool| tool.name == "exec"));
}

#[test]
fn cancelling_a_session_stops_its_command() {
    let mut stage = Stage::new();
    stage.cancel_at = Some("going");
    let played = stage.play(vec![calls(&[
        ("exec", json!({"command": "echo $$ > pid; echo go''ing; sleep 1000"})),
        ("exec", json!({"command": "sleep 1000"})),
        ("writeFile", json!({"path": "late", "content": ""})),
    ])]);
    assert_eq!(played.report.end, SessionEnd::Stopped { cause: StopCause::Cancelled });
    assert!(!crate::agents::tools::support::alive(stage.pid("pid")));
    assert!(!stage.path("late").exists());
}

#[test]
fn session_timeout_stops_its_command() {
    let mut stage = Stage::new();
    stage.timeout = Duration::from_millis(400);
    let played = stage.play(vec![calls(&[("exec", json!({"command": "sleep 1000"}))])]);
    assert_eq!(played.report.end, SessionEnd::TimedOut);
}

fn double() -> Box<dyn CustomTool> {
    let spec = ToolSpec {
        name: "double".into(),
        description: "Doubles a number.".into(),
        input_schema: json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}),
    };
    Box::new((spec, |input: &Value, sandbox: &dyn Sandbox| match input["n"].as_i64() {
        Some(13) => Err("not thirteen".to_owned()),
        Some(14) => panic!("a mistake of the calling program"),
        Some(15) => Ok(ToolOutput::text("long ".repeat(20_000))),
        Some(n) => {
            let known = sandbox.read(Path::new("a.txt")).unwrap().is_some();
            let image = Image { media_type: "image/png".into(), base64: "AAAA".into() };
            Ok(ToolOutput { text: format!("{} {known}", n * 2), images: vec![image] })
        }
        None => Err("no number".to_owned()),
    }))
}

#[test]
fn custom_tools_work_and_their_errors_reach_the_model() {
    let stage = Stage::new();
    stage.write("a.txt", "");
    let one = |n: i64| ("double", json!({"n": n}));
    let script = Script::of(vec![
        calls(&[one(21), one(13), one(14), ("double", json!({"n": "x"})), one(15)]),
        calls(&[("dubble", json!({})), ("exec", json!("{\"comm")), ("zzzzzzz", json!({}))]),
        says("ok"),
    ]);
    stage.session(&stage.agent_with(&script, vec![double()]), "the task");
    let results = script.results(1);
    assert_eq!((fine(&results[0]), results[0].images.len()), ("42 true", 1));
    assert_eq!(refused(&results[1]), "not thirteen");
    assert_eq!(refused(&results[2]), "`double` broke; try another way");
    assert_eq!(refused(&results[3]), "`double` was not called: `n` must be a whole number, not a text");
    assert!(fine(&results[4]).contains("[cut after 32768 bytes; all of it is in"), "{}", results[4].text);
    assert_eq!(std::fs::read_to_string(stage.folder().join("tool-5.log")).unwrap().len(), 100_000);
    let results = script.results(2);
    assert_eq!(refused(&results[0]), "there is no tool `dubble`; did you mean `double`?");
    assert!(refused(&results[1]).contains("not valid JSON"));
    assert!(refused(&results[2]).starts_with("there is no tool `zzzzzzz`; there are: exec, startProcess"));
}

#[test]
fn built_in_tools_can_be_disabled() {
    let mut stage = Stage::new();
    stage.config.disable_default_tools = true;
    let script = Script::of(vec![calls(&[("exec", json!({"command": "true"}))]), says("ok")]);
    let agent = stage.agent_with(&script, vec![double()]);
    let names: Vec<String> = agent.tools().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["done", "double"]);
    stage.session(&agent, "the task");
    assert!(refused(&script.results(1)[0]).contains("there is no tool `exec`"));
}

#[test]
fn custom_prompt_replaces_the_guide() {
    let mut stage = Stage::new();
    let script = Script::of(Vec::new());
    insta::assert_snapshot!("guide", stage.agent(&script).preamble());
    stage.config.system_prompt = Some("Be brief.".into());
    assert_eq!(stage.agent(&script).preamble(), "Be brief.");
    insta::assert_json_snapshot!("schemas", stage.agent(&script).tools());
}

#[test]
fn old_images_are_dropped_from_a_long_conversation() {
    let stage = Stage::new();
    let script = Script::answering(|turn, _, _| {
        Ok(if turn < 13 { calls(&[("double", json!({"n": turn as i64 - 20}))]) } else { says("ok") })
    });
    stage.session(&stage.agent_with(&script, vec![double()]), "the task");
    let pictures = |turn: usize| -> Vec<bool> {
        let results = script.asked(turn).messages.into_iter().filter_map(|message| match message {
            Message::ToolResults { results } => Some(!results[0].images.is_empty()),
            _ => None,
        });
        results.collect()
    };
    assert_eq!(pictures(12), [true; 12]);
    let last = pictures(13);
    assert_eq!((last.len(), last.iter().filter(|shown| **shown).count(), last[12]), (13, 6, true));
}

#[test]
fn tool_results_of_one_reply_share_a_size_limit() {
    let stage = Stage::new();
    stage.write("big.txt", &"0123456789 0123456789 0123456789\n".repeat(1400));
    let read = ("readFile", json!({"path": "big.txt"}));
    let played = stage.play(vec![calls(&vec![read; 20]), says("ok")]);
    let sizes: Vec<usize> = played.script.results(1).iter().map(|result| result.text.len()).collect();
    assert!(sizes[0] > 30_000 && sizes[19] < 2000 && sizes.iter().sum::<usize>() < 256 * 1024, "{sizes:?}");
    assert!(played.result(1, 19).text.contains("[cut: the results of one reply are too long"));
}
