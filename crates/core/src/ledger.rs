//! The ledger of a run: its journal, the state folded from it, and everyone who is informed of an event. Apart from
//! the ports, because a session uses them while its events are journaled.

use crate::cancel::CancelToken;
use crate::error::DriveError;
use crate::observers::{Observer, Observers};
use crate::record::kept_alive::AgentProcesses;
use ralph_loop_domain::ports::{Clock, CustomCheck, Notifier};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::artifacts::OutputLog;
use ralph_loop_journal::folder::layout::{RalphDir, RunDir};
use ralph_loop_journal::folder::{shown, snapshot};
use ralph_loop_journal::journal::Journal;
use ralph_loop_journal::live::LiveLog;
use ralph_loop_journal::live::wake::Waker;
use ralph_loop_journal::live::{LivePayload, LivePosition, LiveStream};
use ralph_loop_protocol::describe::describe;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::duration;
use ralph_loop_protocol::event::{Effect, EffectIntended, Event, EventBody};
use ralph_loop_protocol::money::budget::BudgetKind;
use ralph_loop_task::config::VerifierConfig;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The journal of a run, its state, and who is informed of an event.
pub struct Ledger {
    pub(crate) state: RunState,
    pub(crate) journal: Journal,
    /// `.ralph/` in the agent's tree, which sessions read and write.
    pub(crate) dir: RalphDir,
    /// `.ralph/` in the run's own folder; differs if the agent works on a copy.
    pub(crate) home: RalphDir,
    pub(crate) record_dir: RunDir,
    /// Known cooldowns of agents in this folder.
    pub(crate) cooldowns: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) redactor: Arc<Redactor>,
    pub(crate) observer: Observers,
    pub(crate) cancel: Arc<CancelToken>,
    pub(crate) custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
    /// Sends notifications.
    pub(crate) notifiers: Vec<Box<dyn Notifier>>,
    /// Time of the current step's commands, and the time used when the step began.
    step_time: (Duration, Duration),
    /// When the current step began, and the engine's own time before it, which no event records.
    own_time: (Duration, Duration),
    /// Live output for other processes.
    pub(crate) live: LiveLog,
    /// Interrupts a wait.
    pub(crate) waker: Option<Waker>,
    /// What agents keep alive, according to the record.
    pub(crate) kept_alive: AgentProcesses,
    activity: String,
    errors: String,
}

impl Ledger {
    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of one whole, named at the one place that makes it"
    )]
    pub(crate) fn new(
        state: RunState,
        journal: Journal,
        dir: RalphDir,
        home: RalphDir,
        clock: Arc<dyn Clock>,
        redactor: Arc<Redactor>,
        observers: Vec<Box<dyn Observer>>,
        cancel: Arc<CancelToken>,
    ) -> Self {
        let record_dir = journal.places().dir.clone();
        let (live, waker) = (LiveLog::new(&record_dir), Waker::listen(&record_dir));
        Self {
            state,
            journal,
            cooldowns: home.cooldowns(),
            home,
            dir,
            record_dir,
            clock,
            redactor,
            observer: Observers::new(observers),
            cancel,
            custom_checks: BTreeMap::new(),
            notifiers: Vec::new(),
            step_time: (Duration::ZERO, Duration::ZERO),
            own_time: (Duration::ZERO, Duration::ZERO),
            live,
            waker,
            kept_alive: AgentProcesses::default(),
            activity: String::new(),
            errors: String::new(),
        }
    }

    /// Whether agents must not see what a check runs.
    pub(crate) fn is_hidden(&self, verifier: &VerifierConfig) -> bool {
        self.custom_checks.get(&verifier.name).is_some_and(|check| check.is_hidden())
    }

    /// Journals and folds an event, tells the observers and sends due notifications.
    pub(crate) fn record(&mut self, body: EventBody) -> Result<Event, DriveError> {
        let event = self.record_only(body)?;
        self.notify_due()?;
        Ok(event)
    }

    /// Journals and folds an event and tells the observers.
    pub(crate) fn record_only(&mut self, body: EventBody) -> Result<Event, DriveError> {
        // Live output comes before what followed it.
        self.live.flush();
        let event = self.journal.append(body, self.clock.now())?;
        self.state.apply(&event);
        tracing::debug!(seq = event.seq.0, kind = event.body.kind(), "journalled");
        self.notify_observers(&event);
        Ok(event)
    }

    /// Handles events journaled before this process was fully set up.
    pub(crate) fn replay_events(&mut self, events: &[Event]) -> Result<(), DriveError> {
        for event in events {
            self.notify_observers(event);
        }
        self.notify_due()
    }

    fn notify_observers(&mut self, event: &Event) {
        if let Some((_, sentence)) = describe(event) {
            let sentence = sanitize::line(&sentence);
            self.activity.push_str(&format!("{} {} {sentence}\n", event.at, self.state.spec.run_id));
        }
        self.observer.event(&self.state, event);
    }

    /// Journals an intended effect on the outside world. The seal accepts this only from the current driver,
    /// so a replaced one doesn't start the effect.
    pub(crate) fn intend(&mut self, effect: Effect, key: impl Into<String>) -> Result<(), DriveError> {
        if self.journal.places().elsewhere.is_none() {
            return Ok(());
        }
        self.record_only(EventBody::EffectIntended(EffectIntended { effect, key: key.into() }))?;
        Ok(())
    }

    /// Fails if this process no longer drives the run: it may have been frozen since it journaled its intent.
    pub(crate) fn check_lease(&self) -> Result<(), DriveError> {
        match &self.journal.places().elsewhere {
            Some(elsewhere) if !elsewhere.is_held() => {
                let lost = std::io::Error::other("the hold on the run has run out");
                Err(JournalError::file("continue with", self.record_dir.path(), lost).into())
            }
            _ => Ok(()),
        }
    }

    /// Journals a message for the user.
    pub(crate) fn notice(&mut self, message: impl Into<String>) -> Result<(), DriveError> {
        self.record(EventBody::Notice { message: message.into() }).map(|_| ())
    }

    /// Text for pull requests and notifications: sanitized, then redacted, because an invisible character
    /// would split a secret.
    pub(crate) fn redact_for_display(&self, text: &str) -> String {
        self.redactor.text(&sanitize::block(text)).into_owned()
    }

    /// Adds to `errors.log`, which later prompts quote.
    pub(crate) fn error_entry(&mut self, heading: &str, body: &str) {
        let body = self.redact_for_display(body);
        self.errors.push_str(&format!("== {} {heading}\n{}\n", self.clock.now(), body.trim_end()));
    }

    /// Writes user-facing logs, the snapshot and cooldowns; nothing depends on them.
    pub(crate) fn flush(&mut self) -> Result<(), DriveError> {
        if !self.activity.is_empty() {
            self.home.append("activity.log", &self.activity)?;
            self.activity.clear();
        }
        if !self.errors.is_empty() {
            append(&self.record_dir.errors(), &self.errors)?;
            self.dir.append("errors.log", &self.errors)?;
            self.errors.clear();
        }
        snapshot::save(&self.home, &self.record_dir, &self.state, self.journal.bytes())?;
        Ok(())
    }

    /// Syncs the journal to disk before writing the rest, so that nothing is announced that could still be
    /// lost.
    pub(crate) fn settle(&mut self) -> Result<(), DriveError> {
        self.journal.barrier()?;
        self.flush()
    }

    /// Writes `cooldowns.json` for the next run in this folder; the copy in `.ralph/` is for users.
    pub(crate) fn save_cooldowns(&self) -> Result<(), DriveError> {
        let map: serde_json::Map<String, serde_json::Value> = self
            .state
            .agents
            .cooldowns
            .iter()
            .map(|(name, rest)| {
                let entry = serde_json::json!({
                    "cooldown_until": rest.until.as_second(),
                    "reason": rest.reason,
                    "observed_at": rest.observed_at.as_second(),
                });
                (name.to_string(), entry)
            })
            .collect();
        let text = serde_json::to_vec_pretty(&map).unwrap_or_default();
        artifacts::write_atomic(&self.cooldowns, &text)?;
        if self.cooldowns != self.home.cooldowns() {
            self.home.write("cooldowns.json", &text)?;
        }
        Ok(())
    }

    /// Links the record into the user's `.ralph/` and the agent's.
    pub(crate) fn show_record(&self) {
        let run = &self.state.spec.run_id;
        for dir in [&RalphDir::of(&self.state.spec.origin), &self.home, &self.dir] {
            if dir.path().parent().is_some_and(std::path::Path::is_dir) {
                shown::link(dir, run, &self.record_dir);
            }
        }
    }

    /// Leaves a copy of a finished run's record in the user's folder; nothing depends on it.
    pub(crate) fn show_end(&mut self) {
        if self.state.result.finished.is_none() {
            return self.show_record();
        }
        let dir = RalphDir::of(&self.state.spec.origin);
        let _ = shown::copy(&dir, &self.state.spec.run_id, &self.record_dir);
    }

    /// Starts a step: reads the clock for the state, and measures the engine's own time from here.
    pub(crate) fn tick(&mut self) {
        self.state.tick(self.clock.now());
        self.step_time = (Duration::ZERO, self.state.spent().time);
        self.own_time.0 = self.clock.elapsed();
    }

    /// Counts the step's time outside sessions and checks as the engine's own. Otherwise thousands of
    /// stories, or a large tree, could keep a run going without limit.
    pub(crate) fn end_step(&mut self) {
        let told = self.state.spent().time.saturating_sub(self.step_time.1);
        let took = self.clock.elapsed().saturating_sub(self.own_time.0);
        self.own_time.1 += took.saturating_sub(told);
    }

    /// Reports if the engine's own time used up the rest; no further session starts then.
    pub(crate) fn check_overhead(&mut self) -> Result<bool, DriveError> {
        let (own, spent) = (self.own_time.1, self.state.spent().time);
        let max = self.state.spec.settings.budgets.max_wall_time;
        if spent >= max || spent + own < max {
            return Ok(false);
        }
        self.own_time.1 = Duration::ZERO;
        let cut_ms = u64::try_from(own.as_millis()).unwrap_or(u64::MAX).max(1);
        let message = format!("the time is used up: the run's own files took {} of it", duration(own));
        self.record(EventBody::BudgetWarning { budget: BudgetKind::Time, message, cut_ms }).map(|_| true)
    }

    /// Subtracts a command's time from the current step.
    pub(crate) fn command_took(&mut self, time: Duration) {
        self.step_time.0 += time;
    }

    /// Working time of the current step that no event records yet.
    pub(crate) fn unreported_time(&self) -> Duration {
        let (commands, spent) = self.step_time;
        commands.saturating_sub(self.state.spent().time.saturating_sub(spent))
    }

    /// Whether the time limit is reached, including the current step and a command running for `running`.
    pub(crate) fn time_is_up(&self, running: Duration) -> bool {
        let budgets = &self.state.spec.settings.budgets;
        budgets.deadline.is_some_and(|deadline| self.clock.now() >= deadline)
            || self.state.spent().time + self.unreported_time() + running >= budgets.max_wall_time
    }

    /// Whether to stop immediately.
    pub(crate) fn ends_now(&self) -> bool {
        self.state.people.cancel_by.is_some() || self.cancel.get().is_some()
    }

    /// Marks a point between two effects, for fault injection.
    pub(crate) fn boundary(&mut self, name: &str) {
        self.observer.boundary(name);
    }

    /// A new log in the record.
    pub(crate) fn open_log(&self, path: &Path) -> Result<OutputLog, DriveError> {
        Ok(OutputLog::of(self.file(path)?, path, self.redactor.clone()))
    }

    /// A new, empty file in the record.
    pub(crate) fn file(&self, path: &Path) -> Result<File, DriveError> {
        Ok(File::create(path).map_err(|e| JournalError::file("write", path, e))?)
    }

    /// The folder of the current iteration, created if needed.
    pub(crate) fn iteration_dir(&self, iteration: u32) -> Result<PathBuf, DriveError> {
        let path = self.record_dir.iteration(iteration);
        std::fs::create_dir_all(&path).map_err(|e| JournalError::file("make the folder", &path, e))?;
        Ok(path)
    }

    fn position(&self) -> LivePosition {
        LivePosition {
            at: self.clock.now(),
            elapsed: self.clock.elapsed(),
            seq: self.journal.seq(),
            iteration: self.state.iterations.current.as_ref().map_or(0, |c| c.iteration),
        }
    }

    /// Shows a piece of redacted text.
    pub(crate) fn show_text(&mut self, stream: &LiveStream, clean: &[u8]) {
        if !clean.is_empty() {
            self.live.text(self.position(), stream, clean);
        }
    }

    /// Shows a complete, redacted and bounded item.
    pub(crate) fn show(&mut self, body: &LivePayload) {
        self.live.note(self.position(), body);
        self.observer.shown(&self.state, body);
    }

    /// Waits for `length`, or less if a control arrives.
    pub(crate) fn rest(&mut self, length: Duration) {
        self.live.flush();
        match &self.waker {
            Some(waker) => self.clock.pause_by(length, &mut |length| waker.wait(length)),
            None => self.clock.pause(length),
        }
    }
}

/// Size at which a log in the record is rotated.
const RECORD_LOG_MAX: u64 = 4 * 1024 * 1024;

/// Appends to a record file that only this process writes.
fn append(path: &std::path::Path, text: &str) -> Result<(), DriveError> {
    use std::io::Write as _;
    if std::fs::metadata(path).is_ok_and(|meta| meta.len() > RECORD_LOG_MAX) {
        let _ = std::fs::rename(path, path.with_extension("log.1"));
    }
    let written = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    Ok(written.map_err(|e| JournalError::file("append to", path, e))?)
}
