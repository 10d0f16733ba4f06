//! Help for a stuck run: the doctor reads its record, the critic its last changes.
//!
//! Both only give advice. It goes into the next prompt. The doctor's suggestions go through the run's inbox
//! like any control, and only if the policy or the user says so.

mod critic;
mod doctor;
mod record;
mod rules;

pub use doctor::{Diagnosis, diagnose};
pub use ralph_loop_protocol::stuck::diagnosis::{
    Guardrail, ModelSuggestion, Pattern, Report, SCHEMA, TaskEdit,
};
pub use record::RunRecord;

pub(crate) use critic::{objections, question as critic_question};

use ralph_loop_domain::model::Pricing;
use ralph_loop_domain::ports::Asker;
use ralph_loop_domain::state::RunState;
use ralph_loop_protocol::money::Usage;
pub use ralph_loop_protocol::stuck::StuckDetails;
use std::sync::Arc;

/// Helpers a driver may call.
#[derive(Clone, Default)]
pub struct Helpers {
    /// Asks models and agents; without it the doctor uses rules and there is no critic.
    pub asker: Option<Arc<dyn Asker>>,
    /// Model prices.
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

/// What shows that a run is stuck.
#[derive(Debug, Clone, PartialEq)]
pub struct StuckContext {
    /// The iteration that showed it.
    pub iteration: u32,
    /// The conditions.
    pub kinds: Vec<ralph_loop_domain::stuck::StuckKind>,
    /// The score.
    pub loop_score: f64,
    /// The evidence as text.
    pub evidence: Vec<String>,
    /// The last session's actions, the persistent error and the cycling files.
    pub details: StuckDetails,
    /// Recent iterations, oldest first.
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

/// Gives advice to a stuck run. Implemented for closures.
pub trait StuckAdvisor: Send + Sync {
    /// A hint for the next session.
    fn advise(&self, context: &StuckContext) -> Option<String>;

    /// Like [`Self::advise`], but `Err` gives the reason for having no answer, which is journaled.
    fn ask(&self, context: &StuckContext) -> Result<Option<String>, String> {
        Ok(self.advise(context))
    }
}

impl<F: Fn(&StuckContext) -> Option<String> + Send + Sync> StuckAdvisor for F {
    fn advise(&self, context: &StuckContext) -> Option<String> {
        self(context)
    }
}

/// Adds two usages.
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
