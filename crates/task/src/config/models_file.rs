//! Parses `models.yaml`; errors have a line and a fix.

use super::{ConfigError, Models, Profile};
use ralph_loop_protocol::display::text::{nearest, one_line};
use serde::{Deserialize, Serialize};
use serde_saphyr::Error;
use std::collections::BTreeMap;

/// More than any real file has.
const MAX_BYTES: usize = 256 * 1024;

/// A `models.yaml` as written.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelsFile {
    /// Profiles by name. They replace those of lower layers completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiles: Option<BTreeMap<String, Profile>>,
    /// The profile of agents without one; or a model as `PROVIDER/MODEL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The profile to use when the first can't answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// A list of prices in LiteLLM's format, relative to this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices_file: Option<String>,
}

impl ModelsFile {
    /// Parses a file. An empty file is valid.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.len() > MAX_BYTES {
            return Err(ConfigError {
                message: format!("the file has {} kB; it may have 256", text.len() / 1024),
                line: 1,
                column: 1,
                hint: "prices of many models belong into a file that `prices_file` names".into(),
            });
        }
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Self::default());
        }
        let mut file: Self = serde_saphyr::from_str_with_options(text, crate::yaml::yaml_limits())
            .map_err(|error| explain(&error, text))?;
        for (name, profile) in file.profiles.iter_mut().flatten() {
            if let Some((key, message, hint)) = fault(name, profile) {
                return Err(ConfigError { message, line: line_of(text, name, key), column: 1, hint });
            }
            profile.name.clone_from(name);
        }
        Ok(file)
    }

    /// The file's profiles, without its prices file.
    pub fn models(self) -> Models {
        Models { profiles: self.profiles.unwrap_or_default(), default: self.default, fallback: self.fallback }
    }
}

/// What is wrong with a profile: its key, the problem, the fix.
fn fault(name: &str, profile: &Profile) -> Option<(&'static str, String, String)> {
    let says = |key: &'static str, what: &str, hint: &str| {
        Some((key, format!("profile `{name}`: {what}"), hint.to_owned()))
    };
    let word = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if name.is_empty() || !name.bytes().all(word) {
        return says("", "the name is not usable", "names are letters, digits, `-`, `_` and `.`");
    }
    if !profile.name.is_empty() && profile.name != name {
        return says("name", "the name appears twice", "leave `name` out: the key is the name");
    }
    if profile.litellm_model.trim().is_empty() {
        return says("litellm_model", "`litellm_model` is empty", "for example `zai/glm-4.7`");
    }
    if profile.max_output_tokens == Some(0) {
        return says(
            "max_output_tokens",
            "`max_output_tokens` must be at least 1",
            "leave it out for the provider's own",
        );
    }
    if profile.temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)) {
        return says(
            "temperature",
            "`temperature` must be from 0 to 2",
            "leave it out for the provider's own",
        );
    }
    if profile.max_retries.is_some_and(|r| r > 20) {
        return says("max_retries", "`max_retries` may be 20 at most", "leave it out for 4");
    }
    // It may contain the key itself, so it isn't repeated here.
    let variable = |v: &str| {
        v.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
            && !v.starts_with(|c: char| c.is_ascii_digit())
    };
    if profile.api_key_env.as_deref().is_some_and(|v| !variable(v)) {
        let hint = "name it in capitals, for example `MY_PROXY_KEY`, and put the key into the environment";
        return says("api_key_env", "`api_key_env` is not the name of a variable", hint);
    }
    let url = |u: &str| u.starts_with("https://") || u.starts_with("http://");
    if profile.base_url.as_deref().is_some_and(|u| !url(u) || u.contains(['@', '?', '#', ' '])) {
        let hint =
            "write it like `https://host:port/v1`; keys belong into a variable that `api_key_env` names";
        return says("base_url", "`base_url` is not the plain address of a server", hint);
    }
    let seconds = profile.timeouts.map(|t| [t.connect, t.first_byte, t.stall]).unwrap_or_default();
    if seconds.iter().flatten().any(|s| !(1..=3600).contains(s)) {
        return says("timeouts", "time-outs are 1 to 3600 seconds", "leave them out for 10, 120 and 60");
    }
    if let Some(p) = profile.prices {
        let all = [Some(p.input), Some(p.output), p.cache_read, p.cache_write];
        if all.iter().flatten().any(|n| !n.is_finite() || *n < 0.0) {
            return says("prices", "prices must be at least 0", "give USD per million tokens");
        }
    }
    None
}

/// The line of a profile's key; the profile's own if the key is missing.
fn line_of(text: &str, profile: &str, key: &str) -> usize {
    let is = |line: &str, key: &str| {
        line.trim_start()
            .trim_start_matches(['"', '\''])
            .strip_prefix(key)
            .is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
    };
    let lines: Vec<&str> = text.lines().collect();
    let Some(start) = lines.iter().position(|line| line.starts_with([' ', '\t']) && is(line, profile)) else {
        return 1;
    };
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(lines[start]);
    let inside = lines[start + 1..].iter().take_while(|l| l.trim().is_empty() || indent(l) > own);
    let found = inside.enumerate().find(|(_, line)| !key.is_empty() && is(line, key));
    start + 1 + found.map_or(0, |(at, _)| at + 1)
}

fn explain(error: &Error, text: &str) -> ConfigError {
    let (line, column) = error.location().map_or((1, 1), |l| (l.line(), l.column()));
    let place = |n: u64| usize::try_from(n).unwrap_or(1).max(1);
    let inner = match error {
        Error::AliasError { error, .. } => error.as_ref(),
        other => other,
    };
    let (message, hint) = match inner {
        Error::SerdeUnknownField { field, expected, .. } => {
            let field = one_line(field, 60);
            let near = nearest(&field, expected.iter().copied());
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "remove it; `docs/MODELS.md` lists every key".to_owned(),
            };
            (format!("unknown key `{field}`"), hint)
        }
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("a key");
            (format!("`{key}` is given twice"), "remove one of them".to_owned())
        }
        other if let Some(wanted) = crate::yaml::wanted(other) => {
            (format!("the value is not {wanted}"), format!("give {wanted}; `docs/MODELS.md` shows every key"))
        }
        other => {
            let said = other.to_string();
            let said = one_line(said.split(" at line ").next().unwrap_or_default(), 200);
            let tab = text.lines().any(|l| l.trim_start_matches(' ').starts_with('\t'));
            let hint = if tab {
                "indent with spaces: YAML does not take tabs"
            } else {
                "`docs/MODELS.md` shows the right form of every key"
            };
            (said, hint.to_owned())
        }
    };
    ConfigError { message, line: place(line), column: place(column), hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Wire;

    fn refused(text: &str) -> (usize, String, String) {
        let error = ModelsFile::parse(text).unwrap_err();
        (error.line, error.message, error.hint)
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = "default: cheap\nfallback: strong\nprices_file: prices.json\nprofiles:\n  cheap:\n    litellm_model: zai/glm-4.7\n    max_output_tokens: 8000\n    temperature: 0.2\n    tags: [cheap, code]\n    base_url: http://127.0.0.1:4000\n    api_key_env: \"\"\n    wire: openai-chat\n    prices: {input: 1, output: 2, cache_read: 0.1}\n    timeouts: {connect: 1, first_byte: 2, stall: 3}\n    max_retries: 0\n  strong: {litellm_model: anthropic/claude-opus-5-5}\n";
        let file = ModelsFile::parse(text).unwrap();
        assert_eq!(file.prices_file.as_deref(), Some("prices.json"));
        let models = file.models();
        let cheap = models.get("cheap").unwrap();
        assert_eq!((cheap.name.as_str(), cheap.wire), ("cheap", Some(Wire::OpenaiChat)));
        assert_eq!(cheap.api_key_env.as_deref(), Some(""));
        assert_eq!(models.default_name(), "cheap");
        assert_eq!(ModelsFile::parse("# nothing\n\n").unwrap(), ModelsFile::default());
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_line_and_the_likely_word() {
        let (line, message, hint) = refused("profiles:\n  a:\n    litellm_model: x/y\n    temprature: 1\n");
        assert_eq!((line, message.as_str()), (4, "unknown key `temprature`"));
        assert_eq!(hint, "did you mean `temperature`?");
        let (line, _, hint) = refused("profile:\n  a: {litellm_model: x/y}\n");
        assert_eq!((line, hint.as_str()), (1, "did you mean `profiles`?"));
    }

    #[test]
    fn invalid_values_are_refused_with_their_line() {
        let bad = |key: &str| refused(&format!("profiles:\n  a:\n    litellm_model: x/y\n    {key}\n"));
        for key in [
            "temperature: 3",
            "max_output_tokens: 0",
            "max_retries: 99",
            "base_url: ftp://x",
            "base_url: https://user:pass@x",
            "timeouts: {stall: 0}",
            "prices: {input: -1, output: 0}",
        ] {
            assert_eq!(bad(key).0, 4, "{key}: {:?}", bad(key));
        }
        for (key, wanted) in [
            ("max_retries: -1", "a whole number from 0 to 4294967295"),
            ("max_output_tokens: lots", "a whole number of at least 0"),
            ("temperature: warm", "a number"),
            ("temperature: [1]", "a single value"),
            ("tags: cheap", "a list"),
        ] {
            let (line, message, hint) = bad(key);
            assert_eq!((line, message), (4, format!("the value is not {wanted}")), "{key}");
            assert!(hint.starts_with(&format!("give {wanted};")), "{hint}");
        }
        let secret = concat!("sk", "-ant-secret");
        let (line, message, hint) = bad(&format!("api_key_env: {secret}"));
        assert_eq!(line, 4);
        assert!(!format!("{message}{hint}").contains(secret), "a key is never repeated");
        assert_eq!(refused("profiles:\n  a b: {litellm_model: x/y}\n").0, 2);
        assert_eq!(refused("profiles:\n  a: {temperature: 1}\n").0, 2, "litellm_model is missing");
        assert_eq!(
            refused("profiles:\n  a: {litellm_model: x}\n  a: {litellm_model: y}\n").1,
            "`a` is given twice"
        );
    }

    #[test]
    fn built_in_profiles_are_valid() {
        let models = Models::builtin();
        for (name, profile) in &models.profiles {
            assert_eq!(fault(name, profile), None);
        }
        assert_eq!(models.get("default-cheap").unwrap().litellm_model, "zai/glm-4.7");
        assert_eq!(models.tagged("doctor").unwrap().name, "strong-doctor");
        assert!(models.get("codex-like").is_some());
        assert!(models.check().is_ok());
    }

    #[test]
    fn an_upper_layer_replaces_whole_profiles_and_keeps_the_rest() {
        let over = Models::parse("default: mine\nprofiles:\n  mine: {litellm_model: openai/x}\n  default-cheap: {litellm_model: zai/glm-5}\n").unwrap();
        let models = Models::builtin().overlaid(over);
        assert_eq!(models.default_name(), "mine");
        let cheap = models.get("default-cheap").unwrap();
        assert_eq!((cheap.litellm_model.as_str(), cheap.tags.len()), ("zai/glm-5", 0));
        assert!(models.get("strong-doctor").is_some());
        let wrong = models.overlaid(Models { fallback: Some("strong-docter".into()), ..Models::default() });
        let (message, hint) = wrong.check().unwrap_err();
        assert_eq!(message, "`fallback` names the profile `strong-docter`, which does not exist");
        assert!(hint.starts_with("did you mean `strong-doctor`? profiles: codex-like,"), "{hint}");
    }
}
