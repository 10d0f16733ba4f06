//! A caller's run options: limits, success conditions, context.

use crate::loop_agent::check::{CheckContext, CheckFn, OwnCheck, check_fn};
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::config::{Expect, MetricConfig, RunWhen, VerifierConfig};
use std::future::Future;
use std::time::Duration;

/// The hard limits of a run.
///
/// Defaults: 50 iterations, $10, 4 hours of working time, 100,000 tokens per iteration, no total token limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Iteration limit; default 50.
    pub max_iterations: u32,
    /// Cost limit; default $10. A limit of $0 stops at the first cent.
    pub max_cost: Usd,
    /// Working time limit; default 4 hours. Waiting for rate limits or the user doesn't count.
    pub timeout: Duration,
    /// Token limit of an iteration, if the agent reports tokens while it works; default 100,000.
    pub max_tokens_per_iteration: Option<u64>,
    /// Total token limit; none by default.
    pub max_tokens: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_iterations: 50,
            max_cost: Usd::from_dollars(10.0),
            timeout: Duration::from_secs(4 * 3600),
            max_tokens_per_iteration: Some(100_000),
            max_tokens: None,
        }
    }
}

impl Limits {
    /// Sets the iteration limit.
    #[must_use]
    pub fn max_iterations(mut self, iterations: u32) -> Self {
        self.max_iterations = iterations;
        self
    }

    /// Sets the cost limit in US dollars; `f64::INFINITY` is unlimited.
    #[must_use]
    pub fn max_cost(mut self, dollars: f64) -> Self {
        self.max_cost = match dollars {
            f64::INFINITY => Usd::MAX,
            // Rejected when the agent is built.
            dollars if dollars.is_nan() => Usd::from_dollars(-1.0),
            dollars => Usd::from_dollars(dollars),
        };
        self
    }

    /// Sets the working time limit.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the token limit per iteration.
    #[must_use]
    pub fn max_tokens_per_iteration(mut self, tokens: u64) -> Self {
        self.max_tokens_per_iteration = Some(tokens);
        self
    }

    /// Sets the total token limit.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }
}

/// A condition for success. All conditions of a run must hold, first in the agent's files, then in a clean
/// checkout.
#[derive(Clone)]
pub struct Completion {
    pub(in crate::loop_agent) verifier: VerifierConfig,
    pub(in crate::loop_agent) check: Option<CheckFn>,
}

impl std::fmt::Debug for Completion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Completion").field("is", &self.verifier.command_line()).finish()
    }
}

impl Completion {
    fn of(name: &str, argv: Vec<String>, expect: Option<Expect>) -> Self {
        let verifier = VerifierConfig { expect, ..VerifierConfig::command(name, argv) };
        Self { verifier, check: None }
    }

    /// The file exists as part of the work: `DONE.md`.
    pub fn file(path: impl Into<String>) -> Self {
        let path = path.into();
        Self::of("file", Vec::new(), Some(Expect::FileExists { path }))
    }

    /// The shell command exits with 0. Named `tests` unless [`Self::named`] changes it.
    pub fn command(line: impl Into<String>) -> Self {
        Self::argv(["sh".to_owned(), "-c".to_owned(), line.into()])
    }

    /// The command, as program and arguments, exits with 0.
    pub fn argv<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self::of("tests", argv.into_iter().map(Into::into).collect(), None)
    }

    /// The async closure succeeds; its `Err` text tells the next session what is missing. It runs where the
    /// run is awaited.
    pub fn check<F, Fut>(name: impl Into<String>, check: F) -> Self
    where
        F: Fn(CheckContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        let one = Self::of(&name.into(), Vec::new(), Some(Expect::Custom));
        Self { check: Some(check_fn(check)), ..one }
    }

    /// The shell command exits with 0 and prints a number that reaches its target.
    pub fn metric(line: impl Into<String>, metric: MetricConfig) -> Self {
        let mut one = Self::command(line).named("metric");
        one.verifier.metric = Some(metric);
        // A metric is useful after every iteration, even if a claim triggers the final check.
        one.verifier.run_when = RunWhen::Always;
        one
    }

    /// The caller's closure, if it has one.
    pub(in crate::loop_agent) fn own_check(self) -> Option<OwnCheck> {
        let timeout = Duration::from_secs(self.verifier.timeout_seconds);
        Some(OwnCheck { name: self.verifier.name, check: self.check?, timeout })
    }

    /// The verifier for the run's settings.
    pub fn verifier(&self) -> &VerifierConfig {
        &self.verifier
    }

    /// Sets the name, which must be unique within a run and appears in prompts and output.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.verifier.name = name.into();
        self
    }

    /// Sets the timeout; default 30 minutes.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.verifier.timeout_seconds = timeout.as_secs().max(1);
        self
    }
}

/// A text for every session in addition to the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// Its title in the prompt.
    pub name: String,
    /// Its Markdown.
    pub content: String,
}

impl ContextFile {
    /// A named text.
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Self {
        Self { name: name.into(), content: content.into() }
    }
}

/// Why an agent can't be built, and the fix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n{why}\n{fix}")]
pub struct BuildError {
    /// What is wrong.
    pub what: String,
    /// Why that can't work.
    pub why: String,
    /// The fix.
    pub fix: String,
}

impl BuildError {
    pub(in crate::loop_agent) fn new(
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { what: what.into(), why: why.into(), fix: fix.into() }
    }

    pub(in crate::loop_agent) fn missing(what: &str, why: &str) -> Self {
        Self::new(format!("`{what}` is missing"), why, format!("call `.{what}(…)` before `.build()`"))
    }
}
