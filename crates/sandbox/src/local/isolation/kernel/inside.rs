//! `ralph __inside`: the first process in the sandbox. It is trusted, and locks itself in before the command starts.

#![allow(clippy::disallowed_methods, reason = "it starts the one command it was made for, below the guard")]

use super::limits::Limits;
use super::seccomp::{self, Network};
use super::{landlock, landlock::Rules};
use crate::local::again::{BEGUN, NOT_STARTED};
use crate::local::egress::bridge;
use crate::local::watch::WATCHED;
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

/// A shell's exit codes for a missing program, and for one that can't be run.
const NOT_FOUND: i32 = 127;
const NOT_RUN: i32 = 126;

/// The options before the command.
#[derive(Debug, Default)]
struct Inside {
    /// Whether this is the first process of a PID namespace.
    first: bool,
    /// Whether opened files are recorded.
    watched: bool,
    bridge: Option<PathBuf>,
    port: u16,
    /// Ports of the host that appear as ports in here.
    local: Vec<u16>,
    processes: u64,
    file_size: u64,
    rules: Option<Rules>,
    /// The only writable paths, if the mounts alone don't restrict that.
    writable: Vec<PathBuf>,
    /// The descriptor with the command's variables.
    variables: Option<i32>,
    command: Vec<OsString>,
}

/// Runs the command of the arguments; returns its exit code, or why it didn't start.
pub(crate) fn main(args: impl Iterator<Item = OsString>) -> i32 {
    let Some(inside) = Inside::parse(args) else {
        complain("the sandbox was given arguments it does not know");
        return NOT_RUN;
    };
    match inside.run() {
        Ok(code) => code,
        Err(reason) => {
            complain(&reason);
            NOT_RUN
        }
    }
}

/// Prints on standard error why a command didn't start.
#[allow(clippy::disallowed_methods, reason = "its stderr is read by the engine")]
pub(in crate::local::isolation) fn complain(reason: &str) {
    writeln!(std::io::stderr(), "ralph: {reason}").ok();
}

impl Inside {
    fn parse(args: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut args = args;
        let mut inside = Self { processes: u64::MAX, file_size: u64::MAX, ..Self::default() };
        loop {
            let flag = args.next()?;
            match flag.to_str()? {
                "--" => break,
                "--first" => {
                    inside.first = true;
                    continue;
                }
                WATCHED => {
                    inside.watched = true;
                    continue;
                }
                _ => {}
            }
            let value = args.next()?;
            let number = || value.to_str().and_then(|text| text.parse::<u64>().ok());
            let port = || number().and_then(|port| u16::try_from(port).ok());
            match flag.to_str()? {
                "--bridge" => inside.bridge = Some(value.into()),
                "--variables" => inside.variables = Some(number().and_then(|fd| i32::try_from(fd).ok())?),
                "--port" => inside.port = port()?,
                "--local" => inside.local.push(port()?),
                "--processes" => inside.processes = number()?,
                "--file-size" => inside.file_size = number()?,
                "--read" => inside.rules.get_or_insert_default().read.push(value.into()),
                "--write" => inside.rules.get_or_insert_default().write.push(value.into()),
                "--writable" => inside.writable.push(value.into()),
                "--connect" => inside.rules.get_or_insert_default().connect.push(port()?),
                _ => return None,
            }
        }
        inside.command = args.collect();
        (!inside.command.is_empty()).then_some(inside)
    }

    fn run(self) -> Result<i32, String> {
        // First: nothing else in here may get that descriptor.
        let variables = self.variables.map(read_variables).transpose()?;
        Limits::put_on(self.processes, self.file_size);
        prctl::set_no_new_privs()
            .map_err(|errno| format!("privileges cannot be given up: {}", errno.desc()))?;
        if !self.first {
            // Bubblewrap drops them otherwise.
            crate::os::raw::drop_capabilities();
        }
        if let Some(rules) = &self.rules {
            landlock::put_on(rules)?;
        }
        if !self.writable.is_empty() {
            landlock::limit_writes(&self.writable)?;
        }
        let network = if self.first { Network::Namespace } else { Network::Shared };
        seccomp::put_on(network, self.watched)
            .map_err(|error| format!("system calls cannot be filtered: {error}"))?;
        if let Some(socket) = &self.bridge {
            bridge::open(socket, self.port, &self.local)
                .map_err(|error| format!("can't open the network connection: {error}"))?;
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).ok();
        let [program, args @ ..] = self.command.as_slice() else { return Ok(NOT_RUN) };
        std::io::stderr().write_all(BEGUN).ok();
        let mut command = Command::new(program);
        command.args(args);
        // Only now, and only on the command: this process has run with variables of the engine alone.
        if let Some(variables) = variables {
            command.env_clear().envs(variables);
        }
        if !self.first {
            return Ok(cannot(&command.exec()));
        }
        // Other processes in here must not read this one's memory.
        prctl::set_dumpable(false).ok();
        match command.spawn() {
            Err(error) => Ok(cannot(&error)),
            Ok(child) => Ok(wait_for(child.id())),
        }
    }
}

fn read_variables(number: i32) -> Result<Vec<(OsString, OsString)>, String> {
    let failed = |why: String| format!("the variables of the command cannot be read: {why}");
    let fd = crate::os::raw::own(number).map_err(|errno| failed(errno.desc().to_owned()))?;
    let mut bytes = Vec::new();
    File::from(fd).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    Ok(crate::wire::decode_variables(&bytes))
}

fn cannot(error: &std::io::Error) -> i32 {
    std::io::stderr().write_all(&[NOT_STARTED, error.to_string().as_bytes(), b"\n"].concat()).ok();
    if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }
}

/// Waits for the command and, as the first process must, for every orphan. When this process exits, the kernel ends
/// everything that still lives.
fn wait_for(child: u32) -> i32 {
    let main = i32::try_from(child).map(Pid::from_raw).ok();
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if Some(pid) == main => return code,
            Ok(WaitStatus::Signaled(pid, signal, _)) if Some(pid) == main => return 128 + signal as i32,
            Err(nix::errno::Errno::ECHILD) => return NOT_RUN,
            // An orphan, or interrupted.
            _ => {}
        }
    }
}
