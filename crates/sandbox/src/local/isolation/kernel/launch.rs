//! `ralph __fence`: a short-lived process between the guard and bubblewrap.

#![allow(
    clippy::disallowed_methods,
    reason = "it becomes the program that builds the sandbox, below the guard"
)]

use crate::local::isolation::view::caches::{Cache, LAYER};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;

/// The arguments are the files of control groups to join, layers, `--`, and the program to become. Returns only on
/// failure.
pub(crate) fn main(args: impl Iterator<Item = OsString>) -> i32 {
    let mut args = args;
    let mut layers: Vec<(PathBuf, PathBuf)> = Vec::new();
    while let Some(door) = args.next().filter(|word| word != "--") {
        if door == LAYER {
            layers.extend(args.next().zip(args.next()).map(|(from, layer)| (from.into(), layer.into())));
            continue;
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
    if let Err(reason) = put_layers(&layers) {
        super::inside::complain(&format!("cannot put a private layer over downloaded packages: {reason}"));
        return 126;
    }
    let Some(program) = args.next() else { return 2 };
    let error = std::process::Command::new(&program).args(args).exec();
    super::inside::complain(&format!("cannot start the sandbox `{}`: {error}", program.display()));
    126
}

/// Mounts each folder below its private layer, for this process and what it becomes. Bubblewrap can't before 0.11.
fn put_layers(layers: &[(PathBuf, PathBuf)]) -> Result<(), String> {
    if layers.is_empty() {
        return Ok(());
    }
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    let failed = |what: &str, why: &dyn std::fmt::Display| Err(format!("{what}: {why}"));
    if let Err(errno) = unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS) {
        return failed("namespaces", &errno.desc());
    }
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ];
    for (name, text) in maps {
        if let Err(error) = std::fs::write(format!("/proc/self/{name}"), text) {
            return failed(name, &error);
        }
    }
    for (from, layer) in layers {
        let [upper, work, merged] = Cache::PARTS.map(|part| layer.join(part));
        // Without an index, the commands of a sandbox may mount it at the same time.
        let options = format!(
            "userxattr,index=off,lowerdir={},upperdir={},workdir={}",
            from.display(),
            upper.display(),
            work.display()
        );
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        if let Err(errno) = mount(Some("overlay"), &merged, Some("overlay"), flags, Some(options.as_str())) {
            return failed(&from.display().to_string(), &errno.desc());
        }
    }
    Ok(())
}
