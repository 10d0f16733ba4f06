//! Starts a run in a detached `ralph` process. This process waits only until the run has begun, and never
//! ends it.
#![allow(clippy::disallowed_methods, reason = "a run is a separate process with its own guard")]

use crate::environment::Environment;
use crate::error::AppError;
use crate::race;
use crate::race::races;
use crate::race::races::LaneRecord;
use crate::read::find;
use crate::request::RunRequest;
use crate::resume::publish::PublishRequest;
use crate::steering::own_program;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::folder::registry;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::{RunId, Seq};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Polling interval.
const LOOK: Duration = Duration::from_millis(50);
/// A run that takes longer is copying a very large repo; it continues without being waited for.
const TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// Starts a run and returns its id once its start is journaled.
pub(crate) fn spawn(env: &Environment, request: &RunRequest) -> Result<RunId, AppError> {
    let home = env.state_home()?;
    let log = Log::make(&home)?;
    let mut request = request.clone();
    race::enter(&mut request, SystemClock::default().now())?;
    let request = &request;
    let text = serde_json::to_vec(request).map_err(|e| AppError::environment(e.to_string()))?;
    let child = start(env, &request.folder, &["run", "--detached", "--request", "-"], &text, &log)?;
    let named = request.run_id.as_ref();
    if request.race.is_some() {
        // Each is a separate process, supervised by the one started here.
        let begun = || racing(env, &home, named?);
        return follow(
            child,
            &log,
            |_| begun(),
            |status| begun().map_or_else(|| ended(status, &home, &log), |entry| Ok(entry.run_id)),
        );
    }
    let begun = |pid| driven_by(env, &home, &request.folder, pid, named);
    follow(child, &log, begun, |status| ended(status, &home, &log))
}

/// The first run of a race, once all of them have begun or ended.
fn racing(env: &Environment, home: &StateHome, race: &RunId) -> Option<Registration> {
    let record = races::read(home, race)?;
    let begun = |lane: &LaneRecord| {
        lane.code.is_some()
            || registry::find(home, &lane.run_id).is_some_and(|entry| {
                find::handle(env, &entry)
                    .state()
                    .is_ok_and(|state| state.baseline.is_some() || state.result.finished.is_some())
            })
    };
    let first = registry::find(home, race);
    record.lanes.iter().all(begun).then_some(first).flatten()
}

/// Resumes a run and returns once a process drives it.
pub(crate) fn resume(
    env: &Environment,
    entry: &Registration,
    budgets: &BudgetChange,
) -> Result<(), AppError> {
    let home = env.state_home()?;
    let log = Log::make(&home)?;
    let limits = [
        ("--max-iterations", budgets.max_iterations.map(|most| most.to_string())),
        ("--max-seconds", budgets.max_seconds.map(|most| most.to_string())),
        ("--max-cost", budgets.max_cost.map(|most| most.dollars().to_string())),
        ("--max-tokens", budgets.max_tokens.map(|most| most.to_string())),
    ];
    let mut args = vec!["resume", "--detached", entry.run_id.as_str()];
    for (flag, most) in &limits {
        args.extend(most.as_deref().into_iter().flat_map(|most| [*flag, most]));
    }
    let folder = folder_of(entry, &home);
    let child = start(env, &folder, &args, b"", &log)?;
    let begun = |pid| driven_by(env, &home, &folder, pid, Some(&entry.run_id));
    follow(child, &log, begun, |status| ended(status, &home, &log)).map(drop)
}

/// Publishes the result of a run that has ended.
pub(crate) fn publish(
    env: &Environment,
    entry: &Registration,
    request: &PublishRequest,
) -> Result<(), AppError> {
    let home = env.state_home()?;
    let log = Log::make(&home)?;
    let mut args = vec!["publish", "--detached", entry.run_id.as_str()];
    args.extend(request.push_only.then_some("--push"));
    args.extend(request.draft.then_some("--draft"));
    let texts = [
        ("--branch", &request.branch),
        ("--base", &request.base),
        ("--title", &request.title),
        ("--body", &request.body),
    ];
    for (flag, text) in texts {
        args.extend(text.iter().flat_map(|text| [flag, text.as_str()]));
    }
    let folder = folder_of(entry, &home);
    let child = start(env, &folder, &args, b"", &log)?;
    let begun = |pid| driven_by(env, &home, &folder, pid, Some(&entry.run_id));
    follow(child, &log, begun, |status| ended(status, &home, &log)).map(drop)
}

/// Starts a diagnosis without waiting for it.
pub(crate) fn diagnose(env: &Environment, entry: &Registration) -> Result<(), AppError> {
    let home = env.state_home()?;
    let log = Log::make(&home)?;
    let args = ["diagnose", entry.run_id.as_str()];
    let mut child = start(env, &folder_of(entry, &home), &args, b"", &log)?;
    std::thread::spawn(move || {
        let _ = child.wait();
        let _ = std::fs::remove_file(&log.path);
    });
    Ok(())
}

/// A folder to start in: the run's own may be gone.
fn folder_of(entry: &Registration, home: &StateHome) -> PathBuf {
    let known = [&entry.origin, &entry.workspace].into_iter().find(|folder| folder.is_dir());
    known.cloned().unwrap_or_else(|| home.path().to_owned())
}

/// Waits until the child's run appears or the child ends.
fn follow(
    mut child: Child,
    log: &Log,
    mut seen: impl FnMut(u32) -> Option<Registration>,
    ended: impl FnOnce(ExitStatus) -> Result<RunId, AppError>,
) -> Result<RunId, AppError> {
    let clock = SystemClock::default();
    loop {
        if let Some(entry) = seen(child.id()) {
            log.keep(&entry);
            let run = entry.run_id;
            reap(child);
            return Ok(run);
        }
        if let Ok(Some(status)) = child.try_wait() {
            return ended(status);
        }
        if clock.elapsed() > TIMEOUT {
            let mut message = format!("process {} has not begun its run after 30 minutes", child.id());
            message.push_str(&format!("; its output is in `{}`", log.path.display()));
            reap(child);
            return Err(AppError::environment(message).hint("`ralph list` shows the run once it has begun"));
        }
        clock.pause(LOOK);
    }
}

/// Reaps children, so that starting many runs leaves no zombies.
fn reap(mut child: Child) {
    let _ = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || child.wait());
}

/// Starts `ralph` with these arguments; `input` goes to stdin.
fn start(
    env: &Environment,
    folder: &Path,
    args: &[&str],
    input: &[u8],
    log: &Log,
) -> Result<Child, AppError> {
    let failed = |e: std::io::Error| AppError::environment(format!("can't start a separate run: {e}"));
    let Some(program) = env.program() else {
        return Err(AppError::environment("can't locate the `ralph` executable to start the run"));
    };
    let mut command = Command::new(program);
    command.arg("-C").arg(folder).args(["--json", "--verbose"]).args(args);
    command.env_clear().envs(env.vars().iter());
    let (out, err) = (log.file.try_clone().map_err(failed)?, log.file.try_clone().map_err(failed)?);
    command.stdin(Stdio::piped()).stdout(out).stderr(err);
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A process that is gone reports why when it is reaped.
        let _ = stdin.write_all(input);
    }
    Ok(child)
}

/// The run a process drives, once its journal says so.
fn driven_by(
    env: &Environment,
    home: &StateHome,
    folder: &Path,
    pid: u32,
    named: Option<&RunId>,
) -> Option<Registration> {
    let entry = match named {
        Some(run) => registry::find(home, run).filter(|entry| find::is_driven_by(entry, pid)),
        None => find::driven_by(home, folder, pid),
    }?;
    let events = find::handle(env, &entry).follow(Seq(0)).poll().ok()?;
    let begun = |body: &EventBody| matches!(body, EventBody::DriverStarted { pid: by, .. } if *by == pid);
    let placed = |body: &EventBody| matches!(body, EventBody::Placed(_) | EventBody::Prepared { .. });
    let any = |of: &dyn Fn(&EventBody) -> bool| events.iter().any(|event| of(&event.body));
    // If the workspace can't be created, the caller must get that error.
    (any(&begun) && any(&placed)).then_some(entry)
}

/// The outcome of a process that ended before its run appeared: a short run, or an error.
fn ended(status: ExitStatus, home: &StateHome, log: &Log) -> Result<RunId, AppError> {
    let text = std::fs::read_to_string(&log.path).unwrap_or_default();
    let result = text.lines().rev().find_map(|line| serde_json::from_str::<Value>(line).ok());
    let result = result.unwrap_or_default();
    if let Some(run) = result["run_id"].as_str().and_then(|run| RunId::parse(run).ok()) {
        if let Some(entry) = registry::find(home, &run) {
            log.keep(&entry);
        }
        return Ok(run);
    }
    let mut refused = own_program::refusal(&result["error"], status.code());
    if refused.message.is_empty() {
        let last = text.lines().last().unwrap_or("it printed nothing");
        refused.message = format!("the process of the run ended before it began ({status}): {last}");
    }
    let _ = std::fs::remove_file(&log.path);
    Err(refused)
}

/// Output of a run's process.
struct Log {
    path: PathBuf,
    file: File,
}

impl Log {
    fn make(home: &StateHome) -> Result<Self, AppError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let folder = home.path().join("spawned");
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number}.log", std::process::id()));
        let failed =
            |e: std::io::Error| AppError::environment(format!("cannot write `{}`: {e}", path.display()));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        let _ = std::fs::remove_file(&path);
        let file =
            OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        Ok(Self { path, file })
    }

    /// Moves it into the run's record, unless that is on another disk.
    fn keep(&self, entry: &Registration) {
        let _ = std::fs::rename(&self.path, log_of(entry.run_dir().path()));
    }
}

/// The output's path in a run's record.
fn log_of(run_dir: &Path) -> PathBuf {
    run_dir.join("driver.log")
}
