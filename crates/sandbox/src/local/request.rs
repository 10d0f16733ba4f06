//! Prepares a request for the guard: checks it and opens its files.

use super::isolation::{LeftBehind, Workspace, Wrapped};
use super::{Shared, walk};
use crate::wire::{self, SPAWN_FDS, Stage};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use ralph_loop_domain::ports::{ExecRequest, SandboxError, Stdin};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A command's descriptors, theirs and ours.
pub(super) struct Prepared {
    body: OwnedFd,
    /// The variables of a sandboxed command, which its launchers pass on.
    variables: Option<OwnedFd>,
    folder: OwnedFd,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    pub(super) out: OwnedFd,
    pub(super) err: OwnedFd,
    /// What to clean up after a sandboxed command.
    pub(super) left: LeftBehind,
}

impl Prepared {
    pub(super) fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let always: [&OwnedFd; SPAWN_FDS] =
            [&self.body, &self.folder, &self.stdin, &self.stdout, &self.stderr];
        always.into_iter().chain(&self.variables).map(|fd| fd.as_fd()).collect()
    }

    /// Closes their ends, so that the streams end with the command.
    pub(super) fn sent(self) -> (OwnedFd, OwnedFd) {
        (self.out, self.err)
    }
}

pub(super) fn prepare(
    workspace: &Workspace,
    shared: &Shared,
    request: &ExecRequest,
    seen: Option<&Path>,
) -> Result<Prepared, SandboxError> {
    let program = request.argv.first().ok_or_else(|| cannot_start("", "the command is empty"))?;
    if request.argv.iter().any(|text| text.contains('\0')) {
        return Err(cannot_start(program, "an argument contains a NUL byte"));
    }
    for (name, value) in &request.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(cannot_start(program, &format!("`{name}` is not a variable it could get")));
        }
    }
    let (folder, real) = walk::folder(&workspace.host, &request.cwd)?;
    let broken = |what: &str, errno: Errno| SandboxError::Broken(format!("{what}: {}", errno.desc()));
    let sandboxed = match &shared.isolation {
        Some(isolation) => Some(isolation.wrap((workspace, &real), request, &shared.env, seen)?),
        None => None,
    };
    let argv = sandboxed.as_ref().map_or(&request.argv, |sandboxed| &sandboxed.argv);
    let inherited = sandboxed.as_ref().map_or(&shared.env, |sandboxed| &sandboxed.env);
    let inside = workspace.to_inside(&real);
    let variables = environment(inherited, shared, request, &inside);
    let in_memory = |bytes: &[u8]| {
        crate::os::anonymous_file(bytes)
            .map_err(|error| SandboxError::Broken(format!("no room for the request: {error}")))
    };
    let (body, variables) = match &sandboxed {
        None => (wire::encode_body(argv, variables.into_iter()), None),
        Some(sandboxed) => {
            let own = sandboxed.launchers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            // This mark shows that a launcher belongs to the run.
            let mark = (crate::RUN_MARK.as_bytes(), shared.options.run_id.as_bytes());
            let body = wire::encode_body(argv, own.chain([mark]));
            (body, Some(in_memory(&wire::encode_variables(variables.into_iter()))?))
        }
    };
    let body = in_memory(&body)?;
    let left = sandboxed.map(|Wrapped { left, .. }| left).unwrap_or_default();
    let pipe = || crate::os::pipe().map_err(|errno| broken("no pipe for the command", errno));
    let (out, stdout) = pipe()?;
    let (err, stderr) = pipe()?;
    Ok(Prepared { body, variables, folder, stdin: stdin(&request.stdin)?, stdout, stderr, out, err, left })
}

/// The full environment: inherited variables, the request's, and the sandbox's.
fn environment<'a>(
    inherited: &'a [(OsString, OsString)],
    shared: &'a Shared,
    request: &'a ExecRequest,
    folder: &'a Path,
) -> Vec<(&'a [u8], &'a [u8])> {
    let given = |name: &OsStr| request.env.iter().any(|(other, _)| name == other.as_str());
    let mut env: Vec<(&[u8], &[u8])> = Vec::with_capacity(inherited.len() + request.env.len() + 2);
    for (name, value) in inherited.iter().filter(|(name, _)| !given(name)) {
        env.push((name.as_bytes(), value.as_bytes()));
    }
    for (at, (name, value)) in request.env.iter().enumerate() {
        // If a request names a variable twice, the last one counts.
        let again = request.env.iter().skip(at + 1).any(|(other, _)| other == name);
        if !again && name != crate::RUN_MARK {
            env.push((name.as_bytes(), value.as_bytes()));
        }
    }
    if !given(OsStr::new("PWD")) {
        env.push((b"PWD", folder.as_os_str().as_bytes()));
    }
    env.push((crate::RUN_MARK.as_bytes(), shared.options.run_id.as_bytes()));
    env
}

fn stdin(stdin: &Stdin) -> Result<OwnedFd, SandboxError> {
    // A file, not a pipe: the command can read it at any time without a feeder. It is sealed in memory, because a
    // process with a file open for reading could reopen it for writing through `/proc/self/fd`.
    let sealed = |bytes: &[u8]| {
        crate::os::anonymous_file(bytes)
            .map_err(|error| SandboxError::Broken(format!("no room for the command's input: {error}")))
    };
    match stdin {
        Stdin::Empty => {
            let path = Path::new("/dev/null");
            open(path, OFlag::O_RDONLY | OFlag::O_CLOEXEC | OFlag::O_NOCTTY, Mode::empty()).map_err(|errno| {
                SandboxError::File { verb: "open", path: path.to_owned(), reason: errno.desc().to_owned() }
            })
        }
        Stdin::File(path) => match std::fs::read(path) {
            Ok(bytes) => sealed(&bytes),
            Err(error) => {
                Err(SandboxError::File { verb: "open", path: path.to_owned(), reason: error.to_string() })
            }
        },
        Stdin::Bytes(bytes) => sealed(bytes),
    }
}

pub(super) fn cannot_start(program: &str, reason: &str) -> SandboxError {
    SandboxError::CannotStart { program: program.to_owned(), reason: reason.to_owned() }
}

/// The guard's failure as text.
pub(super) fn why_not(request: &ExecRequest, stage: Stage, errno: i32) -> SandboxError {
    let program = request.argv.first().map_or("", String::as_str);
    let errno = Errno::from_raw(errno);
    let reason = match (stage, errno) {
        (Stage::Program, Errno::ENOENT) if program.contains('/') => {
            "there is no such file, or the interpreter it names does not exist".to_owned()
        }
        (Stage::Program, Errno::ENOENT) => "there is no such program on the PATH".to_owned(),
        (Stage::Program, Errno::EACCES) => "it is not an executable file".to_owned(),
        (Stage::Program, Errno::ENOEXEC) => "it is not a program (a script needs a `#!` line)".to_owned(),
        (Stage::Program, Errno::E2BIG) => {
            "its arguments and environment are too large (one argument may have 128 KiB)".to_owned()
        }
        (Stage::Program, other) => other.desc().to_owned(),
        (Stage::Folder, other) => format!("its folder cannot be entered: {}", other.desc()),
        (Stage::Process, other) => format!("no process could be made for it: {}", other.desc()),
    };
    SandboxError::CannotStart { program: program.to_owned(), reason }
}
