//! The ports: what the engine needs of the outside world, as small blocking traits over plain data.
//!
//! They block on purpose: a run is one thread that does one thing at a time, and a blocking call with a callback that
//! may stop it is the simplest thing that can be killed anywhere. A backend that needs an async runtime owns one.

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
pub use keeper::{Dismissal, SandboxEvent, SandboxKeeper};
pub use notifier::{Notification, Notifier, Occasion};
pub use provider::{
    Capabilities, LABEL_OURS, LABEL_RUN, ManagedSandbox, Preview, Resources, SandboxInfo, SandboxProvider,
    SandboxSpec,
};
pub use sandbox::{
    Credentials, ExecEnd, ExecOutcome, ExecRequest, ExecSink, HostAccess, Loopback, Sandbox,
    SandboxCapabilities, SandboxError, SharedDir, Stdin, StopCause, Stream, WriteMode,
};
pub use trace::{ExecTrace, TraceKind, TraceStep};
pub use workspace::{
    Baseline, Checkpoint, CheckpointRequest, HandedBack, Lease, Leftover, Leftovers, Outgoing, OutgoingPart,
    OutgoingSide, Publisher, Push, PushEnd, RecordsFor, StateFile, UserCheckout, Workspace, WorkspaceError,
};

use jiff::Timestamp;
use std::time::Duration;

pub trait Clock: Send + Sync {
    /// The current instant, to the millisecond.
    fn now(&self) -> Timestamp;
    /// A monotonic reading, for durations.
    fn elapsed(&self) -> Duration;
    /// Sleeps. Callers wait in small steps, so that user controls are noticed in between.
    fn pause(&self, length: Duration);
    /// Sleeps by calling `wait`, which may return early. A simulated clock advances in its own way.
    fn pause_by(&self, length: Duration, wait: &mut dyn FnMut(Duration)) {
        let _ = wait;
        self.pause(length);
    }
}

/// A check in the calling program's code (the library's custom completion). It inspects the workspace through its
/// sandbox and says why the work isn't done. A closure is one.
///
/// Implementations guarantee: the same files give the same answer. They may block, and may use their own async
/// runtime.
pub trait CustomCheck: Send {
    /// Whether the check passes; the error says why not.
    fn check(&self, sandbox: &dyn Sandbox) -> Result<(), String>;
    /// Whether agents must not see it: then it only runs in clean checkouts.
    fn is_hidden(&self) -> bool {
        false
    }
    /// Like [`Self::check`], with the variables of a clean checkout.
    fn check_in(&self, sandbox: &dyn Sandbox, _env: &[(String, String)]) -> Result<(), String> {
        self.check(sandbox)
    }
}

impl<F: Fn(&dyn Sandbox) -> Result<(), String> + Send> CustomCheck for F {
    fn check(&self, sandbox: &dyn Sandbox) -> Result<(), String> {
        self(sandbox)
    }
}
