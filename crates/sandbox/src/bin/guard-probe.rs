//! The guard without the rest of `ralph`, and a killable process that owns a sandbox; for this crate's tests.

#![allow(clippy::disallowed_methods, reason = "a separate program may use these directly")]

use ralph_loop_domain::ports::{ExecRequest, ExecSink, Sandbox as _, StopCause, Stream};
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    ralph_loop_sandbox::init();
    let mut args = std::env::args().skip(1);
    let word = |arg: Option<String>| arg.unwrap_or_default();
    match word(args.next()).as_str() {
        "own" => match own(&word(args.next()), &word(args.next()), &word(args.next())) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        _ => ExitCode::FAILURE,
    }
}

/// Holds `lock` and runs `script` in `root` repeatedly, until this process is killed.
fn own(root: &str, lock: &str, script: &str) -> Result<(), Box<dyn std::error::Error>> {
    let file = std::fs::File::create(lock)?;
    file.lock()?;
    let options = LocalOptions {
        lock_fd: Some(file.into()),
        ..LocalOptions::new("probe", &std::env::vars_os().collect())
    };
    let sandbox = LocalSandbox::start(Path::new(root), options)?;
    loop {
        sandbox.exec(&ExecRequest::new(["sh", "-c", script].map(String::from).to_vec()), &mut NoOutput)?;
    }
}

struct NoOutput;

impl ExecSink for NoOutput {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}
