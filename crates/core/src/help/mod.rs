//! Help for a run that gets nowhere: the doctor, who reads its record, and the critic, who looks at its last changes.
//!
//! Both only speak. What they say goes into the next prompt; what the doctor suggests goes through the run's inbox like
//! anybody's word, and only where the policy or a person says so.

mod critic;
mod doctor;
mod record;
mod rules;

pub use doctor::{Diagnosis, diagnose};
pub use ralph_protocol::diagnosis::{Guardrail, ModelSuggestion, Pattern, Report, SCHEMA, TaskEdit};
pub use record::Record;

pub(crate) use critic::{ask_model, objections, prompt as critic_prompt};

use ralph_domain::config::Profile;
use ralph_domain::model::{ModelClient, ModelReply, Pricing};
use ralph_domain::money::{CostBasis, Usage};
use ralph_domain::state::RunState;
use std::sync::Arc;

/// What a driver may call for help.
#[derive(Clone, Default)]
pub struct Helpers {
    /// Calls models; without one, the doctor speaks by rules.
    pub client: Option<Arc<dyn ModelClient>>,
    /// Knows what models cost.
    pub pricing: Option<Pricing>,
    /// Asked when a run shows signs of being stuck; its answer becomes a nudge.
    pub on_stuck: Option<Arc<dyn StuckAdvisor>>,
}

impl std::fmt::Debug for Helpers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Helpers")
            .field("client", &self.client.is_some())
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
    pub kinds: Vec<ralph_domain::stuck::StuckKind>,
    /// The score.
    pub loop_score: f64,
    /// The evidence, in words.
    pub evidence: Vec<String>,
    /// The last iterations, oldest first.
    pub history: Vec<ralph_domain::state::IterationSummary>,
}

impl StuckContext {
    pub(crate) fn of(
        state: &RunState,
        kinds: Vec<ralph_domain::stuck::StuckKind>,
        score: f64,
        evidence: &[String],
    ) -> Self {
        Self {
            iteration: state.iterations,
            kinds,
            loop_score: score,
            evidence: evidence.to_vec(),
            history: state.history.iter().cloned().collect(),
        }
    }
}

/// Somebody who may know what to do. A closure is one.
pub trait StuckAdvisor: Send + Sync {
    /// A hint for the next session.
    fn advise(&self, context: &StuckContext) -> Option<String>;
}

impl<F: Fn(&StuckContext) -> Option<String> + Send + Sync> StuckAdvisor for F {
    fn advise(&self, context: &StuckContext) -> Option<String> {
        self(context)
    }
}

/// What a call of a model used.
pub(crate) fn usage_of(profile: &Profile, reply: &ModelReply, pricing: Option<&Pricing>) -> Usage {
    let estimate = reply.tokens.and_then(|tokens| pricing?(&profile.litellm_model, &tokens));
    let (cost, basis) = match (reply.cost, estimate) {
        (Some(cost), _) => (Some(cost), CostBasis::Reported),
        (None, Some((cost, _))) => (Some(cost), CostBasis::Estimated),
        (None, None) => (None, CostBasis::Unknown),
    };
    Usage {
        tokens: reply.tokens,
        cost,
        basis,
        saved: estimate.map(|(_, saved)| saved),
        model: reply.model.clone().or_else(|| Some(profile.litellm_model.clone())),
    }
}

/// Two calls' use in one sum.
pub(crate) fn add(one: Usage, other: Usage) -> Usage {
    let sum = |a: Option<ralph_domain::money::Usd>, b: Option<ralph_domain::money::Usd>| match (a, b) {
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
