//! `ask`: one question to one agent or model. A model is called through its client, an agent has one normal session.

mod agent;
mod model;

use crate::session::spend::Pricing;
use ralph_loop_domain::model::ModelClient;
use ralph_loop_domain::ports::{AskAnswer, AskError, AskErrorKind, AskSink, AskTarget, Asker, Question};
use std::sync::Arc;

/// The built-in `Asker`: asks models through a client, agents in a separate session.
#[derive(Clone, Default)]
pub struct BackendAsker {
    client: Option<Arc<dyn ModelClient>>,
    pricing: Option<Pricing>,
}

impl BackendAsker {
    pub fn new() -> Self {
        Self::default()
    }
    /// Also asks models, through this client.
    #[must_use]
    pub fn with_client(mut self, client: Arc<dyn ModelClient>) -> Self {
        self.client = Some(client);
        self
    }
    /// Sets the models' prices.
    #[must_use]
    pub fn with_pricing(mut self, pricing: Pricing) -> Self {
        self.pricing = Some(pricing);
        self
    }
}

impl std::fmt::Debug for BackendAsker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asking").field("client", &self.client.is_some()).finish_non_exhaustive()
    }
}

impl Asker for BackendAsker {
    fn ask(&self, question: &Question<'_>, sink: &mut dyn AskSink) -> Result<AskAnswer, AskError> {
        match (question.whom, &self.client) {
            (AskTarget::Profile(profile), Some(client)) => {
                model::ask(&**client, profile, question, self.pricing.as_ref(), sink)
            }
            (AskTarget::Profile(profile), None) => Err(AskError::free(
                AskErrorKind::NotAvailable,
                format!("no model can be called here, {} neither", profile.name),
            )),
            (AskTarget::Agent(asked), _) => agent::ask(&asked, question, sink),
        }
    }
}
