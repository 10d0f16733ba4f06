//! Runs several tasks in parallel: one `ralph` process each, in its own worktree or clone. The [`Batch`] only
//! starts them, polls them and adds up results.
#![allow(clippy::disallowed_methods, reason = "each run is a separate process with its own guard")]

use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::request::{RunRequest, TaskInput, Workplace};
use crate::run::{task, unfinished};
use ralph_loop_core::handle::RunHandle;
use ralph_loop_domain::state::RunState;
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::control::{BudgetChange, Control, RACE_PREFIX};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Usd;
use serde_json::Value;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// One task of a batch with its process.
pub struct BatchRun {
    request: RunRequest,
    /// The unfinished run of the same task that it continues.
    resumes: Option<RunId>,
    child: Option<Child>,
    log: PathBuf,
    since: Duration,
    result: Option<Value>,
    code: Option<i32>,
}

/// Several runs, with a limit on how many run at once.
pub struct Batch {
    env: Environment,
    home: StateHome,
    program: PathBuf,
    jobs: usize,
    logs: PathBuf,
    runs: Vec<BatchRun>,
}

impl Drop for Batch {
    /// No run continues without its batch.
    fn drop(&mut self) {
        self.cancel();
        let _ = std::fs::remove_dir_all(&self.logs);
    }
}

impl Batch {
    /// Validates every request; starts nothing. A request without a workspace gets a clone.
    pub fn new(env: &Environment, requests: Vec<RunRequest>, jobs: usize) -> Result<Self, AppError> {
        let home = env.state_home()?;
        let Some(program) = env.program().map(Path::to_owned) else {
            return Err(AppError::environment(
                "the `ralph` binary that each run is a process of is not known",
            ));
        };
        if requests.len() > 1 && requests.iter().any(|request| request.branch.is_some()) {
            return Err(AppError::usage(
                "one branch cannot hold several runs: `--branch` is for a single one",
            )
            .hint("leave it out to give each run its own branch, or start them one by one"));
        }
        for request in &requests {
            // Problems of any run are reported before the first one costs money.
            if !matches!(request.task, TaskInput::Found | TaskInput::File(_)) {
                continue;
            }
            let top = find::top(&request.folder);
            task::choose(env, &request.folder, &top, request.file(), request.ticket.as_deref())?;
        }
        let logs = home.path().join("many").join(std::process::id().to_string());
        std::fs::create_dir_all(&logs)
            .map_err(|e| AppError::environment(format!("cannot write `{}`: {e}", logs.display())))?;
        let runs = requests.into_iter().enumerate().map(|(n, request)| BatchRun::new(request, &logs, n));
        let mut runs: Vec<BatchRun> = runs.collect();
        let mut taken: Vec<RunId> = Vec::new();
        for run in &mut runs {
            run.resumes = unfinished_of(env, &home, &run.request).filter(|id| !taken.contains(id));
            taken.extend(run.resumes.clone());
        }
        Ok(Self { env: env.clone(), home, program, jobs: jobs.max(1), logs, runs })
    }

    /// In the order of the requests.
    pub fn runs(&self) -> &[BatchRun] {
        &self.runs
    }

    pub fn is_over(&self) -> bool {
        self.runs.iter().all(|run| run.code.is_some())
    }

    /// Polls the running ones and starts the next. `now` is the time since the start.
    pub fn step(&mut self, now: Duration) -> Result<(), AppError> {
        let running = self.runs.iter().filter(|run| run.child.is_some()).count();
        let waiting = self.runs.iter_mut().find(|run| run.child.is_none() && run.code.is_none());
        if let Some(next) = waiting.filter(|_| running < self.jobs) {
            next.start(&self.env, &self.program, now)?;
        }
        self.runs.iter_mut().for_each(BatchRun::poll);
        Ok(())
    }

    /// Ends every run cleanly and starts no more.
    pub fn cancel(&mut self) {
        self.runs.iter_mut().for_each(BatchRun::cancel);
    }

    /// Ends one run permanently because of `why`; its record stays. A run that hasn't started gets a signal,
    /// or isn't started.
    pub fn stop(&mut self, at: usize, why: &str) {
        let Some(run) = self.runs.get(at) else { return };
        match self.entry(run).filter(|_| run.is_running()) {
            Some(entry) => {
                let from = format!("{RACE_PREFIX}{why}");
                drop(RunHandle::new(entry.run_dir(), from).send(Control::Cancel));
            }
            None => self.runs[at].cancel(),
        }
    }

    /// Sends a run its cost limit; returns whether it could be sent.
    pub fn allow(&mut self, at: usize, most: Usd, why: &str) -> bool {
        let Some(run) = self.runs.get(at).filter(|run| run.is_running()) else { return false };
        let Some(entry) = self.entry(run) else { return false };
        let change = BudgetChange { max_cost: Some(most), ..BudgetChange::default() };
        let from = format!("{RACE_PREFIX}{why}");
        RunHandle::new(entry.run_dir(), from).send(Control::Budget(change)).is_ok()
    }

    /// The state of the run that this process drives or drove.
    pub fn state(&self, run: &BatchRun) -> Option<RunState> {
        find::handle(&self.env, &self.entry(run)?).state().ok()
    }

    fn entry(&self, run: &BatchRun) -> Option<Registration> {
        if let Some(id) = run.result.as_ref().and_then(|result| RunId::parse(result["run_id"].as_str()?).ok())
        {
            return registry::find(&self.home, &id);
        }
        if let Some(id) = &run.request.run_id {
            return registry::find(&self.home, id);
        }
        let pid = run.child.as_ref()?.id();
        find::driven_by(&self.home, &run.request.folder, pid)
    }
}

/// An unfinished run of the same task, which a restart continues.
fn unfinished_of(env: &Environment, home: &StateHome, request: &RunRequest) -> Option<RunId> {
    if !matches!(request.task, TaskInput::Found | TaskInput::File(_)) {
        return None;
    }
    let top = find::top(&request.folder);
    let chosen = task::choose(env, &request.folder, &top, request.file(), request.ticket.as_deref()).ok()?;
    let origin = Repo::discover(env.vars(), &top).ok()?;
    unfinished::beside(home, request, &origin, &chosen.task)
}

impl BatchRun {
    fn new(mut request: RunRequest, logs: &Path, number: usize) -> Self {
        if request.place == Workplace::InPlace {
            let from = find::top(&request.folder).display().to_string();
            request.place = Workplace::Clone { from, depth: None, sparse: Vec::new() };
        }
        let log = logs.join(format!("{number}.json"));
        Self { request, resumes: None, child: None, log, since: Duration::ZERO, result: None, code: None }
    }

    pub fn request(&self) -> &RunRequest {
        &self.request
    }

    /// The unfinished run that it continues.
    pub fn resumes(&self) -> Option<&RunId> {
        self.resumes.as_ref()
    }

    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// Start time, since the batch began.
    pub fn since(&self) -> Duration {
        self.since
    }

    /// The result object printed by its run.
    pub fn result(&self) -> Option<&Value> {
        self.result.as_ref()
    }

    pub fn code(&self) -> Option<i32> {
        self.code
    }

    fn start(&mut self, env: &Environment, program: &Path, now: Duration) -> Result<(), AppError> {
        let failed = |e: std::io::Error| AppError::environment(format!("can't start a separate run: {e}"));
        let request = serde_json::to_vec(&self.request).map_err(|e| failed(e.into()))?;
        let mut command = Command::new(program);
        command.arg("-C").arg(&self.request.folder);
        match &self.resumes {
            Some(run) => command.args(["resume", run.as_str(), "--json", "--quiet"]),
            None => command.args(["run", "--json", "--quiet", "--request", "-"]),
        };
        command.env_clear().envs(env.vars().iter());
        command.stdin(Stdio::piped()).stdout(File::create(&self.log).map_err(failed)?).stderr(Stdio::null());
        // A separate process group: Ctrl-C reaches only this process, which then ends each run cleanly.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // A process that is gone reports why when it is reaped.
            let _ = stdin.write_all(&request);
        }
        self.child = Some(child);
        self.since = now;
        Ok(())
    }

    fn poll(&mut self) {
        let Some(child) = &mut self.child else { return };
        let Ok(Some(status)) = child.try_wait() else { return };
        self.code = Some(status.code().unwrap_or(1));
        self.child = None;
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        self.result = text.lines().last().and_then(|line| serde_json::from_str(line).ok());
    }

    fn cancel(&mut self) {
        match &self.child {
            Some(child) => {
                let pid = nix::unistd::Pid::from_raw(child.id() as i32);
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT);
            }
            None if self.code.is_none() => self.code = Some(130),
            None => {}
        }
    }
}
