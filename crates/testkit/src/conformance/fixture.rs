//! The environment of a check: the sandbox, a separate folder, and a sink that records its input.

use super::{Fault, Subject};
use ralph_loop_domain::ports::{
    ExecEnd, ExecOutcome, ExecRequest, ExecSink, ManagedSandbox, Preview, Sandbox, SandboxProvider,
    SandboxSpec, StopCause, Stream, WriteMode,
};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout of a check's command, so that it fails instead of hanging the test.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

pub struct Fixture<'a> {
    subject: &'a Subject<'a>,
    folder: PathBuf,
}

impl<'a> Fixture<'a> {
    pub(super) fn new(subject: &'a Subject<'a>, number: usize) -> Self {
        Self { subject, folder: PathBuf::from(format!("check-{number}")) }
    }

    pub(super) fn sandbox(&self) -> &dyn Sandbox {
        self.subject.sandbox()
    }

    pub(super) fn managed(&self) -> Result<&dyn ManagedSandbox, Fault> {
        self.subject.managed().ok_or_else(|| Fault::Skip("it has no lifecycle".to_owned()))
    }

    pub(super) fn provider(&self) -> Result<(&dyn SandboxProvider, &SandboxSpec), Fault> {
        self.subject.provider.ok_or_else(|| Fault::Skip("there is no provider".to_owned()))
    }

    pub(super) fn port(&self) -> u16 {
        self.subject.port
    }

    /// The local target of a preview, by its name; `None` if it leads elsewhere.
    pub(super) fn preview_place(&self, preview: &Preview) -> Option<SocketAddr> {
        self.subject.names.as_ref().and_then(|names| names(preview))
    }

    /// A path in the check's folder, relative to the workspace root.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn folder(&self) -> Result<PathBuf, Fault> {
        self.sandbox().write(&self.path(".keep"), b"", WriteMode::Replace)?;
        Ok(self.folder.clone())
    }

    pub(super) fn sh(&self, script: &str) -> Result<ExecRequest, Fault> {
        let mut request = ExecRequest::new(["sh", "-c", script].map(String::from).to_vec());
        request.cwd = self.folder()?;
        request.timeout = Some(LONGEST);
        Ok(request)
    }

    pub(super) fn exec(&self, request: &ExecRequest) -> Result<Done, Fault> {
        exec(self.sandbox(), request)
    }

    /// Runs a script that must succeed; returns its output.
    pub(super) fn run(&self, script: &str) -> Result<String, Fault> {
        let done = self.exec(&self.sh(script)?)?;
        if done.outcome.end == ExecEnd::Exited(0) {
            Ok(done.stdout())
        } else {
            wrong(format!("`{script}` ended with {:?}: {}{}", done.outcome.end, done.stdout(), done.stderr()))
        }
    }

    /// Whether the process with the pid in the file `name` is gone; a zombie counts as gone.
    pub(super) fn gone(&self, name: &str) -> Result<(), Fault> {
        let script = format!(
            "p=$(cat {name}) && test -n \"$p\" || {{ echo 'it was never there'; exit 0; }}; \
             if read -r line 2>/dev/null < /proc/$p/stat; then set -- ${{line##*) }}; \
             case $1 in Z|X) ;; *) echo alive;; esac; fi"
        );
        eq(&format!("the process in `{name}`"), self.run(&script)?.trim(), "")
    }
}

pub(super) fn exec(sandbox: &dyn Sandbox, request: &ExecRequest) -> Result<Done, Fault> {
    let mut sink = Keep::default();
    let outcome = sandbox.exec(request, &mut sink)?;
    Ok(Done { outcome, sink })
}

pub(super) struct Done {
    pub(super) outcome: ExecOutcome,
    pub(super) sink: Keep,
}

impl Done {
    pub(super) fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.sink.stdout).into_owned()
    }
    pub(super) fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.sink.stderr).into_owned()
    }
}

/// Records a command's output; may end it after a given text.
#[derive(Default)]
pub(super) struct Keep {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) polls: u32,
    pub(super) stop_at: Option<&'static str>,
    pub(super) started: Option<Instant>,
}

impl Keep {
    fn seen(&self, word: &str) -> bool {
        self.stdout.windows(word.len()).any(|window| window == word.as_bytes())
    }
}

impl ExecSink for Keep {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.extend_from_slice(bytes),
            Stream::Stderr => self.stderr.extend_from_slice(bytes),
        }
    }

    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.polls += 1;
        if self.started.get_or_insert_with(Instant::now).elapsed() > 2 * LONGEST {
            return ControlFlow::Break(StopCause::Hopeless);
        }
        match self.stop_at {
            Some(word) if self.seen(word) => ControlFlow::Break(StopCause::Cancelled),
            _ => ControlFlow::Continue(()),
        }
    }
}

pub(super) fn wrong<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Wrong(what.into()))
}

/// Asserts that both sides are equal; the fault shows them (shortened).
pub(super) fn eq<T: PartialEq + std::fmt::Debug>(what: &str, got: T, wanted: T) -> Result<(), Fault> {
    if got == wanted {
        return Ok(());
    }
    let show = |value: &T| format!("{value:?}").chars().take(400).collect::<String>();
    wrong(format!("{what}: wanted {}, got {}", show(&wanted), show(&got)))
}

pub(super) fn at(path: &str) -> &Path {
    Path::new(path)
}
