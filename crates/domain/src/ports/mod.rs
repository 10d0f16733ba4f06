//! The ports: what the engine needs of the outside world, as small blocking traits over plain data.
//!
//! They block on purpose: a run is one thread that does one thing at a time, and a blocking call with a callback that
//! may say "stop" is the simplest thing that can be killed anywhere. A backend that needs an async runtime owns one.

mod agent;
mod ask;
mod forge;
mod keeper;
mod notifier;
mod provider;
mod sandbox;
mod trace;
mod workspace;

pub use agent::{
    ActionEnd, ActionStart, Agent, AgentRequests, AgentResources, Ask, BrowserInfo, FINAL_MESSAGE_MAX,
    ProcessInfo, ReleaseWhen, SessionReport, SessionRequest, SessionSink,
};
pub use ask::{
    AskAnswer, AskError, AskErrorKind, AskSink, AskTarget, AskedAgent, Asker, EarlierAnswer, NoAskSink,
    Question,
};
pub use forge::{
    Access, CiCheck, CiState, Comment, DismissedApproval, Forge, ForgeError, GitRemote, Issue, NewPr,
    NewStatus, PrChange, PrState, PullRequest, Review, ReviewState,
};
pub use keeper::{Dismissal, SandboxKeeper, SandboxNews};
pub use notifier::{Notification, Notifier, Occasion};
pub use provider::{
    Capabilities, LABEL_OURS, LABEL_RUN, ManagedSandbox, Preview, Resources, SandboxInfo, SandboxProvider,
    SandboxSpec,
};
pub use sandbox::{
    Credentials, Exchange, ExecEnd, ExecOutcome, ExecRequest, ExecSink, Loopback, Sandbox,
    SandboxCapabilities, SandboxError, Stdin, StopCause, Stream, Surroundings, WriteMode,
};
pub use trace::{ExecTrace, TraceKind, TraceStep};
pub use workspace::{
    Baseline, Checkpoint, CheckpointRequest, HandedBack, Lease, Leftover, Leftovers, Outgoing, OutgoingPart,
    OutgoingSide, Publisher, Push, PushEnd, RecordsFor, StateFile, UserTree, Workspace, WorkspaceError,
};

use jiff::Timestamp;
use std::time::Duration;

/// Where the engine's time comes from.
pub trait Clock: Send + Sync {
    /// The current instant, to the millisecond.
    fn now(&self) -> Timestamp;
    /// A monotonic reading, for durations.
    fn elapsed(&self) -> Duration;
    /// Lets this much time pass. Callers wait in small steps, so that a person's word is heard meanwhile.
    fn pause(&self, length: Duration);
    /// The same, but by calling `wait`, which may come back earlier. A clock that is not the machine's lets the time
    /// pass in its own way.
    fn pause_by(&self, length: Duration, wait: &mut dyn FnMut(Duration)) {
        let _ = wait;
        self.pause(length);
    }
}

/// A check that is code of the calling program (the library's custom completion). It looks at the workspace through the
/// sandbox it is given and says why the work is not done. A closure is one.
///
/// An implementer guarantees: the same files give the same answer; it may block, on an async runtime of its own if need be.
pub trait CustomCheck: Send {
    /// Whether the check passes; `Err` says in words why not.
    fn check(&self, sandbox: &dyn Sandbox) -> Result<(), String>;
}

impl<F: Fn(&dyn Sandbox) -> Result<(), String> + Send> CustomCheck for F {
    fn check(&self, sandbox: &dyn Sandbox) -> Result<(), String> {
        self(sandbox)
    }
}
