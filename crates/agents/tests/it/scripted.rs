//! The scripted agent plays its script through the sandbox.

use crate::support::{Canned, RecordingSink, play};
use ralph_loop_agents::ScriptedAgent;
use ralph_loop_domain::ports::{Agent, ExecEnd, SessionReport, StopCause};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_task::config::AgentConfig;

fn config() -> AgentConfig {
    AgentConfig::command("demo", &[])
}

fn sandbox() -> Canned {
    Canned::new("out\n", "", ExecEnd::Exited(1))
}

fn turn(script: &str, iteration: u32, sandbox: &Canned, told: &mut RecordingSink) -> SessionReport {
    let agent = ScriptedAgent::from_json(config(), script).unwrap();
    assert_eq!(agent.name().as_str(), "demo");
    play(&agent, &config(), iteration, sandbox, told)
}

fn one(turn_json: &str, sandbox: &Canned) -> SessionReport {
    turn(&format!("{{\"version\":1,\"turns\":[{turn_json}]}}"), 1, sandbox, &mut RecordingSink::default())
}

#[test]
fn a_turn_edits_runs_and_says() {
    let sandbox = sandbox();
    sandbox.put("old", "x");
    let mut told = RecordingSink::default();
    let script = r#"{"version":1,"turns":[
      {"do":[{"write":{"path":"a","content":"one two"}},{"append":{"path":"a","content":" three"}},
             {"replace":{"path":"a","from":"two","to":"2"}},{"remove":{"path":"old"}},
             {"run":{"argv":["cargo","test"]}},{"pause_ms":30}],
       "say":"Done.\n<promise>COMPLETE</promise>","tokens":{"input":5,"output":2},"cost_usd":0.01}]}"#;
    let report = turn(script, 1, &sandbox, &mut told);
    assert_eq!(report.end, SessionEnd::Completed);
    assert_eq!(sandbox.file("a").as_deref(), Some("one 2 three"));
    assert_eq!(sandbox.file("old"), None);
    assert_eq!(sandbox.asked.borrow()[0].argv, ["cargo", "test"]);
    assert!(ralph_loop_domain::text::claim::promises(&report.final_message, "COMPLETE"));
    assert_eq!(report.usage.tokens.unwrap().total(), 7);
    assert_eq!(report.usage.cost.unwrap().dollars(), 0.01);
    assert_eq!(report.duration.as_millis(), 2030);
    assert_eq!(told.activities.len(), 5);
    assert_eq!(told.activities[4], "running `cargo test`");
    assert_eq!(told.actions[2]["name"], "replace");
    assert!(String::from_utf8_lossy(&told.output).starts_with("out\nDone."));
}

#[test]
fn the_iteration_chooses_the_turn_and_the_last_repeats() {
    let script = r#"{"version":1,"turns":[{"say":"first"},{"say":"last"}]}"#;
    let said = |i| turn(script, i, &sandbox(), &mut RecordingSink::default()).final_message;
    assert_eq!([said(1), said(2), said(7)], ["first", "last", "last"]);
}

#[test]
fn a_replay_after_a_kill_is_harmless() {
    let sandbox = sandbox();
    for (content, from, to) in [("let a = 1;", "a = 1", "a = 2"), ("fn x", "fn x", "pub fn x")] {
        sandbox.put("f", content);
        let json =
            format!(r#"{{"do":[{{"replace":{{"path":"f","from":"{from}","to":"{to}"}}}}],"say":"ok"}}"#);
        assert_eq!(one(&json, &sandbox).end, SessionEnd::Completed);
        let once = sandbox.file("f");
        assert_eq!(one(&json, &sandbox).end, SessionEnd::Completed);
        assert_eq!(sandbox.file("f"), once);
    }
}

#[test]
fn scripted_ends_and_mistakes() {
    let sandbox = sandbox();
    sandbox.put("f", "a a");
    let table = [
        (r#"{"end":{"rate_limited":{"reset_after_seconds":60,"reason":"busy"}}}"#, "rate limited", "busy"),
        (r#"{"end":{"fail":"boom"},"say":"<promise>COMPLETE</promise>"}"#, "agent failed", "boom"),
        (r#"{"end":{"empty":true},"do":[{"write":{"path":"g","content":""}}]}"#, "empty answer", ""),
        (r#"{"end":{"auth":"log in"}}"#, "not logged in", "log in"),
        (r#"{}"#, "empty answer", ""),
        (r#"{"do":[{"replace":{"path":"f","from":"a","to":"b"}}]}"#, "agent failed", "2 times"),
        (r#"{"do":[{"replace":{"path":"f","from":"z","to":"b"}}]}"#, "agent failed", "doesn't exist"),
        (r#"{"do":[{"replace":{"path":"none","from":"z","to":"b"}}]}"#, "agent failed", "no such file"),
        (r#"{"do":[{"write":{"path":"../x","content":""}}]}"#, "agent failed", "outside the workspace"),
    ];
    for (json, word, reason) in table {
        let report = one(json, &sandbox);
        assert_eq!(report.end.word(), word, "{json}");
        assert!(report.end.reason().unwrap_or_default().contains(reason), "{json}: {:?}", report.end);
        assert_eq!(report.final_message, "", "{json}");
    }
    let SessionEnd::RateLimited { reset_at, .. } = one(table[0].0, &sandbox).end else { panic!() };
    assert_eq!(reset_at.unwrap().to_string(), "2026-11-15T03:01:00Z");
}

#[test]
fn a_pause_can_be_stopped_and_costs_time() {
    let long = r#"{"version":1,"turns":[{"do":[{"pause_ms":3600000}],"say":"x"}]}"#;
    let mut told = RecordingSink { stop_at: Some((3, StopCause::Cancelled)), ..RecordingSink::default() };
    let report = turn(long, 1, &sandbox(), &mut told);
    assert_eq!(report.end, SessionEnd::Stopped { cause: StopCause::Cancelled });
    let mut hasty = config();
    hasty.timeout_seconds = 0;
    let agent = ScriptedAgent::from_json(hasty.clone(), long).unwrap();
    assert_eq!(play(&agent, &hasty, 1, &sandbox(), &mut RecordingSink::default()).end, SessionEnd::TimedOut);
}

#[test]
fn a_wrong_script_is_refused_with_its_line() {
    let error =
        ScriptedAgent::from_json(config(), "{\"version\":1,\n\"turns\":[{\"sya\":\"x\"}]}").unwrap_err();
    assert_eq!(error.line, 2);
    assert!(error.to_string().contains("unknown field `sya`"), "{error}");
}
