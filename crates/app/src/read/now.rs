//! The Now line: the view's sentence with a color for its meaning.

use crate::read::facts::RunSnapshot;
use ralph_loop_journal::lock;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::outcome::EndReason;

pub fn line(facts: &RunSnapshot) -> (Tone, String) {
    let state = &facts.state;
    if let Some(pid) = facts.driver.as_ref().map(|driver| driver.pid).filter(|pid| lock::is_stopped(*pid)) {
        let words =
            format!("its process {pid} is stopped (Ctrl-Z, SIGSTOP); run `kill -CONT {pid}` to continue it");
        return (Tone::Attention, words);
    }
    let tone = match &state.result.finished {
        Some(end) if end.reason == EndReason::Completed => Tone::Good,
        Some(_) => Tone::Bad,
        None if state.people.needs_human.is_some() || facts.driver.is_none() || state.wait.is_some() => {
            Tone::Attention
        }
        None => Tone::Plain,
    };
    (tone, facts.view().now)
}

/// What you can do now, as commands to type.
pub fn next(facts: &RunSnapshot) -> Option<String> {
    facts.view().next
}
