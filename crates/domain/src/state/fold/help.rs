//! Folds recovery: gutters, recovery steps, the doctor, the critic.

use crate::state::{BestFiles, Gutter, NeedsHuman, RunFacts};
use crate::stuck::StuckKind;
use ralph_loop_protocol::event::{Criticised, Diagnosed, Rung, WentBack};
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::Usage;
use ralph_loop_protocol::outcome::HumanReason;
use ralph_loop_protocol::stuck::{MeasuredNumber, StuckDetails};

/// Sessions in a row that don't fix what the checks lack.
const FAULTS_MAX: u32 = 2;

impl RunFacts {
    pub(super) fn circles(&mut self, loop_score: f64, evidence: &[String]) {
        if self.stuck.rung.is_none() {
            self.stuck.gutters += 1;
            self.stuck.scores.gutters += 1;
        }
        self.stuck.gutter = Some(Gutter { loop_score, evidence: evidence.to_vec() });
    }

    pub(super) fn shows_signs(&mut self, kinds: &[StuckKind], evidence: &[String], context: &StuckDetails) {
        self.stuck.noticed.extend(kinds.iter().copied());
        self.nudge(format!(
            "A sign of being stuck: {}. Make sure that this session does something else.{}",
            evidence.join("; "),
            context.words()
        ));
    }

    /// The user must fix what sessions can't: asked at the second session that doesn't fix it.
    pub(super) fn note_environment(&mut self, fault: Option<&str>) {
        let before = self.stuck.environment.take();
        let Some(fault) = fault else { return };
        let times = before.filter(|(known, _)| known == fault).map_or(0, |(_, times)| times) + 1;
        self.stuck.environment = Some((fault.to_owned(), times));
        if times >= FAULTS_MAX || self.baseline_lacked_programs() {
            let message = format!("the checks lack what they need, and sessions don't add it: {fault}");
            self.people.question = Some(NeedsHuman { reason: HumanReason::Setup, message });
        }
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

    pub(super) fn went_back(&mut self, news: &WentBack) {
        if let Some(hint) = &news.hint {
            self.nudge(hint.clone());
        }
    }

    pub(super) fn note_best(&mut self, iteration: u32, metric: Option<&MeasuredNumber>) {
        let (Some(now), Some(tree)) = (metric, self.work.tree.clone()) else { return };
        let better = self.work.best.as_ref().is_none_or(|best| best.gain(now.value, now.noise) > 0);
        if better {
            let (value, rises, label, noise) = (now.value, now.rises, now.label.clone(), now.noise);
            self.work.best = Some(BestFiles { iteration, tree, value, rises, label, noise });
        }
    }

    /// Money and tokens of a call outside sessions.
    fn spent_beside(&mut self, usage: &Usage) {
        self.spending.totals.cost += usage.spent();
        self.spending.totals.saved += usage.saved.unwrap_or_default();
        self.spending.totals.tokens += usage.tokens;
        self.spending.helpers.calls += 1;
        self.spending.helpers.cost += usage.spent();
        self.spending.helpers.tokens += usage.tokens;
    }
}
