//! The fold's part about being stuck: traces, nudges, findings, questions, and recovery.

use super::{Current, NUDGES, NeedsHuman, RoleFindings, RunFacts};
use crate::stuck::{Ending, Evidence, Trace, WINDOW};
use ralph_loop_protocol::event::{Ask, SessionEnd};
use ralph_loop_protocol::id::{Digest, TreeId};
use ralph_loop_protocol::outcome::HumanReason;
use ralph_loop_protocol::proof::test_counts::TestCounts;
use ralph_loop_task::config::Role;

impl RunFacts {
    /// Restarts the recovery steps from the first, and the benched agent may work again.
    pub(super) fn leave_gutter(&mut self) {
        self.stuck.rung = None;
        self.stuck.climbed.clear();
        self.stuck.noticed.clear();
        self.stuck.benched = None;
        self.stuck.substitute = None;
        self.stuck.criticised_at = None;
    }

    pub(super) fn nudge(&mut self, text: String) {
        self.people.nudges.push(text);
        if self.people.nudges.len() > NUDGES {
            self.people.nudges.remove(0);
            self.people.nudges_read = self.people.nudges_read.saturating_sub(1);
        }
    }

    /// The builder has read the findings; other roles add to them.
    pub(super) fn take_findings(&mut self, text: Option<&str>) {
        let Some(current) = &self.iterations.current else { return };
        let (Some(role), Some(session)) = (current.role, &current.session) else { return };
        if role == Role::Builder && session.end == SessionEnd::Completed {
            self.stuck.findings.clear();
        }
        if let Some(text) = text {
            self.stuck.findings.push(RoleFindings {
                iteration: current.iteration,
                role,
                text: text.to_owned(),
            });
        }
    }

    /// Handles an agent's request. A question goes to the user; that the task is impossible must be reported twice in
    /// a row, by independent sessions.
    pub(super) fn asked(&mut self, ask: Option<&Ask>) {
        let Some(agent) = self.iterations.current.as_ref().map(|c| c.agent.clone()) else { return };
        let said_before = std::mem::take(&mut self.stuck.gave_up);
        let message = match ask {
            None | Some(Ask::Rotate { .. }) => return,
            Some(Ask::Pause { reason }) => format!("{agent} asks: {reason}"),
            Some(Ask::GiveUp { reason }) if said_before => {
                format!("two sessions in a row say that it cannot be done; {agent}: {reason}")
            }
            Some(Ask::GiveUp { reason }) => {
                self.stuck.gave_up = true;
                self.nudge(format!(
                    "The last session ({agent}) said that the task cannot be done: {reason}. Find out whether that \
                     is so. If you find a way, take it; if you come to the same end, say so."
                ));
                return;
            }
        };
        self.people.question = Some(NeedsHuman { reason: HumanReason::AgentAsks, message });
    }

    /// Whether the stuck rules apply to a session in this role. In a pipeline with a builder they apply to the
    /// builder: reviewers, testers or documenters may find nothing to change, and readers are never silent.
    pub fn is_measured(&self, role: Option<Role>) -> bool {
        let Some(role) = role else { return true };
        let has_builder = self.spec.settings.roles.iter().any(|place| place.role == Role::Builder);
        if has_builder { role == Role::Builder } else { !role.only_reads() }
    }

    /// Keeps the stuck rules' trace of the ending iteration in a short window.
    pub(super) fn keep_trace(&mut self, failure: Option<Digest>, evidence: Evidence) {
        let counts = |c: &&Current| self.is_measured(c.role);
        let trace =
            self.iterations.current.as_ref().filter(counts).and_then(|c| self.trace(c, failure, evidence));
        self.stuck.traces.extend(trace);
        if self.stuck.traces.len() > WINDOW {
            self.stuck.traces.pop_front();
        }
    }

    /// The trace of an iteration; `None` before its checkpoint.
    pub fn trace(&self, current: &Current, failure: Option<Digest>, evidence: Evidence) -> Option<Trace> {
        let change = current.change.as_ref()?;
        let session = current.session.as_ref();
        let fresh = |name: &str, tree: &TreeId| {
            *tree == change.tree || current.checked.iter().any(|checked| checked == name)
        };
        let tests = self
            .work
            .checks
            .values()
            .filter(|r| fresh(&r.name, &r.tree))
            .filter_map(|r| r.tests)
            .reduce(|a, b| TestCounts { passed: a.passed + b.passed, failed: a.failed + b.failed });
        let changed = change.files > 0;
        Some(Trace {
            iteration: current.iteration,
            tree: change.tree.clone(),
            failure,
            lines: change.added + change.removed,
            changed,
            files: change.contents.clone(),
            sizes: change.sizes.clone(),
            agent: Some(current.agent.clone()),
            ending: session.map_or(Ending::Stopped, |s| Ending::of(&s.end, &s.message, changed)),
            tests,
            evidence,
        })
    }
}
