//! Circling and what is done about it: gutters, mitigations, the doctor, the critic.

use crate::event::{Criticised, Diagnosed, Rung};
use crate::id::AgentName;
use crate::money::Usage;
use crate::state::{Gutter, RunFacts};
use crate::stuck::StuckKind;

impl RunFacts {
    pub(super) fn circles(&mut self, loop_score: f64, evidence: &[String]) {
        if self.stuck.rung.is_none() {
            self.stuck.gutters += 1;
            self.stuck.scores.gutters += 1;
        }
        self.stuck.gutter = Some(Gutter { loop_score, evidence: evidence.to_vec() });
    }

    pub(super) fn shows_signs(&mut self, kinds: &[StuckKind], evidence: &[String]) {
        self.stuck.noticed.extend(kinds.iter().copied());
        self.nudge(format!(
            "A sign of being stuck: {}. Make sure that this session does something else.",
            evidence.join("; ")
        ));
    }

    pub(super) fn mitigated(
        &mut self,
        rung: Rung,
        detail: &str,
        benched: Option<&AgentName>,
        substitute: Option<&(AgentName, String)>,
    ) {
        self.stuck.rung = Some(rung);
        self.stuck.climbed.insert(rung);
        self.stuck.rung_at = self.iterations.count;
        self.stuck.gutter = None;
        if benched.is_some() {
            self.stuck.benched = benched.cloned();
        }
        if substitute.is_some() {
            self.stuck.substitute = substitute.cloned();
        }
        if matches!(rung, Rung::Nudge | Rung::Rotate | Rung::Fallback) {
            self.nudge(detail.to_owned());
        }
    }

    pub(super) fn diagnosed(&mut self, news: &Diagnosed) {
        self.stuck.diagnosed_at = Some(news.iteration);
        self.stuck.doctor_asked = false;
        self.spent_beside(&news.usage);
        if !news.summary.is_empty() {
            self.nudge(format!("A doctor read the record of this run: {}", news.summary));
        }
    }

    pub(super) fn criticised(&mut self, news: &Criticised) {
        self.stuck.criticised_at = Some(news.iteration);
        self.spent_beside(&news.usage);
        if !news.objections.is_empty() {
            self.nudge(format!("A critic ({}) looked at the last changes: {}", news.by, news.objections));
        }
    }

    /// Money and tokens of a call that is no session.
    fn spent_beside(&mut self, usage: &Usage) {
        self.spending.totals.cost += usage.cost.unwrap_or_default();
        self.spending.totals.saved += usage.saved.unwrap_or_default();
        self.spending.totals.tokens += usage.tokens.unwrap_or_default();
        self.spending.totals.basis = self.spending.totals.basis.max(usage.basis);
    }
}
