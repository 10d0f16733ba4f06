//! `ralph __fence`: a short-lived process between the guard and bubblewrap.

#![allow(
    clippy::disallowed_methods,
    reason = "it becomes the program that builds the sandbox, below the guard"
)]

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;

/// The arguments are the files of control groups to join, `--`, and the program to become. Returns only on failure.
pub(crate) fn main(args: impl Iterator<Item = OsString>) -> i32 {
    let mut args = args;
    for door in args.by_ref() {
        if door == "--" {
            break;
        }
        // Without this control group the resource limits still hold.
        std::fs::write(&door, "0").ok();
    }
    // SIGTERM goes to every process of a command. Bubblewrap would obey at once and take the command with it before
    // its grace period is over.
    let mut polite = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        polite.add(signal);
    }
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&polite), None).ok();
    let Some(program) = args.next() else { return 2 };
    let error = std::process::Command::new(&program).args(args).exec();
    super::inside::complain(&format!("cannot start the sandbox `{}`: {error}", program.display()));
    126
}
