//! Loops within one session: the same call with the same result, alternating calls, and monologues. It is fed during
//! the session and keeps a short window.
//!
//! Waiting isn't looping: a call that only waits or polls doesn't count.

use super::{Trace, failure};
use crate::stuck::lines::patch;
pub use ralph_loop_protocol::stuck::SessionLoop;
use std::collections::VecDeque;

const WINDOW: usize = 24;
/// The same call with the same result so often in a row.
const REPEATS: usize = 4;
/// The same failing call so often in a row.
const FAILURES: usize = 3;
/// The same call so often in a row if results are unknown.
const BLIND_REPEATS: usize = 8;
const ROUNDS: usize = 3;
/// Messages in a row without a call.
const MESSAGES: u32 = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionCall {
    pub call: u32,
    /// Digest of the normalized result, if known.
    pub result: Option<u32>,
    pub failed: bool,
    /// Whether it only waits or polls.
    pub waits: bool,
}

impl SessionCall {
    /// From a call and its result. Times, addresses and line numbers of the result are ignored.
    pub fn of(tool: &str, input: &str, result: Option<&str>, failed: bool) -> Self {
        Self {
            call: patch::hash(&format!("{tool}\u{0}{input}")),
            result: result.map(|text| patch::hash(&failure::normalise(text))),
            failed,
            waits: waits(tool, input),
        }
    }
}

/// Whether a call waits for something that runs elsewhere.
fn waits(tool: &str, input: &str) -> bool {
    const TOOLS: [&str; 6] = ["bashoutput", "taskoutput", "wait", "sleep", "poll", "monitor"];
    const COMMANDS: [&str; 11] = [
        "sleep ",
        "gh run ",
        "gh pr checks",
        "gh pr view",
        "--watch",
        "kubectl get",
        "kubectl wait",
        "docker wait",
        "docker ps",
        "tail -f",
        "/status",
    ];
    let tool = tool.to_ascii_lowercase();
    TOOLS.iter().any(|name| tool.contains(name)) || COMMANDS.iter().any(|part| input.contains(part))
}

#[derive(Debug, Clone, Default)]
pub struct SessionWatch {
    calls: VecDeque<SessionCall>,
    streak: usize,
    messages: u32,
    worst: Option<SessionLoop>,
}

impl SessionWatch {
    /// Adds a tool call; returns a loop as soon as there is one.
    pub fn call(&mut self, call: SessionCall) -> Option<SessionLoop> {
        self.messages = 0;
        if call.waits {
            return None;
        }
        self.streak = if self.calls.back() == Some(&call) { self.streak + 1 } else { 1 };
        self.calls.push_back(call);
        if self.calls.len() > WINDOW {
            self.calls.pop_front();
        }
        let found = self.repeated(call).or_else(|| self.alternating());
        self.worst = found.or(self.worst);
        found
    }

    /// Adds a message without a call. Thinking doesn't count.
    pub fn message(&mut self, text: &str) -> Option<SessionLoop> {
        if text.trim().is_empty() {
            return None;
        }
        self.messages += 1;
        let found = (self.messages >= MESSAGES).then_some(SessionLoop::Monologue { messages: self.messages });
        self.worst = found.or(self.worst);
        found
    }

    /// The last loop seen in this session.
    pub fn finish(self) -> Option<SessionLoop> {
        self.worst
    }

    fn repeated(&self, call: SessionCall) -> Option<SessionLoop> {
        let times = self.streak as u32;
        let enough = match (call.result, call.failed) {
            (_, true) => FAILURES,
            (Some(_), false) => REPEATS,
            (None, false) => BLIND_REPEATS,
        };
        match self.streak >= enough {
            true if call.failed => Some(SessionLoop::Failing { times }),
            true => Some(SessionLoop::Repeated { times }),
            false => None,
        }
    }

    fn alternating(&self) -> Option<SessionLoop> {
        (2..=4usize).find_map(|period| {
            let span = period * ROUNDS;
            let start = self.calls.len().checked_sub(span)?;
            let recent: Vec<&SessionCall> = self.calls.iter().skip(start).collect();
            let known = recent.iter().all(|c| c.result.is_some());
            let turns = (period..span).all(|at| recent[at] == recent[at - period]);
            let differ = recent[..period].windows(2).any(|pair| pair[0] != pair[1]);
            (known && turns && differ).then_some(SessionLoop::Alternating { period: period as u32 })
        })
    }
}

/// The newest session looped and left nothing of substance.
pub(super) fn session_loop(traces: &[Trace]) -> Option<String> {
    let newest = traces.last()?;
    let found = newest.evidence.session?;
    (!newest.has_substance()).then(|| format!("within the session, {}", found.words()))
}

#[cfg(test)]
mod tests {
    use super::super::tests::trace;
    use super::*;

    fn feed(calls: &[(&str, &str, &str)]) -> Option<SessionLoop> {
        let mut watch = SessionWatch::default();
        for (tool, input, result) in calls {
            watch.call(SessionCall::of(tool, input, Some(result), false));
        }
        watch.finish()
    }

    #[test]
    fn the_same_call_with_the_same_result_counts_at_the_fourth_time() {
        let same = ("Read", "a.rs", "fn main() {}");
        assert_eq!(feed(&[same; 3]), None);
        assert_eq!(feed(&[same; 4]), Some(SessionLoop::Repeated { times: 4 }));
        let tests: Vec<String> = (0..6)
            .map(|n| format!("{n} of 9 tests pass after an edit {}", ["a", "b"][n % 2].repeat(n)))
            .collect();
        let calls: Vec<_> = tests.iter().map(|r| ("Bash", "cargo test", r.as_str())).collect();
        assert_eq!(feed(&calls), None, "the result moves");
    }

    #[test]
    fn failing_calls_count_earlier_and_times_do_not_hide_them() {
        let mut watch = SessionWatch::default();
        for n in 0..3 {
            let found =
                watch.call(SessionCall::of("Bash", "make", Some(&format!("12:00:0{n} no rule")), true));
            assert_eq!(found.is_some(), n == 2);
        }
    }

    #[test]
    fn calls_that_take_turns_count_after_three_rounds() {
        let (a, b) = (("Read", "a", "1"), ("Read", "b", "2"));
        assert_eq!(feed(&[a, b, a, b, a]), None);
        assert_eq!(feed(&[a, b, a, b, a, b]), Some(SessionLoop::Alternating { period: 2 }));
    }

    #[test]
    fn waiting_is_not_looping() {
        let poll = ("Bash", "sleep 30; gh pr checks 12", "tests pending");
        assert_eq!(feed(&[poll; 20]), None);
        assert_eq!(feed(&[("BashOutput", "shell 1", "building"); 20]), None);
    }

    #[test]
    fn a_monologue_ends_with_a_call() {
        let mut watch = SessionWatch::default();
        for n in 1..=6 {
            assert_eq!(watch.message("I think").is_some(), n == 6);
        }
        watch.call(SessionCall::of("Read", "a", None, false));
        assert!(watch.message("so").is_none());
    }

    #[test]
    fn a_circling_session_counts_only_when_it_left_nothing() {
        let mut t = trace(1, "t", None, 0);
        t.evidence.session = Some(SessionLoop::Repeated { times: 5 });
        assert!(session_loop(std::slice::from_ref(&t)).is_some());
        assert!(session_loop(&[Trace { changed: true, lines: 9, ..t }]).is_none());
    }
}
