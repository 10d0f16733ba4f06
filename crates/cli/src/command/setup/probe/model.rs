//! Probes an agent whose model `ralph` calls itself.

use crate::question::tiny_question;
use jiff::Timestamp;
use ralph_loop_agents::HttpModelClient;
use ralph_loop_agents::probe::{ProbeReport, ProbeStatus};
use ralph_loop_app::Environment;
use ralph_loop_app::config::model_access::profile_name;
use ralph_loop_app::config::models::LoadedModels;
use ralph_loop_core::CancelToken;
use ralph_loop_domain::model::{ModelClient as _, ModelErrorKind, ModelSink};
use ralph_loop_domain::ports::StopCause;
use ralph_loop_task::config::{AgentConfig, Profile};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Asks the agent's model and reports the result.
pub fn ask(
    env: &Environment,
    agent: &AgentConfig,
    loaded: &LoadedModels,
    timeout: Duration,
    cancel: &Arc<CancelToken>,
    now: Timestamp,
) -> ProbeReport {
    let started = Instant::now();
    let report = |status: ProbeStatus, end, message: String, hint| ProbeReport {
        name: agent.name.clone(),
        ok: status == ProbeStatus::Ok,
        status,
        end,
        seconds: started.elapsed().as_secs_f64(),
        message,
        hint,
    };
    let name = profile_name(agent, &loaded.models);
    let Some(profile) = loaded.models.get(name) else {
        let hint = Some("`ralph models` shows the profiles".to_owned());
        return report(ProbeStatus::NotFound, None, format!("model profile `{name}` doesn't exist"), hint);
    };
    let profile = Profile { max_retries: Some(1), ..profile };
    let mut sink = Sink { cancel, until: started + timeout };
    match HttpModelClient::new(env.lookup()).call(&profile, &tiny_question(), &mut sink) {
        Ok(reply) => {
            let model = reply.model.unwrap_or(profile.litellm_model);
            report(ProbeStatus::Ok, Some("completed"), format!("{model} answered"), None)
        }
        Err(error) => {
            let status = match error.kind {
                ModelErrorKind::Auth | ModelErrorKind::Billing => ProbeStatus::Auth,
                ModelErrorKind::TimedOut | ModelErrorKind::Stopped(_) => ProbeStatus::Timeout,
                _ => ProbeStatus::Failed,
            };
            report(status, Some(error.session_end(now).word()), error.message, error.hint)
        }
    }
}

struct Sink<'a> {
    cancel: &'a Arc<CancelToken>,
    until: Instant,
}

impl ModelSink for Sink<'_> {
    fn text(&mut self, _: &str) {}
    fn waiting(&mut self, _: Duration, _: &str) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        match self.cancel.get().is_some() || Instant::now() >= self.until {
            true => ControlFlow::Break(StopCause::Cancelled),
            false => ControlFlow::Continue(()),
        }
    }
}
