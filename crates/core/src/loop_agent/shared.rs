//! State shared by an agent, its runs, handles and streams.

use super::callbacks::{CallbackObserver, Callbacks};
use super::check::{Advisor, AsyncAdvisor, AsyncCheck, OwnCheck};
use super::turn::Turn;
use crate::help::StuckAdvisor;
use crate::loop_agent::settings::source::{Hooks, RunSource};
use ralph_loop_domain::ports::CustomCheck;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_journal::inbox;
use ralph_loop_protocol::control::Control;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Sender of this handle's controls in the journal.
pub(super) const ACTOR: &str = "library";

pub(super) struct Shared {
    inner: Mutex<Inner>,
    pub(super) callbacks: Mutex<Callbacks>,
    checks: Vec<OwnCheck>,
    advisor: Mutex<Advisor>,
}

struct Inner {
    stage: Stage,
    record: Option<RunDir>,
    /// Controls sent before the run existed.
    unsent: Vec<Control>,
    /// The call it is driven for.
    turn: Option<Turn>,
    /// Tasks waiting for the run to stop or for the next event.
    wakers: Vec<Waker>,
}

/// Who holds the run source.
pub(super) enum Stage {
    /// Not driven yet.
    New(Box<dyn RunSource>),
    /// Being driven.
    Driven,
    /// Driven before, and available again.
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

    /// The run's record, once it exists.
    pub(super) fn record(&self) -> Option<RunDir> {
        self.inner().record.clone()
    }

    /// Takes the source for this call if it is free; otherwise `waker` is woken on a change.
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

    /// Sends the controls that waited for the run to exist.
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

    /// Returns the source after driving.
    pub(super) fn rest(&self, source: Box<dyn RunSource>) {
        {
            let mut inner = self.inner();
            inner.stage = Stage::Rests(source);
            inner.turn = None;
        }
        self.wake();
    }

    /// Stops waiting for the caller's closures.
    pub(super) fn abort(&self) {
        let turn = self.inner().turn.clone();
        turn.iter().for_each(Turn::abort);
    }

    /// Whether the run stopped after being driven; otherwise `waker` is woken on a change.
    pub(super) fn rests_or_wakes(&self, waker: &Waker) -> bool {
        let mut inner = self.inner();
        if matches!(inner.stage, Stage::Rests(_)) {
            return true;
        }
        inner.wait(waker);
        false
    }

    /// Whether the run isn't driven; otherwise `waker` is woken on a change.
    pub(super) fn undriven_or_wakes(&self, waker: &Waker) -> bool {
        let mut inner = self.inner();
        let driven = matches!(inner.stage, Stage::Driven);
        if driven {
            inner.wait(waker);
        }
        !driven
    }

    /// Whether a thread of this process drives the run.
    pub(super) fn is_driven(&self) -> bool {
        matches!(self.inner().stage, Stage::Driven)
    }

    /// Sends a control, or keeps it until the run exists.
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

    /// The caller's closures for a run.
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
