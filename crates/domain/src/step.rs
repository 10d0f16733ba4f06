//! What a run does next: the answers of the decision.

use crate::state::NeedsHuman;
use jiff::Timestamp;
use ralph_loop_protocol::event::Rung;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::config::Role;

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Make the workspace ready and take the start snapshot.
    Prepare,
    /// One fresh session.
    Work {
        /// Iteration number.
        iteration: u32,
        /// Try.
        attempt: u32,
        /// Who works.
        agent: AgentName,
        /// With which model.
        model: Option<String>,
        /// In which role.
        role: Option<Role>,
        /// Agents passed over, with reasons.
        skipped: Vec<String>,
    },
    /// A session was under way when the engine died: close it.
    CloseInterrupted,
    /// The session does not count: say so and draw the consequences.
    Void,
    /// Record the tree.
    Checkpoint,
    /// Run these verifiers on the recorded tree.
    Verify {
        /// Their names.
        checks: Vec<String>,
    },
    /// A person mended what the checks need: run these again on the work that is there, before anybody is paid.
    Recheck {
        /// Their names.
        checks: Vec<String>,
    },
    /// Judge the iteration and write its receipt.
    Judge,
    /// Wait for a limit to end, or for a person.
    Wait {
        /// For what.
        reason: String,
        /// Until when; `None` waits for a person.
        until: Option<Timestamp>,
    },
    /// Let the doctor read the run, because it is time.
    Diagnose,
    /// Let a critic look at the last changes.
    Criticise,
    /// Climb one rung.
    Mitigate {
        /// Which.
        rung: Rung,
    },
    /// Ask a person and end the process.
    AskPerson(NeedsHuman),
    /// The person has not answered yet: end the process.
    AwaitPerson,
    /// The final check.
    Prove,
    /// Push what there is so far.
    Push,
    /// Hand over.
    Publish,
    /// Look at the checks of the pull request.
    LookAtChecks,
    /// Look at the review of the pull request.
    LookAtReview,
    /// Write into the pull request what its checks and reviewers made of it, and look at it for the last time.
    UpdatePr,
    /// End the run.
    Finish {
        /// Why.
        reason: EndReason,
        /// In one sentence.
        summary: String,
    },
    /// It is over.
    Done,
}
