//! What a caller says of a run: its limits, what makes it done, and what every session is given.

use super::check::{CheckContext, CheckFn, OwnCheck, check_fn};
use ralph_loop_protocol::money::Usd;
use ralph_loop_task::config::{Expect, MetricConfig, RunWhen, VerifierConfig};
use std::future::Future;
use std::time::Duration;

/// The hard stops of a run.
///
/// The defaults are 50 iterations, $10, 4 hours of working time and 100,000 tokens per iteration; no bound of tokens over all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Most iterations; 50 unless told.
    pub max_iterations: u32,
    /// Most money; $10 unless told. A cap of $0 stops at the first cent.
    pub max_cost: Usd,
    /// Most working time; 4 hours unless told. Waiting for limits and people does not count.
    pub timeout: Duration,
    /// Tokens of one iteration after which its session is ended, where the agent tells while it works; 100,000 unless told.
    pub max_tokens_per_iteration: Option<u64>,
    /// Tokens over all; unbounded unless told.
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
    /// With this many iterations at most.
    #[must_use]
    pub fn max_iterations(mut self, iterations: u32) -> Self {
        self.max_iterations = iterations;
        self
    }

    /// With this much money at most, in US dollars; `f64::INFINITY` is no limit.
    #[must_use]
    pub fn max_cost(mut self, dollars: f64) -> Self {
        self.max_cost = match dollars {
            f64::INFINITY => Usd::MAX,
            // Refused when the agent is built.
            dollars if dollars.is_nan() => Usd::from_dollars(-1.0),
            dollars => Usd::from_dollars(dollars),
        };
        self
    }

    /// With this much working time at most.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// With this many tokens per iteration at most.
    #[must_use]
    pub fn max_tokens_per_iteration(mut self, tokens: u64) -> Self {
        self.max_tokens_per_iteration = Some(tokens);
        self
    }

    /// With this many tokens over all.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Self {
        self.max_tokens = Some(tokens);
        self
    }
}

/// One condition that makes a run done. A run may have several; all of them must hold, in the agent's files first and then in a
/// clean checkout.
#[derive(Clone)]
pub struct Completion {
    pub(super) verifier: VerifierConfig,
    pub(super) check: Option<CheckFn>,
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

    /// The file exists, as part of the work: `DONE.md`.
    pub fn file(path: impl Into<String>) -> Self {
        let path = path.into();
        Self::of("file", Vec::new(), Some(Expect::FileExists { path }))
    }

    /// The shell line exits with 0. It is called `tests` unless [`Self::named`] says otherwise.
    pub fn command(line: impl Into<String>) -> Self {
        Self::argv(["sh".to_owned(), "-c".to_owned(), line.into()])
    }

    /// The command, program and arguments, exits with 0.
    pub fn argv<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self::of("tests", argv.into_iter().map(Into::into).collect(), None)
    }

    /// The async closure says so; `Err` says in words what is missing, and the next session reads them. It runs where the run
    /// is awaited.
    pub fn check<F, Fut>(name: impl Into<String>, check: F) -> Self
    where
        F: Fn(CheckContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        let one = Self::of(&name.into(), Vec::new(), Some(Expect::Custom));
        Self { check: Some(check_fn(check)), ..one }
    }

    /// The shell line exits with 0, and the number that it prints has reached its target.
    pub fn metric(line: impl Into<String>, metric: MetricConfig) -> Self {
        let mut one = Self::command(line).named("metric");
        one.verifier.metric = Some(metric);
        // A number is worth having after every iteration, also where a promise starts the final check.
        one.verifier.run_when = RunWhen::Always;
        one
    }

    /// What of it is code of the caller.
    pub(super) fn own_check(self) -> Option<OwnCheck> {
        let timeout = Duration::from_secs(self.verifier.timeout_seconds);
        Some(OwnCheck { name: self.verifier.name, check: self.check?, timeout })
    }

    /// As the settings of a run write it down.
    pub fn verifier(&self) -> &VerifierConfig {
        &self.verifier
    }

    /// Under another name: names are unique within a run, and are what people and prompts read.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.verifier.name = name.into();
        self
    }

    /// With a longest time of its own; 30 minutes unless told.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.verifier.timeout_seconds = timeout.as_secs().max(1);
        self
    }
}

/// A text that every session is given beside the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextFile {
    /// How it is called.
    pub name: String,
    /// What it says.
    pub content: String,
}

impl ContextFile {
    /// A text under a name.
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Self {
        Self { name: name.into(), content: content.into() }
    }
}

/// Why an agent cannot be built: what is missing or does not fit, and what mends it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}\n{why}\n{fix}")]
pub struct BuildError {
    /// What is wrong.
    pub what: String,
    /// Why that cannot work.
    pub why: String,
    /// What mends it.
    pub fix: String,
}

impl BuildError {
    pub(super) fn new(what: impl Into<String>, why: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), fix: fix.into() }
    }

    pub(super) fn missing(what: &str, why: &str) -> Self {
        Self::new(format!("`{what}` is missing"), why, format!("call `.{what}(…)` before `.build()`"))
    }
}
