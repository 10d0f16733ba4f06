//! Describes a session's changes and their verdict.

use super::Tone;
use crate::display::text::{count, duration};
use crate::event::EventBody;
use std::time::Duration;

/// Edits in submodules, which aren't recorded.
pub fn in_submodules_words(files: &[String]) -> String {
    let names: Vec<String> = files.iter().take(5).map(|name| format!("`{name}`")).collect();
    let more = if files.len() > names.len() { ", …" } else { "" };
    format!("edits in a submodule are not part of the result: {}{more}", names.join(", "))
}

pub(super) fn words(body: &EventBody) -> Option<(Tone, String)> {
    let said = match body {
        EventBody::Checkpointed { again: true, .. } => return None,
        EventBody::Checkpointed { files_total, added, removed, dirty_touched, in_submodules, .. } => {
            let mut text = match files_total {
                0 if !in_submodules.is_empty() => "nothing changed that can be handed over".to_owned(),
                0 => "nothing changed".to_owned(),
                n => format!("{} changed, +{added} −{removed}", count(*n, "file")),
            };
            if !dirty_touched.is_empty() {
                text.push_str(&format!("; edited on top of your own changes: {}", dirty_touched.join(", ")));
            }
            if !in_submodules.is_empty() {
                text.push_str(&format!("; {}", in_submodules_words(in_submodules)));
            }
            let quiet = dirty_touched.is_empty() && in_submodules.is_empty();
            (if quiet { Tone::Muted } else { Tone::Attention }, text)
        }
        EventBody::HandedBack(handed) => (Tone::Attention, handed.words()?),
        EventBody::CheckFinished { result, .. } => {
            let time = duration(Duration::from_millis(result.duration_ms));
            let tests = result.tests.map_or_else(String::new, |t| {
                if t.failed > 0 {
                    format!(", {} of {} tests pass", t.passed, t.executed())
                } else {
                    format!(", {}", count(t.passed as usize, "test"))
                }
            });
            if result.passed {
                (Tone::Good, format!("{} passed ({time}{tests})", result.name))
            } else {
                let why = result.why.as_deref().unwrap_or("failed");
                (Tone::Bad, format!("{} failed: {why} ({time}{tests})", result.name))
            }
        }
        EventBody::ProtectedChanged { changes, .. } => {
            let list: Vec<String> =
                changes.iter().take(5).map(|c| format!("{} {}", c.path, c.change.as_str())).collect();
            (Tone::Bad, format!("protected paths differ from the start: {}", list.join(", ")))
        }
        EventBody::Claimed { ids, .. } if ids.is_empty() => return None,
        EventBody::Claimed { ids, .. } => (Tone::Muted, format!("claimed: {}", ids.join(", "))),
        EventBody::Ticked { met, .. } if met.is_empty() => (Tone::Muted, "no criterion is met".into()),
        EventBody::Ticked { met, .. } => (Tone::Good, format!("met: {}", met.join(", "))),
        EventBody::IterationEnded { iteration, verdict, signals, failing, .. } => {
            let score = if signals.loop_score > 0.0 {
                let seen: Vec<String> = signals
                    .seen()
                    .map(|(signal, weight, words)| format!("{} {weight:.1}: {words}", signal.name()))
                    .collect();
                let seen = if seen.is_empty() { String::new() } else { format!(" ({})", seen.join("; ")) };
                format!(", loop score {:.1}{seen}", signals.loop_score)
            } else {
                String::new()
            };
            (Tone::Muted, format!("iteration {iteration}: {}{score}", verdict.words_with(failing)))
        }
        EventBody::IterationVoided { reason, .. } => {
            (Tone::Muted, format!("not counted as an iteration: {reason}"))
        }
        _ => return None,
    };
    Some(said)
}
