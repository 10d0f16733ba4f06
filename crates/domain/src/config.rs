//! The configuration: what `.ralph/config.json` and the user's own config may say, how the layers are merged, and the
//! resolved [`Settings`] a run is frozen with.
//!
//! A [`ConfigFile`] holds only what a file said; unknown keys are errors, because a budget that was misspelt is a budget
//! that does not hold. The keys of the older `ralf` format (`modals`, `modal_priority`, `modal_selection`) are aliases.

use crate::budget::Budgets;
use crate::id::AgentName;
use crate::money::Usd;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// One configuration file, exactly as written. Every key is optional.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Editor hint; ignored.
    #[serde(rename = "$schema", skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// Format version; only 1 exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Who may work, in the order of their definition.
    #[serde(alias = "modals", skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<AgentConfig>>,
    /// Which agents take part and in which order; default: all, as defined.
    #[serde(alias = "modal_priority", skip_serializing_if = "Option::is_none")]
    pub agent_priority: Option<Vec<AgentName>>,
    /// How the next agent is chosen.
    #[serde(alias = "modal_selection", skip_serializing_if = "Option::is_none")]
    pub agent_selection: Option<AgentSelection>,
    /// Commands that can judge the work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verifiers: Option<Vec<VerifierConfig>>,
    /// Which of them must pass; default `["tests"]` where one of that name exists, else all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required_verifiers: Option<Vec<String>>,
    /// The word inside `<promise>…</promise>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_promise: Option<String>,
    /// What starts the final checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<Completion>,
    /// Commit each iteration on the current branch too, not only on `refs/ralph/<run>/work`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_commits: Option<bool>,
    /// Let the agent itself commit on the run's branch (fast-forward only).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_agent_commits: Option<bool>,
    /// Commit the `.ralph/` folder as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_state: Option<bool>,
    /// Author name of ralph's commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_author: Option<String>,
    /// Author mail address of ralph's commits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_email: Option<String>,
    /// Most iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u32>,
    /// Most working time, in minutes; waits do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wall_time_minutes: Option<f64>,
    /// Most money, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd_estimate: Option<Usd>,
    /// Most tokens in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_total: Option<u64>,
    /// Gutters in a row, without progress between, that end the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_consecutive_gutter: Option<u32>,
    /// Longest wait for rate limits, in minutes, summed over the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_limit_wait_minutes: Option<f64>,
    /// The run ends at this instant, whatever it is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Refuse to start where the money cap cannot hold because an agent does not report its cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_budget: Option<bool>,
    /// Paths or globs that must stay as they were when the run started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protected_paths: Option<Vec<String>>,
    /// Commands that make a clean checkout ready for its checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup_commands: Option<Vec<CommandLine>>,
    /// Stuck detection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stuck_detection: Option<StuckConfig>,
    /// `loop_score` from which a run counts as circling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gutter_score: Option<f64>,
    /// What follows when every mitigation is used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_stuck: Option<OnStuck>,
    /// How strongly the agent is fenced. `none` counts only from a flag or the user's own config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Cooldown after a rate limit that names no reset time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_cooldown_seconds: Option<u64>,
}

/// One agent: who works and how it is called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentConfig {
    /// Unique name, used in logs, commits and changelogs.
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
    pub timeout_seconds: u64,
    /// Longest silence within a session; 0 switches it off.
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
}

fn default_timeout() -> u64 {
    1800
}
fn default_idle() -> u64 {
    600
}
fn default_empty_retries() -> u32 {
    2
}

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
        }
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
#[serde(rename_all = "snake_case")]
pub enum AgentKind {
    /// An installed command.
    #[default]
    Cli,
    /// A script of edits, played without any model: demos and tests.
    Scripted,
}

/// How the prompt reaches a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[serde(rename_all = "kebab-case")]
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
}

impl OutputFormat {
    /// Whether this format tells what a session cost.
    pub fn reports_cost(self) -> bool {
        matches!(self, Self::ClaudeJson | Self::ClaudeStreamJson)
    }
}

/// Signs of a rate limit in the error output of a failed session.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimitDetection {
    /// Plain texts, compared without regard to case; only ever looked for in structured errors and in stderr of a failed exit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// Cooldown when no reset time is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_cooldown_seconds: Option<u64>,
}

/// How the next agent is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentSelection {
    /// In turn, skipping those that cool down.
    #[default]
    RoundRobin,
    /// The first that is free.
    Priority,
}

/// A command that must pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifierConfig {
    /// Unique name.
    pub name: String,
    /// The command.
    pub command_argv: Vec<String>,
    /// When it runs besides the final check.
    #[serde(default)]
    pub run_when: RunWhen,
    /// Longest run.
    #[serde(default = "default_timeout", alias = "timeout")]
    pub timeout_seconds: u64,
}

impl VerifierConfig {
    /// The command as a person would type it.
    pub fn command_line(&self) -> String {
        join_argv(&self.command_argv)
    }
}

/// When a verifier runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunWhen {
    /// When the tree differs from the one it last judged.
    #[default]
    OnChange,
    /// After every iteration.
    Always,
    /// When the agent promises to be done.
    OnPromise,
}

/// What starts the final checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// The promise, then the required verifiers.
    #[default]
    Promise,
    /// The required verifiers alone, after every iteration.
    Checks,
}

/// Stuck detection as the library names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StuckConfig {
    /// Iterations that make a pattern.
    #[serde(default = "default_threshold")]
    pub threshold: u32,
    /// Switches the detection off.
    #[serde(default)]
    pub disabled: bool,
}

fn default_threshold() -> u32 {
    3
}

impl Default for StuckConfig {
    fn default() -> Self {
        Self { threshold: default_threshold(), disabled: false }
    }
}

/// What follows when a run circles and every mitigation is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStuck {
    /// Wait for a person (exit 3).
    #[default]
    Pause,
    /// End without success (exit 1).
    Fail,
}

/// How strongly the agent is fenced from the rest of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// The strongest that works here.
    #[default]
    Auto,
    /// Namespaces through bubblewrap.
    Bwrap,
    /// Landlock.
    Landlock,
    /// No fence at all.
    None,
}

/// A command given as one shell line or as an argument list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// Run by `sh -c`.
    Shell(String),
    /// Run as it is.
    Argv(Vec<String>),
}

impl CommandLine {
    /// The argument list to start.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Self::Shell(line) => vec!["sh".into(), "-c".into(), line.clone()],
            Self::Argv(argv) => argv.clone(),
        }
    }
    /// As a person would type it.
    pub fn display(&self) -> String {
        match self {
            Self::Shell(line) => line.clone(),
            Self::Argv(argv) => join_argv(argv),
        }
    }
}

/// An argument list as a person would type it.
pub fn join_argv(argv: &[String]) -> String {
    let mut out = String::new();
    for (i, arg) in argv.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let plain =
            !arg.is_empty() && arg.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&b));
        if plain {
            out.push_str(arg);
        } else {
            out.push('\'');
            out.push_str(&arg.replace('\'', "'\\''"));
            out.push('\'');
        }
    }
    out
}

/// Why a configuration file was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    /// What is wrong.
    pub message: String,
    /// Line, from 1; 0 where no line can be named.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What to do.
    pub hint: String,
}

/// Every key that a configuration file may hold at its top, for messages.
pub const TOP_KEYS: &[&str] = &[
    "$schema",
    "version",
    "agents",
    "modals",
    "agent_priority",
    "modal_priority",
    "agent_selection",
    "modal_selection",
    "verifiers",
    "required_verifiers",
    "completion_promise",
    "completion",
    "checkpoint_commits",
    "allow_agent_commits",
    "commit_state",
    "commit_author",
    "commit_email",
    "max_iterations",
    "max_wall_time_minutes",
    "max_cost_usd_estimate",
    "max_tokens_total",
    "max_consecutive_gutter",
    "max_limit_wait_minutes",
    "deadline",
    "strict_budget",
    "protected_paths",
    "setup_commands",
    "stuck_detection",
    "gutter_score",
    "on_stuck",
    "isolation",
    "default_cooldown_seconds",
];

impl ConfigFile {
    /// Reads one file's text. A byte order mark and CRLF line ends are fine.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(ConfigError {
                message: "the file is empty".into(),
                line: 1,
                column: 1,
                hint: "write at least `{}`, or run `ralph init` for a filled-in one".into(),
            });
        }
        let file: Self = serde_json::from_str(text).map_err(|error| explain(&error))?;
        file.check().map_err(|(key, message, hint)| ConfigError {
            message,
            line: line_of_key(text, key),
            column: 1,
            hint,
        })?;
        Ok(file)
    }

    fn check(&self) -> Result<(), (&'static str, String, String)> {
        if let Some(version) = self.version.filter(|v| *v != 1) {
            return Err((
                "version",
                format!("`version` is {version}, but this ralph reads version 1"),
                "update ralph".into(),
            ));
        }
        let mut seen = std::collections::BTreeSet::new();
        for agent in self.agents.iter().flatten() {
            let name = agent.name.as_str();
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
                return Err((
                    "agents",
                    format!("the agent name `{name}` is not usable"),
                    "names are letters, digits, `-`, `_` and `.`: they become file names".into(),
                ));
            }
            if !seen.insert(name) {
                return Err((
                    "agents",
                    format!("two agents are called `{name}`"),
                    "give each agent its own name".into(),
                ));
            }
            if agent.kind == AgentKind::Cli && agent.command_argv.first().is_none_or(|c| c.is_empty()) {
                return Err((
                    "agents",
                    format!("agent `{name}` has no `command_argv`"),
                    "name the command, for example `\"command_argv\": [\"claude\", \"-p\"]`".into(),
                ));
            }
            if agent.kind == AgentKind::Scripted && agent.script.is_none() {
                return Err((
                    "agents",
                    format!("the scripted agent `{name}` has no `script`"),
                    "name a script file of the repo".into(),
                ));
            }
            if agent.timeout_seconds == 0 {
                return Err((
                    "timeout_seconds",
                    format!("agent `{name}` has a `timeout_seconds` of 0"),
                    "give at least 1; leave the key out for 1800".into(),
                ));
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        for verifier in self.verifiers.iter().flatten() {
            let name = verifier.name.as_str();
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
                return Err((
                    "verifiers",
                    format!("the verifier name `{name}` is not usable"),
                    "names are letters, digits, `-`, `_` and `.`: they become file names".into(),
                ));
            }
            if !seen.insert(name) {
                return Err((
                    "verifiers",
                    format!("two verifiers are called `{name}`"),
                    "give each verifier its own name".into(),
                ));
            }
            if verifier.command_argv.first().is_none_or(|c| c.is_empty()) {
                return Err((
                    "verifiers",
                    format!("verifier `{name}` has no `command_argv`"),
                    "name the command, for example `\"command_argv\": [\"cargo\", \"test\"]`".into(),
                ));
            }
        }
        let positive = [
            ("max_wall_time_minutes", self.max_wall_time_minutes),
            ("max_limit_wait_minutes", self.max_limit_wait_minutes),
            ("gutter_score", self.gutter_score),
        ];
        for (key, value) in positive {
            if value.is_some_and(|v| !v.is_finite() || v <= 0.0) {
                return Err((
                    key,
                    format!("`{key}` must be more than 0"),
                    "leave the key out for its default".into(),
                ));
            }
        }
        if self.max_iterations == Some(0) {
            return Err((
                "max_iterations",
                "`max_iterations` must be at least 1".into(),
                "leave the key out for 30".into(),
            ));
        }
        if self
            .completion_promise
            .as_deref()
            .is_some_and(|p| p.trim().is_empty() || p.contains(['<', '>', '\n']))
        {
            return Err((
                "completion_promise",
                "`completion_promise` must be one line of plain text without `<` and `>`".into(),
                "for example \"COMPLETE\"".into(),
            ));
        }
        Ok(())
    }

    /// Lays `over` on top of `self`: what `over` says wins. Agents and verifiers are merged by name, so a repo may
    /// change one agent of the user's without repeating the others.
    pub fn overlaid(mut self, over: Self) -> Self {
        macro_rules! take {
            ($($key:ident),* $(,)?) => { $( if over.$key.is_some() { self.$key = over.$key; } )* };
        }
        take!(
            schema,
            version,
            agent_priority,
            agent_selection,
            required_verifiers,
            completion_promise,
            completion,
            checkpoint_commits,
            allow_agent_commits,
            commit_state,
            commit_author,
            commit_email,
            max_iterations,
            max_wall_time_minutes,
            max_cost_usd_estimate,
            max_tokens_total,
            max_consecutive_gutter,
            max_limit_wait_minutes,
            deadline,
            strict_budget,
            setup_commands,
            stuck_detection,
            gutter_score,
            on_stuck,
            isolation,
            default_cooldown_seconds,
        );
        self.agents = merge_by(self.agents, over.agents, |a| a.name.as_str().to_owned());
        self.verifiers = merge_by(self.verifiers, over.verifiers, |v| v.name.clone());
        if let Some(more) = over.protected_paths {
            self.protected_paths.get_or_insert_default().extend(more);
        }
        self
    }

    /// The settings of a run, with every default filled in.
    pub fn resolve(self) -> Settings {
        let verifiers = self.verifiers.unwrap_or_default();
        let required = self.required_verifiers.unwrap_or_else(|| {
            if verifiers.iter().any(|v| v.name == "tests") {
                vec!["tests".into()]
            } else {
                verifiers.iter().map(|v| v.name.clone()).collect()
            }
        });
        let mut agents = self.agents.unwrap_or_default();
        if let Some(order) = self.agent_priority {
            let mut chosen = Vec::with_capacity(order.len());
            for name in &order {
                if let Some(at) = agents.iter().position(|a| a.name == *name) {
                    chosen.push(agents.remove(at));
                }
            }
            agents = chosen;
        }
        let defaults = Budgets::default();
        Settings {
            agents,
            agent_selection: self.agent_selection.unwrap_or_default(),
            verifiers,
            required_verifiers: required,
            completion_promise: self.completion_promise.unwrap_or_else(|| "COMPLETE".into()),
            completion: self.completion.unwrap_or_default(),
            checkpoint_commits: self.checkpoint_commits.unwrap_or(false),
            allow_agent_commits: self.allow_agent_commits.unwrap_or(false),
            commit_state: self.commit_state.unwrap_or(false),
            commit_author: self.commit_author,
            commit_email: self.commit_email,
            budgets: Budgets {
                max_iterations: self.max_iterations.unwrap_or(defaults.max_iterations),
                max_wall_time: self
                    .max_wall_time_minutes
                    .map_or(defaults.max_wall_time, |m| Duration::from_secs_f64((m * 60.0).min(1e12))),
                max_cost: self.max_cost_usd_estimate.unwrap_or(defaults.max_cost),
                max_tokens: self.max_tokens_total.or(defaults.max_tokens),
                max_consecutive_gutter: self
                    .max_consecutive_gutter
                    .unwrap_or(defaults.max_consecutive_gutter),
                max_limit_wait: self
                    .max_limit_wait_minutes
                    .map_or(defaults.max_limit_wait, |m| Duration::from_secs_f64((m * 60.0).min(1e12))),
                deadline: self.deadline,
            },
            strict_budget: self.strict_budget.unwrap_or(false),
            protected_paths: self.protected_paths.unwrap_or_default(),
            setup_commands: self.setup_commands.unwrap_or_default(),
            stuck_detection: self.stuck_detection.unwrap_or_default(),
            gutter_score: self.gutter_score.unwrap_or(0.7),
            on_stuck: self.on_stuck.unwrap_or_default(),
            isolation: self.isolation.unwrap_or_default(),
            default_cooldown: Duration::from_secs(self.default_cooldown_seconds.unwrap_or(900)),
        }
    }
}

fn merge_by<T>(below: Option<Vec<T>>, above: Option<Vec<T>>, key: impl Fn(&T) -> String) -> Option<Vec<T>> {
    match (below, above) {
        (below, None) => below,
        (None, above) => above,
        (Some(below), Some(above)) => {
            let named: Vec<String> = above.iter().map(&key).collect();
            let rest = below.into_iter().filter(|item| !named.contains(&key(item)));
            let mut merged: Vec<T> = above;
            merged.extend(rest);
            Some(merged)
        }
    }
}

fn explain(error: &serde_json::Error) -> ConfigError {
    let full = error.to_string();
    let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
    let hint = match message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) {
        Some(field) => {
            let expected = message.split('`').skip(3).step_by(2);
            match crate::text::nearest(field, expected.collect::<Vec<_>>()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "remove it; `docs/CONFIG.md` lists every key".into(),
            }
        }
        None if error.is_eof() => "the file ends too early: a bracket or quote is not closed".into(),
        None if error.is_syntax() => {
            "fix the JSON at this place; comments and trailing commas are not JSON".into()
        }
        None => "`docs/CONFIG.md` shows the right form of every key".into(),
    };
    let message = match message.find(", expected one of") {
        Some(at) => message[..at].to_owned(),
        None => message,
    };
    ConfigError { message, line: error.line(), column: error.column(), hint }
}

fn line_of_key(text: &str, key: &str) -> usize {
    let quoted = format!("\"{key}\"");
    text.lines().position(|line| line.contains(&quoted)).map_or(1, |at| at + 1)
}

/// Everything a run is frozen with, defaults filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Who works, in the order of preference.
    pub agents: Vec<AgentConfig>,
    /// How the next one is chosen.
    pub agent_selection: AgentSelection,
    /// Commands that can judge the work.
    pub verifiers: Vec<VerifierConfig>,
    /// Names of those that must pass.
    pub required_verifiers: Vec<String>,
    /// The word inside `<promise>…</promise>`.
    pub completion_promise: String,
    /// What starts the final checks.
    pub completion: Completion,
    /// Commit each iteration on the branch.
    pub checkpoint_commits: bool,
    /// The agent may commit on the run's branch.
    pub allow_agent_commits: bool,
    /// Commit `.ralph/` too.
    pub commit_state: bool,
    /// Author name of commits.
    pub commit_author: Option<String>,
    /// Author mail address of commits.
    pub commit_email: Option<String>,
    /// The hard stops.
    pub budgets: Budgets,
    /// Refuse agents whose cost cannot be known.
    pub strict_budget: bool,
    /// Paths that must not change.
    pub protected_paths: Vec<String>,
    /// Commands that prepare a clean checkout.
    pub setup_commands: Vec<CommandLine>,
    /// Stuck detection.
    pub stuck_detection: StuckConfig,
    /// Score from which the run counts as circling.
    pub gutter_score: f64,
    /// What follows then, when nothing helps.
    pub on_stuck: OnStuck,
    /// The fence.
    pub isolation: Isolation,
    /// Cooldown without a named reset time.
    pub default_cooldown: Duration,
}

impl Settings {
    /// The verifiers that must pass, in order.
    pub fn required(&self) -> impl Iterator<Item = &VerifierConfig> {
        self.verifiers.iter().filter(|v| self.required_verifiers.contains(&v.name))
    }
    /// The agent of that name.
    pub fn agent(&self, name: &AgentName) -> Option<&AgentConfig> {
        self.agents.iter().find(|a| a.name == *name)
    }
    /// The cooldown of an agent when its limit names no reset time.
    pub fn cooldown_of(&self, name: &AgentName) -> Duration {
        self.agent(name)
            .and_then(|a| a.rate_limit_detection.default_cooldown_seconds)
            .map_or(self.default_cooldown, Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> ConfigError {
        ConfigFile::parse(text).unwrap_err()
    }

    #[test]
    fn the_older_format_is_read_under_its_own_names() {
        let file = ConfigFile::parse(
            r#"{"modal_priority":["b"],"modal_selection":"priority","modals":[
                {"name":"a","command_argv":["a"]},
                {"name":"b","prompt_mode":"arg","command_argv":["b"],"timeout_seconds":300,
                 "rate_limit_detection":{"patterns":["429"],"default_cooldown_seconds":60}}],
                "verifiers":[{"name":"tests","command_argv":["true"],"run_when":"on_change"}]}"#,
        )
        .unwrap();
        let settings = file.resolve();
        assert_eq!(settings.agents.len(), 1, "only agents of the priority list take part");
        assert_eq!(settings.agents[0].name.as_str(), "b");
        assert_eq!(settings.agent_selection, AgentSelection::Priority);
        assert_eq!(settings.required_verifiers, ["tests"]);
        assert_eq!(settings.cooldown_of(&"b".into()), Duration::from_secs(60));
    }

    #[test]
    fn a_misspelt_key_is_named_with_its_line_and_the_likely_word() {
        let error = refused("{\n  \"max_iteration\": 3\n}");
        assert_eq!((error.line, error.message.as_str()), (2, "unknown field `max_iteration`"));
        assert_eq!(error.hint, "did you mean `max_iterations`?");
    }

    #[test]
    fn values_that_cannot_hold_are_refused_where_they_stand() {
        let error = refused("{\n\n  \"max_iterations\": 0}");
        assert_eq!(error.line, 3);
        assert!(refused("").hint.contains("ralph init"));
        assert!(refused("{\"agents\":[{\"name\":\"x\"}]}").message.contains("command_argv"));
        assert!(
            refused("{\"agents\":[{\"name\":\"../x\",\"command_argv\":[\"x\"]}]}")
                .message
                .contains("not usable")
        );
        assert!(refused("{\"max_cost_usd_estimate\": -1}").message.contains("at least 0"));
        assert!(refused("{\"agents\": [").hint.contains("ends too early"));
    }

    #[test]
    fn a_repo_changes_one_agent_and_keeps_the_users_others() {
        let user = ConfigFile::parse(r#"{"agents":[{"name":"a","command_argv":["a"]},{"name":"b","command_argv":["b"]}],"max_iterations":9}"#).unwrap();
        let repo = ConfigFile::parse(r#"{"agents":[{"name":"b","command_argv":["b2"]}]}"#).unwrap();
        let settings = user.overlaid(repo).resolve();
        let names: Vec<_> =
            settings.agents.iter().map(|a| (a.name.as_str(), a.command_argv[0].as_str())).collect();
        assert_eq!(names, [("b", "b2"), ("a", "a")]);
        assert_eq!(settings.budgets.max_iterations, 9);
    }

    #[test]
    fn defaults_are_those_of_the_documentation() {
        let settings = ConfigFile::default().resolve();
        assert_eq!(settings.budgets.max_iterations, 30);
        assert_eq!(settings.budgets.max_wall_time, Duration::from_secs(7200));
        assert_eq!(settings.budgets.max_cost, Usd::from_dollars(10.0));
        assert_eq!(settings.completion_promise, "COMPLETE");
        assert_eq!(settings.default_cooldown, Duration::from_secs(900));
        assert_eq!(settings.isolation, Isolation::Auto);
    }

    #[test]
    fn crlf_and_a_byte_order_mark_are_fine() {
        assert!(ConfigFile::parse("\u{feff}{\r\n\"max_iterations\": 3\r\n}\r\n").is_ok());
    }
}
