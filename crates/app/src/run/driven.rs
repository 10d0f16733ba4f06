//! A run that this process drives, before and after.

use crate::config::dotenv_lines::DotenvWatch;
use crate::environment::{Environment, dotenv_pairs};
use crate::wiring;
use ralph_loop_core::driver::{drive, drive_and_release};
use ralph_loop_core::{Observer, Run, RunHooks};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::{shown, snapshot};
use ralph_loop_journal::lock::RunLock;
use ralph_loop_protocol::outcome::RunResult;
use ralph_loop_task::spec::RunSpec;
use std::path::PathBuf;

/// A run that is ready to drive. Holds the lock of its folder.
pub struct StartedRun {
    pub(crate) run: Run,
    pub(crate) lock: RunLock,
    pub(crate) vars: Vars,
    pub(crate) home: StateHome,
    pub(crate) dotenv: DotenvWatch,
}

/// Watches for new variables in the `.env` of a run's repo.
pub(crate) fn watch_dotenv(vars: &Vars, home: &StateHome, spec: &RunSpec) -> DotenvWatch {
    DotenvWatch::begin(home, &spec.origin, spec.run_id.as_str(), &dotenv_pairs(vars, &spec.origin))
}

impl StartedRun {
    pub fn spec(&self) -> &RunSpec {
        &self.run.state().spec
    }

    pub fn record(&self) -> PathBuf {
        self.home.record(&self.spec().run_id).path().to_owned()
    }

    /// A redactor for the secrets of this run.
    pub fn redactor(&self) -> Redactor {
        Environment::new(self.vars.clone(), "/").redactor(&self.spec().origin)
    }

    /// Adds an observer.
    pub fn watched_by(&mut self, observer: Box<dyn Observer>) {
        let observers = vec![observer];
        self.run.attach(RunHooks { observers, on_stuck: None, custom_checks: Default::default() });
    }

    pub fn run(self) -> RunReport {
        self.run_by(|run| (drive(run), String::new())).0
    }

    /// Like [`Self::run`], with all its changes as a patch.
    pub fn run_with_diff(self) -> (RunReport, String) {
        self.run_by(|run| {
            let (result, diff, _) = drive_and_release(run);
            (result, diff)
        })
    }

    fn run_by(self, drive: impl FnOnce(Run) -> (RunResult, String)) -> (RunReport, String) {
        let spec = self.run.state().spec.clone();
        let (result, diff) = drive(self.run);
        self.dotenv.end(&dotenv_pairs(&self.vars, &spec.origin));
        let state = snapshot::load(&self.home.record(&spec.run_id)).ok();
        (RunReport { result, spec, state, vars: self.vars, home: self.home, _lock: self.lock }, diff)
    }
}

/// A run that this process drove until it ended or needed the user.
pub struct RunReport {
    pub result: RunResult,
    pub spec: RunSpec,
    /// The recorded state; `None` if it can't be read.
    pub state: Option<RunState>,
    vars: Vars,
    pub(super) home: StateHome,
    _lock: RunLock,
}

impl RunReport {
    /// Records that the user has seen the end.
    pub fn mark_seen(&self) {
        if let Some(entry) = ralph_loop_journal::folder::registry::find(&self.home, &self.spec.run_id)
            && snapshot::load(&entry.run_dir()).is_ok_and(|state| state.result.finished.is_some())
        {
            crate::read::seen::mark(&entry);
        }
    }

    /// Removes the agent's copy of a finished run: its result is in the user's tree and refs. The copy stays
    /// if the user's version of a file won, or if a larger budget could continue the run. Last, because a
    /// large tree takes time.
    pub fn tidy_up(self) {
        shown::renew(
            &self.spec.origin,
            &self.spec.run_id,
            &self.home.record(&self.spec.run_id),
            "driver.log",
        );
        let over = |state: &RunState| has_ended(state) && state.work.kept_back.is_empty();
        if self.state.as_ref().is_some_and(over) {
            remove_agent_copy(&self.vars, &self.home, &self.spec);
        }
    }
}

/// Whether no larger budget can continue the run.
pub(super) fn has_ended(state: &RunState) -> bool {
    state.result.finished.as_ref().is_some_and(|end| !end.reason.is_budget())
}

/// The state of a run whose agent works on a copy.
pub(super) fn handed_state(home: &StateHome, spec: &RunSpec) -> Option<RunState> {
    let entry = spec
        .hands_back()
        .then(|| ralph_loop_journal::folder::registry::find(home, &spec.run_id))
        .flatten()?;
    snapshot::load(&entry.run_dir()).ok()
}

/// Removes the agent's copy.
pub(super) fn remove_agent_copy(vars: &Vars, home: &StateHome, spec: &RunSpec) {
    if !spec.hands_back() {
        return;
    }
    let folders = wiring::git_folders(home, &spec.run_id);
    ralph_loop_git::agent_copy::remove(vars, spec.home(), &spec.run_id, &spec.workspace, &folders);
}
