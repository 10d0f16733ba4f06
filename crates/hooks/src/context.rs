//! The context monitor: says when a session's window fills up, at five thresholds, with advice that rises.

use crate::input::HookInput;
use crate::reply::Reply;
use crate::{Surroundings, memory, transcript};

/// Tokens of a window, where nobody says otherwise.
const WINDOW: u64 = 200_000;
/// The thresholds in percent, and what to do at each.
const THRESHOLDS: [(u8, &str); 5] = [
    (50, "Half of the window is used. Go on, and keep what you read and print short."),
    (60, "Finish the piece of work that you are in before you begin another one."),
    (70, "Do not begin anything new. Write what you have learnt into the progress file now."),
    (
        80,
        "Bring the work to a state that can be committed, and commit or leave it so. Write the progress entry.",
    ),
    (
        90,
        "Stop here: write the progress entry, make sure that everything is saved, and end the session. A fresh one goes on.",
    ),
];

/// What a session is told after a tool call.
pub(crate) fn answer(input: &HookInput, around: &Surroundings) -> Reply {
    let Some(fill) = input.transcript_path.as_deref().and_then(transcript::fill) else {
        return Reply::pass();
    };
    let named = around.vars.get("CLAUDE_CONTEXT_WINDOW").and_then(|text| text.trim().parse().ok());
    let window = named.filter(|window| *window > 0).unwrap_or(WINDOW);
    let percent = fill.tokens.saturating_mul(100) / window;
    let reached = THRESHOLDS.iter().rev().find(|(threshold, _)| percent >= u64::from(*threshold));
    let Some((threshold, advice)) = reached else { return Reply::pass() };
    let mut known = memory::recall(input, around);
    if known.told >= *threshold {
        return Reply::pass();
    }
    known.told = *threshold;
    // Who cannot remember would say it at every call.
    if !memory::remember(input, around, &known) {
        return Reply::pass();
    }
    let how = if fill.counted { "" } else { "about " };
    let text = format!(
        "Context: {how}{} of {} tokens used ({percent} %). {advice}",
        thousands(fill.tokens),
        thousands(window)
    );
    Reply::context(
        if input.hook_event_name.is_empty() { "PostToolUse" } else { &input.hook_event_name },
        &text,
    )
}

fn thousands(tokens: u64) -> String {
    if tokens < 1000 { tokens.to_string() } else { format!("{}k", tokens / 1000) }
}
