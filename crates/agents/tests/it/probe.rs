//! A probe says whether an agent works here, and how to fix it if not.

use crate::support::{Canned, NOW, RecordingSink};
use ralph_loop_agents::presets::preset;
use ralph_loop_agents::probe::{ProbeReport, ProbeStatus, probe};
use ralph_loop_domain::ports::{ExecEnd, Stdin};
use ralph_loop_task::config::{AgentConfig, PromptMode};
use std::time::Duration;

fn tried(config: &AgentConfig, sandbox: &Canned) -> ProbeReport {
    probe(config, sandbox, Duration::from_secs(300), NOW.parse().unwrap(), &mut RecordingSink::default())
}

#[test]
fn every_outcome_is_named_with_what_to_do() {
    let claude = preset("claude").unwrap();
    let ok = r#"{"type":"result","subtype":"success","is_error":false,"result":"OK","num_turns":1}"#;
    let login = r#"{"type":"result","subtype":"success","is_error":true,"result":"Not logged in"}"#;
    let table = [
        (ok, "", ExecEnd::Exited(0), ProbeStatus::Ok, "answered: OK", ""),
        (login, "", ExecEnd::Exited(1), ProbeStatus::Auth, "Not logged in", "/login"),
        ("", "", ExecEnd::TimedOut, ProbeStatus::Timeout, "no answer within 5 min", "yourself"),
        (
            "",
            "sh: claude: not found",
            ExecEnd::Exited(127),
            ProbeStatus::NotFound,
            "not found",
            "npm install",
        ),
        ("", "boom", ExecEnd::Exited(1), ProbeStatus::Failed, "boom", "yourself"),
    ];
    for (stdout, stderr, end, status, message, hint) in table {
        let report = tried(&claude, &Canned::new(stdout, stderr, end));
        assert_eq!((report.status, report.ok), (status, status == ProbeStatus::Ok), "{report:?}");
        assert!(report.message.contains(message), "{report:?}");
        assert!(report.hint.unwrap_or_default().contains(hint));
    }
}

#[test]
fn missing_program_is_reported() {
    let mut sandbox = Canned::new("", "", ExecEnd::Exited(0));
    sandbox.missing = true;
    let report = tried(&preset("codex").unwrap(), &sandbox);
    assert_eq!(report.status, ProbeStatus::NotFound);
    assert_eq!(report.hint.as_deref(), Some("install it: npm install -g @openai/codex"));
    let report = tried(&AgentConfig::command("x", &["my-agent"]), &sandbox);
    assert!(report.hint.unwrap().contains("`my-agent`"));
}

#[test]
fn the_prompt_needs_no_file_of_the_host() {
    let sandbox = Canned::new("OK", "", ExecEnd::Exited(0));
    let mut config = AgentConfig::command("x", &["x"]);
    assert!(tried(&config, &sandbox).ok);
    assert!(matches!(&sandbox.asked.borrow()[0].stdin, Stdin::Bytes(bytes) if bytes.starts_with(b"Reply")));
    config.prompt_mode = PromptMode::File;
    assert!(tried(&config, &sandbox).ok);
    assert_eq!(sandbox.asked.borrow()[1].argv, ["x", "/w/repo/.ralph-probe-prompt.md"]);
    assert!(sandbox.files.borrow().is_empty(), "the prompt's file is gone");
}
