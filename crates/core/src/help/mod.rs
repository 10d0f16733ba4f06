//! Help for a run that gets nowhere: the doctor, who reads its record, and the critic, who looks at its last changes.
//!
//! Both only speak. What they say goes into the next prompt; what the doctor suggests goes through the run's inbox like
//! anybody's word, and only where the policy or a person says so.

mod critic;
mod doctor;
mod record;
mod rules;

pub use doctor::{Diagnosis, diagnose};
pub use ralph_loop_protocol::diagnosis::{Guardrail, ModelSuggestion, Pattern, Report, SCHEMA, TaskEdit};
pub use record::RunRecord;

pub(crate) use critic::{objections, question as critic_question};

use ralph_loop_domain::model::Pricing;
use ralph_loop_domain::ports::Asker;
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::money::Usage;
pub use ralph_loop_protocol::stuck::StuckDetails;
use std::sync::Arc;

/// What a driver may call for help.
#[derive(Clone, Default)]
pub struct Helpers {
    /// Asks models and agents; without it the doctor speaks by rules, and there is no critic.
    pub asker: Option<Arc<dyn Asker>>,
    /// Knows what models cost.
    pub pricing: Option<Pricing>,
    /// Asked when a run shows signs of being stuck; its answer becomes a nudge.
    pub on_stuck: Option<Arc<dyn StuckAdvisor>>,
}

impl std::fmt::Debug for Helpers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Helpers")
            .field("asker", &self.asker.is_some())
            .field("on_stuck", &self.on_stuck.is_some())
            .finish_non_exhaustive()
    }
}

/// What a run knows of being stuck, for whoever may help.
#[derive(Debug, Clone, PartialEq)]
pub struct StuckContext {
    /// The iteration that showed it.
    pub iteration: u32,
    /// The conditions.
    pub kinds: Vec<ralph_loop_domain::stuck::StuckKind>,
    /// The score.
    pub loop_score: f64,
    /// The evidence, in words.
    pub evidence: Vec<String>,
    /// What the last session did, the error that stays and the files that cycle.
    pub details: StuckDetails,
    /// The last iterations, oldest first.
    pub history: Vec<ralph_loop_domain::state::IterationSummary>,
}

impl StuckContext {
    pub(crate) fn of(
        state: &RunState,
        kinds: Vec<ralph_loop_domain::stuck::StuckKind>,
        score: f64,
        evidence: &[String],
        details: &StuckDetails,
    ) -> Self {
        Self {
            iteration: state.iterations.count,
            kinds,
            loop_score: score,
            evidence: evidence.to_vec(),
            details: details.clone(),
            history: state.iterations.history.iter().cloned().collect(),
        }
    }
}

/// Somebody who may know what to do. A closure is one.
pub trait StuckAdvisor: Send + Sync {
    /// A hint for the next session.
    fn advise(&self, context: &StuckContext) -> Option<String>;

    /// The same, for those who may give no answer: `Err` says in words why there is none, and the journal tells it.
    fn ask(&self, context: &StuckContext) -> Result<Option<String>, String> {
        Ok(self.advise(context))
    }
}

impl<F: Fn(&StuckContext) -> Option<String> + Send + Sync> StuckAdvisor for F {
    fn advise(&self, context: &StuckContext) -> Option<String> {
        self(context)
    }
}

/// Two calls' use in one sum.
pub(crate) fn add(one: Usage, other: Usage) -> Usage {
    let sum =
        |a: Option<ralph_loop_protocol::money::Usd>, b: Option<ralph_loop_protocol::money::Usd>| match (a, b)
        {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    let tokens = match (one.tokens, other.tokens) {
        (Some(mut a), Some(b)) => {
            a += b;
            Some(a)
        }
        (a, b) => a.or(b),
    };
    Usage {
        tokens,
        cost: sum(one.cost, other.cost),
        basis: one.basis.max(other.basis),
        saved: sum(one.saved, other.saved),
        model: other.model.or(one.model),
    }
}
