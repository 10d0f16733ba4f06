//! Telling people of what happened to a run while nobody watches.
//!
//! Every message is journalled with who sent it, and an occasion that is journalled as told is not told again: a run that
//! is killed between the two events goes on with what is missing. Only the instant between sending and journalling is
//! left, and for that each message carries an id that stays the same.

use crate::context::{CancelFlag, Context};
use crate::error::DriveError;
use ralph_loop_domain::notify::notification;
use ralph_loop_domain::ports::{Clock, Notification, Notifier};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::{OpenOccasion, RunState};
use ralph_loop_journal::journal::{Journal, Places};
use ralph_loop_journal::layout::RalphDir;
use ralph_loop_protocol::event::{Effect, EventBody, Notified};
use ralph_loop_protocol::sanitize;
use ralph_loop_protocol::text::one_line;
use std::path::PathBuf;
use std::sync::Arc;

const WHY: usize = 300;

/// The occasions of a run that somebody among these wants to be told of and was not.
fn outstanding<'a>(
    state: &'a RunState,
    notifiers: &'a [Box<dyn Notifier>],
) -> impl Iterator<Item = &'a OpenOccasion> {
    state.telling.open.iter().filter(|open| {
        notifiers.iter().any(|who| who.wants(open.occasion) && !open.told.contains(who.name()))
    })
}

impl Context {
    /// Tells whoever wants to be told and was not yet. Never fails a run: what does not get through is journalled, but
    /// kept out of `errors.log`, which the agent reads and could do nothing about.
    pub fn notify_due(&mut self) -> Result<(), DriveError> {
        let due: Vec<OpenOccasion> = outstanding(&self.state, &self.notifiers).cloned().collect();
        for open in due {
            let message = self.clean(notification(&self.state, &open));
            // Nobody is told of what a power cut could still undo.
            self.journal.barrier()?;
            self.intend(Effect::Notification, format!("{} {}", open.of, open.occasion.as_str()))?;
            self.boundary("notify.before");
            self.still_holds()?;
            let sent = send(&mut self.notifiers, &open, &message);
            self.boundary("notify.sent");
            for (by, result) in sent {
                let why = result.err().map(|why| one_line(&self.redactor.text(&why), WHY));
                let told = Notified { of: open.of, occasion: open.occasion, by, ok: why.is_none(), why };
                self.record_only(EventBody::Notified(told))?;
            }
            self.boundary("notify.recorded");
        }
        Ok(())
    }

    fn clean(&self, message: Notification) -> Notification {
        let clean = |text: String| self.shown_elsewhere(&text);
        Notification {
            title: sanitize::line(&clean(message.title)).into_owned(),
            text: clean(message.text),
            hint: message.hint.map(clean),
            pr_url: message.pr_url.map(clean),
            ..message
        }
    }
}

/// Sends to all who want it, at the same time, so that a dead receiver costs its time-out once.
fn send(
    notifiers: &mut [Box<dyn Notifier>],
    open: &OpenOccasion,
    message: &Notification,
) -> Vec<(String, Result<(), String>)> {
    let wanting =
        notifiers.iter_mut().filter(|who| who.wants(open.occasion) && !open.told.contains(who.name()));
    std::thread::scope(|scope| {
        let sending: Vec<_> = wanting
            .map(|who| {
                let name = who.name().to_owned();
                (name, scope.spawn(move || who.send(message)))
            })
            .collect();
        let result = |(name, thread): (String, std::thread::ScopedJoinHandle<'_, Result<(), String>>)| {
            (name, thread.join().unwrap_or_else(|_| Err("the notifier broke down".into())))
        };
        sending.into_iter().map(result).collect()
    })
}

/// Tells of a run that is over what its last process had no time to tell. Returns how many messages were due.
pub fn catch_up(
    places: Places,
    (dir, home): (RalphDir, RalphDir),
    spec: ralph_loop_task::spec::RunSpec,
    redactor: Arc<Redactor>,
    clock: Arc<dyn Clock>,
    notifiers: Vec<Box<dyn Notifier>>,
) -> Result<usize, DriveError> {
    let mut state = RunState::new(spec);
    let (journal, _) = Journal::open(places, redactor.clone(), &mut |event| state.apply(event))?;
    let due = outstanding(&state, &notifiers).count();
    if due == 0 {
        return Ok(0);
    }
    let cancel = Arc::new(CancelFlag::default());
    let mut ctx =
        Context::new(state, journal, dir, home, clock, redactor, Vec::new(), cancel, PathBuf::new());
    ctx.notifiers = notifiers;
    ctx.notify_due()?;
    ctx.settle()?;
    Ok(due)
}

/// Whether people are still to be told of something, were these the ones who tell.
pub fn is_outstanding(state: &RunState, notifiers: &[Box<dyn Notifier>]) -> bool {
    outstanding(state, notifiers).next().is_some()
}
