//! The command guard: decides whether an agent's tool call may proceed.
//!
//! It is the fallback for sessions without isolation, never the security boundary: it refuses what it can't parse,
//! but a determined attacker can hide a command from it. Commands are parsed with a shell grammar ([`shell`]); every
//! program that would start and every file that a tool names is checked against `rules.toml` ([`rules`], [`paths`]).

mod allow;
mod category;
mod limits;
mod paths;
mod rules;
mod shell;
mod text;
mod tools;

pub use allow::AllowRules;
pub use category::{Category, Refusal};
pub use paths::PathRules;

use serde_json::Value;
use std::sync::mpsc;
use std::time::Duration;

/// A longer decision is a refusal. The limits on size, depth and steps keep it far below.
const TIME_MAX: Duration = Duration::from_secs(2);
/// The parser's stack grows with a command's nesting.
const STACK: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct Guard {
    paths: PathRules,
    allow: AllowRules,
}

impl Guard {
    /// A guard with the folders of a session and the user's exceptions.
    pub fn new(paths: PathRules, allow: AllowRules) -> Self {
        Self { paths, allow }
    }

    pub fn judge(&self, tool: &str, input: &Value) -> Option<Refusal> {
        tools::judge(&self.paths, &self.allow, tool, input)
    }

    pub fn judge_command(&self, command: &str) -> Option<Refusal> {
        tools::command(&self.paths, &self.allow, command)
    }

    /// Judges a tool call in bounded time: refuses one that takes too long, or breaks the parser.
    pub fn judge_in_time(&self, tool: &str, input: &Value) -> Option<Refusal> {
        let (send, answer) = mpsc::sync_channel(1);
        let (guard, tool, input) = (self.clone(), tool.to_owned(), input.clone());
        let what = tool.clone();
        let judging = std::thread::Builder::new().stack_size(STACK).spawn(move || {
            let _ = send.send(guard.judge(&tool, &input));
        });
        match (judging, answer.recv_timeout(TIME_MAX)) {
            (Ok(_), Ok(verdict)) => verdict,
            _ => Some(Refusal::new(Category::Unreadable, what, "It couldn't be checked in time.")),
        }
    }
}
