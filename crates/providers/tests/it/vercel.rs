//! Vercel against its fake: the complete conformance suite, and vendor specifics.

use ralph_loop_domain::ports::{
    ExecRequest, ExecSink, SandboxProvider, SandboxSpec, StopCause, Stream, WriteMode,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_providers::{Vercel, VercelOptions, sweep};
use ralph_loop_testkit::conformance::{self, Subject};
use ralph_loop_testkit::fake_vercel::{FakeVercel, Fault};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

fn options(fake: &FakeVercel) -> VercelOptions {
    let mut options = VercelOptions::new(fake.token(), FakeVercel::TEAM, FakeVercel::PROJECT);
    options.api_url = fake.url();
    options.backoff = Duration::from_millis(20);
    options
}

fn spec(run: &str) -> SandboxSpec {
    SandboxSpec::of_run(RunId::new(run))
}

#[test]
fn it_passes_the_conformance_suite() {
    let fake = FakeVercel::start().unwrap();
    let provider = Vercel::new(options(&fake));
    let spec = spec("conformance");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let subject = Subject::of_provider(&provider, &spec)
        .unwrap()
        .port(free)
        .previews(|preview| fake.reached_by(&preview.url).map(|port| ([127, 0, 0, 1], port).into()));
    let report = conformance::run(&subject);
    report.assert_passed();
    assert_eq!(report.skipped(), Vec::<&str>::new());
}

#[test]
fn busy_and_broken_answers_are_tried_again() {
    let fake = FakeVercel::start().unwrap();
    let provider = Vercel::new(options(&fake));
    fake.fail("POST /api/v3/sandboxes", Fault::Status(429, Some(0)));
    // Created although the answer says otherwise: it must be found, not created twice.
    fake.fail("POST /api/v3/sandboxes", Fault::StatusAfter(500));
    fake.fail("/cmd", Fault::Hangup);
    let sandbox = provider.create(&spec("r1")).unwrap();
    assert_eq!(fake.made(), 1);
    fake.fail("/stop", Fault::Status(503, None));
    sandbox.stop().unwrap();
    sandbox.start().unwrap();
    fake.fail("/fs/write", Fault::Status(500, None));
    sandbox.write("a".as_ref(), b"b", WriteMode::Replace).unwrap();
    assert_eq!(sandbox.read("a".as_ref()).unwrap(), Some(b"b".to_vec()));
}

#[test]
fn a_wrong_token_is_said_without_the_token() {
    let fake = FakeVercel::start().unwrap();
    let mut options = options(&fake);
    options.token = ["vercel", "wrong", "token"].join("_");
    let provider = Vercel::new(options.clone());
    let error = provider.create(&spec("r1")).err().unwrap().to_string();
    assert!(error.contains("403") && error.contains("check the key"), "{error}");
    assert!(!error.contains(&options.token) && !format!("{provider:?}").contains(&options.token), "{error}");
}

#[test]
fn only_ours_are_listed_and_swept() {
    let fake = FakeVercel::start().unwrap();
    fake.page_size(1);
    let provider = Vercel::new(options(&fake));
    let kept = provider.create(&spec("kept")).unwrap();
    let gone = provider.create(&spec("gone")).unwrap();
    fake.make_foreign("another-owner");
    let mut ids: Vec<String> = provider.list().unwrap().into_iter().map(|info| info.id).collect();
    ids.sort();
    assert_eq!(ids, [gone.id(), kept.id()]);
    assert!(provider.attach("another-owner").unwrap().is_none());
    provider.destroy("another-owner").unwrap();
    let swept = sweep(&provider, &BTreeSet::from([RunId::new("kept")])).unwrap();
    assert_eq!(swept, [gone.id()]);
    assert_eq!(provider.list().unwrap().len(), 1);
    assert!(fake.asked("another-owner").is_some(), "another owner's sandbox is gone");
}

#[test]
fn a_port_that_was_not_declared_is_added() {
    let fake = FakeVercel::start().unwrap();
    let sandbox = Vercel::new(options(&fake)).create(&spec("r1")).unwrap();
    assert_eq!(sandbox.preview(3000).unwrap().url, "https://ralph-r1-3000.vercel.invalid");
    assert_eq!(sandbox.preview(5173).unwrap().url, "https://ralph-r1-5173.vercel.invalid");
    assert_eq!(sandbox.preview(3000).unwrap().url, "https://ralph-r1-3000.vercel.invalid");
    sandbox.preview(8000).unwrap();
    let error = sandbox.preview(9000).unwrap_err().to_string();
    assert!(error.contains("maximum of 4 ports"), "{error}");
}

#[test]
fn drives_are_made_before_they_are_mounted() {
    let fake = FakeVercel::start().unwrap();
    let mut spec = spec("r1");
    spec.volumes = vec![("cargo".into(), "/cache".into())];
    Vercel::new(options(&fake)).create(&spec).unwrap();
    assert_eq!(fake.asked("ralph-r1").unwrap()["mounts"]["/cache"]["drive"], "cargo");
}

/// Lets a command end once its session was extended.
struct UntilExtended<'a> {
    fake: &'a FakeVercel,
    id: &'a str,
    over: std::path::PathBuf,
}

impl ExecSink for UntilExtended<'_> {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if self.fake.extended(self.id).1 >= 1 {
            std::fs::write(&self.over, "").unwrap();
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn a_long_command_extends_the_session() {
    let fake = FakeVercel::start().unwrap();
    let mut options = options(&fake);
    options.lifetime = Duration::from_secs(3);
    let sandbox = Vercel::new(options).create(&spec("r1")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let over = folder.path().join("over");
    let script = format!("until [ -e '{}' ]; do echo here; sleep 0.1; done", over.display());
    let argv = ["sh", "-c", script.as_str()].map(String::from).to_vec();
    // A refusal (the plan's time limit) doesn't end the command.
    fake.fail("/extend-timeout", Fault::Status(400, None));
    let mut sink = UntilExtended { fake: &fake, id: sandbox.id(), over };
    assert!(sandbox.exec(&ExecRequest::new(argv), &mut sink).unwrap().end.success());
    let (timeout, times) = fake.extended(sandbox.id());
    assert_eq!(timeout, 3000 + u64::from(times) * 1000);
    assert!(times >= 1, "extended {times} times");
}

#[test]
fn sandbox_with_an_ended_session_wakes_with_its_files() {
    let fake = FakeVercel::start().unwrap();
    let provider = Vercel::new(options(&fake));
    let sandbox = provider.create(&spec("r1")).unwrap();
    let long = format!("{}/ü-{}.txt", "d".repeat(60), "n".repeat(80));
    sandbox.write(long.as_ref(), b"x", WriteMode::Replace).unwrap();
    fake.expire(sandbox.id());
    let error = sandbox.read(long.as_ref()).unwrap_err().to_string();
    assert!(error.contains("410"), "{error}");
    let again = provider.create(&spec("r1")).unwrap();
    assert_eq!(again.id(), sandbox.id());
    assert_eq!(again.read(long.as_ref()).unwrap(), Some(b"x".to_vec()));
}
