//! The Now line: one sentence that is always true, and the one next step where a person has one.

use crate::facts::Facts;
use crate::phrases::{age, ago, left, since};
use ralph_domain::describe::Tone;
use ralph_domain::outcome::EndReason;
use ralph_domain::state::Stage;
use std::path::Path;

/// What goes on now.
pub fn line(facts: &Facts) -> (Tone, String) {
    let (state, now) = (&facts.state, facts.now);
    if let Some(end) = &state.finished {
        let tone = if end.reason == EndReason::Completed { Tone::Good } else { Tone::Bad };
        return (tone, format!("{} ({})", end.summary.trim_end_matches('.'), ago(end.at, now)));
    }
    if let Some(need) = &state.needs_human {
        return (Tone::Attention, format!("needs you: {}", need.message));
    }
    if facts.driver.is_none() {
        let id = &facts.entry.run_id;
        return (Tone::Attention, format!("no process drives this run; `ralph resume {id}` goes on"));
    }
    if let Some(wait) = &state.wait {
        return (
            Tone::Attention,
            match (wait.until, &state.paused_by) {
                (Some(until), _) => format!("waiting: {} · goes on in {}", wait.reason, left(until, now)),
                (None, Some(who)) => format!("paused by {who} {}", ago(wait.since, now)),
                (None, None) => format!("waiting for {}: {}", age(since(wait.since, now)), wait.reason),
            },
        );
    }
    (Tone::Plain, work(facts))
}

fn work(facts: &Facts) -> String {
    let state = &facts.state;
    match &state.current {
        Some(current) if current.stage == Stage::Working => {
            let mut text =
                format!("{} is working for {}", current.agent, age(since(current.started_at, facts.now)));
            let log = format!("iterations/{}/output.log", current.iteration);
            let heard = facts.written_at(Path::new(&log)).filter(|at| *at >= current.started_at);
            text.push_str(&match heard {
                Some(at) => format!(" · last output {}", ago(at, facts.now)),
                None => " · no output yet".to_owned(),
            });
            if let Some(activity) = facts.activity() {
                text.push_str(&format!(" · {activity}"));
            }
            text
        }
        Some(current) => format!("checking what {} did in iteration {}", current.agent, current.iteration),
        None if state.baseline.is_none() => "preparing the workspace".to_owned(),
        None if state.proof.as_ref().is_some_and(|p| p.passed) => "handing the result over".to_owned(),
        None if state.candidate => "final check of the result".to_owned(),
        None => "the next session is about to start".to_owned(),
    }
}

/// What a person can do now, as commands to type.
pub fn next(facts: &Facts) -> Option<String> {
    let (state, id) = (&facts.state, &facts.entry.run_id);
    if let Some(end) = &state.finished {
        return Some(match end.reason {
            EndReason::Completed => format!("`ralph show {id}` shows the proof"),
            _ => format!("`ralph show {id}` shows what was tried, `ralph run` starts again"),
        });
    }
    if let Some(need) = &state.needs_human {
        return Some(need.answer(id.as_str()));
    }
    // Where no process drives it, the Now line names the command itself.
    if facts.driver.is_some() && state.wait.is_some() && state.paused_by.is_some() {
        return Some(format!("`ralph resume {id}` goes on"));
    }
    None
}
