//! Watches and steers a run through its journal and inbox alone, without the process that drives it. Used by
//! the terminal, the server and library users.

use crate::clock::SystemClock;
use crate::record::kept_alive::AgentProcesses;
use jiff::Timestamp;
use ralph_loop_domain::ports::{AgentResources, BrowserInfo, Clock as _, ProcessInfo};
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_journal::folder::{plain, snapshot};
use ralph_loop_journal::live::follow::Follower;
use ralph_loop_journal::live::stream::{RunStream, StreamItem, StreamStart};
use ralph_loop_journal::{JournalError, inbox, lock};
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::display::view::BestNumber;
use ralph_loop_protocol::event::{Event, EventBody, Verdict};
use ralph_loop_protocol::id::{AgentName, CommitId, RunId};
use ralph_loop_protocol::money::{Cost, Tokens, Usd};
use ralph_loop_protocol::status::Status;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Size limit for an iteration's file that is shown.
const ARTIFACT_MAX: u64 = 256 * 1024 * 1024;

/// Polling interval for whether the run is still driven.
const LOOK: Duration = Duration::from_millis(250);

/// A run seen from outside.
#[derive(Debug, Clone)]
pub struct RunHandle {
    run: RunDir,
    from: String,
}

/// The library's run states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// Queued or preparing.
    Initializing,
    /// Working, verifying, waiting or paused.
    Running,
    /// Needs the user.
    Stuck,
    /// Proving or publishing.
    Completing,
    Done,
    /// Ended without success.
    Failed,
    /// Ended by the user.
    Stopped,
}

impl AgentState {
    pub fn from_status(status: Status) -> Self {
        match status {
            Status::Queued | Status::Preparing => Self::Initializing,
            Status::Working | Status::Verifying | Status::Waiting | Status::Paused | Status::Interrupted => {
                Self::Running
            }
            Status::NeedsYou => Self::Stuck,
            Status::Proving | Status::Publishing => Self::Completing,
            Status::Done => Self::Done,
            Status::Failed => Self::Failed,
            Status::Stopped => Self::Stopped,
        }
    }
}

/// A run's current status.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RalphStatus {
    /// The run; `None` before it starts.
    pub id: Option<RunId>,
    /// Its state.
    pub state: AgentState,
    /// The current or last iteration.
    pub iteration: u32,
    /// Cost so far.
    #[serde(flatten)]
    pub cost: Cost,
    /// Time since the start.
    pub elapsed: Duration,
    /// Recent actions, newest last.
    pub last_actions: Vec<String>,
    /// The file the agent is working on, if known.
    pub current_file: Option<String>,
    /// Managed processes (agents of kind `tools`).
    pub processes: Vec<ProcessInfo>,
    /// Open browsers (agents of kind `tools`).
    pub browsers: Vec<BrowserInfo>,
    /// The best value of the goal metric.
    pub best: Option<BestNumber>,
}

/// Whether a run accepted a control.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlOutcome {
    /// Journaled and applied.
    Received,
    /// Journaled as refused, with the reason.
    Refused(String),
    /// Not read yet; it stays in the inbox.
    NotYet,
}

/// One iteration of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Iteration {
    /// Its number.
    pub number: u32,
    pub agent: AgentName,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    /// Duration of the session.
    pub duration: Duration,
    /// Tokens, if known.
    pub tokens: Option<Tokens>,
    /// Cost, if known.
    pub cost: Option<Usd>,
    /// The agent's actions, one line each.
    pub actions: Vec<String>,
    /// Changed files.
    pub files_modified: Vec<String>,
    /// Commit on the work ref.
    pub commit_sha: Option<CommitId>,
    /// The patch, redacted and bounded.
    pub diff: String,
    pub verdict: Verdict,
}

impl RunHandle {
    /// A handle on the run with this record; `from` is recorded as the sender of controls.
    pub fn new(record: RunDir, from: impl Into<String>) -> Self {
        Self { run: record, from: from.into() }
    }

    /// The state, from the snapshot and the journal's tail.
    pub fn state(&self) -> Result<RunState, JournalError> {
        snapshot::load(&self.run)
    }

    /// Whether a process drives the run now.
    pub fn is_driven(&self) -> bool {
        let name = self.run.path().file_name().and_then(|n| n.to_str());
        // A guard cleaning up after a dead driver holds the lock too.
        lock::holder(&self.run.lock())
            .is_some_and(|h| Some(h.run_id.as_str()) == name && lock::is_alive(h.pid))
    }

    /// The run's status.
    pub fn status(&self) -> Result<RalphStatus, JournalError> {
        let state = self.state()?;
        let number = state.iterations.current.as_ref().map_or(state.iterations.count, |c| c.iteration);
        let actions = self.actions(number);
        let current_file = actions.iter().rev().find_map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).ok()?;
            let input = value.get("input")?;
            ["file_path", "path", "filename"]
                .iter()
                .find_map(|key| Some(input.get(*key)?.as_str()?.to_owned()))
        });
        // What an ended process kept alive is gone.
        let kept = match self.is_driven() {
            true => AgentProcesses::read(&self.run, SystemClock::default().now()),
            false => AgentResources::default(),
        };
        Ok(RalphStatus {
            id: Some(state.spec.run_id.clone()),
            state: AgentState::from_status(state.status()),
            iteration: number,
            cost: state.cost(),
            elapsed: state.elapsed(),
            last_actions: actions.into_iter().rev().take(10).rev().collect(),
            current_file,
            processes: kept.processes,
            browsers: kept.browsers,
            best: ralph_loop_domain::best::best(&state),
        })
    }

    /// Every finished iteration, oldest first, with its diff.
    pub fn history(&self) -> Result<Vec<Iteration>, JournalError> {
        let mut done: Vec<Iteration> = Vec::new();
        let mut open: Option<Iteration> = None;
        for event in Follower::new(&self.run.events(), ralph_loop_protocol::id::Seq(0)).poll()? {
            fold(&mut done, &mut open, &event);
        }
        for iteration in &mut done {
            let folder = self.run.iteration(iteration.number);
            iteration.actions = self.actions(iteration.number);
            iteration.diff = plain::read_text(&folder.join("git_diff.patch"), ARTIFACT_MAX);
        }
        Ok(done)
    }

    /// Events after `seq`, followed live.
    pub fn follow(&self, seq: ralph_loop_protocol::id::Seq) -> Follower {
        Follower::new(&self.run.events(), seq)
    }

    /// Events and live output from a starting point on.
    pub fn stream(&self, start: StreamStart) -> Result<RunStream, JournalError> {
        RunStream::open(&self.run, start)
    }

    /// Sends a control and returns its id for [`Self::wait_for_outcome`].
    pub fn send(&self, control: Control) -> Result<String, JournalError> {
        inbox::send(&self.run, &self.from, control).map(|letter| letter.id)
    }

    /// A control's outcome, waiting up to `timeout`. Doesn't wait for a stopped run, which reads nothing.
    pub fn wait_for_outcome(&self, id: &str, timeout: Duration) -> Result<ControlOutcome, JournalError> {
        let clock = SystemClock::default();
        let mut stream = self.stream(StreamStart::Beginning)?.events_only();
        loop {
            // Query this first, so that what a process wrote before it ended is seen.
            let driven = self.is_driven();
            let left = timeout.saturating_sub(clock.elapsed());
            let items = stream.wait(if driven { left.min(LOOK) } else { Duration::ZERO })?;
            if let Some(taken) = items.iter().find_map(|item| outcome_of(item, id)) {
                return Ok(taken);
            }
            if items.is_empty() && (!driven || left.is_zero()) {
                return Ok(ControlOutcome::NotYet);
            }
        }
    }

    /// Sends a hint for the next prompt.
    pub fn nudge(&self, text: &str) -> Result<String, JournalError> {
        self.send(Control::Nudge { text: text.to_owned() })
    }

    /// Ends the run after the session, or immediately with `force`.
    pub fn stop(&self, force: bool) -> Result<String, JournalError> {
        self.send(if force { Control::Cancel } else { Control::Stop })
    }

    /// Pauses the run after the current session.
    pub fn pause(&self) -> Result<String, JournalError> {
        self.send(Control::Pause)
    }

    /// Unpauses the run.
    pub fn resume(&self) -> Result<String, JournalError> {
        self.send(Control::Resume)
    }

    fn actions(&self, iteration: u32) -> Vec<String> {
        let text = plain::read_text(&self.run.iteration(iteration).join("actions.jsonl"), ARTIFACT_MAX);
        text.lines().map(str::to_owned).collect()
    }
}

/// What an event says about a control.
fn outcome_of(item: &StreamItem, letter: &str) -> Option<ControlOutcome> {
    let StreamItem::Event(line) = item else { return None };
    match &line.event.body {
        EventBody::ControlReceived { letter: got, .. } if got.id == letter => Some(ControlOutcome::Received),
        EventBody::ControlRefused { id, reason, .. } if id == letter => {
            Some(ControlOutcome::Refused(reason.clone()))
        }
        _ => None,
    }
}

fn fold(done: &mut Vec<Iteration>, open: &mut Option<Iteration>, event: &Event) {
    match &event.body {
        EventBody::IterationStarted { iteration, agent, .. } => {
            *open = Some(Iteration {
                number: *iteration,
                agent: agent.clone(),
                started_at: event.at,
                ended_at: event.at,
                duration: Duration::ZERO,
                tokens: None,
                cost: None,
                actions: Vec::new(),
                files_modified: Vec::new(),
                commit_sha: None,
                diff: String::new(),
                verdict: Verdict::SessionFailed,
            });
        }
        EventBody::SessionEnded { usage, duration_ms, .. } => {
            if let Some(open) = open {
                open.duration = Duration::from_millis(*duration_ms);
                open.tokens = usage.tokens;
                open.cost = usage.cost;
            }
        }
        EventBody::Checkpointed { files, commit, .. } => {
            if let Some(open) = open {
                open.files_modified = files.iter().map(|f| f.path.clone()).collect();
                open.commit_sha.clone_from(commit);
            }
        }
        EventBody::IterationEnded { verdict, .. } => {
            if let Some(mut iteration) = open.take() {
                iteration.ended_at = event.at;
                iteration.verdict = *verdict;
                done.push(iteration);
            }
        }
        EventBody::IterationVoided { .. } => *open = None,
        _ => {}
    }
}
