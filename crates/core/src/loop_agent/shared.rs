//! What an agent, its runs, its handles and its streams have in common.

use super::callbacks::{CallbackObserver, Callbacks};
use super::check::{Advisor, AsyncAdvisor, AsyncCheck, OwnCheck};
use super::source::{Hooks, RunSource};
use super::turn::Turn;
use crate::help::StuckAdvisor;
use ralph_loop_domain::ports::CustomCheck;
use ralph_loop_journal::inbox;
use ralph_loop_journal::layout::RunDir;
use ralph_loop_protocol::control::Control;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Who acts through an agent's handle, in the journal.
pub(super) const ACTOR: &str = "library";

/// The common ground.
pub(super) struct Shared {
    inner: Mutex<Inner>,
    pub(super) callbacks: Mutex<Callbacks>,
    checks: Vec<OwnCheck>,
    advisor: Mutex<Advisor>,
}

struct Inner {
    stage: Stage,
    record: Option<RunDir>,
    /// What was said before there was a run to say it to.
    unsent: Vec<Control>,
    /// The call that it is driven for.
    turn: Option<Turn>,
    /// Whoever waits: for the run to rest, for the next event.
    wakers: Vec<Waker>,
}

/// Whether somebody drives.
pub(super) enum Stage {
    /// Nobody has, so far.
    New(Box<dyn RunSource>),
    /// Somebody does.
    Driven,
    /// Somebody has, and may again.
    Rests(Box<dyn RunSource>),
}

impl Shared {
    pub(super) fn new(source: Box<dyn RunSource>, record: Option<RunDir>, checks: Vec<OwnCheck>) -> Self {
        let stage = Stage::New(source);
        Self {
            inner: Mutex::new(Inner { stage, record, unsent: Vec::new(), turn: None, wakers: Vec::new() }),
            callbacks: Mutex::new(Callbacks::default()),
            checks,
            advisor: Mutex::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn callbacks(&self) -> MutexGuard<'_, Callbacks> {
        self.callbacks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn advisor(&self) -> MutexGuard<'_, Advisor> {
        self.advisor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The record of the run, once there is one.
    pub(super) fn record(&self) -> Option<RunDir> {
        self.inner().record.clone()
    }

    /// What drives the run, for this call of it, where nobody does now; else `waker` is woken when that changes.
    pub(super) fn take_source(&self, turn: &Turn, waker: &Waker) -> Option<Box<dyn RunSource>> {
        let mut inner = self.inner();
        match std::mem::replace(&mut inner.stage, Stage::Driven) {
            Stage::New(source) | Stage::Rests(source) => {
                inner.turn = Some(turn.clone());
                Some(source)
            }
            Stage::Driven => {
                inner.wait(waker);
                None
            }
        }
    }

    /// The run exists: what was said to it before is sent now.
    pub(super) fn begun(&self, record: RunDir) {
        let unsent = {
            let mut inner = self.inner();
            inner.record = Some(record.clone());
            std::mem::take(&mut inner.unsent)
        };
        for control in unsent {
            let _ = inbox::send(&record, ACTOR, control);
        }
        self.wake();
    }

    /// Nobody drives it any more.
    pub(super) fn rest(&self, source: Box<dyn RunSource>) {
        {
            let mut inner = self.inner();
            inner.stage = Stage::Rests(source);
            inner.turn = None;
        }
        self.wake();
    }

    /// Lets the closures of the caller that the run waits for now be waited for no more.
    pub(super) fn abort(&self) {
        let turn = self.inner().turn.clone();
        turn.iter().for_each(Turn::abort);
    }

    /// Whether the run rests after it was driven; where it does not, `waker` is woken when there is news.
    pub(super) fn rests_or_wakes(&self, waker: &Waker) -> bool {
        let mut inner = self.inner();
        if matches!(inner.stage, Stage::Rests(_)) {
            return true;
        }
        inner.wait(waker);
        false
    }

    /// Whether nobody drives the run; where somebody does, `waker` is woken when there is news.
    pub(super) fn undriven_or_wakes(&self, waker: &Waker) -> bool {
        let mut inner = self.inner();
        let driven = matches!(inner.stage, Stage::Driven);
        if driven {
            inner.wait(waker);
        }
        !driven
    }

    /// Whether a thread of this process drives the run now.
    pub(super) fn is_driven(&self) -> bool {
        matches!(self.inner().stage, Stage::Driven)
    }

    /// Says something to the run, or keeps it until there is one.
    pub(super) fn say(&self, control: Control) -> Result<(), ralph_loop_journal::JournalError> {
        let record = {
            let mut inner = self.inner();
            match inner.record.clone().filter(|record| record.path().is_dir()) {
                Some(record) => record,
                None => {
                    inner.unsent.push(control);
                    return Ok(());
                }
            }
        };
        inbox::send(&record, ACTOR, control).map(|_| ())
    }

    pub(super) fn wake(&self) {
        let wakers = std::mem::take(&mut self.inner().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// What a run is given of the caller's closures.
    pub(super) fn hooks(self: &Arc<Self>, turn: &Turn) -> Hooks {
        let (waking, watched) = (Arc::clone(self), Arc::clone(self));
        let observer = CallbackObserver {
            callbacks: self.callbacks().clone(),
            wake: Box::new(move || waking.wake()),
            record: Arc::new(move || watched.record()),
            turn: turn.clone(),
        };
        let check = |one: &OwnCheck| -> Box<dyn CustomCheck> {
            let (check, timeout) = (Arc::clone(&one.check), one.timeout);
            Box::new(AsyncCheck { check, timeout, turn: turn.clone() })
        };
        let custom_checks: BTreeMap<_, _> =
            self.checks.iter().map(|one| (one.name.clone(), check(one))).collect();
        let Advisor { advise, timeout } = self.advisor().clone();
        let on_stuck = advise.map(|advise| -> Arc<dyn StuckAdvisor> {
            Arc::new(AsyncAdvisor { advise, timeout, turn: turn.clone() })
        });
        let cancel = Arc::clone(&turn.cancel);
        Hooks { observers: vec![Box::new(observer)], on_stuck, cancel, custom_checks }
    }
}

impl Inner {
    fn wait(&mut self, waker: &Waker) {
        if !self.wakers.iter().any(|known| known.will_wake(waker)) {
            self.wakers.push(waker.clone());
        }
    }
}
