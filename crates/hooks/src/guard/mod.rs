//! The guard: whether a tool call of an agent may go ahead.
//!
//! It is the fallback where there is no isolation, never the boundary: what it does not understand in time it refuses, but whoever
//! wants to hide something from a reader of text will find a way. Commands are read with a shell's own grammar ([`shell`]), every
//! program that would be started goes past the [`rules`], and so does every file that a tool reads or writes ([`tools`]).

mod allow;
mod category;
mod limits;
mod links;
mod places;
mod rules;
mod shell;
mod tools;
mod value;
mod wild;

pub use allow::AllowRules;
pub use category::{Category, Refusal};
pub use places::Places;

use serde_json::Value;
use std::sync::mpsc;
use std::time::Duration;

/// How long a decision may take before it is "no". The bounds on size, depth and steps keep it far below.
const TIME_MAX: Duration = Duration::from_secs(2);
/// The parser needs room in proportion to how deep a command is nested.
const STACK: usize = 8 * 1024 * 1024;

/// Decides about tool calls.
#[derive(Debug, Clone)]
pub struct Guard {
    places: Places,
    allow: AllowRules,
}

impl Guard {
    /// A guard over these places, with what the user allows.
    pub fn new(places: Places, allow: AllowRules) -> Self {
        Self { places, allow }
    }

    /// Why a tool call is refused; none where it may go ahead.
    pub fn judge(&self, tool: &str, input: &Value) -> Option<Refusal> {
        tools::judge(&self.places, &self.allow, tool, input)
    }

    /// The same for one command of a shell.
    pub fn judge_command(&self, command: &str) -> Option<Refusal> {
        tools::command(&self.places, &self.allow, command)
    }

    /// The same, with an answer in any case: what takes too long, or breaks the reader, is refused.
    pub fn judge_in_time(&self, tool: &str, input: &Value) -> Option<Refusal> {
        let (send, answer) = mpsc::sync_channel(1);
        let (guard, tool, input) = (self.clone(), tool.to_owned(), input.clone());
        let what = tool.clone();
        let judging = std::thread::Builder::new().stack_size(STACK).spawn(move || {
            let _ = send.send(guard.judge(&tool, &input));
        });
        match (judging, answer.recv_timeout(TIME_MAX)) {
            (Ok(_), Ok(verdict)) => verdict,
            _ => Some(Refusal::new(Category::Unreadable, what, "It could not be checked in time.")),
        }
    }
}

#[cfg(test)]
mod tests;
