//! Tests whether an agent works here: one tiny session in the given sandbox.

use crate::cli::CliAgent;
use crate::presets::{install_hint, login_hint, preset_of};
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    Sandbox, SandboxError, SessionReport, SessionRequest, SessionSink, WriteMode,
};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_protocol::id::{AgentName, RunId};
use ralph_loop_task::config::{AgentConfig, AgentKind, PromptMode};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

pub const PROBE_PROMPT: &str = "Reply with the single word OK.";
/// The prompt's file for agents that take one; removed afterwards.
const PROMPT_FILE: &str = ".ralph-probe-prompt.md";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeStatus {
    Ok,
    /// Its program doesn't exist.
    NotFound,
    /// It is not logged in, or has no credit.
    Auth,
    /// It did not answer in time.
    Timeout,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeReport {
    pub name: AgentName,
    pub ok: bool,
    pub status: ProbeStatus,
    /// How the session ended, as in runs; `None` without a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<&'static str>,
    pub seconds: f64,
    /// What happened, in one line.
    pub message: String,
    /// What to do next, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Runs one tiny session of `config` in `sandbox`. `now` is for reset times of limits.
pub fn probe(
    config: &AgentConfig,
    sandbox: &dyn Sandbox,
    timeout: Duration,
    now: Timestamp,
    sink: &mut dyn SessionSink,
) -> ProbeReport {
    if config.kind == AgentKind::Scripted {
        let message = "plays a script; there is nothing to probe".to_owned();
        return ProbeReport { message, ..blank(config, ProbeStatus::Ok) };
    }
    match session(config, sandbox, timeout, now, sink) {
        Ok(report) => judged(config, timeout, &report),
        Err(error @ SandboxError::CannotStart { .. }) => not_found(config, &error.to_string()),
        Err(error) => ProbeReport { message: error.to_string(), ..blank(config, ProbeStatus::Failed) },
    }
}

fn session(
    config: &AgentConfig,
    sandbox: &dyn Sandbox,
    timeout: Duration,
    now: Timestamp,
    sink: &mut dyn SessionSink,
) -> Result<SessionReport, SandboxError> {
    let run = RunId::from("probe");
    let needs_file = config.prompt_mode == PromptMode::File
        || config.command_argv.iter().any(|arg| arg.contains("{{prompt_file}}"));
    let prompt_file = sandbox.root().join(PROMPT_FILE);
    if needs_file {
        sandbox.write(Path::new(PROMPT_FILE), PROBE_PROMPT.as_bytes(), WriteMode::Replace)?;
    }
    let request = SessionRequest {
        run: &run,
        iteration: 1,
        attempt: 1,
        prompt: PROBE_PROMPT,
        prompt_file: &prompt_file,
        cwd: std::path::Path::new(""),
        model: None,
        timeout,
        budget_left: None,
        config,
        now,
        stable: &[],
        protected: &[],
        folder: std::path::Path::new(""),
    };
    let report = CliAgent::new(config.clone()).session_with_prompt_bytes(&request, sandbox, sink);
    if needs_file {
        // A leftover file doesn't mean that the agent is broken.
        let _ = sandbox.remove(Path::new(PROMPT_FILE));
    }
    report
}

fn judged(config: &AgentConfig, timeout: Duration, report: &SessionReport) -> ProbeReport {
    let seconds = report.duration.as_secs_f64();
    let said = text::one_line(&report.final_message, 80);
    let reason = report.end.reason().map_or_else(|| report.end.word().to_owned(), str::to_owned);
    let end = Some(report.end.word());
    let (status, message, hint) = match &report.end {
        SessionEnd::Completed => (ProbeStatus::Ok, format!("answered: {said}"), None),
        _ if report.exit_code == Some(127) => {
            return ProbeReport { seconds, end, ..not_found(config, &reason) };
        }
        SessionEnd::Auth { .. } => (ProbeStatus::Auth, reason, known(config).and_then(login_hint)),
        SessionEnd::Billing { .. } => {
            (ProbeStatus::Auth, reason, Some("add credit to the account, or log in with another"))
        }
        SessionEnd::TimedOut | SessionEnd::IdleTimedOut => (
            ProbeStatus::Timeout,
            format!("no answer within {}", text::duration(timeout.min(config.timeout()))),
            Some("run the command yourself: it may be waiting for a login or for the network"),
        ),
        SessionEnd::RateLimited { .. } => {
            (ProbeStatus::Failed, reason, Some("the agent works, but is at its limit: wait until it resets"))
        }
        SessionEnd::Overloaded { .. } => {
            (ProbeStatus::Failed, reason, Some("the provider is overloaded: try again later"))
        }
        SessionEnd::Unreachable { .. } => (
            ProbeStatus::Failed,
            reason,
            Some("the provider cannot be reached from here: check the network, the proxy and its address"),
        ),
        SessionEnd::Empty => {
            (ProbeStatus::Failed, reason, Some("it exited with 0 and printed nothing: check its arguments"))
        }
        _ => (ProbeStatus::Failed, reason, Some("run the command yourself to see all its output")),
    };
    ProbeReport { seconds, end, message, hint: hint.map(str::to_owned), ..blank(config, status) }
}

fn not_found(config: &AgentConfig, message: &str) -> ProbeReport {
    let program = config.command_argv.first().map_or("", String::as_str);
    let hint = match known(config).and_then(install_hint) {
        Some(install) => format!("install it: {install}"),
        None => format!("install `{program}` or give its full path in \"command_argv\""),
    };
    ProbeReport { message: message.to_owned(), hint: Some(hint), ..blank(config, ProbeStatus::NotFound) }
}

fn known(config: &AgentConfig) -> Option<&'static str> {
    preset_of(&config.command_argv)
}

fn blank(config: &AgentConfig, status: ProbeStatus) -> ProbeReport {
    ProbeReport {
        name: config.name.clone(),
        ok: status == ProbeStatus::Ok,
        status,
        end: None,
        seconds: 0.0,
        message: String::new(),
        hint: None,
    }
}
