//! A run that this process drives: ready to, and when it is over.

use crate::dotenv_lines::DotenvWatch;
use crate::environment::{Environment, dotenv_pairs};
use crate::older;
use ralph_loop_core::driver::Attached;
use ralph_loop_core::{Driver, Observer};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::layout::StateHome;
use ralph_loop_journal::lock::RunLock;
use ralph_loop_journal::{shown, snapshot};
use ralph_loop_protocol::outcome::RunResult;
use ralph_loop_task::spec::RunSpec;
use std::path::PathBuf;

/// A run whose driver only has to be run. It holds the lock of the run's folder.
pub struct ReadyRun {
    pub(crate) driver: Driver,
    pub(crate) lock: RunLock,
    pub(crate) vars: Vars,
    pub(crate) home: StateHome,
    pub(crate) dotenv: DotenvWatch,
}

/// Watches what comes into the `.env` of a run's repo.
pub(crate) fn watch_dotenv(vars: &Vars, home: &StateHome, spec: &RunSpec) -> DotenvWatch {
    DotenvWatch::begin(home, &spec.origin, spec.run_id.as_str(), &dotenv_pairs(vars, &spec.origin))
}

impl ReadyRun {
    /// What the run is.
    pub fn spec(&self) -> &RunSpec {
        &self.driver.state().spec
    }

    /// The folder of its record.
    pub fn record(&self) -> PathBuf {
        self.home.record(&self.spec().run_id).path().to_owned()
    }

    /// Knows the secrets that nothing written about this run may hold.
    pub fn redactor(&self) -> Redactor {
        Environment::new(self.vars.clone(), "/").redactor(&self.spec().origin)
    }

    /// Adds somebody who watches.
    pub fn watched_by(&mut self, observer: Box<dyn Observer>) {
        let observers = vec![observer];
        self.driver.attach(Attached { observers, on_stuck: None, custom_checks: Default::default() });
    }

    /// Drives the run to its end.
    pub fn run(self) -> FinishedRun {
        self.run_by(|driver| (driver.run(), String::new())).0
    }

    /// The same, with everything that it has changed as a patch.
    pub fn run_with_diff(self) -> (FinishedRun, String) {
        self.run_by(|driver| {
            let (result, diff, _) = driver.run_and_release();
            (result, diff)
        })
    }

    fn run_by(self, drive: impl FnOnce(Driver) -> (RunResult, String)) -> (FinishedRun, String) {
        let spec = self.driver.state().spec.clone();
        let (result, diff) = drive(self.driver);
        self.dotenv.end(&dotenv_pairs(&self.vars, &spec.origin));
        let state = snapshot::load(&self.home.record(&spec.run_id)).ok();
        (FinishedRun { result, spec, state, vars: self.vars, home: self.home, _lock: self.lock }, diff)
    }
}

/// A run that this process has driven to its end, or to where a person is needed.
pub struct FinishedRun {
    /// How it went.
    pub result: RunResult,
    /// What it was.
    pub spec: RunSpec,
    /// What its record says; none where that cannot be read.
    pub state: Option<RunState>,
    vars: Vars,
    pub(super) home: StateHome,
    _lock: RunLock,
}

impl FinishedRun {
    /// Notes that somebody has seen how it ended, where it has.
    pub fn mark_seen(&self) {
        if let Some(entry) = ralph_loop_journal::registry::find(&self.home, &self.spec.run_id)
            && snapshot::load(&entry.run_dir()).is_ok_and(|state| state.result.finished.is_some())
        {
            crate::seen::mark(&entry);
        }
    }

    /// Removes the copy of a run that is over: all that came of it is in the user's own tree and refs. Where the user's own
    /// version of a file was kept, the copy stays, too, and where a larger budget lets the run go on. A large tree takes
    /// its time, so this comes last.
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

/// Whether a run is over for good: no larger budget lets it go on.
pub(super) fn has_ended(state: &RunState) -> bool {
    state.result.finished.as_ref().is_some_and(|end| !end.reason.is_budget())
}

/// What is known of a run whose agent works on a copy.
pub(super) fn handed_state(home: &StateHome, spec: &RunSpec) -> Option<RunState> {
    let entry =
        spec.hands_back().then(|| ralph_loop_journal::registry::find(home, &spec.run_id)).flatten()?;
    snapshot::load(&entry.run_dir()).ok()
}

/// Removes the agent's copy of the user's tree, where the run has one.
pub(super) fn remove_agent_copy(vars: &Vars, home: &StateHome, spec: &RunSpec) {
    if !spec.hands_back() {
        return;
    }
    let folders = older::git_folders(home, &spec.run_id);
    ralph_loop_git::agent_copy::remove(vars, spec.home(), &spec.run_id, &spec.workspace, &folders);
}
