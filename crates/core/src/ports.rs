//! The ports of a run, and what it is told at its start.

use crate::cancel::CancelFlag;
use crate::help::{Helpers, StuckAdvisor};
use crate::observers::Observer;
use crate::refusals::Refusals;
use crate::resume::run_writer::WriterOptions;
use ralph_loop_domain::ports::{
    Agent, Clock, CustomCheck, Forge, GitRemote, Notifier, Sandbox, SandboxKeeper, Workspace,
};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::repo::installed::InstalledFolder;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::journal::Places;
use ralph_loop_protocol::id::MachineId;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What a run reaches the outside world through.
pub struct RunPorts {
    /// `.ralph/` in the agent's tree, which sessions read and write.
    pub dir: RalphDir,
    /// `.ralph/` in the run's own folder; differs if the agent works on a copy.
    pub home: RalphDir,
    /// Known cooldowns of agents in this folder.
    pub cooldowns: PathBuf,
    pub places: Places,
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
    pub cancel: Arc<CancelFlag>,
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

/// What [`Run::attach`](crate::run::Run::attach) adds.
pub struct RunHooks {
    pub observers: Vec<Box<dyn Observer>>,
    /// Asked when the run shows signs of being stuck.
    pub on_stuck: Option<Arc<dyn StuckAdvisor>>,
    /// Checks in the calling program, by verifier name.
    pub custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
}
