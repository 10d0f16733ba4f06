//! The next step of a run: the result of the decision.

use crate::state::NeedsHuman;
use jiff::Timestamp;
use ralph_loop_protocol::event::Rung;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::config::Role;

/// The next step.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Prepare the workspace and take the start snapshot.
    Prepare,
    /// One fresh session.
    Work {
        /// Iteration number.
        iteration: u32,
        /// Try.
        attempt: u32,
        /// The agent.
        agent: AgentName,
        /// The model.
        model: Option<String>,
        /// The role.
        role: Option<Role>,
        /// Skipped agents, with reasons.
        skipped: Vec<String>,
    },
    /// A session was active when the engine died: close it.
    CloseInterrupted,
    /// The session doesn't count: record that and its consequences.
    Void,
    /// Record the tree.
    Checkpoint,
    /// Run these verifiers on the recorded tree.
    Verify {
        /// Their names.
        checks: Vec<String>,
    },
    /// You fixed what the checks need: repeat these on the existing work, before spending money.
    Recheck {
        /// Their names.
        checks: Vec<String>,
    },
    /// Judge the iteration and write its receipt.
    Judge,
    /// Wait for a limit to end, or for the user.
    Wait {
        /// What it waits for.
        reason: String,
        /// When it ends; `None` waits for the user.
        until: Option<Timestamp>,
    },
    /// Have the doctor analyze the run.
    Diagnose,
    /// Have a critic review the last changes.
    Criticise,
    /// Try a recovery step.
    Mitigate {
        /// The step.
        rung: Rung,
    },
    /// Ask the user and end the process.
    AskPerson(NeedsHuman),
    /// The user hasn't answered yet: end the process.
    AwaitPerson,
    /// The final check.
    Prove,
    /// Push the work so far.
    Push,
    /// Hand over.
    Publish,
    /// Read the checks of the pull request.
    LookAtChecks,
    /// Read the review of the pull request.
    LookAtReview,
    /// Write the results of checks and reviews into the pull request, and read it for the last time.
    UpdatePr,
    /// End the run.
    Finish {
        /// Why.
        reason: EndReason,
        /// One sentence.
        summary: String,
    },
    /// The run is over.
    Done,
}
