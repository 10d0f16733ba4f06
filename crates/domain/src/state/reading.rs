//! Queries on a run's state.

use super::{RunFacts, Stage};
use ralph_loop_protocol::event::TestsQuestion;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::{Cost, TokenSum, Usd};
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_protocol::status::Status;
use ralph_loop_task::budget::Spent;
use ralph_loop_task::config::{AgentSelection, RoleConfig};
use std::time::Duration;

impl RunFacts {
    pub fn spent(&self) -> Spent {
        Spent {
            iterations: self.iterations.count,
            time: Duration::from_millis(self.spending.totals.working_ms),
            cost: self.spending.totals.cost.at_least(),
            tokens: self.spending.totals.tokens.at_least(),
        }
    }

    /// The run's cost; unknown during the first session.
    pub fn cost(&self) -> Cost {
        if self.in_first_session() { Cost::UNKNOWN } else { self.spending.totals.cost }
    }

    /// The run's tokens; unknown during the first session.
    pub fn tokens(&self) -> TokenSum {
        if self.in_first_session() { TokenSum::UNKNOWN } else { self.spending.totals.tokens }
    }

    fn in_first_session(&self) -> bool {
        let works = self.iterations.current.as_ref().is_some_and(|current| current.stage == Stage::Working);
        let totals = &self.spending.totals;
        works && totals.sessions == 0 && totals.cost.at_least() == Usd::ZERO
    }

    /// Whether the user canceled the run during a session, whose files then don't count.
    pub fn was_cut(&self) -> bool {
        let session = self.iterations.current.as_ref().and_then(|current| current.session.as_ref());
        self.people.cancel_by.is_some() && session.is_some_and(|session| session.end.is_void())
    }

    pub fn time_left(&self) -> Duration {
        let budgets = &self.spec.settings.budgets;
        let left = budgets.max_wall_time.saturating_sub(self.spent().time);
        match budgets.deadline {
            Some(deadline) => {
                left.min(Duration::try_from(deadline.duration_since(self.now)).unwrap_or_default())
            }
            None => left,
        }
    }

    /// Time since the start, including waits.
    pub fn elapsed(&self) -> Duration {
        let end = self.result.finished.as_ref().map_or(self.now, |f| f.at);
        Duration::try_from(end.duration_since(self.started_at)).unwrap_or_default()
    }

    /// The model of an agent: the user's choice, else the configured one.
    pub fn model_for(&self, agent: &AgentName) -> Option<String> {
        if let Some((who, model)) = &self.stuck.substitute
            && who == agent
        {
            return Some(model.clone());
        }
        self.agents
            .models
            .get(agent.as_str())
            .or_else(|| self.agents.models.get(""))
            .cloned()
            .or_else(|| self.spec.settings.agent(agent).and_then(|a| a.model.clone()))
    }

    /// The next role in the pipeline, if there is one: each counted iteration advances it.
    pub fn role_due(&self) -> Option<&RoleConfig> {
        let settings = &self.spec.settings;
        if settings.agent_selection != AgentSelection::Roles {
            return None;
        }
        settings.roles.get(self.iterations.count as usize % settings.roles.len().max(1))
    }

    pub fn status(&self) -> Status {
        if let Some(end) = &self.result.finished {
            return match end.reason {
                EndReason::Completed => Status::Done,
                EndReason::Stopped | EndReason::Cancelled => Status::Stopped,
                _ => Status::Failed,
            };
        }
        if self.people.needs_human.is_some() {
            return Status::NeedsYou;
        }
        if self.people.suspended_by.is_some() {
            return Status::Paused;
        }
        if self.baseline.is_none() && self.driver_pid.is_none() {
            return Status::Queued;
        }
        if self.baseline.is_none() {
            return Status::Preparing;
        }
        if self.wait.is_some() {
            return if self.people.paused_by.is_some() { Status::Paused } else { Status::Waiting };
        }
        match &self.iterations.current {
            Some(current) if current.stage == Stage::Working => Status::Working,
            Some(_) => Status::Verifying,
            None if self.result.proof.as_ref().is_some_and(|p| p.passed) => Status::Publishing,
            None if self.result.candidate => Status::Proving,
            None => Status::Working,
        }
    }

    /// The question about changed tests, as long as the judged work is current.
    pub fn tests_question(&self) -> Option<&TestsQuestion> {
        let proof = self.result.proof.as_ref().filter(|proof| !proof.passed)?;
        proof.question.as_deref().filter(|_| self.work.commit.as_ref() == Some(&proof.commit))
    }

    /// Whether a control was already applied.
    pub fn has_letter(&self, id: &str) -> bool {
        self.people.letters.iter().any(|letter| letter.id == id)
    }
}
