//! Runs several agents or models on one task, each in its own worktree. The first proven result wins, or the
//! best of all proven ones. Losers are ended; their records stay.

pub(crate) mod race_shares;
pub mod races;
pub mod side_by_side;

use crate::environment::Environment;
use crate::error::{AppError, ErrorKind};
use crate::race::race_shares::{BudgetShares, ContestantSpend};
use crate::race::races::{LaneRecord, RaceFile, RaceRecord};
use crate::race::side_by_side::{Batch, BatchRun};
use crate::read::find;
use crate::report::SilentReporter;
use crate::request::{RunRequest, Unfinished, Workplace};
use crate::{resume, run};
use jiff::{SignedDuration, Timestamp};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::best::best;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_domain::state::RunState;
use ralph_loop_git::Repo;
pub use ralph_loop_protocol::display::race::{RaceBy, RaceRun, RaceView};
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::{Cost, Usd};
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_protocol::proof::level::ProofLevel;
use ralph_loop_task::dialect::Publish;
use std::path::Path;
use std::time::Duration;

pub const LANES_MAX: usize = 8;

pub struct Contestant<'a> {
    /// The agent, the model, or its number.
    pub name: &'a str,
    pub run: &'a BatchRun,
    /// Its state, once known.
    pub state: Option<RunState>,
}

impl Contestant<'_> {
    /// Cost so far.
    pub fn cost(&self) -> Cost {
        self.state.as_ref().map_or(Cost::UNKNOWN, |state| state.spending.totals.cost)
    }

    fn seen(&self) -> ContestantSpend {
        let state = self.state.as_ref();
        ContestantSpend {
            spent: self.cost().at_least(),
            works: self.run.code().is_none(),
            recorded: state.map(|state| state.spec.settings.budgets.max_cost),
            iteration: state.map_or(0, |state| {
                state.iterations.current.as_ref().map_or(state.iterations.count, |current| current.iteration)
            }),
        }
    }

    pub fn is_proven(&self) -> bool {
        let end = self.state.as_ref().and_then(|state| state.result.finished.as_ref());
        self.run.code() == Some(0) && end.is_none_or(|end| end.reason == EndReason::Completed)
    }

    /// Proof level; `None` without a result.
    pub fn level(&self) -> Option<ProofLevel> {
        let proof = self.state.as_ref().and_then(|state| state.result.proof.as_ref());
        proof.filter(|_| self.is_proven()).and_then(|proof| proof.level)
    }

    /// Whether it wins immediately.
    pub fn is_independent(&self) -> bool {
        self.level() == Some(ProofLevel::Independent)
    }
}

pub struct Race {
    env: Environment,
    names: Vec<String>,
    ids: Vec<RunId>,
    title: String,
    file: RaceFile,
    batch: Batch,
    by: RaceBy,
    budget: Usd,
    /// What the task or configuration publishes.
    wanted: Publish,
    /// Why the others were ended.
    ended: Option<String>,
    winner: Option<usize>,
    shares: BudgetShares,
    /// Whether the losers' records name the winner.
    noted: bool,
}

impl Race {
    /// Validates everything; starts nothing. The request says who races and what wins.
    pub fn new(env: &Environment, request: &RunRequest) -> Result<Self, AppError> {
        let now = SystemClock::default().now();
        let mut base = request.clone();
        enter(&mut base, now)?;
        let race = base.race.take().unwrap_or_default();
        settle_base(&mut base)?;
        // If this can't be determined, the lane reports it.
        let (wanted, title) = run::prepare(env, &base, &SilentReporter)
            .map_or((Publish::None, String::new()), |plan| {
                (plan.settings().handover.publish, plan.task().title.clone())
            });
        // Several may be proven, but only one is the result.
        base.publish = Some(Publish::None);
        let names = entrants(&race.who)?;
        let mut requests: Vec<RunRequest> = Vec::new();
        let mut budget = Usd::MAX;
        let mut measured = true;
        for (name, id) in names.iter().zip(&race.runs) {
            let (mut request, plan) = lane(env, &base, name)?;
            request.run_id = Some(id.clone());
            budget = budget.min(plan.settings().budgets.max_cost);
            measured &= plan.settings().verifiers.iter().any(|verifier| verifier.metric.is_some());
            requests.push(request);
        }
        if race.by == RaceBy::Metric && !measured {
            return Err(AppError::usage("the best number is to win, but no verifier has a `metric`")
                .hint("add one under `verifiers`, or pass `--best diff` or `--best cost`"));
        }
        let shares = BudgetShares::new(budget, names.len());
        for request in &mut requests {
            request.overrides.max_cost =
                shares.first().map_or(request.overrides.max_cost, |share| Some(share.dollars()));
        }
        let jobs = names.len();
        let batch = Batch::new(env, requests, jobs)?;
        let file = RaceFile::make(&env.state_home()?, &race.runs[0], now)?;
        let mut race = Self {
            env: env.clone(),
            shares,
            names,
            ids: race.runs,
            title,
            file,
            batch,
            by: race.by,
            budget,
            wanted,
            ended: None,
            winner: None,
            noted: false,
        };
        let record = race.record();
        race.file.write(record)?;
        Ok(race)
    }

    /// The current standings.
    pub fn view(&self) -> RaceView {
        let states: Vec<_> = self.batch.runs().iter().map(|run| self.batch.state(run)).collect();
        races::view(&self.record(), &states, self.title.clone(), true)
    }

    fn record(&self) -> RaceRecord {
        let lanes = self.names.iter().zip(&self.ids).zip(self.batch.runs());
        let said = |run: &BatchRun| {
            let result = run.result()?;
            let text = result["summary"].as_str().filter(|text| !text.is_empty());
            Some(text.or_else(|| result["error"]["message"].as_str())?.to_owned())
        };
        RaceRecord {
            id: self.ids[0].clone(),
            by: self.by,
            budget: self.budget,
            winner: self.winner.map(|at| self.ids[at].clone()),
            ended: self.ended.clone(),
            over: self.is_over(),
            lanes: lanes
                .map(|((name, run_id), run)| LaneRecord {
                    name: name.clone(),
                    run_id: run_id.clone(),
                    code: run.code(),
                    said: said(run).unwrap_or_default(),
                })
                .collect(),
        }
    }

    pub fn lanes(&self) -> Vec<Contestant<'_>> {
        let runs = self.names.iter().zip(self.batch.runs());
        runs.map(|(name, run)| Contestant { name, run, state: self.batch.state(run) }).collect()
    }

    /// Index of the winner in [`Self::lanes`].
    pub fn winner(&self) -> Option<usize> {
        self.winner
    }

    /// Why the others were ended early.
    pub fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    /// What the task or configuration publishes; a race leaves that to the user.
    pub fn wanted(&self) -> Publish {
        self.wanted
    }

    pub fn is_over(&self) -> bool {
        self.batch.is_over()
    }

    /// Ends every run cleanly; each can be resumed.
    pub fn cancel(&mut self) {
        self.ended.get_or_insert_with(|| "the race was stopped".to_owned());
        self.batch.cancel();
    }

    /// Polls the runs and ends those that can't win. `now` is the time since the start.
    pub fn step(&mut self, now: Duration) -> Result<(), AppError> {
        self.batch.step(now)?;
        if self.ended.is_none() {
            self.judge();
        }
        if self.ended.is_none() {
            self.share();
        }
        if self.winner.is_none() && self.is_over() {
            self.winner = self.best_of_proven();
        }
        if self.is_over() && !std::mem::replace(&mut self.noted, true) {
            self.note_losers();
        }
        let record = self.record();
        self.file.write(record)
    }

    /// BudgetShares the remaining budget among the active runs.
    fn share(&mut self) {
        let seen: Vec<ContestantSpend> = self.lanes().iter().map(Contestant::seen).collect();
        for (at, share) in self.shares.next(&seen) {
            if self.batch.allow(at, share, "the budget is shared") {
                self.shares.record_share(at, share);
            }
        }
    }

    fn judge(&mut self) {
        let lanes = self.lanes();
        let spent = lanes.iter().fold(Usd::ZERO, |sum, lane| sum + lane.cost().at_least());
        let first =
            (self.by == RaceBy::First).then(|| lanes.iter().position(Contestant::is_independent)).flatten();
        let lost = first.map(|at| format!("lost to {}", lanes[at].name));
        let why = match first {
            Some(at) => Some(format!("{} was proven first", lanes[at].name)),
            None if spent > Usd::ZERO && spent >= self.budget => {
                Some(format!("together they have cost {spent}, and {} is the limit", self.budget))
            }
            None => None,
        };
        let running: Vec<usize> = lanes
            .iter()
            .enumerate()
            .filter(|(_, lane)| lane.run.code().is_none())
            .map(|(at, _)| at)
            .collect();
        drop(lanes);
        self.winner = first.or(self.winner);
        if let Some(why) = why {
            let told = lost.unwrap_or_else(|| why.clone());
            self.ended = Some(why);
            running.into_iter().for_each(|at| self.batch.stop(at, &told));
        }
    }

    /// Records the winner in each loser's record, so that the latest run resolves to the winner.
    fn note_losers(&self) {
        let Some(at) = self.winner else { return };
        let losers = self.ids.iter().enumerate().filter(|(n, _)| *n != at).map(|(_, id)| id.as_str());
        for entry in losers.filter_map(|id| find::run(&self.env, Path::new("/"), Some(id)).ok()) {
            find::note_lost(&entry, self.ids[at].as_str());
            // A run waiting for the user lost too, and needs no attention.
            if find::handle(&self.env, &entry).state().is_ok_and(|state| state.result.finished.is_none()) {
                drop(resume::end(&self.env, &entry, EndReason::Stopped));
            }
        }
    }

    /// The best proven run; the first if several are equal.
    fn best_of_proven(&self) -> Option<usize> {
        let lanes = self.lanes();
        let proven = lanes.iter().enumerate().filter(|(_, lane)| lane.is_proven());
        let scored = proven.filter_map(|(at, lane)| Some((at, lane.level(), self.score(lane)?)));
        scored.min_by(|(_, one, a), (_, other, b)| other.cmp(one).then(a.total_cmp(b))).map(|(at, ..)| at)
    }

    /// Lower is better.
    fn score(&self, lane: &Contestant<'_>) -> Option<f64> {
        let state = lane.state.as_ref();
        match self.by {
            RaceBy::First => Some(state?.result.finished.as_ref()?.at.as_millisecond() as f64),
            // An unknown cost may exceed any other.
            RaceBy::Cost => lane.cost().whole().map(Usd::dollars),
            RaceBy::Metric => best(state?).map(|best| if best.rises { -best.value } else { best.value }),
            RaceBy::Diff => changed_lines(&self.env, state?),
        }
    }
}

/// Names a race and its runs: the race takes the first run's id.
pub fn enter(request: &mut RunRequest, now: Timestamp) -> Result<(), AppError> {
    let first = request.run_id.clone();
    let Some(race) = &mut request.race else { return Ok(()) };
    let many = entrants(&race.who)?.len();
    if race.runs.len() != many {
        // Far enough apart for distinct ids.
        let at = |n: usize| now + SignedDuration::from_millis(2 * n as i64);
        race.runs = (0..many).map(|n| ralph_loop_core::run_id::new(at(n))).collect();
        if let Some(first) = first {
            race.runs[0] = first;
        }
    }
    request.run_id = race.runs.first().cloned();
    Ok(())
}

/// Common settings: separate workspaces, and no handover.
fn settle_base(base: &mut RunRequest) -> Result<(), AppError> {
    if base.place == Workplace::InPlace {
        base.place = Workplace::Worktree;
    }
    base.unfinished = Unfinished::StartAnew;
    base.run_id = None;
    if matches!(base.publish, Some(Publish::Push | Publish::Pr)) {
        return Err(AppError::usage("a race can't publish its result, but `--publish` requests it").hint(
            "leave it out: the winner's branch stays here, and `ralph apply` or `git push` takes it on",
        ));
    }
    Ok(())
}

/// The contenders: names, or a number of identical ones.
fn entrants(who: &[String]) -> Result<Vec<String>, AppError> {
    let names: Vec<String> = match who {
        [one] if one.parse::<usize>().is_ok() => {
            let many: usize = one.parse().unwrap_or(0);
            (1..=many.min(LANES_MAX + 1)).map(|n| format!("#{n}")).collect()
        }
        names => names.to_vec(),
    };
    if !(2..=LANES_MAX).contains(&names.len()) {
        return Err(AppError::usage(format!("{} cannot race", ralph_loop_protocol::display::text::count(names.len(), "run")))
            .hint(format!("name two to {LANES_MAX} agents or models (`--race claude,codex`), or how many of the same (`--race 3`)")));
    }
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(
            AppError::usage(format!("`{}` is named twice", twice.1)).hint("`--race 2` races two of the same")
        );
    }
    Ok(names)
}

/// The request of one lane: an agent of that name, else a model.
fn lane(env: &Environment, base: &RunRequest, name: &str) -> Result<(RunRequest, run::Plan), AppError> {
    let mut request = base.clone();
    if name.starts_with('#') {
        let plan = run::prepare(env, &request, &SilentReporter)?;
        return Ok((request, plan));
    }
    request.overrides.agents = vec![name.to_owned()];
    match run::prepare(env, &request, &SilentReporter) {
        Ok(plan) => Ok((request, plan)),
        Err(error)
            if error.kind == ErrorKind::Usage && error.message == format!("agent `{name}` doesn't exist") =>
        {
            let mut request = base.clone();
            request.overrides.model = Some(name.to_owned());
            let plan = run::prepare(env, &request, &SilentReporter)
                .map_err(|other| if other.message == error.message { error } else { other })?;
            Ok((request, plan))
        }
        Err(error) => Err(error),
    }
}

/// Lines changed by a run in total.
fn changed_lines(env: &Environment, state: &RunState) -> Option<f64> {
    let (baseline, work) = (state.baseline.as_ref()?, state.work.commit.as_ref()?);
    let repo = Repo::discover(env.vars(), &find::top(&state.spec.origin)).ok()?;
    let call =
        repo.git().call(["diff", "--numstat", baseline.head.as_str(), work.as_str(), "--", ".", ":!.ralph"]);
    let text = call.run().ok()?.text();
    let lines = text.lines().flat_map(|line| line.split('\t').take(2)).filter_map(|n| n.parse::<f64>().ok());
    Some(lines.sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RaceRequest;

    #[test]
    fn a_race_has_two_to_eight_that_differ() {
        let of = |names: &[&str]| entrants(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["3"]).unwrap(), ["#1", "#2", "#3"]);
        assert_eq!(of(&["claude", "codex"]).unwrap(), ["claude", "codex"]);
        let race = RaceRequest { who: vec!["3".into()], ..RaceRequest::default() };
        let mut request = RunRequest { race: Some(race), ..RunRequest::in_folder("/repo") };
        enter(&mut request, Timestamp::UNIX_EPOCH).unwrap();
        let named = request.clone();
        enter(&mut request, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(request, named, "named once");
        let runs = request.race.unwrap().runs;
        assert!(runs.len() == 3 && runs[0] < runs[1] && runs[1] < runs[2], "{runs:?}");
        assert_eq!(request.run_id.as_ref(), runs.first());
        for wrong in [&["1"][..], &["9"], &["claude"], &["a", "a"], &["99999999999"]] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
