//! What happens on the way to a run, for whoever shows it: this crate itself says nothing to anybody.

use crate::assumptions::Assumptions;
use crate::request::PlaceRequest;
use ralph_loop_core::{LiveStatus, Observer};
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::state::RunState;
use ralph_loop_git::LeftOut;
use ralph_loop_protocol::event::Event;
use ralph_loop_protocol::id::{AgentName, RunId};
use ralph_loop_task::config::Settings;
use ralph_loop_task::spec::RunSpec;
use std::path::Path;

/// Something that a person should know.
#[derive(Debug)]
pub enum Notice<'a> {
    /// A copy of the user's tree is made for the agent; a large one takes a while.
    CopyingTree,
    /// An unfinished run of the same task goes on instead of a new one.
    GoingOn {
        /// The run.
        run: &'a RunId,
    },
    /// A new run starts although one of the same task, in a worktree or clone, is not finished.
    OtherUnfinished {
        /// The other one.
        run: &'a RunId,
    },
    /// The work stays on its branch here, although something would publish it.
    StaysHere {
        /// Why.
        reason: &'a str,
    },
    /// Every iteration is pushed, although neither a flag nor the configuration says so: the task names a repo.
    TaskPushes {
        /// Where to.
        url: &'a str,
    },
    /// The code host does not answer now; it may be back by the time there is something to push.
    CodeHostSilent {
        /// What it said.
        reason: String,
    },
    /// What this machine has of a run reaches as far as what was pushed elsewhere.
    HasItAlready,
    /// A run was brought here.
    Brought {
        /// The run.
        run: &'a RunId,
        /// Where it is now.
        folder: &'a Path,
        /// How many iterations it has behind it.
        iterations: u32,
    },
    /// What nobody said and was found out: who works, and what checks the result.
    Assumed {
        /// What was found out.
        assumptions: &'a Assumptions,
        /// The settings that it became part of.
        settings: &'a Settings,
        /// Where the agent works.
        place: &'a PlaceRequest,
    },
    /// The user's own checkout is about to be switched to a new branch.
    Switching {
        /// The folder.
        folder: &'a Path,
        /// The branch that it is on; none where `HEAD` is detached.
        from: Option<&'a str>,
        /// The branch that it will be on.
        to: &'a str,
    },
    /// The branch on the other side has another name, because somebody has one of that name there.
    BranchTaken {
        /// The name that was wished for.
        wanted: &'a str,
        /// The name that it gets.
        named: &'a str,
    },
    /// A run is about to start.
    Starting {
        /// The run.
        spec: &'a RunSpec,
        /// Agents whose cost nobody can know.
        unpriced: &'a [AgentName],
    },
    /// What of the user's tree the agent does not get.
    LeftOut(&'a LeftOut),
    /// A fork begins with what the user had not committed when the first run began.
    WithUnfinished {
        /// The first run.
        run: &'a RunId,
        /// The files.
        files: &'a [String],
    },
    /// The user's folder has changes that are not committed; the worktree or clone begins without them.
    StayBehind {
        /// The files.
        files: &'a [String],
    },
    /// Submodules whose files are not on this machine: no check sees them.
    MissingSubmodules(&'a [String]),
}

/// Shows what happens. Whoever starts runs has one.
pub trait Reporter {
    /// Something that a person should know.
    fn notice(&self, notice: &Notice<'_>);
    /// Who watches the run itself.
    fn observer(&self) -> Box<dyn Observer>;
}

/// Shows nothing: for programs that read the journal.
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
    fn live(&mut self, _: &RunState, _: &LiveStatus<'_>) {}
    fn output(&mut self, _: Stream, _: &[u8]) {}
}
