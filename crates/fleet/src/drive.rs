//! Drives one run: takes it, holds it, starts or resumes it, and releases it. A separate thread renews the hold. If that fails,
//! nothing more is sealed, the guards end what runs, and this process ends.

use crate::bring::bring;
use crate::db::{Fleet, lease_time, url};
use crate::error::FleetError;
use crate::keeper::Keeper;
use crate::lease::{self, Fault, Lease};
use crate::output;
use crate::runs::Assignment;
use crate::seal::{Line, PostgresSeal};
use crate::store::{self, ArtifactStore};
use crate::{grant, letters, runs, workers};
use ralph_loop_app::{
    App, AppError, Environment, ErrorKind, Hold, Reporter, ResumeOutcome, Unfinished, adopt,
};
use ralph_loop_core::CancelToken;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_protocol::control::BudgetChange;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_sandbox::LeaseClock;
use sqlx::PgConnection;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The variable by which a worker names the hold of the process that it starts, so that it can end it when that is dead.
pub const HOLDER: &str = "RALPH_WORKER_HOLD";
/// How often the driver looks for new controls.
const LOOK: Duration = Duration::from_secs(1);
/// How long the server may take to grant a run its secrets, and how often the driver checks for them.
const GIVEN: Duration = Duration::from_secs(30);
const ASK: Duration = Duration::from_millis(100);
/// How long a driver that has lost its run may take to exit before it is killed.
const LOST: Duration = Duration::from_secs(10);

/// A run that this process holds.
pub struct Held {
    lease: Lease,
    run: RunId,
    assignment: Assignment,
    seal: Arc<PostgresSeal>,
    clock: Arc<LeaseClock>,
    store: ArtifactStore,
    app: App,
    ended: Sender<()>,
    beat: Option<std::thread::JoinHandle<()>>,
}

/// Returns the worker's name (by default the machine's id) and the name of this hold.
fn names(env: &Environment) -> Result<(String, String), AppError> {
    let machine = ralph_loop_journal::folder::machine::id(&env.state_home()?)?.to_string();
    let worker = env.vars().filled("RALPH_WORKER").unwrap_or_else(|| machine.clone());
    let holder = env.vars().filled(HOLDER).unwrap_or_else(|| format!("{worker}/{}", std::process::id()));
    Ok((worker, holder))
}

impl Held {
    /// Takes a run that has no holder.
    pub fn take(env: &Environment, run: &RunId, cancel: &Arc<CancelToken>) -> Result<Self, AppError> {
        let url = url(env.vars()).ok_or_else(|| FleetError::Setup {
            what: "RALPH_DB_URL names no Postgres".into(),
            hint: crate::db::NO_URL.into(),
        })?;
        let store = ArtifactStore::of(env.vars())?;
        let (worker, holder) = names(env)?;
        let time = lease_time(env.vars());
        let answer = (time / 4).clamp(Duration::from_millis(500), Duration::from_secs(5));
        // One connection for the driver. The thread that renews the hold opens another one later.
        let fleet = Fleet::open_with(&url, 1)?.with_patience(answer);
        let asked = LeaseClock::now();
        let (lease, line) = fleet.wait(async {
            let mut line = Line::open(fleet.pool()).await?;
            workers::may_drive(line.db()?, &worker, run.as_str()).await?;
            Ok((lease::take(line.db()?, run.as_str(), &holder, time).await?, line))
        })?;
        let failed = |e: std::io::Error| AppError::environment(format!("no clock for the lease: {e}"));
        let clock = Arc::new(LeaseClock::start(Duration::ZERO).map_err(failed)?);
        clock.extend(asked, own_share(time)).map_err(failed)?;
        let seal = PostgresSeal::new(fleet.clone(), lease.clone(), clock.clone(), own_share(time), line);
        let hold = Hold { seal: seal.clone(), clock: clock.clone() };
        // The run's first refresh covers news from before this read. The pulses report what comes later.
        let assignment = seal.ask(async |db| runs::assignment(db, run.as_str()).await)?;
        if assignment.told {
            cancel.set_push_updates();
        }
        let (ended, until) = channel();
        let beat = Beat {
            fleet: fleet.beside(),
            lease: lease.clone(),
            worker,
            seal: seal.clone(),
            clock: clock.clone(),
            cancel: cancel.clone(),
            dir: env.state_home()?.record(run),
            time,
            news: assignment.news,
        };
        let beat = std::thread::spawn(move || beat.run(&until));
        let own = |name: &OsStr| name == HOLDER || store::is_own(name, env.vars());
        let vars: Vars = env.vars().iter().filter(|(name, _)| !own(name)).collect();
        let env = env.with_vars(vars.with(assignment.profiles())).with_hold(hold);
        let app = App::new(env.clone());
        let run = run.clone();
        let mut held = Self { lease, run, seal, clock, store, app, ended, beat: Some(beat), assignment };
        match held.secrets(cancel) {
            Ok(given) => {
                held.app = App::new(env.with_vars(env.vars().with(given)));
                Ok(held)
            }
            Err(error) => {
                held.fail(Fault::Outage, &error.to_string())?;
                Err(error.into())
            }
        }
    }

    /// What the server gives to this run, once it has.
    fn secrets(&self, cancel: &CancelToken) -> Result<Vec<(String, String)>, FleetError> {
        if !self.assignment.has_secrets {
            return Ok(Vec::new());
        }
        let key = self.seal.ask(async |db| grant::ask(db, &self.lease).await)?;
        let begun = Instant::now();
        let (_keep, never) = channel::<()>();
        while begun.elapsed() < GIVEN && cancel.get().is_none() && !self.clock.is_over() {
            if let Some(sealed) = self.seal.ask(async |db| grant::answer(db, &self.lease).await)? {
                return grant::read(key, &self.lease, &sealed);
            }
            let _ = never.recv_timeout(ASK);
        }
        Err(FleetError::Setup {
            what: format!("the server gave run {} none of its secrets", self.run),
            hint: "`ralph serve` must run, with the same RALPH_DB_URL; it is tried again later".into(),
        })
    }

    /// The app that drives it.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Starts the run, or resumes it where its last driver stopped.
    pub fn begin(&self, cancel: Arc<CancelToken>, report: &dyn Reporter) -> Result<ResumeOutcome, AppError> {
        let env = self.app.environment();
        let home = env.state_home()?;
        let here = adopt::is_here(env, &self.run)?;
        if !here {
            // What an earlier visit left is older than what is sealed, or another run's.
            adopt::forget(env, &self.run)?;
        }
        let state = adopt::sealed_state(env, &self.run)?;
        let mut outcome = match state {
            Some(state) if state.baseline.is_some() => {
                if !here {
                    bring(&self.app, &self.store, &self.run, report)?;
                }
                self.bring_letters(&home.record(&self.run))?;
                let folder = home.path().to_owned();
                let none = BudgetChange::default();
                self.app.resume(&folder, Some(self.run.as_str()), &[], &none, cancel, report)?
            }
            _ => self.start(cancel, report)?,
        };
        if let ResumeOutcome::Ready(ready) = &mut outcome {
            let record = ready.record();
            let places = (record.as_path(), ready.spec().home(), env);
            let keeper =
                Keeper::new(self.store.clone(), self.seal.clone(), self.lease.epoch, &self.run, places);
            ready.watched_by(Box::new(keeper));
        }
        Ok(outcome)
    }

    /// Starts a run that was never prepared. Discards the journal of an earlier try, which has cost nothing.
    fn start(&self, cancel: Arc<CancelToken>, report: &dyn Reporter) -> Result<ResumeOutcome, AppError> {
        let env = self.app.environment();
        let mut request = self.assignment.request()?;
        if self.lease.head > 0 {
            self.seal.ask(async |db| start_over(db, &self.lease).await)?;
        }
        adopt::forget(env, &self.run)?;
        let home = env.state_home()?;
        adopt::mark(&home.record(&self.run))?;
        request.folder = home.path().to_owned();
        request.unfinished = Unfinished::StartAnew;
        let plan = self.app.prepare(&request, report)?;
        let outcome = self.app.start(plan, cancel, report)?;
        self.bring_letters(&home.record(&self.run))?;
        Ok(outcome)
    }

    fn bring_letters(&self, dir: &RunDir) -> Result<(), AppError> {
        let found = self.seal.ask(async |db| letters::after(db, self.run.as_str(), 0).await)?;
        letters::deliver(dir, found);
        Ok(())
    }

    /// Lets go of a run that was driven as far as it goes.
    pub fn finish(mut self, reason: EndReason, why: Option<&str>) -> Result<(), AppError> {
        let status = match reason {
            EndReason::Suspended => "queued",
            EndReason::NeedsHuman => "resting",
            EndReason::Error => {
                let fault = self.seal.fault().unwrap_or(Fault::Crash);
                return self.fail(fault, why.unwrap_or("the process that drove it ended with an error"));
            }
            _ => "over",
        };
        self.end_beat();
        self.seal.ask(async |db| lease::release(db, &self.lease, status, why).await)?;
        Ok(())
    }

    /// Lets go of a run that was not begun here, as the reason says: over, for a person, or to be tried again.
    pub fn refused(self, error: &AppError) -> Result<(), AppError> {
        let state = adopt::sealed_state(self.app.environment(), &self.run).ok().flatten();
        if state.is_some_and(|state| state.result.finished.is_some()) {
            return self.finish(EndReason::Completed, None);
        }
        match error.kind {
            // A retry changes nothing: the request can't succeed, or it needs your decision.
            ErrorKind::NeedsPerson | ErrorKind::Usage | ErrorKind::NothingChecks => {
                self.finish(EndReason::NeedsHuman, Some(&error.message))
            }
            _ => {
                let fault = self.seal.fault().unwrap_or(Fault::Worker);
                self.fail(fault, &error.message)
            }
        }
    }

    /// Lets go of a run that could not be driven.
    pub fn fail(mut self, fault: Fault, why: &str) -> Result<(), AppError> {
        self.end_beat();
        self.seal.ask(async |db| lease::release_faulted(db, &self.lease, fault, why).await)?;
        Ok(())
    }

    /// Nothing of the run may live once the hold is given away.
    fn end_beat(&mut self) {
        let _ = self.ended.send(());
        if let Some(beat) = self.beat.take() {
            let _ = beat.join();
        }
        let _ = self.clock.end();
    }
}

/// Returns the part of a lease that its holder relies on. The rest is time for the guards to end what still runs.
fn own_share(time: Duration) -> Duration {
    time - (time / 10).min(Duration::from_secs(2))
}

/// Takes back what was journalled of a run that was never prepared.
async fn start_over(db: &mut PgConnection, lease: &Lease) -> Result<(), FleetError> {
    let mine: bool = sqlx::query_scalar("SELECT ralph_seal.start_over($1, $2)")
        .bind(&lease.run)
        .bind(lease.epoch)
        .fetch_one(db)
        .await?;
    if mine { Ok(()) } else { Err(FleetError::Held { run: lease.run.clone() }) }
}

/// What keeps the hold.
struct Beat {
    fleet: Fleet,
    lease: Lease,
    worker: String,
    seal: Arc<PostgresSeal>,
    clock: Arc<LeaseClock>,
    cancel: Arc<CancelToken>,
    dir: RunDir,
    time: Duration,
    /// How often the code host had told the run of news when it was taken.
    news: i64,
}

impl Beat {
    fn run(self, ended: &Receiver<()>) {
        let (mut renewed, mut looked) = (LeaseClock::now(), Instant::now());
        let (mut letter, mut news) = (0, self.news);
        let mut sender = output::Sender::new(&self.dir);
        let pause = (self.time / 6).min(LOOK);
        loop {
            match ended.recv_timeout(pause) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
            if renewed.elapsed() >= own_share(self.time) {
                return self.lost(ended);
            }
            if renewed.elapsed() >= self.time / 3 {
                let asked = LeaseClock::now();
                match self.fleet.wait(lease::renew(self.fleet.pool(), &self.lease, self.time)) {
                    Ok(true) => {
                        let _ = self.clock.extend(asked, own_share(self.time));
                        renewed = asked;
                    }
                    Ok(false) => return self.lost(ended),
                    // It may come back before the lease has run out.
                    Err(error) => tracing::warn!(%error, "the lease could not be renewed"),
                }
            }
            for piece in sender.next() {
                if let Err(error) = self.fleet.wait(output::send(self.fleet.pool(), &self.lease, &piece)) {
                    tracing::info!(%error, "live output was lost");
                    break;
                }
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                self.hear(&mut letter, &mut news);
            }
        }
    }

    /// What people, the fleet and the code host want of the run.
    fn hear(&self, letter: &mut i64, news: &mut i64) {
        let pool = self.fleet.pool();
        let Ok(pulse) = self.fleet.wait(runs::pulse(pool, &self.lease.run, &self.worker)) else { return };
        if pulse.letter > *letter
            && self.dir.spec().is_file()
            && let Ok(found) = self.fleet.wait(letters::after(pool, &self.lease.run, *letter))
            && let Some(last) = letters::deliver(&self.dir, found)
        {
            *letter = last;
        }
        if pulse.told {
            self.cancel.set_push_updates();
        }
        if std::mem::replace(news, pulse.news) != pulse.news {
            self.cancel.refresh_now();
        }
        if pulse.revoked && self.cancel.get().is_none() {
            self.cancel.set(CancelToken::CALLER);
        } else if pulse.draining {
            self.cancel.request_idle();
        }
    }

    /// Stops this process from changing the run: another process may drive it now.
    fn lost(&self, ended: &Receiver<()>) {
        tracing::error!(run = self.lease.run, epoch = self.lease.epoch, "the hold on the run is lost");
        self.seal
            .close(Fault::Outage, format!("the hold on run {} is lost: its lease ran out", self.lease.run));
        let _ = self.clock.end();
        self.cancel.set(CancelToken::CALLER);
        if ended.recv_timeout(LOST) == Err(RecvTimeoutError::Timeout) {
            // The driver hangs and ignores its cancellation. The guards have ended what it started.
            let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGKILL);
        }
    }
}
