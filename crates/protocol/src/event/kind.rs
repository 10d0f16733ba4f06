//! The name of each event kind, and which events must not be lost.

use super::EventBody;

impl EventBody {
    /// How many kinds this version knows.
    pub const KINDS: usize = 57;

    /// The kind in the journal.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RunCreated { .. } => "run_created",
            Self::DriverStarted { .. } => "driver_started",
            Self::Placed(_) => "placed",
            Self::Prepared { .. } => "prepared",
            Self::IterationStarted { .. } => "iteration_started",
            Self::SessionEnded { .. } => "session_ended",
            Self::ActionStarted(_) => "action_started",
            Self::ActionFinished(_) => "action_finished",
            Self::EgressRefused(_) => "egress_refused",
            Self::SandboxReady(_) => "sandbox_ready",
            Self::SandboxGone(_) => "sandbox_gone",
            Self::Checkpointed { .. } => "checkpointed",
            Self::HandedBack(_) => "handed_back",
            Self::CheckFinished { .. } => "check_finished",
            Self::ProtectedChanged { .. } => "protected_changed",
            Self::Claimed { .. } => "claimed",
            Self::Ticked { .. } => "ticked",
            Self::IterationEnded { .. } => "iteration_ended",
            Self::IterationVoided { .. } => "iteration_voided",
            Self::CooldownSet { .. } => "cooldown_set",
            Self::CooldownCleared { .. } => "cooldown_cleared",
            Self::AgentDropped { .. } => "agent_dropped",
            Self::WaitStarted { .. } => "wait_started",
            Self::WaitEnded { .. } => "wait_ended",
            Self::BudgetWarning { .. } => "budget_warning",
            Self::Gutter { .. } => "gutter",
            Self::Stuck { .. } => "stuck",
            Self::Mitigated { .. } => "mitigated",
            Self::Diagnosed(_) => "diagnosed",
            Self::Criticised(_) => "criticised",
            Self::PromiseAsked(_) => "promise_asked",
            Self::WentBack(_) => "went_back",
            Self::ControlReceived { .. } => "control_received",
            Self::ControlRefused { .. } => "control_refused",
            Self::SpecChanged(_) => "spec_changed",
            Self::ApprovalApplied(_) => "approval_applied",
            Self::RefsMoved { .. } => "refs_moved",
            Self::Tampered { .. } => "tampered",
            Self::Restored { .. } => "restored",
            Self::NeedsHuman { .. } => "needs_human",
            Self::ProofStarted { .. } => "proof_started",
            Self::ProofFinished { .. } => "proof_finished",
            Self::ProofApproved(_) => "proof_approved",
            Self::ProofVoided { .. } => "proof_voided",
            Self::Published { .. } => "published",
            Self::Pushed(_) => "pushed",
            Self::PrWritten(_) => "pr_written",
            Self::HandoverFailed(_) => "handover_failed",
            Self::ChecksSeen(_) => "checks_seen",
            Self::ReviewSeen(_) => "review_seen",
            Self::OverlapFound(_) => "overlap_found",
            Self::Moved(_) => "moved",
            Self::EffectIntended(_) => "effect_intended",
            Self::Suspended { .. } => "suspended",
            Self::Finished { .. } => "finished",
            Self::Notified(_) => "notified",
            Self::Notice { .. } => "notice",
            Self::Unknown => "unknown",
        }
    }

    /// Whether losing this event in a power cut would lose money, work or a user's decision: it is flushed to disk
    /// before the run continues. (The verdict of an iteration isn't included: it can be recomputed.)
    pub fn must_be_durable(&self) -> bool {
        matches!(
            self,
            Self::RunCreated { .. }
                | Self::Placed(_)
                | Self::Prepared { .. }
                | Self::SessionEnded { .. }
                | Self::Diagnosed(_)
                | Self::Criticised(_)
                | Self::PromiseAsked(_)
                | Self::CooldownSet { .. }
                | Self::ControlReceived { .. }
                | Self::SpecChanged(_)
                | Self::Tampered { .. }
                | Self::NeedsHuman { .. }
                | Self::ProofFinished { .. }
                | Self::ProofApproved(_)
                | Self::Published { .. }
                | Self::PrWritten(_)
                | Self::ReviewSeen(_)
                | Self::Moved(_)
                | Self::EffectIntended(_)
                | Self::Finished { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_counted() {
        let named = include_str!("kind.rs").lines().filter(|line| line.starts_with("            Self::"));
        // The last one is for unknown kinds.
        assert_eq!(named.filter(|line| line.contains("=> \"")).count() - 1, EventBody::KINDS);
    }
}
