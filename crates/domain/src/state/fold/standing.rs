//! Folds the run itself: its spec, driver, resting agents, waits and questions.

use crate::model::select::Cooldown;
use crate::state::{Finished, NeedsHuman, RunFacts};
use jiff::Timestamp;
use ralph_loop_protocol::event::{Baseline, BaselineChecks, Moved, Placed, RefMove};
use ralph_loop_protocol::id::{AgentName, Digest};
use ralph_loop_protocol::lease::DriverLease;
use ralph_loop_protocol::outcome::{EndReason, HumanReason};
use std::collections::BTreeMap;

/// Names in a sentence; the event has more of them.
const NAMES_SHOWN: usize = 20;

impl RunFacts {
    pub(super) fn created(&mut self, spec: &Digest, at: Timestamp) {
        self.started_at = at;
        self.spec_digest = Some(spec.clone());
    }

    pub(super) fn driven_by(&mut self, pid: u32, lease: &DriverLease) {
        let resumed = self.driver_pid.replace(pid).is_some();
        let asked = self.people.needs_human.as_ref().is_some_and(|need| need.reason == HumanReason::Setup);
        let lacked = (asked || self.baseline_lacked_programs())
            && self.baseline.is_some()
            && self.iterations.current.is_none();
        self.baseline_due = self.machine_changed || (resumed && lacked);
        // Drivers of older versions didn't count themselves.
        let next = self.epoch.next();
        self.epoch = lease.epoch.map_or(next, |epoch| epoch.max(next));
        self.wait = None;
        self.people.suspended_by = None;
        // Another attempt, perhaps in another network.
        self.agents.unreached.clear();
    }

    /// Whether the checks on the original files found no program to run.
    pub(super) fn baseline_lacked_programs(&self) -> bool {
        self.baseline_checks.as_ref().is_some_and(|checks| {
            checks.setup_failed.is_some()
                || checks.results.iter().any(|result| matches!(result.exit_code, Some(126 | 127)))
        })
    }

    /// The actual workspace replaces the one requested in the spec.
    pub(super) fn placed_in(&mut self, news: &Placed) {
        let spec = &mut self.spec;
        let own = std::mem::replace(&mut spec.workspace, news.workspace.clone());
        let own = (own, spec.branch.take(), spec.settings.handover.branch.take());
        // The first spec has the workspace of a run that continues elsewhere.
        if !self.placed {
            self.spec_place = Some(own);
        }
        self.placed = true;
        spec.branch.clone_from(&news.branch);
        spec.settings.handover.branch.clone_from(&news.push_branch);
        if news.config.is_some() {
            spec.config_digest.clone_from(&news.config);
        }
    }

    pub(super) fn prepared(
        &mut self,
        baseline: &Baseline,
        surroundings: &BTreeMap<String, String>,
        checks: Option<&BaselineChecks>,
    ) {
        self.baseline_due = false;
        // On another machine the work continues where it was.
        let moved = std::mem::take(&mut self.machine_changed);
        if !moved || checks.is_some() {
            self.baseline_checks = checks.cloned();
        }
        // The checks were repeated for work that exists, which is judged with what was here before the first session.
        if !moved && self.spending.totals.sessions > 0 {
            return;
        }
        self.surroundings.clone_from(surroundings);
        self.baseline = Some(baseline.clone());
        if !moved {
            self.work.tree = Some(baseline.tree.clone());
        }
    }

    pub(super) fn moved(&mut self, news: &Moved) {
        if let Some((workspace, branch, push_branch)) = self.spec_place.take() {
            self.spec.workspace = workspace;
            self.spec.branch = branch;
            self.spec.settings.handover.branch = push_branch;
        }
        self.baseline = Some(news.baseline.clone());
        // What checks use there is another thing; it's compared within one machine.
        self.machine_changed = !self.surroundings.is_empty();
        self.spec_digest = Some(news.spec.clone());
        // Letters of the old workspace stay there.
        self.people.inbox = 0;
    }

    pub(super) fn spec_changed(&mut self, version: u32, spec: &Digest) {
        self.spec.spec_version = version;
        self.spec_digest = Some(spec.clone());
        self.people.edit_pending = false;
    }

    pub(super) fn approval_applied(&mut self, config: Option<&Digest>, spec: &Digest) {
        self.spec.config_digest = config.cloned();
        self.spec_digest = Some(spec.clone());
        self.people.approval_pending = false;
    }

    pub(super) fn over(&mut self, reason: EndReason, summary: &str, at: Timestamp) {
        self.iterations.current = None;
        self.wait = None;
        self.result.finished = Some(Finished { reason, summary: summary.to_owned(), at });
    }

    pub(super) fn rests(&mut self, agent: &AgentName, until: Timestamp, reason: &str, at: Timestamp) {
        let rest = Cooldown { until, reason: reason.to_owned(), observed_at: at };
        self.agents.cooldowns.insert(agent.clone(), rest);
    }

    pub(super) fn waited(&mut self, waited_ms: u64) {
        // Waits for the code host have separate limits.
        let proven = self.result.proof.as_ref().is_some_and(|proof| proof.passed);
        if self.wait.take().is_some_and(|wait| wait.until.is_some()) && !proven {
            self.spending.totals.waited_ms += waited_ms;
        }
    }

    pub(super) fn refs_moved(&mut self, moves: &[RefMove], left_out: usize) {
        let names: Vec<&str> = moves.iter().filter(|m| m.needs_person).map(|m| m.name.as_str()).collect();
        if names.is_empty() {
            return;
        }
        // Those left out are like the last one listed.
        let unseen = if names.len() == moves.len() { left_out } else { 0 };
        let shown = names.len().min(NAMES_SHOWN);
        let more = match names.len() - shown + unseen {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        self.people.alarm = Some(NeedsHuman {
            reason: HumanReason::RefsMoved,
            message: format!("{}{more} moved during the session", names[..shown].join(", ")),
        });
    }

    pub(super) fn tampered(&mut self, what: &str) {
        self.people.alarm = Some(NeedsHuman { reason: HumanReason::Tampered, message: what.to_owned() });
    }

    pub(super) fn asks(&mut self, reason: HumanReason, message: &str) {
        self.people.alarm = None;
        self.people.question = None;
        self.people.tests_rejected = false;
        if reason == HumanReason::Setup {
            self.result.setup_hint = self.result.setup_hint.take().map(|(hint, _)| (hint, 0));
            self.stuck.environment = self.stuck.environment.take().map(|(fault, _)| (fault, 0));
        }
        self.people.needs_human = Some(NeedsHuman { reason, message: message.to_owned() });
    }
}
