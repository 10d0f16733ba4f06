//! A run's models: the profiles it freezes, the helpers for a stuck run, and whether every needed model has
//! its key.

use crate::config::models::{LoadedModels, Origin};
use crate::environment::Environment;
use crate::error::AppError;
use ralph_loop_agents::Route;
use ralph_loop_domain::model::price::PriceTable;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_task::config::{AgentConfig, AgentKind, Models, Profile, Settings};
use ralph_loop_task::dialect::ModelChoice;

/// The agent of a folder without agent CLI or configuration: JSON actions with the default profile, if its
/// key is set.
pub fn default_agent(env: &Environment, loaded: &LoadedModels) -> Option<AgentConfig> {
    let name = loaded.models.default_name().to_owned();
    let profile = loaded.models.get(&name)?;
    has_key(env, &profile).then(|| AgentConfig::model("actions", AgentKind::Actions, &name))
}

/// Freezes the profiles into the settings, applies the task's choice, and picks helpers.
pub fn resolve(env: &Environment, settings: &mut Settings, loaded: &LoadedModels, choice: &ModelChoice) {
    let mut models = loaded.models.clone();
    if let Some(chosen) = &choice.default_profile {
        // Agents configured with the default profile follow the task's choice; others keep theirs.
        let usual = loaded.models.default_name();
        for agent in settings.agents.iter_mut().filter(|a| a.kind.calls_model()) {
            if agent.profile.as_deref().is_none_or(|name| name == usual) {
                agent.profile = Some(chosen.clone());
            }
        }
        models.default = Some(chosen.clone());
    }
    if choice.fallback_profile.is_some() {
        models.fallback.clone_from(&choice.fallback_profile);
    }
    // Uses no other key and no stronger model than the run's own, unless the user named or tagged a profile
    // for it.
    let own =
        settings.agents.iter().find(|a| a.kind.calls_model()).map(|a| profile_name(a, &models).to_owned());
    let usable = |tag: &str| {
        let is_tagged = |profile: &Profile| profile.tags.iter().any(|known| known == tag);
        let named = models.profiles.keys().filter(|name| loaded.origins.get(*name) != Some(&Origin::BuiltIn));
        named.filter_map(|name| models.get(name)).find(|p| is_tagged(p) && has_key(env, p)).map(|p| p.name)
    };
    settings.doctor.profile = match settings.doctor.profile.take() {
        None => usable("doctor").or_else(|| own.clone()),
        Some(name) if name == "none" => None,
        named => named,
    };
    if settings.critic.profile.is_none() && settings.critic.agent.is_none() {
        settings.critic.profile = usable("critic").or_else(|| usable("doctor")).or(own);
    }
    settings.models = models;
}

/// Adds a problem for every missing profile, and for every missing key that its agents need.
pub fn check(env: &Environment, settings: &Settings, problems: &mut Vec<AppError>) {
    let models = &settings.models;
    let find = |name: &str, by: &str| {
        models.get(name).ok_or_else(|| {
            AppError::usage(format!("{by} names the model profile `{name}`, which doesn't exist"))
                .hint(models.known_for(name))
        })
    };
    for (name, by) in [
        (&settings.doctor.profile, "`doctor`"),
        (&settings.critic.profile, "`critic`"),
        (&models.default, "`model_profile_default` (or `RALPH_DEFAULT_MODEL_PROFILE`)"),
        (&models.fallback, "`model_profile_fallback` (or `RALPH_FALLBACK_MODEL_PROFILE`)"),
    ] {
        problems.extend(name.as_deref().and_then(|name| find(name, by).err()));
    }
    for agent in settings.agents.iter().filter(|a| a.kind.calls_model()) {
        let by = format!("agent `{}`", agent.name);
        let name = profile_of(agent, settings);
        let is_default = models.default.as_deref() == Some(name);
        let profile = match find(name, &by) {
            Ok(profile) => profile,
            // Reported once already.
            Err(_) if is_default => continue,
            Err(error) => {
                problems.push(error);
                continue;
            }
        };
        problems.extend(agent.fallback_profile.as_deref().and_then(|name| find(name, &by).err()));
        let route = match Route::of(&profile, &env.lookup()) {
            Ok(route) => route,
            Err(error) => {
                let refused = AppError::usage(format!("{by}: {error}"));
                problems.push(AppError { hint: error.hint.clone(), ..refused });
                continue;
            }
        };
        if !has_key(env, &profile) {
            let message = format!(
                "{by} needs a key for `{}`: {} is not set",
                profile.litellm_model,
                route.key_vars.join(" or ")
            );
            problems.push(AppError::environment(message).hint(format!(
                "set it in the environment or in `.env`, choose another profile (`ralph models`), or install an agent CLI ({} answers at {})",
                profile.litellm_model,
                route.server()
            )));
        }
    }
}

/// Rejects a model for the next session that an agent's model API can't get: an unknown profile or provider.
pub fn check_choice(
    env: &Environment,
    settings: &Settings,
    agent: Option<&AgentName>,
    model: &str,
) -> Result<(), AppError> {
    if let Some((message, hint)) = settings.unknown_model(agent, model) {
        return Err(AppError::usage(message).hint(hint));
    }
    let mut meant = settings.agents.iter().filter(|a| agent.is_none_or(|name| a.name == *name));
    match settings.models.get(model).filter(|_| meant.any(|a| a.kind.calls_model())) {
        Some(profile) => Route::of(&profile, &env.lookup()).map(drop).map_err(|error| {
            let refused = AppError::usage(error.to_string());
            AppError { hint: error.hint, ..refused }
        }),
        None => Ok(()),
    }
}

/// Agents with unknown cost.
pub fn unpriced<'a>(settings: &'a Settings, prices: &PriceTable) -> Vec<&'a AgentConfig> {
    let priced = |model: &str| prices.price(model).is_some();
    settings
        .agents
        .iter()
        .filter(|agent| match agent.kind {
            AgentKind::Scripted => false,
            AgentKind::Cli => {
                !agent.output_format.reports_cost() && !agent.model.as_deref().is_some_and(priced)
            }
            AgentKind::Actions | AgentKind::Tools => {
                let profile = settings.models.get(profile_of(agent, settings));
                !profile.is_some_and(|p| p.prices.is_some() || priced(&p.litellm_model))
            }
        })
        .collect()
}

/// Key variables that only this process needs, hidden from agents' commands. CLI agents bring their own keys,
/// so those stay.
pub fn own_keys(env: &Environment, settings: &Settings) -> Vec<String> {
    if settings.agents.iter().any(|a| a.kind == AgentKind::Cli) {
        return Vec::new();
    }
    let mut names: Vec<String> = settings
        .models
        .profiles
        .keys()
        .filter_map(|name| Route::of(&settings.models.get(name)?, &env.lookup()).ok())
        .flat_map(|route| route.key_vars)
        .collect();
    names.sort();
    names.dedup();
    names
}

fn profile_of<'a>(agent: &'a AgentConfig, settings: &'a Settings) -> &'a str {
    profile_name(agent, &settings.models)
}

pub fn profile_name<'a>(agent: &'a AgentConfig, models: &'a Models) -> &'a str {
    agent.model.as_deref().or(agent.profile.as_deref()).unwrap_or_else(|| models.default_name())
}

/// Whether a profile has its key or needs none.
pub fn has_key(env: &Environment, profile: &Profile) -> bool {
    let vars = env.lookup();
    Route::of(profile, &vars).is_ok_and(|r| r.key_vars.is_empty() || r.key_var(&vars).is_some())
}
