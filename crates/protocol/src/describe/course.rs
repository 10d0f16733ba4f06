//! Describes rests, waits, recovery steps and user interventions.

use super::{Moment, Tone};
use crate::control::Control;
use crate::display::text::{duration, one_line};
use crate::event::{Criticised, Diagnosed, EventBody, PromiseAsked, Rung};
use crate::money::{Usage, Usd};
use std::time::Duration;

pub(super) fn words(body: &EventBody, moment: &Moment<'_>) -> Option<(Tone, String)> {
    let said = match body {
        EventBody::CooldownSet { agent, until, reason } => {
            (Tone::Attention, format!("{agent} is in cooldown until {}: {reason}", moment.until(*until)))
        }
        EventBody::CooldownCleared { agent } => (Tone::Plain, format!("{agent} may work again")),
        EventBody::AgentDropped { agent, reason } => {
            (Tone::Bad, format!("{agent} takes no further part: {reason}"))
        }
        EventBody::WaitStarted { reason, until: Some(until), .. } => {
            (Tone::Attention, format!("waiting until {}: {reason}", moment.until(*until)))
        }
        EventBody::WaitStarted { reason, .. } => (Tone::Attention, format!("waiting: {reason}")),
        EventBody::WaitEnded { waited_ms } => {
            (Tone::Muted, format!("waited {}", duration(Duration::from_millis(*waited_ms))))
        }
        EventBody::BudgetWarning { message, .. } => (Tone::Attention, format!("budget: {message}")),
        EventBody::Gutter { loop_score, evidence, .. } => {
            (Tone::Attention, format!("stuck (loop score {loop_score:.1}): {}", evidence.join("; ")))
        }
        EventBody::Stuck { evidence, .. } => {
            (Tone::Attention, format!("may be stuck: {}", evidence.join("; ")))
        }
        EventBody::Mitigated { rung, benched, substitute, .. } => {
            let text = match (rung, benched, substitute) {
                (Rung::Nudge, ..) => "next: a session that is shown the evidence".to_owned(),
                (Rung::Rotate, ..) => "next: a fresh session that knows what was tried".to_owned(),
                (_, _, Some((agent, model))) => format!("next: {agent} with {model}"),
                (_, Some(agent), _) => format!("next: an agent other than {agent}"),
                (Rung::Fallback, ..) => "next: a fallback".to_owned(),
                (Rung::Doctor, ..) => "next: a session that knows what the doctor found".to_owned(),
                (Rung::Pause, ..) => "next: waiting for you".to_owned(),
            };
            (Tone::Attention, text)
        }
        EventBody::Diagnosed(Diagnosed { by, summary, usage, .. }) => {
            (Tone::Attention, format!("doctor ({by}{}): {}", price(usage), one_line(summary, 300)))
        }
        EventBody::WentBack(news) => (Tone::Attention, news.why.clone()),
        EventBody::Criticised(Criticised { by, objections, usage, .. }) if objections.is_empty() => {
            let cost = price(usage);
            if cost.is_empty() {
                return None;
            }
            (Tone::Muted, format!("critic ({by}{cost}): no objections"))
        }
        EventBody::Criticised(Criticised { by, objections, usage, .. }) => {
            (Tone::Attention, format!("critic ({by}{}): {}", price(usage), one_line(objections, 300)))
        }
        EventBody::PromiseAsked(PromiseAsked { agent, promised, answer, usage, .. }) => {
            let said = match promised {
                true => "it says so".to_owned(),
                false => format!("not yet: {}", one_line(answer, 200)),
            };
            let asked = format!(
                "the checks pass without a promise; asked whether the task is done ({agent}{})",
                price(usage)
            );
            (Tone::Muted, format!("{asked}: {said}"))
        }
        EventBody::ControlReceived { letter, .. } => {
            let said = match &letter.control {
                Control::Note { text } | Control::Nudge { text } | Control::Guardrail { text } => {
                    format!(": {}", one_line(text, 120))
                }
                Control::Model { model, agent, always } => {
                    let who = agent.as_ref().map(|agent| format!(" for {agent}")).unwrap_or_default();
                    let long = if *always { ", from now on" } else { ", for one iteration" };
                    match model {
                        Some(model) => format!(": {}{who}{long}", one_line(model, 80)),
                        None => format!(": the configured one{who}"),
                    }
                }
                Control::Publish(to) if to.pr => {
                    format!(": a pull request from {}", one_line(&to.branch, 120))
                }
                Control::Publish(to) => format!(": {}", one_line(&to.branch, 120)),
                Control::Skip { agent: Some(agent) } => format!(": {agent}"),
                Control::Cooldown { agent, seconds: 0 } => format!(": {agent} is free again"),
                Control::Cooldown { agent, seconds } => {
                    format!(": {agent} for {}", duration(Duration::from_secs(*seconds)))
                }
                _ => String::new(),
            };
            (Tone::Plain, format!("{} from {}{said}", letter.control.name(), sender(&letter.from)))
        }
        EventBody::ControlRefused { reason, .. } => {
            (Tone::Attention, format!("a control was refused: {reason}"))
        }
        EventBody::SpecChanged(news) => (Tone::Plain, format!("the task has version {} now", news.version)),
        EventBody::ApprovalApplied(_) => {
            (Tone::Plain, "approved: refs and configuration as they are now".into())
        }
        EventBody::RefsMoved { moves, left_out } => {
            let list: Vec<&str> = moves.iter().take(5).map(|m| m.name.as_str()).collect();
            let more = match moves.len() + left_out - list.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            match moves.iter().any(|m| m.needs_person) {
                true => (Tone::Attention, format!("moved, not by ralph: {}{more}", list.join(", "))),
                false => (
                    Tone::Muted,
                    format!("moved by the agent or by you, accepted: {}{more}", list.join(", ")),
                ),
            }
        }
        EventBody::Tampered { what } => (Tone::Bad, one_line(what, 400)),
        EventBody::Restored { what } => (Tone::Attention, format!("was gone and is back: {what}")),
        EventBody::NeedsHuman { message, .. } => (Tone::Attention, format!("needs you: {message}")),
        _ => return None,
    };
    Some(said)
}

/// The sender of a control for display: `ana via cli` is `ana (cli)`.
fn sender(from: &str) -> String {
    match from.split_once(" via ") {
        Some((who, face)) => format!("{who} ({face})"),
        None => from.to_owned(),
    }
}

/// What a helper's answer cost, to follow its name; empty if unknown or free.
fn price(usage: &Usage) -> String {
    usage.cost.filter(|cost| *cost > Usd::ZERO).map_or_else(String::new, |cost| format!(", {cost}"))
}
