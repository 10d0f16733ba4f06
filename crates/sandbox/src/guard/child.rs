//! Turns a request into the running command.
//!
//! The child may borrow the guard's memory until its program runs (like `posix_spawn`), so everything is prepared
//! before: the child allocates nothing and reports failures as its answer.

use crate::os::raw::{self, Program};
use crate::os::{self, KillableMark};
use crate::wire::{self, FromGuard, SPAWN_FDS, Stage, VARIABLES_FD};
use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout, fchdir, setsid};
use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;

const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

struct Failure(Stage, Errno);

/// Runs the command described by `fds`; passes `variables` on unread.
pub(super) fn spawn(
    guard: Pid,
    mark: Option<&KillableMark>,
    fds: [OwnedFd; SPAWN_FDS],
    variables: Option<OwnedFd>,
) -> FromGuard {
    let failed = |stage: Stage, errno: i32| FromGuard::Failed { stage, errno };
    let [body, folder, stdin, stdout, stderr] = fds;
    let streams = [folder, stdin, stdout, stderr];
    let mut text = Vec::new();
    if File::from(body).read_to_end(&mut text).is_err() {
        return failed(Stage::Process, Errno::EIO as i32);
    }
    let Some((argv, mut env)) = wire::decode_body(&text) else {
        return failed(Stage::Process, Errno::EINVAL as i32);
    };
    let own = os::guard_mark(guard).and_then(|mark| CString::new(mark).ok());
    env.extend(own.as_deref());
    let program = Program::new(candidates(&argv, &env), &argv, &env);
    let started = raw::spawn_tracer(&|| {
        let Err(Failure(stage, errno)) =
            become_command((guard, mark), &streams, variables.as_ref(), &program);
        [stage as i32, errno as i32]
    });
    match started {
        Err(errno) => failed(Stage::Process, errno as i32),
        Ok((child, [0, _])) => FromGuard::Started { pid: child.as_raw() },
        Ok((child, [stage, errno])) => {
            nix::sys::wait::waitpid(child, None).ok();
            failed(Stage::from_number(stage), errno)
        }
    }
}

/// The files that `argv[0]` may mean, looked up in the *command's* PATH as a shell would.
fn candidates(argv: &[&CStr], env: &[&CStr]) -> Vec<CString> {
    let program = argv.first().map_or(&b""[..], |name| name.to_bytes());
    if program.contains(&b'/') || program.is_empty() {
        return CString::new(program).into_iter().collect();
    }
    let path = env.iter().find_map(|entry| entry.to_bytes().strip_prefix(b"PATH=")).unwrap_or(DEFAULT_PATH);
    path.split(|byte| *byte == b':')
        .filter_map(|folder| {
            let folder = if folder.is_empty() { b"." } else { folder };
            CString::new([folder, b"/", program].concat()).ok()
        })
        .collect()
}

/// In the child: sets up everything a command needs, then runs its program.
fn become_command(
    (guard, mark): (Pid, Option<&KillableMark>),
    [folder, stdin, stdout, stderr]: &[OwnedFd; SPAWN_FDS - 1],
    variables: Option<&OwnedFd>,
    program: &Program<'_>,
) -> Result<Infallible, Failure> {
    let process = |errno| Failure(Stage::Process, errno);
    setsid().map_err(process)?;
    os::die_with(guard).map_err(process)?;
    if let Some(mark) = mark {
        mark.put_on();
    }
    fchdir(folder).map_err(|errno| Failure(Stage::Folder, errno))?;
    dup2_stdin(stdin).map_err(process)?;
    dup2_stdout(stdout).map_err(process)?;
    dup2_stderr(stderr).map_err(process)?;
    // After all others: one of them may have had this number.
    if let Some(variables) = variables {
        raw::put_at(variables, VARIABLES_FD).map_err(process)?;
    }
    // Last, so that no signal ends the child half-made.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(process)?;
    let mut answer = Errno::ENOENT;
    for file in program.files() {
        match program.run(file) {
            Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::ENAMETOOLONG => {}
            // Files without execute permission are skipped, but reported if no other is found.
            Errno::EACCES => answer = Errno::EACCES,
            other => return Err(Failure(Stage::Program, other)),
        }
    }
    Err(Failure(Stage::Program, answer))
}
