//! Notifies about a run while the user isn't watching.
//!
//! Every message is journaled, and a journaled message isn't sent again, so a run killed in between sends
//! only what is missing. The remaining gap is between sending and journaling; messages carry a stable id for
//! that.

use crate::cancel::CancelToken;
use crate::error::DriveError;
use crate::ledger::Ledger;
use ralph_loop_domain::ports::{Clock, Notification, Notifier};
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::{PendingNotification, RunState};
use ralph_loop_domain::text::notify::notification;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::journal::{Journal, RunPaths};
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::event::{Effect, EventBody, Notified};
use std::sync::Arc;

const WHY: usize = 300;

/// Occasions that a notifier wants and that weren't sent yet.
fn outstanding<'a>(
    state: &'a RunState,
    notifiers: &'a [Box<dyn Notifier>],
) -> impl Iterator<Item = &'a PendingNotification> {
    state.telling.open.iter().filter(|open| {
        notifiers.iter().any(|who| who.wants(open.occasion) && !open.told.contains(who.name()))
    })
}

impl Ledger {
    /// Sends due notifications. Failures are journaled but never fail a run, and stay out of `errors.log`,
    /// because the agent can't fix them.
    pub fn notify_due(&mut self) -> Result<(), DriveError> {
        let due: Vec<PendingNotification> = outstanding(&self.state, &self.notifiers).cloned().collect();
        for open in due {
            let message = self.clean(notification(&self.state, &open));
            // Don't announce what a power cut could still undo.
            self.journal.barrier()?;
            self.intend(Effect::Notification, format!("{} {}", open.of, open.occasion.as_str()))?;
            self.boundary("notify.before");
            self.check_lease()?;
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
        let clean = |text: String| self.redact_for_display(&text);
        Notification {
            title: sanitize::line(&clean(message.title)).into_owned(),
            text: clean(message.text),
            hint: message.hint.map(clean),
            pr_url: message.pr_url.map(clean),
            ..message
        }
    }
}

/// Sends to all in parallel, so that a dead receiver costs its timeout only once.
fn send(
    notifiers: &mut [Box<dyn Notifier>],
    open: &PendingNotification,
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

/// Sends notifications that a finished run's last process didn't. Returns how many were due.
pub fn catch_up(
    places: RunPaths,
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
    let cancel = Arc::new(CancelToken::default());
    let mut ledger = Ledger::new(state, journal, dir, home, clock, redactor, Vec::new(), cancel);
    ledger.notifiers = notifiers;
    ledger.notify_due()?;
    ledger.settle()?;
    Ok(due)
}

/// Whether these notifiers still have something to send.
pub fn is_outstanding(state: &RunState, notifiers: &[Box<dyn Notifier>]) -> bool {
    outstanding(state, notifiers).next().is_some()
}
