//! Agents in the configuration: how each is called.

use ralph_loop_protocol::id::AgentName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// An agent and how it is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "agent", transform = crate::schema_parts::agent_aliases))]
pub struct AgentConfig {
    /// Unique name, used in logs, commits and changelogs.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[A-Za-z0-9._-]+$")))]
    pub name: AgentName,
    /// The kind of agent.
    #[serde(default)]
    pub kind: AgentKind,
    /// The command for kind `cli`. `{{model}}` and `{{prompt_file}}` are filled in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_argv: Vec<String>,
    /// How the command gets the prompt.
    #[serde(default)]
    pub prompt_mode: PromptMode,
    /// How the command's output is parsed.
    #[serde(default)]
    pub output_format: OutputFormat,
    /// Longest session.
    #[serde(default = "default_timeout", alias = "timeout")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub timeout_seconds: u64,
    /// Longest time within a session without text or a tool call; 0 disables it.
    #[serde(default = "default_idle")]
    pub idle_timeout_seconds: u64,
    /// How often a session without an answer is repeated.
    #[serde(default = "default_empty_retries")]
    pub empty_retries: u32,
    /// Signs of a rate limit, in addition to those of the output format.
    #[serde(default)]
    pub rate_limit_detection: RateLimitDetection,
    /// Model to request, if the command takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Arguments added when a model is chosen, for example `["--model", "{{model}}"]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_argv: Vec<String>,
    /// More environment variables. Values are written to disk: no secrets here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The script of a `scripted` agent: a file in the repo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Kinds `actions` and `tools`: the model profile; default: the configured default.
    #[serde(default, alias = "model_profile", skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Kinds `actions` and `tools`: the profile to use when the first can't answer.
    #[serde(default, alias = "model_profile_fallback", skip_serializing_if = "Option::is_none")]
    pub fallback_profile: Option<String>,
    /// Kind `tools`: end a session after this many tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1), extend("default" = MAX_TOKENS_PER_ITERATION)))]
    pub max_tokens_per_iteration: Option<u64>,
    /// Kinds `actions` and `tools`: replaces the built-in system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Kind `actions`: further calls to fix an answer that breaks the contract.
    #[serde(default = "default_repairs", skip_serializing_if = "is_usual_repairs")]
    #[cfg_attr(feature = "schema", schemars(extend("default" = default_repairs())))]
    pub max_repairs: u32,
    /// Kind `tools`: offer only the tools of the calling program.
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

/// The default token limit of a `tools` session.
pub const MAX_TOKENS_PER_ITERATION: u64 = 100_000;

impl AgentConfig {
    /// A `cli` agent with default settings.
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
    pub fn reports_tokens(&self) -> bool {
        self.kind != AgentKind::Cli || self.output_format.reports_tokens()
    }
    /// Whether its command gets a chosen model other than by the variable `RALPH_MODEL`.
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

/// The kinds of agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum AgentKind {
    /// An installed command.
    #[default]
    Cli,
    /// A script of edits without a model, for demos and tests.
    Scripted,
    /// One model call per session, answered with strict JSON actions.
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

/// How a command gets the prompt.
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
    /// As a file whose path is the last argument, or replaces `{{prompt_file}}`.
    File,
}

/// How a command's output is parsed.
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
    pub fn reports_tokens(self) -> bool {
        self != Self::Text
    }
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
    /// Plain texts, case-insensitive; searched only in structured errors and in stderr of a failed exit, and in its
    /// stdout if `output_format` is `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Cooldown if no reset time is given; if no other agent is available, the limit of waits that begin with 30
    /// seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_cooldown_seconds: Option<u64>,
}

/// How the next agent is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum AgentSelection {
    /// In turn, skipping agents that cool down.
    #[default]
    RoundRobin,
    /// The first available one.
    Priority,
    /// By the pipeline of `roles`.
    Roles,
}
