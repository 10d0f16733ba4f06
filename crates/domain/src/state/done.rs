//! Whether the work is done, according to the checks in the workspace.

use super::RunFacts;
use ralph_loop_protocol::event::Verdict;
use ralph_loop_task::config::{Completion, VerifierConfig};

/// Sessions in a row that change nothing.
const IDLE_MAX: usize = 2;

impl RunFacts {
    /// A check's result on the present tree; results for other trees don't count.
    pub(crate) fn passes_now(&self, name: &str) -> Option<bool> {
        let result = self.work.checks.get(name)?;
        (Some(&result.tree) == self.work.tree.as_ref()).then_some(result.passed)
    }

    /// Whether a final check has rejected the present tree.
    pub(crate) fn is_disproved(&self) -> bool {
        self.result.disproved.as_ref().is_some_and(|(tree, _)| Some(tree) == self.work.tree.as_ref())
    }

    /// Whether every criterion without a separate check is claimed, and nothing else is open.
    fn all_claimed(&self) -> bool {
        let criteria = &self.spec.task.criteria;
        let own = |id: &String| criteria.iter().any(|c| c.id == *id && c.check.is_own());
        let mut others = criteria.iter().filter(|c| !c.check.is_own());
        others.all(|c| self.work.claims.contains(&c.id)) && self.work.unclaimed.iter().all(own)
    }

    /// Whether every required check passes on the present tree, and no final check has rejected it. A criterion
    /// without a separate check is met when it is claimed and everything else passes.
    pub(crate) fn is_proven(&self) -> bool {
        let required = &self.spec.settings.required_verifiers;
        !required.is_empty()
            && required.iter().all(|name| self.passes_now(name) == Some(true))
            && !self.is_disproved()
            && self.all_claimed()
    }

    /// Whether the work differs from the original tree.
    pub(crate) fn has_diff(&self) -> bool {
        self.continues_work()
            || match (&self.work.tree, &self.baseline) {
                (Some(tree), Some(baseline)) => *tree != baseline.tree || self.work.commit.is_some(),
                _ => false,
            }
    }

    /// Whether the run was forked from another's work, which is part of its result.
    fn continues_work(&self) -> bool {
        let start = self.spec.forked_from.as_ref().and_then(|from| from.start.as_ref());
        self.baseline.as_ref().is_some_and(|baseline| start.is_some_and(|start| *start != baseline.head))
    }

    /// Whether the last two sessions ended with the original tree.
    pub(crate) fn is_idle(&self) -> bool {
        self.work.tree.is_some() && !self.has_diff() && self.idle_sessions() == IDLE_MAX
    }

    /// Whether work that passes its checks lacks only the claim, which two sessions without a change didn't make.
    pub(crate) fn is_unclaimed(&self) -> bool {
        self.unclaimed_iterations() > IDLE_MAX && self.idle_sessions() == IDLE_MAX
    }

    /// How many of the last two sessions changed nothing.
    fn idle_sessions(&self) -> usize {
        self.iterations.history.iter().rev().take(IDLE_MAX).filter(|one| one.files == 0).count()
    }

    /// Whether every written criterion passed its check on the original tree, before any session.
    pub fn is_already_true(&self) -> bool {
        let criteria = &self.spec.task.criteria;
        let before = self.baseline_checks.as_ref().map_or(&[][..], |checks| checks.results.as_slice());
        let passed = |name: &String| before.iter().any(|result| result.name == *name && result.passed);
        self.iterations.count == 0
            && self.iterations.attempts == 0
            && !criteria.is_empty()
            && criteria.iter().all(|criterion| criterion.check.is_own())
            && self.spec.settings.required_verifiers.iter().all(passed)
    }

    /// Whether the work is claimed as done, in the way that the run requires.
    pub(crate) fn is_claimed(&self, promised: bool) -> bool {
        let settings = &self.spec.settings;
        match settings.completion {
            Completion::Promise => promised || (self.spec.task.is_sentence() && self.is_green_again()),
            Completion::Claim => promised || self.all_claimed(),
            Completion::Checks => true,
            Completion::Metric => {
                let has_target = |v: &&VerifierConfig| v.metric.as_ref().is_some_and(|m| m.target.is_some());
                let mut targets = settings.verifiers.iter().filter(has_target).peekable();
                targets.peek().is_some() && targets.all(|v| self.passes_now(&v.name) == Some(true))
            }
        }
    }

    /// Whether a required check that failed on the original tree passes now: what a sentence asked for has happened.
    fn is_green_again(&self) -> bool {
        let red = self.baseline_checks.iter().flat_map(|checks| &checks.red);
        let required = &self.spec.settings.required_verifiers;
        red.into_iter().any(|name| required.contains(name) && self.passes_now(name) == Some(true))
    }

    /// Whether the work is finished except for the promise, which the run requires.
    pub fn lacks_only_promise(&self) -> bool {
        self.spec.settings.completion == Completion::Promise && self.has_diff() && self.is_proven()
    }

    /// How many iterations in a row, including the last, lacked only the claim that the task is done.
    pub fn unclaimed_iterations(&self) -> usize {
        if self.spec.settings.completion != Completion::Promise || !self.is_proven() {
            return 0;
        }
        self.iterations.history.iter().rev().take_while(|last| last.verdict == Verdict::NotPromised).count()
    }

    /// Whether the work of the last iteration, whose checks were repeated, is done.
    pub(super) fn is_done_after_all(&self) -> bool {
        let Some(last) = self.iterations.history.back() else { return false };
        let promised = matches!(last.verdict, Verdict::FalsePromise | Verdict::Candidate);
        last.verdict != Verdict::ProtectedChanged
            && self.has_diff()
            && self.is_proven()
            && self.is_claimed(promised)
    }
}
