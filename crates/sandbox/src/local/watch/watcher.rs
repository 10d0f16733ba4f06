//! The process that watches, and the one that becomes the command.

use super::{WATCHED, tracer};
use crate::os::trace;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, execv, read, write};
use std::ffi::{CString, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The arguments are the file for the record, the workspace, `--`, and the program to become. Returns its exit code.
pub(crate) fn main(args: impl Iterator<Item = OsString>) -> i32 {
    let mut args = args;
    let (Some(out), Some(root), Some(_)) = (args.next(), args.next(), args.next()) else { return 2 };
    let command: Vec<CString> = args.filter_map(|word| CString::new(word.into_vec()).ok()).collect();
    let (out, root) = (PathBuf::from(out), PathBuf::from(root));
    let Ok((ours, theirs)) = crate::os::pipe() else { return 2 };
    match trace::fork() {
        Err(_) => 2,
        Ok(ForkResult::Child) => {
            drop(theirs);
            become_command(&ours, command)
        }
        Ok(ForkResult::Parent { child }) => {
            drop(ours);
            // SIGTERM is for the command; this process ends with it.
            let mut polite = SigSet::empty();
            [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP].into_iter().for_each(|s| polite.add(s));
            sigprocmask(SigmaskHow::SIG_BLOCK, Some(&polite), None).ok();
            watch(child, theirs, &out, &root)
        }
    }
}

/// In the child: waits until it is known whether it is watched, then becomes the command.
fn become_command(told: &OwnedFd, mut command: Vec<CString>) -> i32 {
    let mut answer = [0];
    if read(told, &mut answer) != Ok(1) {
        return 2;
    }
    // With a filter but without a watcher, every open would fail.
    if answer == *b"n"
        && let Some(at) = command.iter().position(|word| word.to_bytes() == WATCHED.as_bytes())
    {
        command.remove(at);
    }
    let Some(program) = command.first().cloned() else { return 2 };
    match execv(&program, &command) {
        Ok(never) => match never {},
        Err(_) => 126,
    }
}

fn watch(child: Pid, tell: OwnedFd, out: &Path, root: &Path) -> i32 {
    let seized = trace::seize(child).is_ok();
    write(&tell, if seized { b"y" } else { b"n" }).ok();
    drop(tell);
    if !seized {
        return plain_end(child);
    }
    let mut tracer = tracer::Tracer::new(root);
    let code = tracer.run(child);
    if let Some(seen) = tracer.seen() {
        std::fs::write(out, serde_json::to_vec(&seen).unwrap_or_default()).ok();
    }
    code
}

fn plain_end(child: Pid) -> i32 {
    loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => return code,
            Ok(WaitStatus::Signaled(_, signal, _)) => return 128 + signal as i32,
            Err(nix::errno::Errno::EINTR) | Ok(_) => {}
            Err(_) => return 2,
        }
    }
}
