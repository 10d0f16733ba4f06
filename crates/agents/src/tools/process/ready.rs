//! When a process counts as ready.

use super::background::{ProcessEnd, ProcessShared};
use crate::tools::halt::{Halt, Stop};
use regex_lite::Regex;
use std::time::{Duration, Instant};

/// How long a process without a signal is watched before it counts as running.
const SETTLE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ready {
    /// It printed its signal or a URL, or it runs and nothing more was requested.
    Yes,
    /// It has ended.
    Ended(ProcessEnd),
    /// Its time is over; it still runs.
    NotYet,
    /// The session must end.
    Halted(Stop),
}

/// Waits for the signal, if any; else for a URL, and then for a moment without failure.
pub(super) fn wait(view: &ProcessShared, signal: bool, limit: Duration, halt: &Halt) -> Ready {
    let until = Instant::now() + if signal { limit } else { limit.min(SETTLE) };
    loop {
        {
            let state = view.state();
            let found = if signal { state.signalled } else { state.url.is_some() };
            if found && state.ended.is_none() {
                return Ready::Yes;
            }
            if let Some(ended) = &state.ended {
                return Ready::Ended(ended.clone());
            }
        }
        if let Some(stop) = halt.get() {
            return Ready::Halted(stop);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return if signal { Ready::NotYet } else { Ready::Yes };
        }
        view.news(left.min(STEP));
    }
}

/// What a process prints when it is ready: a text or a regular expression, whichever matches.
#[derive(Debug)]
pub(crate) struct Signal {
    text: String,
    regex: Option<Regex>,
}

impl Signal {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), regex: Regex::new(text).ok() }
    }
    pub(super) fn is_in(&self, output: &str) -> bool {
        output.contains(&self.text) || self.regex.as_ref().is_some_and(|regex| regex.is_match(output))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_a_text_or_an_expression() {
        assert!(Signal::new("Ready (in").is_in("Ready (in 3 s)"), "no valid expression, but a text");
        assert!(Signal::new("ready in \\d+ ms").is_in("x\nready in 300 ms"));
        assert!(!Signal::new("ready in \\d+ ms").is_in("ready in some ms"));
    }
}
