//! The parts and state of a driver.

use crate::context::{CancelToken, Context};
use crate::help::{Helpers, StuckAdvisor};
use crate::observers::Observer;
use crate::refusals::Refusals;
use crate::resume::run_writer::WriterOptions;
use ralph_loop_domain::ports::{
    Agent, Clock, CustomCheck, Forge, GitRemote, Notifier, Sandbox, SandboxKeeper, Workspace,
};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::repo::installed::InstalledFolder;
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::journal::{Journal, RunPaths};
use ralph_loop_journal::live::follow::Follower;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::{MachineId, Seq, TreeId};
use ralph_loop_protocol::lease::DriverLease;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Everything a driver gets.
pub struct RunPorts {
    /// `.ralph/` in the agent's tree, which sessions read and write.
    pub dir: RalphDir,
    /// `.ralph/` in the run's own folder; differs if the agent works on a copy.
    pub home: RalphDir,
    /// Known cooldowns of agents in this folder.
    pub cooldowns: PathBuf,
    pub places: RunPaths,
    /// Where clean checkouts are created.
    pub proof_dir: PathBuf,
    /// Cached baseline check results, so that the same files aren't checked twice.
    pub baseline_cache: Option<PathBuf>,
    pub sandbox: Box<dyn Sandbox>,
    pub workspace: Box<dyn Workspace>,
    /// What is installed in the user's folder, for local checkouts.
    pub installed: Vec<InstalledFolder>,
    /// In the order they take turns.
    pub agents: Vec<Box<dyn Agent>>,
    /// Checks in the calling program, by verifier name.
    pub custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
    pub clock: Arc<dyn Clock>,
    /// The run's variables: checks find programs by them, and they may point into the workspace.
    pub vars: Vars,
    pub redactor: Arc<Redactor>,
    /// Called in this order.
    pub observers: Vec<Box<dyn Observer>>,
    pub cancel: Arc<CancelToken>,
    /// Doctor, critic and other helpers.
    pub helpers: Helpers,
    pub refusals: Refusals,
    /// The code host.
    pub forge: Option<Box<dyn Forge>>,
    /// Push target without a code host.
    pub push_to: Option<GitRemote>,
    pub notifiers: Vec<Box<dyn Notifier>>,
    /// Manages sandboxes that outlive a command.
    pub keeper: Option<Box<dyn SandboxKeeper>>,
    /// This machine's id.
    pub machine: Option<MachineId>,
    /// Version of the driving program, for the journal.
    pub version: Option<String>,
}

impl RunPorts {
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
pub struct RunHooks {
    pub observers: Vec<Box<dyn Observer>>,
    /// Asked when the run shows signs of being stuck.
    pub on_stuck: Option<Arc<dyn StuckAdvisor>>,
    /// Checks in the calling program, by verifier name.
    pub custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
}

/// Drives one run: completely with [`Driver::run`], or step by step with [`Driver::step`] and
/// [`Driver::finish`].
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
    /// Profile for the next diagnosis, if the user chose one.
    pub(crate) doctor_profile: Option<String>,
    /// Task version whose file is the baseline.
    pub(crate) spec_version: u32,
    /// The tree at the start of a read-only session.
    pub(crate) read_only_from: Option<TreeId>,
    /// Submodule contents before the current session; `None` if this process didn't start one.
    pub(crate) submodules_before: Option<std::collections::BTreeMap<String, String>>,
    /// Run the baseline checks again before the first session.
    pub(crate) baseline_due: bool,
    /// Known files of earlier runs that are neither proven nor approved.
    pub(crate) left_paths: BTreeSet<String>,
}

impl Driver {
    pub(crate) fn assemble(state: RunState, journal: Journal, lease: DriverLease, parts: RunPorts) -> Self {
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

    pub(crate) fn into_parts(self) -> RunPorts {
        let ctx = self.ctx;
        RunPorts {
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

    /// Adds observers, advisor and checks to a wired driver. New observers first get the events that this
    /// process already journaled.
    pub fn attach(&mut self, hooks: RunHooks) {
        let RunHooks { mut observers, on_stuck, custom_checks } = hooks;
        let events = Follower::new(&self.ctx.run.events(), Seq(0)).poll().unwrap_or_default();
        let started = events.iter().rposition(|event| matches!(event.body, EventBody::DriverStarted { .. }));
        // The first process also reports the start of the run.
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

    /// This driver's lease, as journaled and written to the lock.
    pub fn lease(&self) -> &DriverLease {
        &self.lease
    }

    pub fn state(&self) -> &RunState {
        &self.ctx.state
    }
}
