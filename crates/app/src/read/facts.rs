//! Reads a run's current state, driver and time from files; starts nothing.

use crate::environment::Environment;
use crate::error::AppError;
use crate::read::find;
use crate::read::seen;
use crate::start::fleet_mark;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_domain::state::{RunState, Stage};
use ralph_loop_domain::view::{self, RunView, ViewContext};
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::folder::shown;
use ralph_loop_journal::live::{LivePayload, LiveRecord};
use ralph_loop_journal::lock::{self, LockHolder};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::CheckResult;
use ralph_loop_protocol::money::in_session::SessionCost;
use ralph_loop_protocol::status::Status;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

#[derive(Debug)]
pub struct RunSnapshot {
    pub entry: Registration,
    pub state: RunState,
    /// The process that drives it.
    pub driver: Option<LockHolder>,
    pub now: Timestamp,
    /// When something last happened.
    pub last_event: Timestamp,
    /// The time zone for displayed times.
    pub zone: TimeZone,
}

impl RunSnapshot {
    /// Reads a run.
    pub fn load(env: &Environment, entry: Registration) -> Result<Self, AppError> {
        if !entry.run_dir().spec().is_file() {
            let message =
                format!("the folder of run {} is gone: `{}`", entry.run_id, entry.run_dir().path().display());
            return Err(
                AppError::usage(message).hint("restore the folder, or start a new run with `ralph run`")
            );
        }
        let mut state = find::handle(env, &entry).state()?;
        let driver = lock::holder(&entry.run_dir().lock()).filter(|h| h.run_id == entry.run_id);
        let driver = driver.or_else(|| fleet_mark::driver_elsewhere(&entry.run_dir()));
        if state.result.finished.is_some() && driver.is_none() {
            // The process that ended it may have been killed before it made the copy.
            shown::complete(&RalphDir::of(&entry.origin), &entry.run_id, &entry.run_dir());
        }
        let now = SystemClock::default().now();
        let last_event = state.result.finished.as_ref().map_or(state.now, |end| end.at);
        // A stopped run doesn't age.
        if driver.is_some() {
            state.tick(now);
        }
        Ok(Self { entry, state, driver, now, last_event, zone: env.zone() })
    }

    /// Unfinished, without a driving process or a pending answer from the user.
    pub fn is_orphaned(&self) -> bool {
        self.state.result.finished.is_none()
            && self.state.people.needs_human.is_none()
            && self.driver.is_none()
    }

    /// Whether `ralph clean` removed its commits, snapshots and folder.
    pub fn is_cleaned_up(&self) -> bool {
        let git = self.entry.git_folder();
        self.state.result.finished.is_some()
            && self.state.baseline.is_some()
            && git.is_some_and(|folder| !folder.is_dir())
    }

    /// Records that the user has seen the end of this run.
    pub fn mark_seen(&self) {
        if self.state.result.finished.is_some() {
            seen::mark(&self.entry);
        }
    }

    /// The displayed status: a run without a process is paused or interrupted.
    pub fn status(&self) -> Status {
        view::status(&self.state, self.driver.is_some())
    }

    /// The current or last iteration.
    pub fn iteration(&self) -> u32 {
        self.state.iterations.current.as_ref().map_or(self.state.iterations.count, |c| c.iteration)
    }

    pub fn loop_score(&self) -> f64 {
        self.state.iterations.history.back().map_or(0.0, |h| h.loop_score)
    }

    /// The branch that holds the work, else `ralph`'s ref.
    pub fn branch(&self) -> Option<String> {
        view::branch(&self.state).or_else(|| view::work_ref(&self.state))
    }

    /// The view that every interface shows.
    pub fn view(&self) -> RunView {
        let log =
            self.state.iterations.current.as_ref().map(|c| format!("iterations/{}/output.log", c.iteration));
        let moment = ViewContext {
            now: Some(self.now),
            driven: self.driver.is_some(),
            last_output: log.and_then(|log| self.written_at(Path::new(&log))),
            activity: self.activity(),
            zone: Some(self.zone.clone()),
        };
        view::view(&self.state, &moment)
    }

    /// Whether a result belongs to the latest recorded tree.
    pub fn is_current(&self, result: &CheckResult) -> bool {
        self.state.work.tree.as_ref() == Some(&result.tree)
    }

    /// Evidence of a failed check: failing tests and the last lines. Older results have neither, so their
    /// logs are read.
    pub fn evidence(&self, result: &CheckResult, lines: usize) -> Vec<String> {
        if !result.last_lines.is_empty() || !result.failing.is_empty() {
            return result.evidence(lines);
        }
        let log = read_end(&self.entry.run_dir().path().join(&result.log), 16 * 1024).unwrap_or_default();
        let said: Vec<&str> = log.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
        said[said.len().saturating_sub(lines)..].iter().map(|line| one_line(line, 200)).collect()
    }

    /// When a file of the run's folder was last written.
    pub fn written_at(&self, path: &Path) -> Option<Timestamp> {
        Timestamp::try_from(std::fs::metadata(self.entry.run_dir().path().join(path)).ok()?.modified().ok()?)
            .ok()
    }

    /// When something last happened, including session and check output.
    pub fn last_activity(&self) -> Timestamp {
        let shown =
            self.written_at(&self.entry.run_dir().live()).filter(|_| self.state.result.finished.is_none());
        shown.map_or(self.last_event, |shown| shown.max(self.last_event))
    }

    /// What the agent is doing, from its output: the last file it named.
    pub fn activity(&self) -> Option<String> {
        let current = self.state.iterations.current.as_ref().filter(|c| c.stage == Stage::Working)?;
        let path = self.entry.run_dir().iteration(current.iteration).join("actions.jsonl");
        // The agent of a stopped run isn't doing anything.
        self.driver.as_ref()?;
        let workspace = format!("{}/", self.state.spec.workspace.display());
        last_action(&read_end(&path, 16 * 1024)?, &workspace)
    }

    /// The latest estimate of the active session's cost, if its end of the live output has one.
    pub fn session_cost(&self) -> Option<SessionCost> {
        let began = self.state.iterations.current.as_ref().filter(|c| c.stage == Stage::Working)?.started_at;
        self.driver.as_ref()?;
        let live = read_end(&self.entry.run_dir().live(), 64 * 1024)?;
        last_cost(&live).filter(|cost| cost.at >= began)
    }
}

/// The last record with a cost by the price list.
fn last_cost(jsonl: &str) -> Option<SessionCost> {
    jsonl.lines().rev().find_map(|line| {
        let record: LiveRecord = serde_json::from_str(line).ok()?;
        match record.body {
            LivePayload::Tokens { cost_usd: Some(sum), .. } => Some(SessionCost { at: record.at, sum }),
            _ => None,
        }
    })
}

/// The last action that names a file or a command, shortened; paths are relative to the workspace.
fn last_action(jsonl: &str, workspace: &str) -> Option<String> {
    jsonl.lines().rev().find_map(|line| {
        let value: serde_json::Value = serde_json::from_str(line).ok()?;
        let input = value.get("input")?;
        let text = |key: &str| input.get(key).and_then(serde_json::Value::as_str);
        let file = ["file_path", "path", "filename"].into_iter().find_map(text);
        let said = match (file, text("command")) {
            (Some(file), _) => format!("at {file}"),
            (None, Some(command)) => format!("running `{command}`"),
            (None, None) => return None,
        };
        Some(one_line(&said.replace(workspace, ""), 60))
    })
}

/// The last `max` bytes of a file, without the first partial line.
fn read_end(path: &Path, max: u64) -> Option<String> {
    let mut file = crate::trust::repo_file::open_record(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(max))).ok()?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match text.find('\n') {
        Some(cut) if length > max => Some(text[cut + 1..].to_owned()),
        _ => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_named_action_is_reported() {
        let lines = "{\"name\":\"Edit\",\"input\":{\"file_path\":\"src/a.rs\"}}\n{\"name\":\"Think\",\"input\":{}}\n{\"torn";
        assert_eq!(last_action(lines, "/w/").as_deref(), Some("at src/a.rs"));
        let command = r#"{"input":{"command":"cargo test"}}"#;
        assert_eq!(last_action(command, "/w/").as_deref(), Some("running `cargo test`"));
        let inside = r#"{"input":{"file_path":"/w/src/a.rs"}}"#;
        assert_eq!(last_action(inside, "/w/").as_deref(), Some("at src/a.rs"));
        assert_eq!(last_action("", "/w/"), None);
    }

    #[test]
    fn the_last_known_cost_of_a_session_is_reported() {
        let record = |n: u64, body: &str| {
            format!("{{\"n\":{n},\"at\":\"2026-01-01T00:00:0{n}Z\",\"seq\":3,\"iteration\":1,{body}}}\n")
        };
        let tokens = r#""kind":"tokens","input":9,"output":1"#;
        let live = [
            record(1, &format!("{tokens},\"cost_usd\":0.5")),
            record(2, tokens),
            record(3, r#""kind":"text","text":"hello""#),
        ];
        let cost = last_cost(&live.concat()).unwrap();
        assert_eq!((cost.sum.dollars(), cost.at.to_string().as_str()), (0.5, "2026-01-01T00:00:01Z"));
        assert_eq!(last_cost(&live[2]), None);
    }
}
