//! Verifiers and policies in the configuration: what judges the work, and what follows.

use super::agent::default_timeout;
use super::metric::MetricConfig;
use crate::command_line::join_argv;
use crate::criterion::{ExpectedOutput, Pattern};
use serde::{Deserialize, Serialize};

/// A command that must pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "verifier", transform = crate::schema_parts::verifier_aliases))]
pub struct VerifierConfig {
    /// Unique name.
    #[cfg_attr(feature = "schema", schemars(regex(pattern = "^[A-Za-z0-9._-]+$")))]
    pub name: String,
    /// The command; empty for a check of a file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command_argv: Vec<String>,
    /// What it must find besides an exit code of 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// The number that it measures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<MetricConfig>,
    /// When it runs, in addition to the final check.
    #[serde(default)]
    pub run_when: RunWhen,
    /// Longest run.
    #[serde(default = "default_timeout", alias = "timeout")]
    pub timeout_seconds: u64,
}

/// What a check must find.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Expect {
    /// The command prints this.
    Output(ExpectedOutput),
    /// The file exists; runs no command.
    FileExists {
        /// Its path.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        path: String,
    },
    /// A closure of the program that uses the library decides; runs no command.
    #[cfg_attr(feature = "schema", schemars(skip))]
    Custom,
    /// The file exists and its content matches; runs no command.
    FileContains {
        /// Its path.
        #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
        path: String,
        /// The regular expression.
        pattern: Pattern,
    },
}

impl VerifierConfig {
    /// A required command with the default timeout.
    pub fn command(name: impl Into<String>, command_argv: Vec<String>) -> Self {
        Self {
            name: name.into(),
            command_argv,
            expect: None,
            metric: None,
            run_when: RunWhen::OnChange,
            timeout_seconds: default_timeout(),
        }
    }
    /// Its arguments; a shell line is shown as written.
    fn shown_argv(&self) -> String {
        match self.command_argv.as_slice() {
            [sh, c, line] if sh == "sh" && c == "-c" => line.clone(),
            argv => join_argv(argv),
        }
    }
    /// The command as typed in a shell.
    pub fn command_line(&self) -> String {
        match &self.expect {
            None => self.shown_argv(),
            Some(Expect::Output(output)) => format!("{} prints {}", self.shown_argv(), output.describe()),
            Some(Expect::Custom) => format!("check `{}` of the calling program", self.name),
            Some(Expect::FileExists { path }) => format!("file {path} exists"),
            Some(Expect::FileContains { path, pattern }) => {
                format!("file {path} contains /{}/", pattern.as_str())
            }
        }
    }
}

/// When a verifier runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Completion {
    /// The promise, then the required verifiers.
    #[default]
    Promise,
    /// The promise, or every criterion claimed, then the required verifiers.
    Claim,
    /// The required verifiers alone, after every iteration.
    Checks,
    /// Every number with a `target` has reached it, then the required verifiers.
    Metric,
}

/// What a run may do to the original tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum TestsPolicy {
    /// Nothing: no result counts if tests or their setup changed.
    Frozen,
    /// Only additions: the work must pass the original tests, or you approve the changes.
    #[default]
    Additive,
    /// Anything: the run's own tests are enough.
    Free,
}

impl TestsPolicy {
    /// Parses the word in configuration and flags.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "frozen" => Ok(Self::Frozen),
            "additive" => Ok(Self::Additive),
            "free" => Ok(Self::Free),
            other => Err(format!("`{other}` is none of frozen, additive, free")),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::Additive => "additive",
            Self::Free => "free",
        }
    }

    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// What the dashboard and the API may do to a run. None of it is a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Mode {
    /// Controls of the run, and permanent changes: the task, notes, guardrails.
    #[default]
    Autonomous,
    /// Also hints for the next session.
    Guided,
    /// Also a fixed list of commands: tests, lint, type check, logs.
    Debug,
}

impl Mode {
    /// Parses the word in configuration and flags.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "autonomous" => Ok(Self::Autonomous),
            "guided" => Ok(Self::Guided),
            "debug" => Ok(Self::Debug),
            other => Err(format!("`{other}` is none of autonomous, guided, debug")),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Autonomous => "autonomous",
            Self::Guided => "guided",
            Self::Debug => "debug",
        }
    }

    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Whether users may give hints for one session.
    pub fn takes_nudges(self) -> bool {
        self != Self::Autonomous
    }

    /// Whether users may run the listed commands.
    pub fn runs_commands(self) -> bool {
        self == Self::Debug
    }
}

/// The minimum strength of a proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum RequiredProof {
    /// New or changed tests must fail without the work.
    OwnTests,
    /// Something that failed must pass, judged by the original tests.
    Independent,
}

impl RequiredProof {
    /// Parses the word in configuration and flags.
    pub fn parse(word: &str) -> Result<Self, String> {
        match word {
            "own_tests" => Ok(Self::OwnTests),
            "independent" => Ok(Self::Independent),
            other => Err(format!("`{other}` isn't a level that can be required: own_tests, independent")),
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::OwnTests => "own_tests",
            Self::Independent => "independent",
        }
    }
}

/// What to do when a run is stuck and every recovery step was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum OnStuck {
    /// Wait for the user (exit 3).
    #[default]
    Pause,
    /// End without success (exit 1).
    Fail,
}

/// How strongly the agent is isolated from the rest of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schemars(inline))]
pub enum Isolation {
    /// The strongest that works here.
    #[default]
    Auto,
    /// Namespaces through bubblewrap.
    Bwrap,
    /// Landlock.
    Landlock,
    /// No sandbox.
    None,
}
