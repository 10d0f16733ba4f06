//! Folds the final check, and what only the user can fix.

use crate::state::{NeedsHuman, ProofFacts, Published, RunFacts};
use crate::stuck::failure::signature;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::{AgentName, CommitId, Digest};
use ralph_loop_protocol::outcome::HumanReason;
use ralph_loop_protocol::proof::level::ProofLevel;

/// Final checks in a row that fail for a reason that no agent can fix.
const HINTS_MAX: u32 = 2;

/// The signature of a final check that failed.
pub fn proof_failure(failed: &[String]) -> Digest {
    signature("proof", None, &failed.join("\n"))
}

impl RunFacts {
    pub(super) fn proof_started(&mut self, commit: &CommitId, clean: bool) {
        self.result.outdated = false;
        self.result.proof = Some(ProofFacts {
            commit: commit.clone(),
            passed: false,
            clean,
            failed: Vec::new(),
            proof: None,
            level: None,
            level_reason: None,
            difference: Vec::new(),
            watched: Default::default(),
            harness: Vec::new(),
            refused: Vec::new(),
            question: None,
            approved_by: None,
        });
    }

    pub(super) fn proof_finished(&mut self, body: &EventBody) {
        let EventBody::ProofFinished {
            commit,
            tree,
            passed,
            proof,
            failed,
            duration_ms,
            hint,
            level,
            level_reason,
            difference,
            watched,
            harness,
            refused,
            question,
        } = body
        else {
            return;
        };
        self.result.candidate = false;
        self.spending.totals.working_ms += duration_ms;
        if std::mem::take(&mut self.result.outdated) {
            return;
        }
        self.take_hint(hint.as_deref());
        if !passed {
            self.result.disproved = Some((tree.clone(), failed.clone()));
            self.result.refused = refused.clone();
            // The final check decides what the iteration showed, even if its own checks passed.
            if let Some(newest) = self.stuck.traces.back_mut() {
                newest.failure = Some(proof_failure(failed));
            }
        }
        if *passed {
            self.result.refused = Vec::new();
        }
        let clean = self.result.proof.as_ref().is_some_and(|p| p.clean);
        self.result.proof = Some(ProofFacts {
            commit: commit.clone(),
            passed: *passed,
            clean,
            failed: failed.clone(),
            proof: Some(proof.clone()),
            level: *level,
            level_reason: level_reason.clone(),
            difference: difference.clone(),
            watched: *watched,
            harness: harness.clone(),
            refused: refused.clone(),
            question: question.clone().filter(|_| !*passed),
            approved_by: None,
        });
        if let Some(question) = question.as_ref().filter(|_| !*passed) {
            let who = self.agents.last_agent.as_ref().map_or("the run", AgentName::as_str);
            let message = question.message(who);
            self.people.question = Some(NeedsHuman { reason: HumanReason::TestsChanged, message });
        }
    }

    pub(super) fn proof_approved(&mut self, commit: &CommitId, proof: &Digest, by: &str) {
        self.people.tests_approved_by = None;
        if let Some(facts) = self.result.proof.as_mut().filter(|facts| facts.commit == *commit) {
            facts.passed = true;
            let question = facts.question.as_deref();
            let shown = !facts.difference.is_empty();
            facts.level = Some(question.map_or(ProofLevel::OwnTests, |asked| asked.level_if_approved(shown)));
            facts.proof = Some(proof.clone());
            facts.failed.clear();
            facts.approved_by = Some(by.to_owned());
            self.result.disproved = None;
        }
    }

    pub(super) fn published(&mut self, branch: &str, commit: &CommitId, pr_url: Option<&str>) {
        self.result.published = Some(Published {
            branch: branch.to_owned(),
            commit: commit.clone(),
            pr_url: pr_url.map(str::to_owned),
        });
    }

    /// The same files that a final check rejected for a reason of the user's.
    pub(super) fn handed_in_again(&mut self) {
        if self.result.disproved.as_ref().is_some_and(|(tree, _)| Some(tree) == self.work.tree.as_ref())
            && let Some((_, times)) = &mut self.result.setup_hint
        {
            *times += 1;
            self.ask_for_setup();
        }
    }

    /// The second hint in a row becomes a question: no agent can do what it requires.
    fn take_hint(&mut self, hint: Option<&str>) {
        let times = self.result.setup_hint.take().map_or(0, |(_, times)| times);
        self.result.setup_hint = hint.map(|hint| (hint.to_owned(), times + 1));
        self.ask_for_setup();
    }

    fn ask_for_setup(&mut self) {
        if let Some((hint, times)) = &self.result.setup_hint
            && *times >= HINTS_MAX
        {
            self.people.question = Some(NeedsHuman { reason: HumanReason::Setup, message: hint.clone() });
        }
    }
}
