//! The next step of a run: the result of the decision.

use crate::state::NeedsHuman;
use jiff::Timestamp;
use ralph_loop_protocol::event::Rung;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::config::Role;

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Prepare the workspace, take the start snapshot, and run the checks on it; or run them again, because what they
    /// lacked may be installed now.
    Prepare,
    Work(NextSession),
    Checkpoint(Left),
    /// Run these verifiers: on the recorded tree, or on the existing work after you fixed what they need, before
    /// spending money.
    Verify {
        checks: Vec<String>,
    },
    Judge,
    Recover(Help),
    /// Wait for a limit to end, or for the user.
    Wait {
        reason: String,
        /// When it ends; `None` waits for the user.
        until: Option<Timestamp>,
    },
    Prove,
    /// Push, hand over, or read what the code host says.
    Publish(Due),
    AskUser(NeedsHuman),
    Finish {
        reason: EndReason,
        summary: String,
    },
    /// Nothing: end the process.
    Done(DoneReason),
}

#[derive(Debug, Clone, PartialEq)]
pub struct NextSession {
    pub iteration: u32,
    pub attempt: u32,
    pub agent: AgentName,
    pub model: Option<String>,
    pub role: Option<Role>,
    pub skipped: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    Work,
    /// It was active when the engine died: close it.
    Interruption,
    /// It doesn't count: record that and its consequences.
    Void,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Help {
    Rung(Rung),
    Doctor,
    Critic,
}

/// What is due on the code host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    Push,
    HandOver,
    Checks,
    Review,
    /// Write the results of checks and reviews into the pull request, and read it for the last time.
    Update,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DoneReason {
    Ended,
    NeedsUser,
}
