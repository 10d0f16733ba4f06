//! A short test of the real services, if their keys are set; it costs a few cents at most.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use ralph_loop_domain::ports::{
    ExecEnd, ExecRequest, ExecSink, ManagedSandbox, SandboxProvider, SandboxSpec, StopCause, Stream,
    WriteMode,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_providers::{Daytona, DaytonaOptions, E2b, E2bOptions, Vercel, VercelOptions};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

#[derive(Default)]
struct Keep(Vec<u8>, Vec<u8>);

impl ExecSink for Keep {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Stdout { &mut self.0 } else { &mut self.1 }.extend_from_slice(bytes);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

/// Destroys it even if a check fails.
struct Ended<'a>(&'a dyn SandboxProvider, String);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        let _ = self.0.destroy(&self.1);
    }
}

fn run(sandbox: &dyn ManagedSandbox, script: &str, timeout: Duration) -> (ExecEnd, Keep) {
    let mut request = ExecRequest::new(["sh", "-c", script].map(String::from).to_vec());
    request.timeout = Some(timeout);
    let mut keep = Keep::default();
    (sandbox.exec(&request, &mut keep).unwrap().end, keep)
}

fn walk(provider: &dyn SandboxProvider) {
    let run_id = RunId::new(format!("smoke-{}", std::process::id()));
    let mut spec = SandboxSpec::of_run(run_id.clone());
    spec.env.insert("GREETING".into(), "hello".into());
    let sandbox = provider.create(&spec).unwrap();
    let _ended = Ended(provider, sandbox.id().to_owned());
    let (end, kept) =
        run(sandbox.as_ref(), "printf '%s\\0' \"$GREETING\"; echo no >&2; exit 7", Duration::from_secs(60));
    assert_eq!((end, kept.0, kept.1), (ExecEnd::Exited(7), b"hello\0".to_vec(), b"no\n".to_vec()));
    let (end, _) = run(sandbox.as_ref(), "setsid sleep 1000", Duration::from_secs(3));
    assert_eq!(end, ExecEnd::TimedOut);
    let (_, kept) = run(sandbox.as_ref(), "pgrep -c -f 'sleep 100[0]'", Duration::from_secs(60));
    assert_ne!(kept.0, b"1\n", "a command outlived its time-out");
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    sandbox.write(Path::new("a/bin"), &bytes, WriteMode::Replace).unwrap();
    sandbox.write(Path::new("a/bin"), b"end", WriteMode::Append).unwrap();
    sandbox.set_mode(Path::new("a/bin"), 0o755).unwrap();
    assert_eq!(sandbox.read(Path::new("a/bin")).unwrap().unwrap().len(), 100_003);
    assert!(sandbox.preview(3000).unwrap().url.starts_with("https://"));
    sandbox.keep_alive().unwrap();
    sandbox.stop().unwrap();
    let again = provider.create(&spec).unwrap();
    assert_eq!(again.id(), sandbox.id());
    assert_eq!(again.list(Path::new("a")).unwrap(), ["bin"]);
    assert!(provider.list().unwrap().iter().any(|info| info.run.as_ref() == Some(&run_id)));
    provider.destroy(again.id()).unwrap();
    assert!(provider.attach(again.id()).unwrap().is_none());
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[test]
fn daytona() {
    match DaytonaOptions::from_env(&variable) {
        Ok(options) => walk(&Daytona::new(options)),
        Err(error) => ralph_loop_testkit::skip(&format!("the real Daytona: {error}")),
    }
}

#[test]
fn e2b() {
    match E2bOptions::from_env(&variable) {
        Ok(options) => walk(&E2b::new(options)),
        Err(error) => ralph_loop_testkit::skip(&format!("the real E2B: {error}")),
    }
}

#[test]
fn vercel() {
    match VercelOptions::from_env(&variable) {
        Ok(options) => walk(&Vercel::new(options)),
        Err(error) => ralph_loop_testkit::skip(&format!("the real Vercel Sandbox: {error}")),
    }
}
