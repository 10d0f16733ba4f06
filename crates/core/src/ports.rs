//! The ports of a run, and its settings from outside.

use crate::cancel::CancelToken;
use crate::help::{Helpers, StuckAdvisor};
use crate::observers::Observer;
use crate::resume::run_writer::WriterOptions;
use ralph_loop_domain::ports::{
    Agent, Clock, CustomCheck, Forge, GitRemote, Notifier, Sandbox, SandboxKeeper, Workspace,
};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::repo::installed::InstalledFolder;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::journal::RunPaths;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::MachineId;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Distinct refusals held; more are counted with the last one.
const WAITING_MAX: usize = 50;

/// What a run reaches the outside world through.
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

/// What [`Run::attach`](crate::run::Run::attach) adds.
pub struct RunHooks {
    pub observers: Vec<Box<dyn Observer>>,
    /// Asked when the run shows signs of being stuck.
    pub on_stuck: Option<Arc<dyn StuckAdvisor>>,
    /// Checks in the calling program, by verifier name.
    pub custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
}

/// Reason and count by host and port.
type PendingRefusals = BTreeMap<(String, u16), (String, u32)>;

/// Hosts that the sandbox blocked: a list that it fills and the engine drains.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<PendingRefusals>>, Arc<Mutex<Vec<String>>>);

impl Refusals {
    pub fn add(&self, host: &str, port: u16, reason: &str) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (one_line(host, 200), port);
        if let Some((_, times)) = waiting.get_mut(&key) {
            *times = times.saturating_add(1);
        } else if waiting.len() < WAITING_MAX {
            waiting.insert(key, (one_line(reason, 200), 1));
        }
    }

    /// Adds a sentence about a connection that wasn't refused.
    pub fn note(&self, sentence: &str) {
        let mut waiting = self.1.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < WAITING_MAX {
            waiting.push(one_line(sentence, 300));
        }
    }

    /// Pending hosts and ports.
    pub fn hosts(&self) -> Vec<(String, u16)> {
        let waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.keys().cloned().collect()
    }

    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.1.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn take(&self) -> PendingRefusals {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
