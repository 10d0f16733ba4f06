//! Events: everything that happens to a run, one JSON object per line of its journal. Kinds and fields are only ever
//! added.

mod aside;
mod baseline;
mod body;
mod bound;
mod effect;
mod hand_back;
mod handover;
mod kind;
mod parts;
mod people;
mod record;
mod sandbox;
mod session;
mod tests_question;

pub use aside::{ActionFinished, ActionStarted, Criticised, Diagnosed, PromiseAsked, WentBack};
pub use baseline::{Baseline, BaselineChecks};
pub use body::EventBody;
pub use effect::{Effect, EffectIntended};
pub use hand_back::Handed;
pub use handover::{
    ChecksSeen, ChecksState, HandoverFailed, Moved, OverlapFound, OverlapWith, Placed, PrOccasion, PrWritten,
    Pushed, ReviewOutcome, ReviewSeen,
};
pub use parts::{CheckResult, CommitPart, FileChange, Notified, RefMove, Rung, Verdict};
pub use people::{ApprovalApplied, ProofApproved, SpecChanged};
pub use record::Event;
pub use sandbox::{EgressRefused, SandboxFate, SandboxGone, SandboxReady};
pub use session::{Ask, SessionEnd, StopCause};
pub use tests_question::TestsQuestion;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Seq;
    use jiff::Timestamp;

    #[test]
    fn an_event_of_a_newer_version_is_read_as_unknown() {
        let line = r#"{"seq":4,"at":"2026-11-15T12:00:00Z","kind":"teleported","to":"mars"}"#;
        let event: Event = serde_json::from_str(line).unwrap();
        assert_eq!(event.body, EventBody::Unknown);
        assert_eq!(event.seq, Seq(4));
    }

    #[test]
    fn the_kind_in_the_journal_is_the_kind_in_the_code() {
        let body = EventBody::Notice { message: "x".into() };
        let event = Event { seq: Seq(1), at: Timestamp::UNIX_EPOCH, body };
        let value = serde_json::to_value(&event).unwrap();
        assert_eq!(value["kind"], event.body.kind());
        assert_eq!(serde_json::from_value::<Event>(value).unwrap(), event);
    }
}
