//! `ask`: one question to one agent or model. No sessions of its own: a model is called through its client, an agent
//! has one session like any other.

mod agent;
mod model;

use crate::session::spend::Pricing;
use ralph_domain::model::ModelClient;
use ralph_domain::ports::{Answer, AskError, AskErrorKind, AskSink, Asker, Question, Whom};
use std::sync::Arc;

/// Asks models through a client, and agents by themselves.
#[derive(Clone, Default)]
pub struct Asking {
    client: Option<Arc<dyn ModelClient>>,
    pricing: Option<Pricing>,
}

impl Asking {
    /// Asks agents only.
    pub fn new() -> Self {
        Self::default()
    }
    /// And models, through this client.
    #[must_use]
    pub fn with_client(mut self, client: Arc<dyn ModelClient>) -> Self {
        self.client = Some(client);
        self
    }
    /// Knows what models cost.
    #[must_use]
    pub fn with_pricing(mut self, pricing: Pricing) -> Self {
        self.pricing = Some(pricing);
        self
    }
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking").field("client", &self.client.is_some()).finish_non_exhaustive()
    }
}

impl Asker for Asking {
    fn ask(&self, question: &Question<'_>, sink: &mut dyn AskSink) -> Result<Answer, AskError> {
        match (question.whom, &self.client) {
            (Whom::Profile(profile), Some(client)) => {
                model::ask(&**client, profile, question, self.pricing.as_ref(), sink)
            }
            (Whom::Profile(profile), None) => Err(AskError::free(
                AskErrorKind::Nobody,
                format!("no model can be called here, {} neither", profile.name),
            )),
            (Whom::Agent(asked), _) => agent::ask(&asked, question, sink),
        }
    }
}
