//! Providers by their LiteLLM names: servers, keys and APIs.

use super::KeySource;
use ralph_loop_domain::model::{ModelError, ModelErrorKind};
use ralph_loop_http::Url;
use ralph_loop_task::config::{Profile, Wire};

#[derive(Debug, PartialEq, Eq)]
pub struct Provider {
    pub name: &'static str,
    /// Its server; `None` if it differs per user.
    pub base: Option<&'static str>,
    /// Variables for another server; the first one set counts.
    pub base_vars: &'static [&'static str],
    /// Variables for its key; the first one set counts; empty if no key is needed.
    pub key_vars: &'static [&'static str],
    /// Its API.
    pub wire: Wire,
    /// Whether it supports a JSON Schema for answers; others only get asked for JSON.
    pub json_schema: bool,
    /// Whether it forwards Anthropic's cache marks.
    pub takes_cache_marks: bool,
}

const fn chat(
    name: &'static str,
    base: &'static str,
    base_vars: &'static [&'static str],
    key_vars: &'static [&'static str],
) -> Provider {
    Provider {
        name,
        base: Some(base),
        base_vars,
        key_vars,
        wire: Wire::OpenaiChat,
        json_schema: true,
        takes_cache_marks: false,
    }
}

pub const PROVIDERS: &[Provider] = &[
    Provider {
        wire: Wire::Anthropic,
        ..chat(
            "anthropic",
            "https://api.anthropic.com",
            &["ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"],
            &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
        )
    },
    chat("openai", "https://api.openai.com/v1", &["OPENAI_BASE_URL", "OPENAI_API_BASE"], &["OPENAI_API_KEY"]),
    Provider {
        wire: Wire::Gemini,
        ..chat(
            "gemini",
            "https://generativelanguage.googleapis.com",
            &["GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"],
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        )
    },
    Provider {
        json_schema: false,
        ..chat("zai", "https://api.z.ai/api/paas/v4", &["ZAI_API_BASE"], &["ZAI_API_KEY"])
    },
    Provider {
        takes_cache_marks: true,
        ..chat(
            "openrouter",
            "https://openrouter.ai/api/v1",
            &["OPENROUTER_API_BASE"],
            &["OPENROUTER_API_KEY"],
        )
    },
    Provider {
        json_schema: false,
        ..chat("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_BASE"], &["DEEPSEEK_API_KEY"])
    },
    Provider {
        json_schema: false,
        ..chat("moonshot", "https://api.moonshot.ai/v1", &["MOONSHOT_API_BASE"], &["MOONSHOT_API_KEY"])
    },
    Provider {
        json_schema: false,
        ..chat(
            "dashscope",
            "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
            &["DASHSCOPE_API_BASE"],
            &["DASHSCOPE_API_KEY"],
        )
    },
    chat("groq", "https://api.groq.com/openai/v1", &["GROQ_API_BASE"], &["GROQ_API_KEY"]),
    chat("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_BASE"], &["MISTRAL_API_KEY"]),
    chat("xai", "https://api.x.ai/v1", &["XAI_API_BASE"], &["XAI_API_KEY"]),
    chat("ollama", "http://127.0.0.1:11434/v1", &["OLLAMA_API_BASE"], &[]),
    Provider {
        base: None,
        takes_cache_marks: true,
        ..chat("litellm_proxy", "", &["LITELLM_PROXY_API_BASE"], &["LITELLM_PROXY_API_KEY"])
    },
];

/// Name prefixes that only one provider uses.
const OBVIOUS: &[(&str, &str)] =
    &[("claude-", "anthropic"), ("gpt-", "openai"), ("gemini-", "gemini"), ("glm-", "zai")];

/// Reasoning models that work best over the Responses API.
const RESPONSES: &[&str] = &["gpt-5", "gpt-6", "o3", "o4"];

/// Where a profile's calls go. Holds no key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub provider: &'static Provider,
    /// The server's name for the model.
    pub model: String,
    /// The server's URL.
    pub base: Url,
    /// The API to use.
    pub wire: Wire,
    /// Variables for the key; the first one set counts; empty if no key is needed.
    pub key_vars: Vec<String>,
}

impl Route {
    /// Resolves where a profile's calls go. `vars` is the environment; no key is read.
    pub fn of(profile: &Profile, vars: &dyn KeySource) -> Result<Self, ModelError> {
        let (provider, model) = provider_of(profile)?;
        let from_var = || provider.base_vars.iter().find_map(|name| set(vars, name));
        let base = profile.base_url.clone().filter(|b| !b.trim().is_empty()).or_else(from_var);
        let Some(base) = base.or_else(|| provider.base.map(str::to_owned)) else {
            return Err(wrong(
                profile,
                format!("profile `{}` names no server for `{}`", profile.name, profile.litellm_model),
                format!("set `base_url` in the profile, or {}", provider.base_vars.join(" or ")),
            ));
        };
        let base = address(&base).ok_or_else(|| {
            wrong(
                profile,
                format!("profile `{}`: `{}` is not the address of a server", profile.name, shown(&base)),
                "write it like https://host:port/v1, without user name and query".into(),
            )
        })?;
        let itself = is_own(provider, &base);
        let wire = profile.wire.unwrap_or_else(|| match provider.name {
            "openai" if itself && RESPONSES.iter().any(|p| model.starts_with(p)) => Wire::OpenaiResponses,
            _ => provider.wire,
        });
        let key_vars = match profile.api_key_env.as_deref() {
            Some("") => Vec::new(),
            Some(name) => vec![name.to_owned()],
            None => provider.key_vars.iter().map(|&name| name.to_owned()).collect(),
        };
        Ok(Self { provider, model, base, wire, key_vars })
    }

    /// The server for display: only host and port, nothing secret.
    pub fn server(&self) -> String {
        let host = self.base.host_str().unwrap_or("?");
        match self.base.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// Whether calls stay on this machine.
    pub fn is_loopback(&self) -> bool {
        self.base.host_str().is_some_and(ralph_loop_http::is_loopback)
    }

    /// Whether calls go, encrypted, to the provider's own server.
    pub fn is_own_server(&self) -> bool {
        is_own(self.provider, &self.base)
    }

    pub(crate) fn is_openai_itself(&self) -> bool {
        self.provider.name == "openai" && self.is_own_server()
    }

    pub(crate) fn reasons(&self) -> bool {
        let name = self.model.rsplit('/').next().unwrap_or_default();
        RESPONSES.iter().any(|p| name.starts_with(p)) && !name.contains("-chat")
    }

    /// The first key variable that is set.
    pub fn key_var(&self, keys: &dyn KeySource) -> Option<&str> {
        self.key_vars.iter().map(String::as_str).find(|name| set(keys, name).is_some())
    }

    /// The key, with its variable; `None` if no key is needed.
    pub(crate) fn key(
        &self,
        profile: &Profile,
        keys: &dyn KeySource,
    ) -> Result<Option<(String, String)>, ModelError> {
        if self.key_vars.is_empty() {
            return Ok(None);
        }
        let found = self.key_vars.iter().find_map(|name| Some((set(keys, name)?, name.clone())));
        match found {
            Some(found) => Ok(Some(found)),
            None => Err(ModelError {
                kind: ModelErrorKind::Auth,
                message: format!(
                    "profile `{}` ({}) has no key: {} is not set",
                    profile.name,
                    profile.litellm_model,
                    self.key_vars.join(" or ")
                ),
                hint: Some(self.key_hint()),
            }),
        }
    }

    fn key_hint(&self) -> String {
        let name = self.key_vars.first().map_or("the key", String::as_str);
        // A folder's `.env` may only set the usual keys.
        let place = if self.provider.key_vars.contains(&name) { " or in `.env`" } else { "" };
        format!("set {name} in the environment{place}, or choose another profile")
    }

    /// The full URL of an API path.
    pub(crate) fn url(&self, path: &str) -> Option<Url> {
        let mut base = self.base.as_str().trim_end_matches('/').to_owned();
        let bare = self.base.path().trim_matches('/').is_empty();
        let mut path = path;
        match self.wire {
            // A server without a path has its API at the usual one.
            Wire::OpenaiChat | Wire::OpenaiResponses if bare => base.push_str("/v1"),
            Wire::OpenaiChat | Wire::OpenaiResponses => {}
            Wire::Anthropic if base.ends_with("/v1") => path = path.strip_prefix("/v1").unwrap_or(path),
            Wire::Gemini if base.ends_with("/v1beta") => path = path.strip_prefix("/v1beta").unwrap_or(path),
            Wire::Anthropic | Wire::Gemini => {}
        }
        Url::parse(&format!("{base}{path}")).ok()
    }
}

fn provider_of(profile: &Profile) -> Result<(&'static Provider, String), ModelError> {
    let named = profile.litellm_model.trim();
    let by_name = |name: &str| PROVIDERS.iter().find(|p| p.name == name);
    let obvious = || OBVIOUS.iter().find(|(start, _)| named.starts_with(start));
    let (provider, model) = match named.split_once('/') {
        Some((name, model)) => (by_name(name), model),
        None => (obvious().and_then(|(_, name)| by_name(name)), named),
    };
    match provider {
        Some(provider) if !model.is_empty() => Ok((provider, model.to_owned())),
        // API and server are given, so the prefix isn't needed.
        None if profile.base_url.is_some() && profile.wire.is_some() && !named.is_empty() => {
            let name = match profile.wire {
                Some(Wire::Anthropic) => "anthropic",
                Some(Wire::Gemini) => "gemini",
                _ => "openai",
            };
            by_name(name).map(|p| (p, named.to_owned())).ok_or_else(|| unknown(profile, named))
        }
        _ => Err(unknown(profile, named)),
    }
}

fn unknown(profile: &Profile, named: &str) -> ModelError {
    let names = PROVIDERS.iter().map(|p| p.name);
    let prefix = named.split_once('/').map(|(name, _)| name);
    let near = prefix.and_then(|p| ralph_loop_protocol::display::text::nearest(p, names.clone()));
    let hint = match (near, prefix) {
        (Some(near), _) => format!("did you mean `{near}/…`?"),
        (None, Some(_)) => format!(
            "providers are {}; any other server: `openai/MODEL` with `base_url`",
            names.collect::<Vec<_>>().join(", ")
        ),
        (None, None) => "write it as PROVIDER/MODEL, for example `openai/NAME` with `base_url`".to_owned(),
    };
    let name = ralph_loop_protocol::display::text::one_line(named, 80);
    wrong(profile, format!("profile `{}`: unknown provider for model `{name}`", profile.name), hint)
}

fn wrong(_: &Profile, message: String, hint: String) -> ModelError {
    ModelError { kind: ModelErrorKind::NotFound, message, hint: Some(hint) }
}

fn set(vars: &dyn KeySource, name: &str) -> Option<String> {
    vars.get(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty())
}

/// A server's URL: http or https, a host, no user and no query, which would end up in messages.
fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    let fine = matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some_and(|h| !h.is_empty())
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    fine.then_some(url)
}

/// A URL for display: what precedes an `@` or follows a `?` may be secret.
fn shown(address: &str) -> String {
    let end = address.rsplit('@').next().unwrap_or(address);
    ralph_loop_protocol::display::text::one_line(end.split(['?', '#']).next().unwrap_or_default(), 80)
}

fn is_own(provider: &Provider, base: &Url) -> bool {
    let own = provider.base.and_then(|own| Url::parse(own).ok());
    own.is_some_and(|own| {
        own.scheme() == "https"
            && base.scheme() == "https"
            && own.host_str() == base.host_str()
            && own.port_or_known_default() == base.port_or_known_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(profile: &Profile, vars: &[(&str, &str)]) -> Result<Route, ModelError> {
        let vars: Vec<(String, String)> =
            vars.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Route::of(profile, &move |name: &str| {
            vars.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
        })
    }

    fn of(model: &str) -> Profile {
        Profile::of_model("p", model)
    }

    #[test]
    fn names_lead_to_servers_wires_and_keys() {
        let cases = [
            ("anthropic/claude-opus-5", "https://api.anthropic.com/v1/messages", "ANTHROPIC_API_KEY"),
            ("claude-opus-5", "https://api.anthropic.com/v1/messages", "ANTHROPIC_API_KEY"),
            ("openai/gpt-5.5", "https://api.openai.com/v1/responses", "OPENAI_API_KEY"),
            ("gpt-4.1", "https://api.openai.com/v1/chat/completions", "OPENAI_API_KEY"),
            (
                "gemini-2.5-pro",
                "https://generativelanguage.googleapis.com/v1beta/models/m:x",
                "GEMINI_API_KEY",
            ),
            ("zai/glm-4.7", "https://api.z.ai/api/paas/v4/chat/completions", "ZAI_API_KEY"),
            ("openrouter/z-ai/glm-5", "https://openrouter.ai/api/v1/chat/completions", "OPENROUTER_API_KEY"),
            ("groq/x", "https://api.groq.com/openai/v1/chat/completions", "GROQ_API_KEY"),
            ("ollama/qwen", "http://127.0.0.1:11434/v1/chat/completions", ""),
        ];
        for (model, url, key) in cases {
            let route = route(&of(model), &[]).unwrap();
            let path = match route.wire {
                Wire::Anthropic => "/v1/messages",
                Wire::OpenaiChat => "/chat/completions",
                Wire::OpenaiResponses => "/responses",
                Wire::Gemini => "/v1beta/models/m:x",
            };
            assert_eq!(route.url(path).unwrap().as_str(), url, "{model}");
            assert_eq!(route.key_vars.first().map_or("", String::as_str), key, "{model}");
        }
        assert_eq!(route(&of("openrouter/z-ai/glm-5"), &[]).unwrap().model, "z-ai/glm-5");
    }

    #[test]
    fn custom_server_comes_first_and_uses_chat() {
        let vars = [("OPENAI_BASE_URL", "http://127.0.0.1:4000"), ("OPENAI_API_BASE", "http://other")];
        let found = route(&of("openai/gpt-5.5"), &vars).unwrap();
        assert_eq!((found.wire, found.server().as_str()), (Wire::OpenaiChat, "127.0.0.1:4000"));
        assert_eq!(
            found.url("/chat/completions").unwrap().as_str(),
            "http://127.0.0.1:4000/v1/chat/completions"
        );
        let mine = Profile { base_url: Some("https://h.example/api/v4/".into()), ..of("openai/gpt-5.5") };
        let found = route(&mine, &vars).unwrap();
        assert_eq!(
            found.url("/chat/completions").unwrap().as_str(),
            "https://h.example/api/v4/chat/completions"
        );
        let wired = Profile { wire: Some(Wire::OpenaiResponses), ..mine };
        assert_eq!(route(&wired, &[]).unwrap().wire, Wire::OpenaiResponses);
        let claude = route(&of("claude-x"), &[("ANTHROPIC_BASE_URL", "http://localhost:9/v1")]).unwrap();
        assert_eq!(claude.url("/v1/messages").unwrap().as_str(), "http://localhost:9/v1/messages");
        let proxy = of("litellm_proxy/glm");
        let none = route(&proxy, &[]).unwrap_err();
        assert!(none.hint.unwrap().contains("LITELLM_PROXY_API_BASE"));
        assert!(route(&proxy, &[("LITELLM_PROXY_API_BASE", "http://127.0.0.1:4000")]).is_ok());
    }

    #[test]
    fn unknown_model_is_reported_with_a_suggestion() {
        let wrong = |model: &str| route(&of(model), &[]).unwrap_err();
        assert_eq!(wrong("antropic/claude").hint.as_deref(), Some("did you mean `anthropic/…`?"));
        assert!(wrong("mymodel").message.contains("unknown provider for model `mymodel`"));
        let secret = Profile { base_url: Some("https://user:hidden@h/?key=hidden".into()), ..of("openai/x") };
        let error = route(&secret, &[]).unwrap_err();
        assert!(!error.message.contains("hidden"), "{error}");
    }

    #[test]
    fn provider_servers_and_this_machine_are_recognized_exactly() {
        let at = |model: &str, base: &str| {
            route(&Profile { base_url: Some(base.into()), ..of(model) }, &[]).unwrap()
        };
        assert!(at("openai/x", "https://api.openai.com").is_own_server());
        assert!(!at("openai/x", "http://api.openai.com").is_own_server());
        assert!(!at("openai/x", "https://api.openai.com.evil.example").is_own_server());
        assert!(at("openai/x", "http://[::1]:4000").is_loopback());
        assert!(at("openai/x", "http://127.0.0.5:4000").is_loopback());
        assert!(!at("openai/x", "http://127.0.0.1.evil.example").is_loopback());
    }
}
