//! Describes events in one sentence each, for logs, screens and messages. One place, so that every surface says the
//! same.

mod course;
mod handover;
mod session;
mod work;

use crate::display::text::duration;
use crate::event::{CheckResult, Event, EventBody};
use crate::outcome::EndReason;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::time::Duration;
pub use work::in_submodules_words;

/// The tone of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary progress.
    Plain,
    /// Unimportant.
    Muted,
    /// Passing, proven.
    Good,
    /// Needs attention.
    Attention,
    /// Failing.
    Bad,
}

/// Lines of a check's output below its sentence.
const LINES_SHOWN: usize = 6;

/// The event as one sentence; `None` for internal ones. Times of day are in UTC and say so.
pub fn describe(event: &Event) -> Option<(Tone, String)> {
    describe_in(event, None)
}

/// The event with times of day in this zone.
pub fn describe_in(event: &Event, zone: Option<&TimeZone>) -> Option<(Tone, String)> {
    let moment = Moment { at: event.at, zone };
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
        | EventBody::SandboxGone(_) => {
            let (tone, text) = session::words(&event.body)?;
            // The reason names the end of an agent's rest.
            (tone, local_times(&text, event.at, zone))
        }
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
        | EventBody::PromiseAsked(_)
        | EventBody::WentBack(_)
        | EventBody::ControlReceived { .. }
        | EventBody::ControlRefused { .. }
        | EventBody::SpecChanged(_)
        | EventBody::ApprovalApplied(_)
        | EventBody::RefsMoved { .. }
        | EventBody::Tampered { .. }
        | EventBody::Restored { .. }
        | EventBody::NeedsHuman { .. } => course::words(&event.body, &moment)?,
        EventBody::ProofStarted { .. }
        | EventBody::ProofFinished { .. }
        | EventBody::ProofApproved(_)
        | EventBody::ProofVoided { .. }
        | EventBody::Pushed(_)
        | EventBody::PrWritten(_)
        | EventBody::HandoverFailed(_)
        | EventBody::ChecksSeen(_)
        | EventBody::ReviewSeen(_)
        | EventBody::OverlapFound(_)
        | EventBody::Moved(_)
        | EventBody::Published { .. } => handover::words(&event.body, &moment)?,
        EventBody::EffectIntended(intended) => (Tone::Muted, format!("about to {}", intended.effect.words())),
        EventBody::Suspended { by } => {
            (Tone::Attention, format!("suspended by {by}; `ralph resume` continues"))
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

/// The lines below an event's sentence: output of failed checks. Only a few; the logs have all.
pub fn details(event: &Event) -> Vec<String> {
    details_unless(event, &mut |_, _| false)
}

/// The same, with one line for each check whose lines `was_shown` knows already.
pub fn details_unless(event: &Event, was_shown: &mut dyn FnMut(&str, &[String]) -> bool) -> Vec<String> {
    let mut of = |results: &[&CheckResult]| {
        let several = results.len() > 1;
        let mut lines = Vec::new();
        for result in results {
            let evidence = result.evidence(LINES_SHOWN);
            if several && !evidence.is_empty() {
                lines.push(format!("{}:", result.name));
            }
            match !evidence.is_empty() && was_shown(&result.name, &evidence) {
                true => lines.push("same failure".to_owned()),
                false => lines.extend(evidence),
            }
        }
        lines
    };
    match &event.body {
        EventBody::CheckFinished { result, .. } if !result.passed => of(&[result]),
        EventBody::Gutter { tried, .. } if !tried.is_empty() => vec![format!("tried: {}", tried.join("; "))],
        EventBody::ProofFinished { question: Some(question), .. } => question.details(),
        EventBody::ProofFinished { refused, .. } => of(&refused.iter().collect::<Vec<_>>()),
        EventBody::Prepared { checks: Some(checks), .. } if checks.setup_failed.is_some() => {
            let from = checks.setup_lines.len().saturating_sub(LINES_SHOWN);
            checks.setup_lines[from..].to_vec()
        }
        EventBody::Prepared { checks: Some(checks), .. } => {
            of(&checks.results.iter().filter(|result| !result.passed).collect::<Vec<_>>())
        }
        _ => Vec::new(),
    }
}

/// The time of an event, and the reader's time zone.
struct Moment<'a> {
    at: Timestamp,
    zone: Option<&'a TimeZone>,
}

impl Moment<'_> {
    /// `19:06 (in 12 min)`: a later time, relative to the event.
    fn until(&self, until: Timestamp) -> String {
        let left = Duration::try_from(until.duration_since(self.at)).unwrap_or_default();
        // Whole minutes from an hour on.
        let left = match left.as_secs() {
            s @ 0..=3599 => Duration::from_secs(s),
            s => Duration::from_secs(s / 60 * 60),
        };
        format!("{} (in {})", clock_time(until, self.at, self.zone), duration(left))
    }
}

/// Replaces every timestamp (`2026-11-15T22:59:30Z`) in a sentence by the reader's local time.
pub fn local_times(text: &str, now: Timestamp, zone: Option<&TimeZone>) -> String {
    let is_part = |c: char| c.is_ascii_digit() || "-:.TZ".contains(c);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(from) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, found) = rest.split_at(from);
        out.push_str(before);
        let end = found.find(|c: char| !is_part(c)).unwrap_or(found.len());
        let word = &found[..end];
        let instant = word.trim_end_matches(['.', ':', '-']);
        match instant.parse::<Timestamp>() {
            Ok(at) => {
                out.push_str(&clock_time(at, now, zone));
                out.push_str(&word[instant.len()..]);
            }
            Err(_) => out.push_str(word),
        }
        rest = &found[end..];
    }
    out.push_str(rest);
    out
}

/// `19:06`, with the date if it isn't that of `now`; in UTC, and marked so, without a zone.
pub fn clock_time(at: Timestamp, now: Timestamp, zone: Option<&TimeZone>) -> String {
    let (tz, mark) = zone.map_or((TimeZone::UTC, " UTC"), |zone| (zone.clone(), ""));
    let (at, now) = (at.to_zoned(tz.clone()), now.to_zoned(tz));
    let form = if at.date() == now.date() { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    format!("{}{mark}", at.strftime(form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_in_sentences_use_the_readers_zone() {
        let now: Timestamp = "2026-11-15T22:50:00Z".parse().unwrap();
        let berlin = TimeZone::fixed(jiff::tz::offset(1));
        let said = "b: limit until 2026-11-15T22:59:30.5Z; 3 of 4 (since 2026-11-14T08:00:00Z).";
        assert_eq!(
            local_times(said, now, Some(&berlin)),
            "b: limit until 23:59; 3 of 4 (since 2026-11-14 09:00)."
        );
        assert_eq!(local_times("10:15 and v1.2.3", now, None), "10:15 and v1.2.3");
    }

    #[test]
    fn times_use_the_readers_zone_and_name_another_day() {
        let [now, soon, tomorrow] = ["2026-11-15T22:50:00Z", "2026-11-15T22:59:30Z", "2026-11-16T04:02:00Z"]
            .map(|text| text.parse::<Timestamp>().unwrap());
        let berlin = TimeZone::posix("CET-1").unwrap();
        let moment = |zone| Moment { at: now, zone };
        assert_eq!(moment(None).until(soon), "22:59 UTC (in 9 min 30 s)");
        assert_eq!(moment(Some(&berlin)).until(soon), "23:59 (in 9 min 30 s)");
        assert_eq!(moment(Some(&berlin)).until(tomorrow), "2026-11-16 05:02 (in 5 h 12 min)");
    }
}
