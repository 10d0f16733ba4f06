//! Model profiles: a named model with its settings, server and price.

use ralph_loop_protocol::display::text::nearest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

pub const DEFAULT_PROFILE: &str = "default-cheap";

/// A named model. It holds no key, only the name of the variable that does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "profile"))]
pub struct Profile {
    /// Its name; filled in from its key.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "schema", schemars(skip))]
    pub name: String,
    /// Provider and model in LiteLLM's notation: `zai/glm-4.7`, `anthropic/claude-sonnet-5`, `openai/gpt-5.5`.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub litellm_model: String,
    /// Most tokens of one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub max_output_tokens: Option<u64>,
    /// Sampling temperature; default: the provider's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 2)))]
    pub temperature: Option<f64>,
    /// Its uses (`cheap`, `doctor`, …); the doctor takes the first profile with the tag `doctor`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The server, if not the provider's: a LiteLLM proxy, OpenRouter, a local server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^https?://[^@?# ]*$")))]
    pub base_url: Option<String>,
    /// The variable that holds the key; default: the provider's; empty: no key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^([A-Z_][A-Z0-9_]*)?$")))]
    pub api_key_env: Option<String>,
    /// The API to use, if it doesn't follow from the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
    /// Prices in USD per million tokens, if the built-in table lacks them or is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<PriceConfig>,
    /// Timeouts in seconds, if the defaults don't fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<TimeoutConfig>,
    /// How often temporary failures are retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 20), extend("default" = 4)))]
    pub max_retries: Option<u32>,
}

impl Profile {
    /// A profile with only a model.
    pub fn of_model(name: &str, litellm_model: &str) -> Self {
        Self {
            name: name.to_owned(),
            litellm_model: litellm_model.to_owned(),
            max_output_tokens: None,
            temperature: None,
            tags: Vec::new(),
            base_url: None,
            api_key_env: None,
            wire: None,
            prices: None,
            timeouts: None,
            max_retries: None,
        }
    }
}

/// The supported APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Wire {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and compatible APIs.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Gemini generateContent.
    Gemini,
}

impl Wire {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::Gemini => "gemini",
        }
    }
}

/// Prices in USD per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "prices"))]
pub struct PriceConfig {
    /// Fresh input.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub input: f64,
    /// Output.
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub output: f64,
    /// Input read from a cache; default: as fresh input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub cache_read: Option<f64>,
    /// Input written to a cache; default: as fresh input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0)))]
    pub cache_write: Option<f64>,
}

/// Timeouts of a call, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "timeouts"))]
pub struct TimeoutConfig {
    /// Until the connection is established.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3600), extend("default" = 10)))]
    pub connect: Option<u64>,
    /// Until the first byte of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3600), extend("default" = 120)))]
    pub first_byte: Option<u64>,
    /// Longest silence within the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3600), extend("default" = 60)))]
    pub stall: Option<u64>,
}

/// All profiles of a run by name, and their uses.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Models {
    #[serde(default)]
    pub profiles: BTreeMap<String, Profile>,
    /// The profile of agents without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The profile to use when the first can't answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

impl Models {
    /// The built-in profiles of `ralph`.
    pub fn builtin() -> Self {
        let profile = |name: &str, model: &str, tags: &[&str]| {
            let tags = tags.iter().map(|&tag| tag.to_owned()).collect();
            (
                name.to_owned(),
                Profile { tags, max_output_tokens: Some(16_000), ..Profile::of_model(name, model) },
            )
        };
        Self {
            profiles: [
                profile(DEFAULT_PROFILE, "zai/glm-4.7", &["cheap"]),
                profile("strong-doctor", "anthropic/claude-opus-5-5", &["strong", "doctor"]),
                profile("codex-like", "openai/gpt-6.1-sol", &["strong"]),
            ]
            .into(),
            default: None,
            fallback: None,
        }
    }

    /// Parses a `models.yaml`; see [`ModelsFile`](super::ModelsFile) for its format.
    pub fn parse(text: &str) -> Result<Self, super::ConfigError> {
        Ok(super::ModelsFile::parse(text)?.models())
    }

    /// `over` on top of these: replaces whole profiles, so that a server is never combined with a key that was meant
    /// for another.
    #[must_use]
    pub fn overlaid(mut self, over: Self) -> Self {
        self.profiles.extend(over.profiles);
        self.default = over.default.or(self.default);
        self.fallback = over.fallback.or(self.fallback);
        self
    }

    /// Checks that `default` and `fallback` name existing profiles; the error is the problem and the fix.
    pub fn check(&self) -> Result<(), (String, String)> {
        for (key, name) in [("default", &self.default), ("fallback", &self.fallback)] {
            let Some(name) = name.as_deref().filter(|name| self.get(name).is_none()) else { continue };
            return Err((
                format!("`{key}` names the profile `{name}`, which does not exist"),
                self.known_for(name),
            ));
        }
        Ok(())
    }

    /// What to write instead of an unknown name.
    pub fn known_for(&self, name: &str) -> String {
        let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
        let near = nearest(name, known.iter().copied());
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        match known.as_slice() {
            [] => "no profile is configured; name a model as `PROVIDER/MODEL`".to_owned(),
            known => format!("{near}profiles: {}; or a model as `PROVIDER/MODEL`", known.join(", ")),
        }
    }

    /// The profile of that name; a name with a slash without a profile counts as a model.
    pub fn get(&self, name: &str) -> Option<Profile> {
        if let Some(profile) = self.profiles.get(name) {
            return Some(Profile { name: name.to_owned(), ..profile.clone() });
        }
        name.contains('/').then(|| Profile::of_model(name, name))
    }
    /// The first profile with a tag, by name.
    pub fn tagged(&self, tag: &str) -> Option<Profile> {
        let (name, _) = self.profiles.iter().find(|(_, p)| p.tags.iter().any(|t| t == tag))?;
        self.get(name)
    }
    pub fn default_name(&self) -> &str {
        self.default.as_deref().unwrap_or(DEFAULT_PROFILE)
    }
}
