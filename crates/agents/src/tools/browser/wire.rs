//! The Chrome DevTools Protocol over two pipes: JSON messages, each ended by a zero byte.

use super::launch::Chromium;
use crate::tools::halt::Halt;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

/// Longest answer; a large page's picture is a few megabytes.
const MESSAGE_MAX: usize = 64 * 1024 * 1024;
const EVENTS_MAX: usize = 2000;
/// How often to check whether the session must end or the browser has died.
const STEP: Duration = Duration::from_millis(50);
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct DevTools {
    chromium: Chromium,
    next: u64,
    buffer: Vec<u8>,
    /// Where the search for a message's end continues.
    searched: usize,
    events: VecDeque<Value>,
    /// The page that commands go to.
    session: Option<String>,
}

impl DevTools {
    pub(super) fn new(chromium: Chromium) -> Self {
        Self { chromium, next: 1, buffer: Vec::new(), searched: 0, events: VecDeque::new(), session: None }
    }

    /// Sends later commands to this session's page.
    pub(super) fn talk_to(&mut self, session: String) {
        self.session = Some(session);
    }

    /// Whether its process still runs.
    pub(super) fn alive(&self) -> bool {
        self.chromium.process.view().state().ended.is_none()
    }

    /// Ends the browser and waits for all its processes.
    pub(super) fn close(mut self) {
        self.send(json!({ "id": 0, "method": "Browser.close" })).ok();
        self.chromium.process.stop();
    }

    pub(super) fn call(&mut self, method: &str, params: Value, halt: &Halt) -> Result<Value, String> {
        let id = self.next;
        self.next += 1;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.send(message)?;
        let until = Instant::now() + TIMEOUT;
        let late = || format!("the browser did not answer {method} within {} s", TIMEOUT.as_secs());
        loop {
            let Some(mut answer) = self.receive(until, halt)? else { return Err(late()) };
            if answer.get("id").and_then(Value::as_u64) != Some(id) {
                self.keep(answer);
                // A page may send events faster than they are read.
                if Instant::now() >= until {
                    return Err(late());
                }
                continue;
            }
            if let Some(error) = answer.pointer("/error/message").and_then(Value::as_str) {
                return Err(error.to_owned());
            }
            return Ok(answer.get_mut("result").map(Value::take).unwrap_or_default());
        }
    }

    /// The next event, waiting until `until`.
    pub(super) fn event(&mut self, until: Instant, halt: &Halt) -> Result<Option<Value>, String> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        loop {
            match self.receive(until, halt)? {
                // A late answer to an abandoned command.
                Some(message) if message.get("method").is_none() => {}
                other => return Ok(other),
            }
        }
    }

    /// While a dialog is open, the page answers nothing: accept it at once.
    fn close_dialog(&mut self) -> Result<(), String> {
        let id = self.next;
        self.next += 1;
        let params = json!({ "accept": true });
        let mut message = json!({ "id": id, "method": "Page.handleJavaScriptDialog", "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.send(message)
    }

    fn keep(&mut self, message: Value) {
        // If there are too many, drops the page's output but keeps its loading events.
        let method = message["method"].as_str().unwrap_or_default();
        let room = if method.starts_with("Page.") { EVENTS_MAX } else { EVENTS_MAX / 2 };
        if !method.is_empty() && self.events.len() < room {
            self.events.push_back(message);
        }
    }

    fn send(&mut self, message: Value) -> Result<(), String> {
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        let until = Instant::now() + TIMEOUT;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            match self.chromium.to.write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error)
                    if error.kind() == ErrorKind::WouldBlock && Instant::now() < until && self.alive() =>
                {
                    wait(&self.chromium.to, PollFlags::POLLOUT, STEP);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("the browser cannot be reached: {error}")),
            }
        }
        Ok(())
    }

    /// The next message; `None` at `until`.
    fn receive(&mut self, until: Instant, halt: &Halt) -> Result<Option<Value>, String> {
        let mut piece = [0; 64 * 1024];
        loop {
            if halt.get().is_some() {
                return Err("stopped, as the session ends".to_owned());
            }
            if let Some(message) = self.whole_message() {
                if message["method"] == "Page.javascriptDialogOpening" {
                    self.close_dialog()?;
                }
                return Ok(Some(message));
            }
            match self.chromium.from.read(&mut piece) {
                Ok(count) => {
                    self.buffer.extend_from_slice(piece.get(..count).unwrap_or_default());
                    if self.buffer.len() > MESSAGE_MAX {
                        self.buffer.clear();
                        self.searched = 0;
                        return Err("the browser's answer is too large".to_owned());
                    }
                    continue;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return Err(format!("the browser cannot be heard: {error}")),
            }
            if !self.alive() {
                return Err(self.why_dead());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            wait(&self.chromium.from, PollFlags::POLLIN, left.min(STEP));
        }
    }

    fn whole_message(&mut self) -> Option<Value> {
        loop {
            let from = self.searched;
            let Some(end) = self.buffer.get(from..)?.iter().position(|byte| *byte == 0) else {
                self.searched = self.buffer.len();
                return None;
            };
            let message = serde_json::from_slice(self.buffer.get(..from + end)?).ok();
            self.buffer.drain(..=from + end);
            self.searched = 0;
            if message.is_some() {
                return message;
            }
        }
    }

    fn why_dead(&self) -> String {
        use super::launch::{MISSING, MISSING_CODE};
        use crate::tools::process::ProcessEnd;
        use ralph_loop_domain::ports::ExecEnd;
        let view = self.chromium.process.view();
        let state = view.state();
        match &state.ended {
            Some(ProcessEnd::Exec(ExecEnd::Exited(MISSING_CODE))) => MISSING.to_owned(),
            Some(ended) => {
                let output = state.output();
                let last = ralph_loop_protocol::display::text::one_line(
                    ralph_loop_protocol::display::text::tail(&output, 600),
                    600,
                );
                format!("the browser {}: {last}", ended.words())
            }
            None => "the browser is gone".to_owned(),
        }
    }
}

fn wait(file: &std::fs::File, flags: PollFlags, limit: Duration) {
    let mut fds = [PollFd::new(file.as_fd(), flags)];
    let timeout = PollTimeout::from(u8::try_from(limit.as_millis().max(1)).unwrap_or(50));
    // The caller checks again in any case.
    poll(&mut fds, timeout).ok();
}
