//! The context monitor: alerts a session at five thresholds while its context window fills up.

use crate::input::HookInput;
use crate::reply::Reply;
use crate::{HookContext, memory, transcript};

/// The default size of a window, in tokens.
const WINDOW: u64 = 200_000;
/// The thresholds in percent, and what to do at each.
const THRESHOLDS: [(u8, &str); 5] = [
    (50, "Half of the window is used. Read and print less."),
    (60, "Finish your current work before you begin anything else."),
    (
        70,
        "Don't begin anything new. Write what you learned into the progress file, and add stories to tasks.json for what is left.",
    ),
    (
        80,
        "Make the work committable. Write the progress entry, and add stories to tasks.json for what is left.",
    ),
    (
        90,
        "Stop: add stories to tasks.json for what is left, write the progress entry, save everything, and end the session. A fresh one continues.",
    ),
];

/// The alert after a tool call.
pub(crate) fn answer(input: &HookInput, context: &HookContext) -> Reply {
    let Some(fill) = input.transcript_path.as_deref().and_then(transcript::fill) else {
        return Reply::pass();
    };
    let named = context.vars.get("CLAUDE_CONTEXT_WINDOW").and_then(|text| text.trim().parse().ok());
    let window = named.filter(|window| *window > 0).unwrap_or(WINDOW);
    let percent = fill.tokens.saturating_mul(100) / window;
    let reached = THRESHOLDS.iter().rev().find(|(threshold, _)| percent >= u64::from(*threshold));
    let Some((threshold, advice)) = reached else { return Reply::pass() };
    let mut known = memory::recall(input, context);
    if known.alerted >= *threshold {
        return Reply::pass();
    }
    known.alerted = *threshold;
    // Without memory it would alert at every call.
    if !memory::remember(input, context, &known) {
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
