//! Events in words: one sentence each, for logs, screens and messages. One place, so that every reader tells the same
//! story in the same voice.

mod course;
mod handover;
mod session;
mod work;

use crate::event::{Event, EventBody};
use crate::outcome::EndReason;

/// How an event is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary progress.
    Plain,
    /// Of little interest.
    Muted,
    /// Passing, proven.
    Good,
    /// Wants a look.
    Attention,
    /// Failing.
    Bad,
}

/// An event in one sentence; `None` for those that only the engine needs.
pub fn describe(event: &Event) -> Option<(Tone, String)> {
    let said = match &event.body {
        EventBody::RunCreated { .. }
        | EventBody::DriverStarted { .. }
        | EventBody::Placed(_)
        | EventBody::Prepared { .. }
        | EventBody::IterationStarted { .. }
        | EventBody::SessionEnded { .. }
        | EventBody::ActionStarted(_)
        | EventBody::ActionFinished(_)
        | EventBody::EgressRefused(_)
        | EventBody::SandboxReady(_)
        | EventBody::SandboxGone(_) => session::words(&event.body)?,
        EventBody::Checkpointed { .. }
        | EventBody::HandedBack(_)
        | EventBody::CheckFinished { .. }
        | EventBody::ProtectedChanged { .. }
        | EventBody::Claimed { .. }
        | EventBody::Ticked { .. }
        | EventBody::IterationEnded { .. }
        | EventBody::IterationVoided { .. } => work::words(&event.body)?,
        EventBody::CooldownSet { .. }
        | EventBody::CooldownCleared { .. }
        | EventBody::AgentDropped { .. }
        | EventBody::WaitStarted { .. }
        | EventBody::WaitEnded { .. }
        | EventBody::BudgetWarning { .. }
        | EventBody::Gutter { .. }
        | EventBody::Stuck { .. }
        | EventBody::Mitigated { .. }
        | EventBody::Diagnosed(_)
        | EventBody::Criticised(_)
        | EventBody::WentBack(_)
        | EventBody::ControlReceived { .. }
        | EventBody::ControlRefused { .. }
        | EventBody::SpecChanged { .. }
        | EventBody::ApprovalApplied { .. }
        | EventBody::RefsMoved { .. }
        | EventBody::Tampered { .. }
        | EventBody::Restored { .. }
        | EventBody::NeedsHuman { .. } => course::words(&event.body)?,
        EventBody::ProofStarted { .. }
        | EventBody::ProofFinished { .. }
        | EventBody::ProofVoided { .. }
        | EventBody::Pushed(_)
        | EventBody::PrWritten(_)
        | EventBody::HandoverFailed(_)
        | EventBody::ChecksSeen(_)
        | EventBody::ReviewSeen(_)
        | EventBody::OverlapFound(_)
        | EventBody::Moved(_)
        | EventBody::Published { .. } => handover::words(&event.body)?,
        EventBody::Suspended { by } => {
            (Tone::Attention, format!("suspended by {by}; `ralph resume` goes on"))
        }
        EventBody::Finished { reason, summary } => {
            let tone = if *reason == EndReason::Completed { Tone::Good } else { Tone::Bad };
            (tone, summary.clone())
        }
        EventBody::Notified(told) => {
            let (by, occasion) = (&told.by, told.occasion.as_str());
            match &told.why {
                None => (Tone::Muted, format!("notified by {by}: {occasion}")),
                Some(why) => (Tone::Attention, format!("{by} could not notify anyone of {occasion}: {why}")),
            }
        }
        EventBody::Notice { message } if message.starts_with("warning: ") => {
            (Tone::Attention, message.clone())
        }
        EventBody::Notice { message } => (Tone::Muted, message.clone()),
        EventBody::Unknown => return None,
    };
    Some(said)
}
