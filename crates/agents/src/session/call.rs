//! Chooses the model, and the fallback if it can't answer.

use super::deadline::{Deadline, SessionModelSink};
use super::spend::{Pricing, SpendCounter};
use ralph_loop_domain::model::{ModelClient, ModelReply, ModelRequest};
use ralph_loop_domain::ports::{SessionRequest, SessionSink};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_task::config::{AgentConfig, Models, Profile};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelSelection {
    pub(crate) profile: Profile,
    /// The fallback, used once.
    pub(crate) fallback: Option<Profile>,
}

/// The profile that the request, the agent or the configuration names, in this order; the error says what is missing.
pub(crate) fn choose(
    models: &Models,
    config: &AgentConfig,
    asked: Option<&str>,
) -> Result<ModelSelection, SessionEnd> {
    let name = asked
        .or(config.profile.as_deref())
        .or(config.model.as_deref())
        .unwrap_or_else(|| models.default_name());
    let Some(profile) = models.get(name) else {
        let hint = models.known_for(name);
        return Err(SessionEnd::Failed { reason: format!("model profile `{name}` doesn't exist: {hint}") });
    };
    let fallback = config
        .fallback_profile
        .as_deref()
        .or(models.fallback.as_deref())
        .and_then(|name| models.get(name))
        .filter(|other| other.name != profile.name);
    Ok(ModelSelection { profile, fallback })
}

pub(crate) struct Caller<'a> {
    pub(crate) client: &'a dyn ModelClient,
    pub(crate) pricing: &'a Pricing,
    pub(crate) request: &'a SessionRequest<'a>,
    pub(crate) choice: ModelSelection,
    pub(crate) spend: SpendCounter,
    pub(crate) deadline: Deadline,
}

impl Caller<'_> {
    /// Makes a call. If the model can't answer and another may, the fallback is used for the rest of the session.
    pub(crate) fn call(
        &mut self,
        call: &ModelRequest,
        sink: &mut dyn SessionSink,
    ) -> Result<ModelReply, SessionEnd> {
        loop {
            let mut model_sink =
                SessionModelSink { sink: &mut *sink, deadline: self.deadline, timed_out: false };
            let answer = self.client.call(&self.choice.profile, call, &mut model_sink);
            let timed_out = model_sink.timed_out;
            match answer {
                Ok(reply) => {
                    self.spend.add(&self.choice.profile, &reply, self.pricing);
                    sink.used(&self.spend.tokens());
                    return Ok(reply);
                }
                Err(_) if timed_out => return Err(SessionEnd::TimedOut),
                Err(error) if error.another_model_may_help() => {
                    let Some(other) = self.choice.fallback.take() else {
                        return Err(error.session_end(self.request.now));
                    };
                    let line = format!("{} takes over: {}", other.name, error.message);
                    sink.activity(&text::one_line(&line, 160));
                    self.choice.profile = other;
                }
                Err(error) => return Err(error.session_end(self.request.now)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_task::config::AgentKind;

    fn models() -> Models {
        let profile = |name: &str| (name.to_owned(), Profile::of_model("", &format!("zai/{name}")));
        Models {
            profiles: ["default-cheap", "strong", "spare"].map(profile).into(),
            default: None,
            fallback: Some("spare".into()),
        }
    }

    #[test]
    fn the_request_names_first_then_the_agent_then_the_configuration() {
        let config = AgentConfig::model("a", AgentKind::Actions, "strong");
        let chosen = |asked| choose(&models(), &config, asked).unwrap();
        assert_eq!(chosen(Some("openai/gpt-5.5")).profile.litellm_model, "openai/gpt-5.5");
        assert_eq!(chosen(Some("spare")).profile.litellm_model, "zai/spare");
        assert_eq!(chosen(Some("spare")).fallback, None, "a profile is not its own fallback");
        let usual = chosen(None);
        assert_eq!((usual.profile.name.as_str(), usual.fallback.unwrap().name.as_str()), ("strong", "spare"));
        let silent = AgentConfig { profile: None, ..config };
        assert_eq!(choose(&models(), &silent, None).unwrap().profile.name, "default-cheap");
    }

    #[test]
    fn an_unknown_profile_is_named_with_the_likely_one() {
        let config = AgentConfig::model("a", AgentKind::Actions, "stronk");
        let end = choose(&models(), &config, None).unwrap_err();
        assert_eq!(
            end.reason(),
            Some(
                "model profile `stronk` doesn't exist: did you mean `strong`? profiles: default-cheap, spare, strong; or a model as `PROVIDER/MODEL`"
            )
        );
        let end = choose(&Models::default(), &config, None).unwrap_err();
        assert!(end.reason().unwrap().contains("no profile is configured"), "{end:?}");
    }
}
