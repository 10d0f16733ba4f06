//! Parses a configuration file; errors have a line and a likely fix.

use super::{AgentKind, ConfigFile};
use ralph_loop_protocol::display::text::{nearest, one_line};

/// Why a configuration file was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConfigError {
    pub message: String,
    /// Line, from 1; 0 if unknown.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    pub hint: String,
}

/// Longest name of an agent or a check, in bytes: it becomes part of a file name, which is limited to 255.
const NAME_MAX: usize = 100;
/// Longest time limit of a session or a check, in seconds: a month.
const SECONDS_MAX: u64 = 31 * 24 * 3600;

fn is_usable_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
}

fn unusable_name(key: &'static str, what: &str, name: &str) -> ValueFault {
    let shown = one_line(name, NAME_MAX);
    let hint =
        format!("names are up to {NAME_MAX} letters, digits, `-`, `_` and `.`: they become file names");
    (key, format!("the {what} name `{shown}` is not usable"), hint)
}

fn too_long(name: &str, what: &str, seconds: u64) -> Result<(), ValueFault> {
    if seconds <= SECONDS_MAX {
        return Ok(());
    }
    let message = format!("{what} `{name}` has a time-out of {seconds} seconds");
    Err(("timeout_seconds", message, format!("give at most {SECONDS_MAX}, which is a month")))
}

/// Whether a relative path stays below its base folder, judging by its text.
pub fn is_inside(path: &str) -> bool {
    use std::path::{Component, Path};
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// An invalid value: its key, the problem, the fix.
type ValueFault = (&'static str, String, String);

impl ConfigFile {
    /// Parses a file. A byte order mark and CRLF line ends are fine.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Err(ConfigError {
                message: "the file is empty".into(),
                line: 1,
                column: 1,
                hint: "write at least `{}`, or run `ralph init --force` for a filled-in one".into(),
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

    /// Checks what serde can't: invalid values, and names that don't match.
    fn check(&self) -> Result<(), ValueFault> {
        if let Some(version) = self.version.filter(|v| *v != 1) {
            return Err((
                "version",
                format!("`version` is {version}, but this ralph reads version 1"),
                "update ralph".into(),
            ));
        }
        self.check_agents()?;
        self.check_verifiers()?;
        self.check_numbers()?;
        self.check_roles()?;
        self.check_run()
    }

    fn check_agents(&self) -> Result<(), ValueFault> {
        let mut seen = std::collections::BTreeSet::new();
        for agent in self.agents.iter().flatten() {
            let name = agent.name.as_str();
            if !is_usable_name(name) {
                return Err(unusable_name("agents", "agent", name));
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
            if agent.script.as_deref().is_some_and(|script| !is_inside(script)) {
                return Err((
                    "script",
                    format!("the `script` of agent `{name}` is not a file of the repo"),
                    "name a file below the folder of the run, without `..`".into(),
                ));
            }
            if agent.timeout_seconds == 0 {
                return Err((
                    "timeout_seconds",
                    format!("agent `{name}` has a `timeout_seconds` of 0"),
                    "give at least 1; leave the key out for 1800".into(),
                ));
            }
            too_long(name, "agent", agent.timeout_seconds)?;
            too_long(name, "agent", agent.idle_timeout_seconds)?;
        }
        Ok(())
    }

    fn check_verifiers(&self) -> Result<(), ValueFault> {
        let mut seen = std::collections::BTreeSet::new();
        for verifier in self.verifiers.iter().flatten() {
            let name = verifier.name.as_str();
            if !is_usable_name(name) {
                return Err(unusable_name("verifiers", "verifier", name));
            }
            too_long(name, "verifier", verifier.timeout_seconds)?;
            if !seen.insert(name) {
                return Err((
                    "verifiers",
                    format!("two verifiers are called `{name}`"),
                    "give each verifier its own name".into(),
                ));
            }
            let needs_command = !matches!(
                verifier.expect,
                Some(
                    super::Expect::FileExists { .. }
                        | super::Expect::FileContains { .. }
                        | super::Expect::Custom
                )
            );
            if needs_command && verifier.command_argv.first().is_none_or(|c| c.is_empty()) {
                return Err((
                    "verifiers",
                    format!("verifier `{name}` has no `command_argv`"),
                    "name the command, for example `\"command_argv\": [\"cargo\", \"test\"]`".into(),
                ));
            }
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), ValueFault> {
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
        if let Some(fault) = self.stuck_detection.as_ref().and_then(super::StuckConfig::fault) {
            return Err(("stuck_detection", fault, "leave the key out for its default".into()));
        }
        if self.clone.as_ref().is_some_and(|clone| clone.depth == Some(0)) {
            return Err((
                "clone",
                "`depth` of `clone` must be at least 1".into(),
                "leave it out for the whole history".into(),
            ));
        }
        if let Some((fault, hint)) = self.notify.iter().flatten().find_map(super::NotifyConfig::fault) {
            return Err(("notify", fault, hint.into()));
        }
        if let Some(fault) = self.workspace.as_ref().and_then(super::WorkspaceConfig::fault) {
            return Err(("workspace", fault, "give it from the top of the repo, without `..`".into()));
        }
        let is_full = |path: &&String| path.starts_with('/') || path.starts_with("~/");
        if let Some(path) = self.sandbox_read.iter().flatten().find(|path| !is_full(path)) {
            let fault = format!("`{path}` in `sandbox_read` isn't a full path");
            return Err(("sandbox_read", fault, "start it with `/` or `~/`".into()));
        }
        if let Some(fault) = self.sandbox.as_ref().and_then(super::SandboxConfig::fault) {
            return Err(("sandbox", fault, "`docs/CONFIG.md` shows the right form of every key".into()));
        }
        Ok(())
    }

    fn check_roles(&self) -> Result<(), ValueFault> {
        let names = || self.agents.iter().flatten().map(|a| &a.name);
        for role in self.roles.iter().flatten() {
            if let Some(agent) = &role.agent
                && self.agents.is_some()
                && !names().any(|name| name == agent)
            {
                return Err((
                    "roles",
                    format!("the role {} names the unknown agent `{agent}`", role.role.as_str()),
                    "name an agent of `agents`, or leave `agent` out".into(),
                ));
            }
        }
        if self.agent_selection == Some(super::AgentSelection::Roles)
            && self.roles.as_ref().is_none_or(Vec::is_empty)
        {
            return Err((
                "agent_selection",
                "`agent_selection` is `roles`, but there are no `roles`".into(),
                "for example `\"roles\": [{\"role\": \"builder\"}, {\"role\": \"reviewer\"}]`".into(),
            ));
        }
        Ok(())
    }

    fn check_run(&self) -> Result<(), ValueFault> {
        let measured = |target: bool| {
            let verifiers = self.verifiers.iter().flatten();
            verifiers.filter_map(|v| v.metric.as_ref()).any(|metric| !target || metric.target.is_some())
        };
        if self.completion == Some(super::Completion::Metric) && !measured(true) {
            return Err((
                "completion",
                "`completion` is `metric`, but no verifier has a `metric` with a `target`".into(),
                "for example `\"metric\": {\"pattern\": \"p99 ([0-9.]+)\", \"better\": \"lower\", \"target\": 80}`".into(),
            ));
        }
        let mut repeats = self.verifiers.iter().flatten().filter_map(|v| v.metric.as_ref());
        if repeats.any(|metric| !(1..=super::REPEAT_MAX).contains(&metric.repeat)) {
            return Err((
                "repeat",
                format!("`repeat` of a `metric` must be between 1 and {}", super::REPEAT_MAX),
                "5 is enough to know the noise of most measurements".into(),
            ));
        }
        if self.keep_best == Some(true) && !measured(false) {
            return Err((
                "keep_best",
                "`keep_best` is on, but no verifier has a `metric`".into(),
                "name the number: `\"metric\": {\"pattern\": …, \"better\": \"lower\"}`".into(),
            ));
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
}

/// Precedes the valid names in serde's messages.
const EXPECTED: &str = ", expected one of";

fn explain(error: &serde_json::Error) -> ConfigError {
    let full = error.to_string();
    let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
    let hint = match message.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next()) {
        Some(field) => {
            let expected = message.split('`').skip(3).step_by(2);
            match nearest(field, expected.collect::<Vec<_>>()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "remove it; `docs/CONFIG.md` lists every key".into(),
            }
        }
        None if message.starts_with("unknown variant") && message.contains(EXPECTED) => {
            let (_, expected) = message.split_once(EXPECTED).unwrap_or_default();
            format!("one of {}", expected.trim())
        }
        None if error.is_eof() => "the file ends too early: a bracket or quote is not closed".into(),
        None if error.is_syntax() => "fix the JSON here; comments and trailing commas aren't allowed".into(),
        None => "`docs/CONFIG.md` shows the right form of every key".into(),
    };
    let message = match message.find(EXPECTED) {
        Some(at) => message[..at].to_owned(),
        None => in_plain_types(message),
    };
    // A value that ends its line is reported at the start of the next one.
    let line = if error.column() == 0 { error.line().saturating_sub(1).max(1) } else { error.line() };
    ConfigError { message, line, column: error.column().max(1), hint }
}

/// A serde message with plain names for Rust's number types.
fn in_plain_types(message: String) -> String {
    let Some((before, kind)) = message.rsplit_once(", expected ") else { return message };
    match crate::type_words::of_number(kind) {
        Some(words) => format!("{before}, expected {words}"),
        None => message,
    }
}

fn line_of_key(text: &str, key: &str) -> usize {
    let quoted = format!("\"{key}\"");
    text.lines().position(|line| line.contains(&quoted)).map_or(1, |at| at + 1)
}
