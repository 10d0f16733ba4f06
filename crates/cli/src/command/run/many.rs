//! Several tasks side by side: one `ralph run` process each, in a clone of its own, so that none can disturb another. This
//! process only starts them, shows a table and adds up the results.
#![allow(
    clippy::disallowed_methods,
    reason = "each task is a run of its own process, with a guard of its own"
)]

use super::RunArgs;
use crate::error::CommandError;
use crate::output::Out;
use crate::{find, host, signals};
use ralph_core::clock::SystemClock;
use ralph_domain::ports::Clock as _;
use ralph_domain::text::{clock, one_line};
use ralph_journal::layout::StateHome;
use ralph_journal::{lock, registry};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const TICK: Duration = Duration::from_millis(200);

/// One task and its process.
struct Lane {
    file: PathBuf,
    child: Option<Child>,
    log: PathBuf,
    since: Duration,
    result: Option<Value>,
    code: Option<i32>,
}

/// Runs every file of `args`, at most `jobs` at a time.
pub fn run(args: &RunArgs, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let home = host::state_home()?;
    for file in &args.files {
        // Whatever is wrong with any of them is told before the first one costs a cent.
        super::task::choose(folder, &find::top(folder), Some(file), args.ticket.as_deref())?;
    }
    let logs = home.path().join("many").join(std::process::id().to_string());
    std::fs::create_dir_all(&logs)
        .map_err(|e| CommandError::environment(format!("cannot write `{}`: {e}", logs.display())))?;
    let mut lanes: Vec<Lane> =
        args.files.iter().enumerate().map(|(n, file)| Lane::new(file, &logs, n)).collect();
    let cancel = signals::install();
    let time = SystemClock::default();
    let jobs = args.jobs.unwrap_or(2).max(1);
    let mut drawn = 0;
    let mut told = false;
    while lanes.iter().any(|lane| lane.code.is_none()) {
        if cancel.get().is_some() && !told {
            told = true;
            lanes.iter_mut().for_each(Lane::cancel);
        }
        let running = lanes.iter().filter(|lane| lane.child.is_some()).count();
        if let Some(next) =
            lanes.iter_mut().find(|l| l.child.is_none() && l.code.is_none()).filter(|_| running < jobs)
        {
            next.start(args, folder, time.elapsed())?;
        }
        lanes.iter_mut().for_each(Lane::look);
        if out.live {
            drawn = draw(out, &lanes, &home, time.elapsed(), drawn);
        }
        time.pause(TICK);
    }
    if out.live {
        draw(out, &lanes, &home, time.elapsed(), drawn);
    }
    Ok(summary(&lanes, out))
}

impl Lane {
    fn new(file: &Path, logs: &Path, number: usize) -> Self {
        let log = logs.join(format!("{number}.json"));
        Self { file: file.to_owned(), child: None, log, since: Duration::ZERO, result: None, code: None }
    }

    fn start(&mut self, args: &RunArgs, folder: &Path, now: Duration) -> Result<(), CommandError> {
        let failed =
            |e: std::io::Error| CommandError::environment(format!("cannot start a run of its own: {e}"));
        let exe = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(exe);
        command.arg("-C").arg(folder).args(["run", "--json", "--quiet"]).arg(&self.file);
        command
            .arg("--clone")
            .arg(args.clone.clone().unwrap_or_else(|| find::top(folder).display().to_string()));
        command.args(args.passed_on());
        command.stdin(Stdio::null()).stdout(File::create(&self.log).map_err(failed)?).stderr(Stdio::null());
        // A group of its own: Ctrl-C reaches this process, which tells each run to end in good order.
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        self.child = Some(command.spawn().map_err(failed)?);
        self.since = now;
        Ok(())
    }

    fn look(&mut self) {
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
                let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
            }
            None if self.code.is_none() => self.code = Some(130),
            None => {}
        }
    }

    fn words(&self) -> (String, String) {
        let text =
            |key: &str| self.result.as_ref().and_then(|r| r[key].as_str()).unwrap_or_default().to_owned();
        match self.code {
            Some(0) => ("done".into(), text("summary")),
            Some(130) => ("stopped".into(), "cancelled".into()),
            Some(3) => ("needs you".into(), text("summary")),
            Some(_) => ("failed".into(), text("summary")),
            None if self.child.is_some() => ("preparing".into(), String::new()),
            None => ("queued".into(), String::new()),
        }
    }
}

/// One line per task; returns how many were drawn.
fn draw(out: &Out, lanes: &[Lane], home: &StateHome, now: Duration, before: usize) -> usize {
    let mut text = if before > 0 { format!("\u{1b}[{before}A") } else { String::new() };
    for lane in lanes {
        let (mut status, mut detail) = lane.words();
        if let Some(state) = lane.child.as_ref().and_then(|child| state_of(home, child.id())) {
            status = state.status().to_string();
            let number = state.current.as_ref().map_or(state.iterations, |c| c.iteration);
            detail = format!("iteration {number}/{}", state.spec.settings.budgets.max_iterations);
        }
        let age = if lane.child.is_some() { clock(now.saturating_sub(lane.since)) } else { String::new() };
        let name = lane.file.display().to_string();
        let line = format!(
            "{} {:<9} {name:<28} {age:>6}  {}",
            out.status_sign(&status),
            status,
            one_line(&detail, 60)
        );
        text.push_str(&format!("\r\u{1b}[2K{line}\n"));
    }
    out.draw(&text);
    lanes.len()
}

/// What is known of the run that a process drives.
fn state_of(home: &StateHome, pid: u32) -> Option<ralph_domain::state::RunState> {
    let entry = registry::all(home).into_iter().rev().find(|entry| {
        lock::holder(&entry.ralph_dir().lock()).is_some_and(|h| h.pid == pid && h.run_id == entry.run_id)
    })?;
    find::handle(&entry).state().ok()
}

/// The results together: success only where each is.
fn summary(lanes: &[Lane], out: &Out) -> u8 {
    let code = |lane: &Lane| lane.code.unwrap_or(1);
    let worst = [130, 4, 3, 2, 1].into_iter().find(|c| lanes.iter().any(|l| code(l) == *c)).unwrap_or(0);
    let proven = lanes.iter().filter(|l| code(l) == 0).count();
    out.say(format!("{proven} of {} proven", lanes.len()));
    for lane in lanes {
        let (status, detail) = lane.words();
        out.say(format!("  {status:<9} {}: {}", lane.file.display(), one_line(&detail, 100)));
        if let Some(branch) = lane.result.as_ref().and_then(|r| r["branch"].as_str()) {
            let dir = lane.result.as_ref().and_then(|r| r["run_dir"].as_str()).unwrap_or_default();
            out.say(format!("            branch {branch} in {dir}"));
        }
    }
    if out.json {
        let runs: Vec<Value> = lanes
            .iter()
            .map(|l| serde_json::json!({ "file": l.file, "exit_code": code(l), "result": l.result }))
            .collect();
        out.value(&serde_json::json!({ "success": worst == 0, "proven": proven, "runs": runs }));
    }
    u8::try_from(worst).unwrap_or(1)
}
