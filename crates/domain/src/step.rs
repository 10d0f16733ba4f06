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
    /// Prepare the workspace, take the start snapshot, and run the checks on it; or run them again, because what they
    /// lacked may be installed now.
    Prepare,
    /// One fresh session.
    Work(NextSession),
    /// Record what a session left.
    Checkpoint(Left),
    /// Run these verifiers: on the recorded tree, or on the existing work after you fixed what they need, before
    /// spending money.
    Verify {
        /// Their names.
        checks: Vec<String>,
    },
    /// Judge the iteration and write its receipt.
    Judge,
    /// Help a stuck run.
    Recover(Help),
    /// Wait for a limit to end, or for the user.
    Wait {
        /// What it waits for.
        reason: String,
        /// When it ends; `None` waits for the user.
        until: Option<Timestamp>,
    },
    /// The final check.
    Prove,
    /// Push, hand over, or read what the code host says.
    Publish(Due),
    /// Ask the user and end the process.
    AskUser(NeedsHuman),
    /// End the run.
    Finish {
        /// Why.
        reason: EndReason,
        /// One sentence.
        summary: String,
    },
    /// Nothing: end the process.
    Done(DoneReason),
}

/// The session to start.
#[derive(Debug, Clone, PartialEq)]
pub struct NextSession {
    /// Iteration number.
    pub iteration: u32,
    /// Try.
    pub attempt: u32,
    /// The agent.
    pub agent: AgentName,
    /// The model.
    pub model: Option<String>,
    /// The role.
    pub role: Option<Role>,
    /// Skipped agents, with reasons.
    pub skipped: Vec<String>,
}

/// What a session left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Its tree.
    Work,
    /// It was active when the engine died: close it.
    Interruption,
    /// It doesn't count: record that and its consequences.
    Void,
}

/// Help for a stuck run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    /// A recovery step.
    Rung(Rung),
    /// The doctor analyzes the run.
    Doctor,
    /// A critic reviews the last changes.
    Critic,
}

/// What is due on the code host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Push the work so far.
    Push,
    /// Hand over.
    HandOver,
    /// Read the checks of the pull request.
    Checks,
    /// Read the review of the pull request.
    Review,
    /// Write the results of checks and reviews into the pull request, and read it for the last time.
    Update,
}

/// Why nothing is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoneReason {
    /// The run is over.
    Ended,
    /// The user hasn't answered yet.
    NeedsUser,
}
