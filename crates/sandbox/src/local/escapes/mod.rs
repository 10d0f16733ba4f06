//! Escape tests: the same attempts in the sandbox, where each must fail, and without it, where each harmless one must
//! succeed. Shown by `ralph sandbox test`.

mod attempts;
mod bait;
mod doors;
#[cfg(target_os = "linux")]
mod syscalls;

#[cfg(target_os = "linux")]
pub(crate) use syscalls::main as try_main;

use super::egress::{EgressPolicy, HostRule};
use super::isolation::{IsolationSpec, Limits, LocalIsolation, detect};
use attempts::{ATTEMPTS, Control, EscapeAttempt};
use bait::SecretFixture;
use doors::{ESCAPE_ROUTES, EscapeRoute};
use ralph_loop_domain::ports::{
    ExecEnd, ExecRequest, ExecSink, Sandbox as _, SandboxError, StopCause, Stream,
};
use ralph_loop_domain::vars::Vars;
use ralph_loop_task::config::Isolation;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::{LocalOptions, LocalSandbox};

/// The result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptResult {
    /// It failed.
    Stopped,
    /// It worked.
    Escaped,
    /// It wasn't made.
    NotTried,
}

impl AttemptResult {
    /// The word for display.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Escaped => "escaped",
            Self::NotTried => "not tried",
        }
    }
}

/// One attempt and its results.
#[derive(Debug, Clone)]
pub struct Row {
    /// Short name.
    pub name: &'static str,
    /// What was tried.
    pub what: &'static str,
    /// The result that must be seen: `Escaped` only if this kind of sandbox is known not to stop it.
    pub expected: AttemptResult,
    /// The result in the sandbox.
    pub seen: AttemptResult,
    /// The result without it.
    pub without: AttemptResult,
}

impl Row {
    /// Whether the result is acceptable; a sandbox may hold better than expected.
    pub fn ok(&self) -> bool {
        let held = self.seen == AttemptResult::Stopped || self.expected == AttemptResult::Escaped;
        held && self.without != AttemptResult::Stopped
    }
}

/// What must work in every sandbox, including everything that the attempts use.
const WORKS: [&str; 4] = [
    "echo x > mine && grep -q x mine && rm mine && git status >/dev/null",
    "\"$RALPH\" __try nothing; [ $? -eq 2 ]",
    "\"$RALPH\" __try proxy-answers inside.example.org:443",
    "echo x > ~/mine && echo x > \"$TMPDIR/mine\" && sleep 0",
];

const LONGEST: Duration = Duration::from_secs(30);

/// Tries every escape from a sandbox of this kind.
///
/// `folder` is created, used and removed; it should be where a run keeps its state. `program` runs as guard, and
/// `vars` are what a command would inherit.
pub fn try_all(
    isolation: Isolation,
    folder: &Path,
    program: &Path,
    vars: &Vars,
) -> Result<(&'static str, Vec<Row>), SandboxError> {
    let folder = TempFolder::make(folder)?;
    let work = folder.0.join("work");
    let options = |isolation| LocalOptions {
        guard_exe: Some(program.to_owned()),
        isolation,
        ..LocalOptions::new("escapes", vars)
    };
    let isolation = detect(vars).choose(isolation, spec(&folder.0)).map_err(SandboxError::Broken)?;
    let name = isolation.name();
    let bait = SecretFixture::lay(&folder.0.join("bait"), &work, options(LocalIsolation::None))?;
    let sandboxed = LocalSandbox::start(&work, options(isolation))?;
    let open = LocalSandbox::start(&work, options(LocalIsolation::None))?;
    prepare(&open)?;
    let is_root = nix::unistd::getuid().is_root();
    let inside = if name == "bwrap" { PathBuf::from("/run/ralph/ralph") } else { real(program) };
    // A sandbox in which nothing works would pass every test.
    for script in WORKS {
        let check = EscapeAttempt {
            name: "",
            what: "",
            script,
            harm: |_| false,
            control: Control::No,
            landlock_gap: false,
        };
        if try_one(&sandboxed, &check, &bait, &inside)? != AttemptResult::Escaped {
            return Err(SandboxError::Broken(format!("in the sandbox, `{script}` should work and does not")));
        }
    }
    let mut rows = Vec::new();
    for door in ESCAPE_ROUTES {
        rows.push(try_door(&sandboxed, door, &work, &bait, &inside)?);
    }
    for attempt in ATTEMPTS {
        let seen = try_one(&sandboxed, attempt, &bait, &inside)?;
        let without = match attempt.control {
            Control::Yes => try_one(&open, attempt, &bait, &real(program))?,
            Control::AsRoot if !is_root => AttemptResult::NotTried,
            // A failure says nothing about the sandbox here.
            Control::AsRoot | Control::IfAllowed => match try_one(&open, attempt, &bait, &real(program))? {
                AttemptResult::Escaped => AttemptResult::Escaped,
                AttemptResult::Stopped | AttemptResult::NotTried => AttemptResult::NotTried,
            },
            Control::No => AttemptResult::NotTried,
        };
        let expected = if attempt.landlock_gap && name == "landlock" {
            AttemptResult::Escaped
        } else {
            AttemptResult::Stopped
        };
        rows.push(Row { name: attempt.name, what: attempt.what, expected, seen, without });
    }
    Ok((name, rows))
}

fn real(program: &Path) -> PathBuf {
    program.canonicalize().unwrap_or_else(|_| program.to_owned())
}

/// A sandbox with small limits, so that reaching them is quick, and a name that resolves to a forbidden address.
fn spec(folder: &Path) -> IsolationSpec {
    let listed = HostRule::parse("inside.example.org").into_iter().collect();
    let mut policy = EgressPolicy::new(listed, Vec::new());
    policy.resolver = Arc::new(|_, _| Ok(vec![[10, 0, 0, 1].into(), [127, 0, 0, 1].into()]));
    let mut spec = IsolationSpec::new(folder.join("run"));
    spec.egress = Some(policy);
    spec.hidden = vec![folder.to_owned()];
    spec.limits = Limits { processes: 100, memory: None, file_size: 30 << 20, temporary: 16 << 20 };
    spec
}

/// A repo to attack. Its git folder is built here without git: only its layout counts.
fn prepare(open: &LocalSandbox) -> Result<(), SandboxError> {
    let script = "git -c init.defaultBranch=main init -q . && mkdir -p .git/hooks .git/info";
    let done = open.exec(&shell(script), &mut NoOutput)?;
    if done.end.success() { Ok(()) } else { Err(SandboxError::Broken("`git init` failed".to_owned())) }
}

fn shell(script: &str) -> ExecRequest {
    let mut request = ExecRequest::new(["sh", "-c", script].map(String::from).to_vec());
    request.timeout = Some(LONGEST);
    request.grace = Duration::ZERO;
    request
}

fn try_one(
    sandbox: &LocalSandbox,
    attempt: &EscapeAttempt,
    bait: &SecretFixture,
    program: &Path,
) -> Result<AttemptResult, SandboxError> {
    let mut request = shell(attempt.script);
    let text = |path: &Path| path.to_string_lossy().into_owned();
    request.env = vec![
        ("BAIT".into(), text(&bait.folder)),
        ("PID".into(), bait.pid.to_string()),
        ("PORT".into(), bait.port.to_string()),
        ("MARK".into(), bait.mark.clone()),
        ("RALPH".into(), text(program)),
    ];
    let outcome = sandbox.exec(&request, &mut NoOutput)?;
    let harm = (attempt.harm)(bait);
    Ok(if outcome.end == ExecEnd::Exited(0) || harm {
        AttemptResult::Escaped
    } else {
        AttemptResult::Stopped
    })
}

/// Leaves something in the workspace by a sandboxed command, then runs the engine's call on it.
fn try_door(
    sandbox: &LocalSandbox,
    door: &EscapeRoute,
    work: &Path,
    bait: &SecretFixture,
    program: &Path,
) -> Result<Row, SandboxError> {
    let lay = EscapeAttempt {
        name: door.name,
        what: door.what,
        script: door.lay,
        harm: |_| false,
        control: Control::No,
        landlock_gap: false,
    };
    if try_one(sandbox, &lay, bait, program)? != AttemptResult::Escaped {
        return Err(SandboxError::Broken(format!("in the sandbox, `{}` should work and does not", door.lay)));
    }
    let tree = ralph_loop_safe_fs::SafeDir::open(work).map_err(|error| SandboxError::File {
        verb: "open",
        path: work.to_owned(),
        reason: error.to_string(),
    })?;
    let result = |led: bool| if led { AttemptResult::Escaped } else { AttemptResult::Stopped };
    let without = door.ordinary.map_or(AttemptResult::NotTried, |ordinary| result(ordinary(work, bait)));
    Ok(Row {
        name: door.name,
        what: door.what,
        expected: AttemptResult::Stopped,
        seen: result((door.engine)(&tree, bait)),
        without,
    })
}

struct NoOutput;

impl ExecSink for NoOutput {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

struct TempFolder(PathBuf);

impl TempFolder {
    fn make(path: &Path) -> Result<Self, SandboxError> {
        let failed = |error: std::io::Error| SandboxError::File {
            verb: "make",
            path: path.to_owned(),
            reason: error.to_string(),
        };
        fs::create_dir_all(path.join("work")).map_err(failed)?;
        Ok(Self(path.canonicalize().map_err(failed)?))
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}
