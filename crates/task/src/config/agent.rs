//! Agents in the configuration: who works and how it is called.

use ralph_loop_protocol::id::AgentName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// One agent: who works and how it is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "agent", transform = crate::schema_parts::agent_aliases))]
pub struct AgentConfig {
    /// Unique name, used in logs, commits and changelogs.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[A-Za-z0-9._-]+$")))]
    pub name: AgentName,
    /// What kind of agent it is.
    #[serde(default)]
    pub kind: AgentKind,
    /// The command for kind `cli`. `{{model}}` and `{{prompt_file}}` are filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_argv: Vec<String>,
    /// How the prompt reaches the command.
    #[serde(default)]
    pub prompt_mode: PromptMode,
    /// How the command's output is read.
    #[serde(default)]
    pub output_format: OutputFormat,
    /// Longest session.
    #[serde(default = "default_timeout", alias = "timeout")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub timeout_seconds: u64,
    /// Longest time within a session without a word or a tool call; 0 switches it off.
    #[serde(default = "default_idle")]
    pub idle_timeout_seconds: u64,
    /// Further tries of a session that answered nothing.
    #[serde(default = "default_empty_retries")]
    pub empty_retries: u32,
    /// Signs of a rate limit beyond those the output format knows.
    #[serde(default)]
    pub rate_limit_detection: RateLimitDetection,
    /// Model to ask for, where the command takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Arguments added when a model is chosen, for example `["--model", "{{model}}"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_argv: Vec<String>,
    /// Further environment variables. Values are written to disk: no secrets here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The script of a `scripted` agent: a file in the repo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Kinds `actions` and `tools`: the model profile; the configured default where absent.
    #[serde(default, alias = "model_profile", skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Kinds `actions` and `tools`: the profile that takes over where the first cannot answer.
    #[serde(default, alias = "model_profile_fallback", skip_serializing_if = "Option::is_none")]
    pub fallback_profile: Option<String>,
    /// Kind `tools`: tokens after which a session is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1), extend("default" = MAX_TOKENS_PER_ITERATION)))]
    pub max_tokens_per_iteration: Option<u64>,
    /// Kinds `actions` and `tools`: replaces the built-in system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Kind `actions`: further calls that may fix an answer which breaks the contract.
    #[serde(default = "default_repairs", skip_serializing_if = "is_usual_repairs")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = default_repairs())))]
    pub max_repairs: u32,
    /// Kind `tools`: offer only the tools that the calling program brings.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = false)))]
    pub disable_default_tools: bool,
}

pub(super) fn default_timeout() -> u64 {
    1800
}
fn default_idle() -> u64 {
    600
}
fn default_empty_retries() -> u32 {
    2
}
fn default_repairs() -> u32 {
    2
}
fn is_usual_repairs(n: &u32) -> bool {
    *n == default_repairs()
}

/// Tokens after which a session of kind `tools` is ended, unless configured.
pub const MAX_TOKENS_PER_ITERATION: u64 = 100_000;

impl AgentConfig {
    /// A `cli` agent with every default.
    pub fn command(name: &str, argv: &[&str]) -> Self {
        Self {
            name: AgentName::from(name),
            kind: AgentKind::Cli,
            command_argv: argv.iter().map(|s| (*s).to_owned()).collect(),
            prompt_mode: PromptMode::default(),
            output_format: OutputFormat::default(),
            timeout_seconds: default_timeout(),
            idle_timeout_seconds: default_idle(),
            empty_retries: default_empty_retries(),
            rate_limit_detection: RateLimitDetection::default(),
            model: None,
            model_argv: Vec::new(),
            env: BTreeMap::new(),
            script: None,
            profile: None,
            fallback_profile: None,
            max_tokens_per_iteration: None,
            system_prompt: None,
            max_repairs: default_repairs(),
            disable_default_tools: false,
        }
    }
    /// An agent whose model the engine calls itself.
    pub fn model(name: &str, kind: AgentKind, profile: &str) -> Self {
        Self { kind, profile: Some(profile.to_owned()), ..Self::command(name, &[]) }
    }
    /// Whether it tells how many tokens a session used.
    pub fn reports_tokens(&self) -> bool {
        self.kind != AgentKind::Cli || self.output_format.reports_tokens()
    }
    /// Whether a chosen model reaches its command other than by the variable `RALPH_MODEL`.
    pub fn takes_model(&self) -> bool {
        let has_place = |words: &[String]| words.iter().any(|word| word.contains("{{model}}"));
        self.kind != AgentKind::Cli || has_place(&self.model_argv) || has_place(&self.command_argv)
    }
    /// Longest session.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }
    /// Longest silence, if any.
    pub fn idle_timeout(&self) -> Option<Duration> {
        (self.idle_timeout_seconds > 0).then(|| Duration::from_secs(self.idle_timeout_seconds))
    }
}

/// Kinds of agent that exist so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum AgentKind {
    /// An installed command.
    #[default]
    Cli,
    /// A script of edits, played without any model: demos and tests.
    Scripted,
    /// One model call per session, which answers with strict JSON actions.
    Actions,
    /// A model with managed tools, until it stops.
    Tools,
}

impl AgentKind {
    /// Whether the engine itself calls a model for it.
    pub fn calls_model(self) -> bool {
        matches!(self, Self::Actions | Self::Tools)
    }
}

/// How the prompt reaches a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum PromptMode {
    /// On standard input.
    #[default]
    Stdin,
    /// As the last argument.
    Arg,
    /// As a file whose path is the last argument, or stands at `{{prompt_file}}`.
    File,
}

/// How a command's output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum OutputFormat {
    /// All of stdout is the answer.
    #[default]
    Text,
    /// `claude -p --output-format json`.
    ClaudeJson,
    /// `claude -p --output-format stream-json --verbose`.
    ClaudeStreamJson,
    /// `codex exec --json`.
    CodexJson,
    /// `gemini --output-format json` or `stream-json`.
    GeminiJson,
    /// `opencode run --format json`.
    OpencodeJson,
    /// `qwen -o json` or `stream-json`.
    QwenJson,
}

impl OutputFormat {
    /// Whether this format tells how many tokens a session used.
    pub fn reports_tokens(self) -> bool {
        self != Self::Text
    }
    /// Whether this format tells what a session cost.
    pub fn reports_cost(self) -> bool {
        matches!(self, Self::ClaudeJson | Self::ClaudeStreamJson | Self::OpencodeJson)
    }
}

/// Signs of a rate limit in the error output of a failed session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub struct RateLimitDetection {
    /// Plain texts, compared without regard to case; only ever looked for in structured errors and in stderr of a failed exit,
    /// and in its stdout where `output_format` is `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Cooldown when no reset time is named; where no other agent is free, the longest of waits that begin with 30 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_cooldown_seconds: Option<u64>,
}

/// How the next agent is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum AgentSelection {
    /// In turn, skipping those that cool down.
    #[default]
    RoundRobin,
    /// The first that is free.
    Priority,
    /// By the pipeline of `roles`.
    Roles,
}
