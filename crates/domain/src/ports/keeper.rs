//! The port for managing the sandboxes of a run.

use ralph_loop_protocol::event::{SandboxGone, SandboxReady};

/// Manages the sandboxes of one run.
///
/// Implementations guarantee: neither method fails; failures are reported as news, as text.
pub trait SandboxKeeper: Send {
    fn news(&self) -> Vec<SandboxEvent>;
    /// The engine no longer needs them; the run's state decides what happens to them.
    fn dismiss(&self, end: Dismissal);
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SandboxEvent {
    /// It was created, or found again.
    Ready(SandboxReady),
    Gone(SandboxGone),
    Notice(String),
}

/// A run's state when its sandboxes are dismissed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dismissal {
    /// It is over, and its result is safe: proven on the runner's side, or pushed with its state.
    Safe,
    Unfinished,
}
