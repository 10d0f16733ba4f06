//! The port to whoever looks after the sandboxes of a run.

use ralph_loop_protocol::event::{SandboxGone, SandboxReady};

/// Looks after the sandboxes of one run.
///
/// An implementer guarantees: neither method fails; what cannot be done is told as news, in words.
pub trait SandboxKeeper: Send {
    /// What happened since the last time.
    fn news(&self) -> Vec<SandboxNews>;
    /// The engine needs them no more; how the run stands decides what becomes of them.
    fn dismiss(&self, end: Dismissal);
}

/// What happened to a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxNews {
    /// One was made, or found again.
    Ready(SandboxReady),
    /// One is gone.
    Gone(SandboxGone),
    /// Something that a person may want to know.
    Notice(String),
}

/// How a run stands when its sandboxes are let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dismissal {
    /// It is over, and its result is safe: proven on the runner's side, or pushed with its state.
    Safe,
    /// It may go on later.
    Unfinished,
}
