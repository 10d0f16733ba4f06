//! Folds the end of an iteration.

use crate::state::{Current, HISTORY, IterationSummary, RunFacts};
use crate::stuck::Signals;
use jiff::Timestamp;
use ralph_loop_protocol::event::{SessionEnd, Verdict};
use ralph_loop_protocol::proof::test_counts::TestCounts;

impl RunFacts {
    pub(super) fn iteration_ended(
        &mut self,
        iteration: u32,
        verdict: Verdict,
        signals: &Signals,
        at: Timestamp,
    ) {
        self.iterations.count = iteration;
        self.stuck.scores.last = signals.loop_score;
        self.stuck.scores.max = self.stuck.scores.max.max(signals.loop_score);
        self.iterations.attempts = 0;
        self.iterations.interruptions = 0;
        self.iterations.empty_answers = 0;
        // Input that came during the session is for the next one.
        let read = self.people.nudges_read.min(self.people.nudges.len());
        self.people.nudges.drain(..read);
        self.people.nudges_read = 0;
        if let Some(key) = self.agents.model_used.take() {
            self.agents.models.remove(&key);
            self.agents.models_once.remove(&key);
        }
        self.result.candidate = verdict == Verdict::Candidate;
        self.result.proof = None;
        self.handed_in_again();
        let Some(current) = self.iterations.current.take() else { return };
        let measured = self.is_measured(current.role);
        self.count_failure(&current);
        self.remember(current, iteration, verdict, signals.loop_score, at);
        // Real progress ends the gutter: something improved, or the full window shows no sign of being stuck.
        let quiet = measured
            && signals.loop_score == 0.0
            && self.stuck.traces.len() >= self.spec.settings.stuck_detection.threshold as usize;
        if signals.progress.is_some() {
            self.stuck.number_credits = if signals.measured { self.stuck.number_credits + 1 } else { 0 };
        }
        if signals.progress.is_some() || quiet {
            self.stuck.gutters = 0;
            self.leave_gutter();
        }
    }

    /// Failed sessions in a row count against their agent.
    fn count_failure(&mut self, current: &Current) {
        let Some(session) = &current.session else { return };
        if session.end.is_failure() {
            *self.agents.failing.entry(current.agent.clone()).or_default() += 1;
        } else {
            self.agents.failing.remove(&current.agent);
        }
    }

    fn remember(
        &mut self,
        current: Current,
        iteration: u32,
        verdict: Verdict,
        loop_score: f64,
        at: Timestamp,
    ) {
        let counts = current.checked.iter().filter_map(|name| self.work.checks.get(name)?.tests);
        let tests =
            counts.reduce(|a, b| TestCounts { passed: a.passed + b.passed, failed: a.failed + b.failed });
        let (session, change) = (current.session, current.change);
        let (files, added, removed) = change.as_ref().map_or((0, 0, 0), |c| (c.files, c.added, c.removed));
        self.iterations.history.push_back(IterationSummary {
            iteration,
            agent: current.agent,
            verdict,
            end: session.as_ref().map_or(SessionEnd::Interrupted, |s| s.end.clone()),
            message: session.as_ref().map(|s| s.message.clone()).unwrap_or_default(),
            files,
            added,
            removed,
            known_cost: session.as_ref().and_then(|s| s.usage.cost),
            cost_basis: session.as_ref().map(|s| s.usage.basis).unwrap_or_default(),
            duration_ms: session.as_ref().map_or(0, |s| s.duration_ms),
            loop_score,
            failing: Vec::new(),
            tests,
            commit: change.as_ref().and_then(|c| c.commit.clone()),
            ended_at: at,
        });
        if self.iterations.history.len() > HISTORY {
            self.iterations.history.pop_front();
        }
    }
}
