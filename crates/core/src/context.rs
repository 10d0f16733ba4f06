//! What every step works with: the journal and the state it folds into, the clock, the observer, the logs for people.

use crate::error::DriveError;
use crate::kept_alive::KeptAlive;
use crate::observers::{Observer, Observers};
use crate::refusals::Refusals;
use ralph_loop_domain::ports::{Clock, CustomCheck, Notifier};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::ahead::FilesAhead;
use ralph_loop_journal::artifacts::{self, OutputLog};
use ralph_loop_journal::journal::Journal;
use ralph_loop_journal::layout::{RalphDir, RunDir};
use ralph_loop_journal::live::LiveLog;
use ralph_loop_journal::wake::Waker;
use ralph_loop_journal::{JournalError, shown, snapshot};
use ralph_loop_protocol::budget::BudgetKind;
use ralph_loop_protocol::describe::describe;
use ralph_loop_protocol::event::{Effect, EffectIntended, EgressRefused, Event, EventBody};
use ralph_loop_protocol::sanitize;
use ralph_loop_protocol::text::duration;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

/// Set from outside (a signal handler, another thread) to end what goes on at once. A run is suspended by it: it can be
/// resumed.
#[derive(Debug, Default)]
pub struct CancelFlag {
    signal: AtomicU8,
    times: AtomicU8,
    rest: AtomicBool,
    told: AtomicBool,
    look: AtomicBool,
}

impl CancelFlag {
    /// What [`Self::set`] is given by a program that awaits the run no more.
    pub const CALLER: u8 = 255;

    /// Asks for the end, on behalf of a signal (its number) or 0 for a caller.
    pub fn set(&self, signal: u8) {
        self.signal.store(signal.max(1), Ordering::SeqCst);
        // A signal handler calls this: one instruction, no loop. 255 requests are as many as anybody makes.
        self.times.fetch_add(1, Ordering::SeqCst);
    }
    /// Who asked, if anybody did.
    pub fn get(&self) -> Option<&'static str> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            2 => Some("Ctrl-C"),
            15 => Some("SIGTERM"),
            1 => Some("SIGHUP"),
            Self::CALLER => Some("the calling program"),
            _ => Some("a signal"),
        }
    }
    /// Asks for the end at the next place where nothing is lost by it: before the next session, or in a wait.
    pub fn rest_soon(&self) {
        self.rest.store(true, Ordering::SeqCst);
    }
    /// Whether that was asked for.
    pub fn rests_soon(&self) -> bool {
        self.rest.load(Ordering::SeqCst)
    }
    /// Somebody says when there is news on the code host: the run looks by itself only now and then.
    pub fn is_told_of_news(&self) {
        self.told.store(true, Ordering::SeqCst);
    }
    /// Whether somebody does.
    pub fn hears_news(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }
    /// There is news on the code host: a run that waits for some looks at once.
    pub fn look_soon(&self) {
        self.look.store(true, Ordering::SeqCst);
    }
    /// Whether there was, since this was asked last.
    pub(crate) fn takes_look(&self) -> bool {
        self.look.swap(false, Ordering::SeqCst)
    }
    /// How often that was asked for: more than once means that it is urgent.
    pub fn times(&self) -> u8 {
        self.times.load(Ordering::SeqCst)
    }
}

/// The engine's side of a run.
pub(crate) struct Context {
    pub state: RunState,
    pub journal: Journal,
    /// The `.ralph/` of the agent's files: what sessions read and write.
    pub dir: RalphDir,
    /// The `.ralph/` of the run's own folder; the same one unless the agent works on a copy.
    pub home: RalphDir,
    /// The record.
    pub run: RunDir,
    /// Makes the files of it that each iteration leaves.
    pub files: FilesAhead,
    /// What runs of this folder know of agents that rest.
    pub cooldowns: PathBuf,
    pub clock: Arc<dyn Clock>,
    pub redactor: Arc<Redactor>,
    pub observer: Observers,
    pub cancel: Arc<CancelFlag>,
    /// Where clean checkouts are made.
    pub proof_dir: PathBuf,
    /// The variables of the run.
    pub vars: Vars,
    /// Checks that are code of the calling program.
    pub custom_checks: BTreeMap<String, Box<dyn CustomCheck>>,
    /// Hosts that the sandbox refused to reach.
    pub refusals: Refusals,
    /// Who tells people.
    pub notifiers: Vec<Box<dyn Notifier>>,
    /// How long the commands of the step under way took, and what was used of the time when it began.
    step_time: (Duration, Duration),
    /// When the step under way began, and what the engine itself took for those before it, which no event tells of.
    own_time: (Duration, Duration),
    /// Who ends this process, once somebody does; the run goes on in another one.
    pub suspend_by: Option<String>,
    /// What the run shows while it works, for those who watch from elsewhere.
    pub live: LiveLog,
    /// Wakes the run out of a wait.
    pub waker: Option<Waker>,
    /// What agents keep alive, as the record has it.
    pub kept_alive: KeptAlive,
    activity: String,
    errors: String,
}

impl Context {
    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of one whole, named at the one place that makes it"
    )]
    pub fn new(
        state: RunState,
        journal: Journal,
        dir: RalphDir,
        home: RalphDir,
        clock: Arc<dyn Clock>,
        redactor: Arc<Redactor>,
        observers: Vec<Box<dyn Observer>>,
        cancel: Arc<CancelFlag>,
        proof_dir: PathBuf,
    ) -> Self {
        let run = journal.places().dir.clone();
        let files = FilesAhead::start(&run);
        let (live, waker) = (LiveLog::new(&run), Waker::listen(&run));
        Self {
            state,
            journal,
            cooldowns: home.cooldowns(),
            home,
            dir,
            run,
            files,
            clock,
            redactor,
            observer: Observers::new(observers),
            cancel,
            proof_dir,
            vars: Vars::default(),
            custom_checks: BTreeMap::new(),
            refusals: Refusals::default(),
            notifiers: Vec::new(),
            suspend_by: None,
            step_time: (Duration::ZERO, Duration::ZERO),
            own_time: (Duration::ZERO, Duration::ZERO),
            live,
            waker,
            kept_alive: KeptAlive::default(),
            activity: String::new(),
            errors: String::new(),
        }
    }

    /// Journals what was refused since the last time.
    pub fn record_refusals(&mut self) -> Result<(), DriveError> {
        for ((host, port), (reason, times)) in self.refusals.take() {
            let (host, reason) =
                (self.redactor.text(&host).into_owned(), self.redactor.text(&reason).into_owned());
            self.record(EventBody::EgressRefused(EgressRefused { host, port, reason, times }))?;
        }
        Ok(())
    }

    /// Journals what happened, folds it in, tells the observers, and people where it is an occasion for that.
    pub fn record(&mut self, body: EventBody) -> Result<Event, DriveError> {
        let event = self.record_only(body)?;
        self.notify_due()?;
        Ok(event)
    }

    /// Journals what happened, folds it in and tells the observers.
    pub fn record_only(&mut self, body: EventBody) -> Result<Event, DriveError> {
        // What was shown stands before what followed it.
        self.live.flush();
        let event = self.journal.append(body, self.clock.now())?;
        self.state.apply(&event);
        tracing::debug!(seq = event.seq.0, kind = event.body.kind(), "journalled");
        self.hear(&event);
        Ok(event)
    }

    /// Takes in what was journalled before this process had everything that a run needs.
    pub fn catch_up(&mut self, events: &[Event]) -> Result<(), DriveError> {
        for event in events {
            self.hear(event);
        }
        self.notify_due()
    }

    fn hear(&mut self, event: &Event) {
        if let Some((_, sentence)) = describe(event) {
            let sentence = sanitize::line(&sentence);
            self.activity.push_str(&format!("{} {} {sentence}\n", event.at, self.state.spec.run_id));
        }
        self.observer.event(&self.state, event);
    }

    /// Says that something is about to be done to the outside world, where others may go on with the run: only who still holds
    /// the run gets this past its seal, so nobody who was replaced begins it.
    pub fn intend(&mut self, effect: Effect, key: impl Into<String>) -> Result<(), DriveError> {
        if self.journal.places().elsewhere.is_none() {
            return Ok(());
        }
        self.record_only(EventBody::EffectIntended(EffectIntended { effect, key: key.into() }))?;
        Ok(())
    }

    /// Refuses what is about to be done where the run may be somebody else's by now: this process may have been frozen since it
    /// said what it intends.
    pub fn still_holds(&self) -> Result<(), DriveError> {
        match &self.journal.places().elsewhere {
            Some(elsewhere) if !elsewhere.is_held() => {
                let lost = std::io::Error::other("the hold on the run has run out");
                Err(JournalError::file("go on with", self.run.path(), lost).into())
            }
            _ => Ok(()),
        }
    }

    /// A sentence for people.
    pub fn notice(&mut self, message: impl Into<String>) -> Result<(), DriveError> {
        self.record(EventBody::Notice { message: message.into() }).map(|_| ())
    }

    /// A text as others get to see it, in a pull request or a notification: safe to show and without secrets. In this order:
    /// a character that nobody sees would part a secret.
    pub fn shown_elsewhere(&self, text: &str) -> String {
        self.redactor.text(&sanitize::block(text)).into_owned()
    }

    /// Something for `errors.log`, which the next prompts quote.
    pub fn error_entry(&mut self, heading: &str, body: &str) {
        let body = self.shown_elsewhere(body);
        self.errors.push_str(&format!("== {} {heading}\n{}\n", self.clock.now(), body.trim_end()));
    }

    /// Writes the logs for people, the snapshot and the cooldowns. They follow the journal; nothing depends on them.
    pub fn flush(&mut self) -> Result<(), DriveError> {
        if !self.activity.is_empty() {
            self.home.append("activity.log", &self.activity)?;
            self.activity.clear();
        }
        if !self.errors.is_empty() {
            append(&self.run.errors(), &self.errors)?;
            self.dir.append("errors.log", &self.errors)?;
            self.errors.clear();
        }
        snapshot::save(&self.files, &self.home, &self.run, &self.state, self.journal.bytes())?;
        Ok(())
    }

    /// Waits until the journal is on the disk, then writes the rest: nobody is told of what could still be lost.
    pub fn settle(&mut self) -> Result<(), DriveError> {
        self.journal.barrier()?;
        self.flush()
    }

    /// Writes `cooldowns.json`: the next run in this folder keeps to it, too. The one in `.ralph/` is for people.
    pub fn save_cooldowns(&self) -> Result<(), DriveError> {
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

    /// Lets people see the record in the `.ralph/` of their folder, and the agent in the one of its tree.
    pub fn show_record(&self) {
        let run = &self.state.spec.run_id;
        for dir in [&RalphDir::of(&self.state.spec.origin), &self.home, &self.dir] {
            if dir.path().parent().is_some_and(std::path::Path::is_dir) {
                shown::link(dir, run, &self.run);
            }
        }
    }

    /// A run that is over leaves a copy of its record in the user's folder. Nothing depends on it.
    pub fn show_end(&mut self) {
        if self.state.result.finished.is_none() {
            return self.show_record();
        }
        let dir = RalphDir::of(&self.state.spec.origin);
        let _ = shown::copy(&dir, &self.state.spec.run_id, &self.run);
    }

    /// A step begins: what it takes of the time is counted from here.
    pub fn begin_step(&mut self) {
        self.step_time = (Duration::ZERO, self.state.spent().time);
        self.own_time.0 = self.clock.elapsed();
    }

    /// A step of an iteration is over: what it took beside sessions and checks is the engine's own time. A plan of thousands of
    /// stories, or a large tree, must not let a run go on without end.
    pub fn end_step(&mut self) {
        let told = self.state.spent().time.saturating_sub(self.step_time.1);
        let took = self.clock.elapsed().saturating_sub(self.own_time.0);
        self.own_time.1 += took.saturating_sub(told);
    }

    /// Says so where the engine's own time has used up what was left: no further session begins then.
    pub fn tell_own_time(&mut self) -> Result<bool, DriveError> {
        let (own, spent) = (self.own_time.1, self.state.spent().time);
        let max = self.state.spec.settings.budgets.max_wall_time;
        if spent >= max || spent + own < max {
            return Ok(false);
        }
        self.own_time.1 = Duration::ZERO;
        let cut_ms = u64::try_from(own.as_millis()).unwrap_or(u64::MAX).max(1);
        let message = format!("the time is used up: {} of it went into the run's own files", duration(own));
        self.record(EventBody::BudgetWarning { budget: BudgetKind::Time, message, cut_ms }).map(|_| true)
    }

    /// A command of the step under way took this long.
    pub fn command_took(&mut self, time: Duration) {
        self.step_time.0 += time;
    }

    /// Working time of the step under way that no event tells of yet.
    pub fn untold_time(&self) -> Duration {
        let (commands, spent) = self.step_time;
        commands.saturating_sub(self.state.spent().time.saturating_sub(spent))
    }

    /// Whether the run has no time left, what the step under way has used included, and a command that has run for so long.
    pub fn time_is_up(&self, running: Duration) -> bool {
        let budgets = &self.state.spec.settings.budgets;
        budgets.deadline.is_some_and(|deadline| self.clock.now() >= deadline)
            || self.state.spent().time + self.untold_time() + running >= budgets.max_wall_time
    }

    /// Whether what goes on now is to end at once.
    pub fn ends_now(&self) -> bool {
        self.state.people.cancel_by.is_some() || self.suspend_by.is_some()
    }

    /// A named place between two effects.
    pub fn boundary(&mut self, name: &str) {
        self.observer.boundary(name);
    }

    /// A new log of the record.
    pub fn log(&self, path: &Path) -> Result<OutputLog, DriveError> {
        Ok(OutputLog::of(self.file(path)?, path, self.redactor.clone()))
    }

    /// A new and empty file of the record.
    pub fn file(&self, path: &Path) -> Result<File, DriveError> {
        Ok(self.files.create(path).map_err(|e| JournalError::file("write", path, e))?)
    }

    /// The folder of the iteration under way, made if needed.
    pub fn iteration_dir(&self, iteration: u32) -> Result<PathBuf, DriveError> {
        let path = self.run.iteration(iteration);
        self.files.folder(&path)?;
        Ok(path)
    }
}

/// A log of the record that is longer is put away.
const RECORD_LOG_MAX: u64 = 4 * 1024 * 1024;

/// Adds to a file of the record, which only this process writes.
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
