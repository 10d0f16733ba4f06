//! A probed agent's output: login URLs and questions are shown immediately, the rest if it fails.

use crate::output::Out;
use ralph_loop_agents::probe::{ProbeReport, ProbeStatus};
use ralph_loop_core::CancelToken;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::{Clock as _, SessionSink, StopCause, Stream};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{one_line, tail};
use ralph_loop_task::config::AgentConfig;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Output kept.
const KEPT: usize = 8 * 1024;
/// Lines shown while it works.
const SHOWN_MAX: usize = 20;
/// Questions end without a newline, so a pause ends a line.
const SILENCE: Duration = Duration::from_millis(700);

/// Receives one agent's output.
pub struct Sink<'a> {
    name: String,
    cancel: &'a Arc<CancelToken>,
    redactor: &'a Redactor,
    out: &'a Out,
    clock: SystemClock,
    /// The current line of each stream, with the time of the last change.
    lines: [(Vec<u8>, Duration); 2],
    said: String,
    shown: usize,
}

impl<'a> Sink<'a> {
    /// For this agent.
    pub fn new(
        agent: &AgentConfig,
        cancel: &'a Arc<CancelToken>,
        redactor: &'a Redactor,
        out: &'a Out,
    ) -> Self {
        Self {
            name: agent.name.to_string(),
            cancel,
            redactor,
            out,
            clock: SystemClock::default(),
            lines: Default::default(),
            said: String::new(),
            shown: 0,
        }
    }

    /// Adds the output of a failing agent to the report.
    pub fn add_to(mut self, report: &mut ProbeReport) {
        for at in 0..self.lines.len() {
            self.end_line(at);
        }
        let said = one_line(tail(self.said.trim(), 400), 400);
        if report.status == ProbeStatus::Timeout && !said.is_empty() {
            report.message = format!("{}; it printed: {said}", report.message);
        }
    }

    fn end_line(&mut self, at: usize) {
        let bytes = std::mem::take(&mut self.lines[at].0);
        let line = String::from_utf8_lossy(&bytes);
        let line = self.redactor.text(line.trim()).into_owned();
        // Events in an agent's format aren't for users.
        if line.is_empty() || line.starts_with(['{', '[']) && !line.starts_with("[y") {
            return;
        }
        self.said.push_str(&line);
        self.said.push('\n');
        if self.said.len() > 2 * KEPT {
            self.said = tail(&self.said, KEPT).to_owned();
        }
        if self.shown < SHOWN_MAX && wants_a_person(&line) {
            self.shown += 1;
            let name = self.out.err(Tone::Attention, &format!("{} says:", self.name));
            self.out.say(format!("  {name} {}", one_line(&line, 500)));
        }
    }
}

/// Whether a line asks the user to do something.
fn wants_a_person(line: &str) -> bool {
    let lower = line.to_lowercase();
    let asks = [
        "log in",
        "login",
        "sign in",
        "authenticat",
        "password",
        "press enter",
        "(y/n)",
        "[y/n]",
        "enter the code",
    ];
    lower.contains("https://")
        || lower.contains("http://")
        || line.ends_with('?')
        || asks.iter().any(|w| lower.contains(w))
}

impl SessionSink for Sink<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let at = usize::from(stream == Stream::Stderr);
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let line = &mut self.lines[at];
            if line.0.len() < KEPT {
                line.0.extend_from_slice(part);
            }
            line.1 = self.clock.elapsed();
            if part.ends_with(b"\n") || part.ends_with(b"\r") {
                self.end_line(at);
            }
        }
    }
    fn activity(&mut self, line: &str) {
        if self.out.verbose {
            self.out.say(format!("  {}", self.out.err(Tone::Muted, line)));
        }
    }
    fn action(&mut self, _json_line: &str) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        for at in 0..self.lines.len() {
            let silent = self.clock.elapsed().saturating_sub(self.lines[at].1) > SILENCE;
            if silent && !self.lines[at].0.is_empty() {
                self.end_line(at);
            }
        }
        match self.cancel.get() {
            Some(_) => ControlFlow::Break(StopCause::Cancelled),
            None => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_questions_are_for_a_person() {
        for line in
            ["Open https://example.org/device", "Do you trust this folder?", "Please log in", "Password:"]
        {
            assert!(wants_a_person(line), "{line}");
        }
        assert!(!wants_a_person("loading extensions"));
    }
}
