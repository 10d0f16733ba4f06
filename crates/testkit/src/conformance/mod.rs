//! One suite for every backend of the ports [`Sandbox`] and [`SandboxProvider`].
//!
//! A backend's test makes a [`Subject`], runs the suite and asserts the [`Report`]:
//!
//! ```ignore
//! let report = conformance::run(&Subject::of_provider(&provider, &spec)?);
//! report.assert_passed();
//! ```
//!
//! What a backend says it cannot do (its [`Capabilities`]) is skipped and named in the report; so is what a test leaves out
//! with [`Subject::without`], together with its reason. Inside the sandbox the suite needs `sh`, the usual small tools
//! (`cat`, `sleep`, `setsid`, …) and, for its last group, `git`.

mod connections;
mod ends;
mod exec;
mod files;
mod fixture;
mod git;
mod life;
mod paths;
mod report;

pub use fixture::Fixture;
pub use report::{Report, Verdict};

use ralph_loop_domain::ports::{
    Capabilities, ManagedSandbox, Preview, Sandbox, SandboxError, SandboxProvider, SandboxSpec,
};
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

pub struct Subject<'a> {
    sandbox: Hold<'a>,
    provider: Option<(&'a dyn SandboxProvider, &'a SandboxSpec)>,
    capabilities: Capabilities,
    without: Vec<(String, String)>,
    port: u16,
    names: Option<Box<NameService<'a>>>,
}

/// Returns the local target of a preview request; `None` if it is refused.
type NameService<'a> = dyn Fn(&Preview) -> Option<SocketAddr> + 'a;

enum Hold<'a> {
    Plain(&'a dyn Sandbox),
    Own(Box<dyn ManagedSandbox>),
}

impl<'a> Subject<'a> {
    /// A sandbox without a lifecycle.
    pub fn of_sandbox(sandbox: &'a dyn Sandbox, capabilities: Capabilities) -> Self {
        Self {
            sandbox: Hold::Plain(sandbox),
            provider: None,
            capabilities,
            without: Vec::new(),
            port: 8080,
            names: None,
        }
    }

    /// The whole lifecycle: the provider creates a sandbox, which is used, found again, and finally destroyed.
    pub fn of_provider(
        provider: &'a dyn SandboxProvider,
        spec: &'a SandboxSpec,
    ) -> Result<Self, SandboxError> {
        let sandbox = Hold::Own(provider.create(spec)?);
        let capabilities = provider.capabilities();
        Ok(Self {
            sandbox,
            provider: Some((provider, spec)),
            capabilities,
            without: Vec::new(),
            port: 8080,
            names: None,
        })
    }

    /// Skips every check whose name starts with `prefix` (`git`, `exec: stdin`), for this reason.
    #[must_use]
    pub fn without(mut self, prefix: &str, reason: &str) -> Self {
        self.without.push((prefix.to_owned(), reason.to_owned()));
        self
    }

    /// The preview's port [default: 8080].
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// How a stand-in's previews are reached, whose names no server of the world knows.
    #[must_use]
    pub fn previews(mut self, names: impl Fn(&Preview) -> Option<SocketAddr> + 'a) -> Self {
        self.names = Some(Box::new(names));
        self
    }

    fn sandbox(&self) -> &dyn Sandbox {
        match &self.sandbox {
            Hold::Plain(sandbox) => *sandbox,
            Hold::Own(sandbox) => sandbox.as_ref(),
        }
    }

    fn managed(&self) -> Option<&dyn ManagedSandbox> {
        match &self.sandbox {
            Hold::Plain(_) => None,
            Hold::Own(sandbox) => Some(sandbox.as_ref()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Streaming,
    SeparateStderr,
    Stdin,
    Parallel,
    StopStart,
    Preview,
    FileModes,
    /// A [`ManagedSandbox`].
    Life,
    /// A [`SandboxProvider`].
    Provider,
}

impl Need {
    /// The reason why the subject can't run a check; `None` if it can.
    fn missing(self, subject: &Subject<'_>) -> Option<&'static str> {
        let can = &subject.capabilities;
        let (fine, word) = match self {
            Self::Streaming => (can.streaming, "streaming"),
            Self::SeparateStderr => (can.separate_stderr, "separate_stderr"),
            Self::Stdin => (can.stdin, "stdin"),
            Self::Parallel => (can.parallel, "parallel"),
            Self::StopStart => (can.stop_start, "stop_start"),
            Self::Preview => (can.preview, "preview"),
            Self::FileModes => (can.file_modes, "file_modes"),
            Self::Life => (subject.managed().is_some(), "a lifecycle"),
            Self::Provider => (subject.provider.is_some(), "a provider"),
        };
        (!fine).then_some(word)
    }
}

struct Check {
    /// `group: what must hold`.
    name: &'static str,
    needs: &'static [Need],
    run: fn(&Fixture<'_>) -> Result<(), Fault>,
}

/// Why a check did not pass.
#[derive(Debug)]
enum Fault {
    Wrong(String),
    /// The check can't run here, for a reason that isn't a fault (such as a missing tool in the sandbox).
    Skip(String),
}

impl From<SandboxError> for Fault {
    fn from(error: SandboxError) -> Self {
        Self::Wrong(error.to_string())
    }
}

/// All checks in order: those that end the sandbox come last.
fn checks() -> impl Iterator<Item = &'static Check> {
    [exec::CHECKS, ends::CHECKS, connections::CHECKS, files::CHECKS, paths::CHECKS, git::CHECKS, life::CHECKS]
        .into_iter()
        .flatten()
}

/// The names of all checks, for lists and for [`Subject::without`].
pub fn names() -> Vec<&'static str> {
    checks().map(|check| check.name).collect()
}

/// Runs every check that the subject supports. A failed check doesn't stop the others.
pub fn run(subject: &Subject<'_>) -> Report {
    let mut report = Report::new(subject.sandbox().kind());
    for (at, check) in checks().enumerate() {
        let left_out = subject.without.iter().find(|(prefix, _)| check.name.starts_with(prefix.as_str()));
        let missing = check.needs.iter().find_map(|need| need.missing(subject));
        let verdict = match (left_out, missing) {
            (Some((_, reason)), _) => Verdict::Skipped(reason.clone()),
            (None, Some(word)) => Verdict::Skipped(format!("it says that it is without {word}")),
            (None, None) => match watched(check.name, || (check.run)(&Fixture::new(subject, at))) {
                Ok(()) => Verdict::Passed,
                Err(Fault::Skip(reason)) => Verdict::Skipped(reason),
                Err(Fault::Wrong(what)) => Verdict::Failed(what),
            },
        };
        report.add(check.name, verdict);
    }
    report
}

const SLOW: Duration = Duration::from_secs(60);

/// Names a check that doesn't end on standard error, once a minute: otherwise a hanging sandbox would print nothing.
#[allow(clippy::print_stderr, reason = "the report comes only when every check has ended")]
fn watched<T>(name: &str, run: impl FnOnce() -> T) -> T {
    let (running, ended) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while ended.recv_timeout(SLOW) == Err(RecvTimeoutError::Timeout) {
                eprintln!("conformance: `{name}` has not ended for another minute");
            }
        });
        let came = run();
        drop(running);
        came
    })
}
