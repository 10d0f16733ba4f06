//! What a driver is handed and holds. The steps work with it, and the driver's loop with them.

use crate::context::{CancelFlag, Context};
use crate::help::{Helpers, StuckAdvisor};
use crate::observers::Observer;
use crate::refusals::Refusals;
use crate::run_writer::WriterOptions;
use ralph_loop_domain::installed::InstalledFolder;
use ralph_loop_domain::ports::{
    Agent, Clock, CustomCheck, Forge, GitRemote, Notifier, Sandbox, SandboxKeeper, Workspace,
};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::follow::Follower;
use ralph_loop_journal::journal::{Journal, Places};
use ralph_loop_journal::layout::RalphDir;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::{MachineId, Seq, TreeId};
use ralph_loop_protocol::lease::DriverLease;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Everything a driver is handed.
pub struct DriverParts {
    /// The `.ralph/` folder of the agent's tree: what sessions read and write.
    pub dir: RalphDir,
    /// The `.ralph/` folder of the run's own folder; another one where the agent works on a copy of the user's tree.
    pub home: RalphDir,
    /// What runs of this folder know of agents that rest.
    pub cooldowns: PathBuf,
    /// Where the journal's files are.
    pub places: Places,
    /// Where clean checkouts are made.
    pub proof_dir: PathBuf,
    /// Where results of checks at the start of runs are kept, so that the same files are not checked again.
    pub baseline_cache: Option<PathBuf>,
    /// Where commands run.
    pub sandbox: Box<dyn Sandbox>,
    /// The agent's tree.
    pub workspace: Box<dyn Workspace>,
    /// What is installed in the user's folder, for checkouts on this machine.
    pub installed: Vec<InstalledFolder>,
    /// Who can work.
    pub agents: Vec<Box<dyn Agent>>,
    /// Checks that are code of the calling program, by the name of their verifier.
    pub custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The variables of the run: by which its checks find programs, and what leads them into the workspace.
    pub vars: Vars,
    /// Knows the secrets.
    pub redactor: Arc<Redactor>,
    /// Who watches, each told in this order.
    pub observers: Vec<Box<dyn Observer>>,
    /// Ends the run from outside.
    pub cancel: Arc<CancelFlag>,
    /// Who may be called for help.
    pub helpers: Helpers,
    /// What the network rules of the sandbox kept from being reached.
    pub refusals: Refusals,
    /// The code host, where there is one.
    pub forge: Option<Box<dyn Forge>>,
    /// Where branches are pushed to without one.
    pub push_to: Option<GitRemote>,
    /// Who tells people of this run.
    pub notifiers: Vec<Box<dyn Notifier>>,
    /// Who looks after the sandboxes, where they have a life of their own.
    pub keeper: Option<Box<dyn SandboxKeeper>>,
    /// The machine that drives, where it has an id.
    pub machine: Option<MachineId>,
    /// The version of the program that drives, for the journal.
    pub version: Option<String>,
}

impl DriverParts {
    pub(crate) fn writer_options(&self) -> WriterOptions {
        WriterOptions {
            places: self.places.clone(),
            redactor: self.redactor.clone(),
            clock: self.clock.clone(),
            machine: self.machine.clone(),
            version: self.version.clone(),
        }
    }
}

/// What [`Driver::attach`] adds.
pub struct Attached {
    /// Who watches.
    pub observers: Vec<Box<dyn Observer>>,
    /// Who is asked where the run shows signs of being stuck.
    pub on_stuck: Option<Arc<dyn StuckAdvisor>>,
    /// Checks that are code of the calling program, by the name of their verifier.
    pub custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
}

/// Drives one run: all of it with [`Driver::run`], or step by step with [`Driver::step`] and [`Driver::finish`].
pub struct Driver {
    pub(crate) ctx: Context,
    pub(crate) sandbox: Box<dyn Sandbox>,
    pub(crate) workspace: Box<dyn Workspace>,
    pub(crate) installed: Vec<InstalledFolder>,
    pub(crate) agents: Vec<Box<dyn Agent>>,
    pub(crate) helpers: Helpers,
    pub(crate) forge: Option<Box<dyn Forge>>,
    pub(crate) push_to: Option<GitRemote>,
    pub(crate) keeper: Option<Box<dyn SandboxKeeper>>,
    pub(crate) baseline_cache: Option<PathBuf>,
    lease: DriverLease,
    /// The profile that the doctor uses this time, where a person named one.
    pub(crate) doctor_profile: Option<String>,
    /// The version of the task whose file is the baseline.
    pub(crate) spec_version: u32,
    /// The files as a session found them that is to change none.
    pub(crate) read_only_from: Option<TreeId>,
    /// What stood in submodules before the session under way; `None` where none was begun by this process.
    pub(crate) submodules_before: Option<std::collections::BTreeMap<String, String>>,
    /// The checks of the start are to be run once more before the first session.
    pub(crate) baseline_due: bool,
    /// Files that earlier runs left, neither proven nor approved, as far as they were found.
    pub(crate) left_paths: BTreeSet<String>,
}

impl Driver {
    /// A driver of a run in this state.
    pub(crate) fn assemble(
        state: RunState,
        journal: Journal,
        lease: DriverLease,
        parts: DriverParts,
    ) -> Self {
        let mut ctx = Context::new(
            state,
            journal,
            parts.dir,
            parts.home,
            parts.clock,
            parts.redactor,
            parts.observers,
            parts.cancel,
            parts.proof_dir,
        );
        ctx.vars = parts.vars;
        ctx.cooldowns = parts.cooldowns;
        ctx.custom_checks = parts.custom_checks;
        ctx.refusals = parts.refusals;
        ctx.notifiers = parts.notifiers;
        Self {
            ctx,
            sandbox: parts.sandbox,
            workspace: parts.workspace,
            installed: parts.installed,
            agents: parts.agents,
            helpers: parts.helpers,
            forge: parts.forge,
            push_to: parts.push_to,
            keeper: parts.keeper,
            baseline_cache: parts.baseline_cache,
            lease,
            doctor_profile: None,
            spec_version: 1,
            read_only_from: None,
            submodules_before: None,
            baseline_due: false,
            left_paths: BTreeSet::new(),
        }
    }

    /// Everything that it was handed, once it drives no more.
    pub(crate) fn into_parts(self) -> DriverParts {
        let ctx = self.ctx;
        DriverParts {
            dir: ctx.dir,
            home: ctx.home,
            cooldowns: ctx.cooldowns,
            places: ctx.journal.places().clone(),
            proof_dir: ctx.proof_dir,
            baseline_cache: self.baseline_cache,
            sandbox: self.sandbox,
            workspace: self.workspace,
            installed: self.installed,
            agents: self.agents,
            custom_checks: ctx.custom_checks,
            clock: ctx.clock,
            vars: ctx.vars,
            redactor: ctx.redactor,
            observers: ctx.observer.into_all(),
            cancel: ctx.cancel,
            helpers: self.helpers,
            refusals: ctx.refusals,
            forge: self.forge,
            push_to: self.push_to,
            notifiers: ctx.notifiers,
            keeper: self.keeper,
            machine: self.lease.machine,
            version: self.lease.version,
        }
    }

    /// Adds who watches, who is asked and what checks to a driver that others have wired. Whoever watches is told first what
    /// this process has journalled so far.
    pub fn attach(&mut self, hooks: Attached) {
        let Attached { mut observers, on_stuck, custom_checks } = hooks;
        let events = Follower::new(&self.ctx.run.events(), Seq(0)).poll().unwrap_or_default();
        let started = events.iter().rposition(|event| matches!(event.body, EventBody::DriverStarted { .. }));
        // The first process tells of the run's beginning, too.
        let first =
            events.iter().filter(|event| matches!(event.body, EventBody::DriverStarted { .. })).count() <= 1;
        let from = if first { 0 } else { started.unwrap_or(0) };
        for event in &events[from..] {
            observers.iter_mut().for_each(|one| one.event(&self.ctx.state, event));
        }
        self.ctx.observer.add(observers);
        self.ctx.custom_checks.extend(custom_checks);
        if on_stuck.is_some() {
            self.helpers.on_stuck = on_stuck;
        }
    }

    /// This driver's hold on the run, as the journal tells it; whoever holds the lock writes it there, too.
    pub fn lease(&self) -> &DriverLease {
        &self.lease
    }

    /// What is known of the run.
    pub fn state(&self) -> &RunState {
        &self.ctx.state
    }
}
