//! What happens while a run is prepared, for interfaces to show. This crate prints nothing.

use crate::assumptions::Assumptions;
use crate::request::Workplace;
use crate::task::lint::checks::TaskCheck;
use ralph_loop_core::{Observer, SessionProgress};
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::state::RunState;
use ralph_loop_git::LeftOut;
use ralph_loop_protocol::event::Event;
use ralph_loop_protocol::id::{AgentName, RunId};
use ralph_loop_task::config::Settings;
use ralph_loop_task::spec::RunSpec;
use std::path::Path;

/// A message for the user.
#[derive(Debug)]
pub enum Notice<'a> {
    /// The user's tree is being copied for the agent, which takes a while if it is large.
    CopyingTree,
    /// An unfinished run of the same task continues instead of a new one.
    GoingOn { run: &'a RunId },
    /// A new run starts although one of the same task, in a worktree or clone, is unfinished.
    OtherUnfinished { run: &'a RunId },
    /// The work stays on a local branch although something would publish it.
    StaysHere { reason: &'a str },
    /// The task names a repo, so every iteration is pushed without a flag or setting that says so.
    TaskPushes { url: &'a str },
    /// An issue's text isn't the approved one any more; the run works on the approved one.
    EditedSince { issue: u64, by: &'a str },
    /// The code host isn't answering; it may be back when there is something to push.
    CodeHostSilent { reason: String },
    /// This machine already has everything the run pushed.
    HasItAlready,
    /// A run was fetched.
    Brought { run: &'a RunId, folder: &'a Path, iterations: u32 },
    /// What was detected because it wasn't specified: the agents and the check.
    Assumed {
        assumptions: &'a Assumptions,
        /// The settings that include it.
        settings: &'a Settings,
        /// The agent's workspace.
        place: &'a Workplace,
    },
    /// The checks that decide a new run.
    Checks(&'a [TaskCheck]),
    /// The user's own checkout is about to switch to a new branch.
    Switching {
        folder: &'a Path,
        /// The current branch; `None` on a detached `HEAD`.
        from: Option<&'a str>,
        /// The new branch.
        to: &'a str,
    },
    /// The remote branch gets another name, because the wanted one is taken.
    BranchTaken { wanted: &'a str, named: &'a str },
    /// A run is about to start.
    Starting {
        spec: &'a RunSpec,
        /// Agents with unknown cost.
        unpriced: &'a [AgentName],
    },
    /// Parts of the user's tree that the agent doesn't get.
    LeftOut(&'a LeftOut),
    /// A fork starts with changes that were uncommitted when the first run began.
    WithUnfinished { run: &'a RunId, files: &'a [String] },
    /// The user's uncommitted changes aren't in the worktree or clone.
    StayBehind { files: &'a [String] },
    /// Submodules that aren't checked out, so checks don't see their files.
    MissingSubmodules(&'a [String]),
}

/// Shows what happens while a run is prepared.
pub trait Reporter {
    fn notice(&self, notice: &Notice<'_>);
    /// The observer of the run itself.
    fn observer(&self) -> Box<dyn Observer>;
}

/// Shows nothing; for programs that read the journal.
#[derive(Debug, Clone, Copy, Default)]
pub struct SilentReporter;

impl Reporter for SilentReporter {
    fn notice(&self, _: &Notice<'_>) {}
    fn observer(&self) -> Box<dyn Observer> {
        Box::new(Self)
    }
}

impl Observer for SilentReporter {
    fn event(&mut self, _: &RunState, _: &Event) {}
    fn live(&mut self, _: &RunState, _: &SessionProgress<'_>) {}
    fn output(&mut self, _: Stream, _: &[u8]) {}
}
