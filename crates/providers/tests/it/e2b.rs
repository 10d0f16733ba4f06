//! E2B against its fake: the complete conformance suite, and vendor specifics.

use ralph_loop_domain::ports::{
    ExecRequest, ExecSink, SandboxProvider, SandboxSpec, StopCause, Stream, WriteMode,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_providers::{E2b, E2bOptions, sweep};
use ralph_loop_testkit::conformance::{self, Subject};
use ralph_loop_testkit::fake_e2b::{FakeE2b, Fault};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::Duration;

fn options(fake: &FakeE2b) -> E2bOptions {
    let mut options = E2bOptions::new(fake.key());
    options.api_url = fake.url();
    options.sandbox_url = Some(fake.url());
    options.backoff = Duration::from_millis(20);
    options
}

fn spec(run: &str) -> SandboxSpec {
    SandboxSpec::of_run(RunId::new(run))
}

#[test]
fn it_passes_the_conformance_suite() {
    let fake = FakeE2b::start().unwrap();
    let provider = E2b::new(options(&fake));
    let spec = spec("conformance");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let subject = Subject::of_provider(&provider, &spec).unwrap().port(free).previews(|preview| {
        // Requests without a token are refused.
        assert_eq!(fake.reached_by(&preview.url, &std::collections::BTreeMap::new()), None);
        fake.reached_by(&preview.url, &preview.headers).map(|port| ([127, 0, 0, 1], port).into())
    });
    let report = conformance::run(&subject);
    report.assert_passed();
    assert_eq!(report.skipped(), Vec::<&str>::new());
}

#[test]
fn busy_and_broken_answers_are_tried_again() {
    let fake = FakeE2b::start().unwrap();
    let provider = E2b::new(options(&fake));
    fake.fail("POST /sandboxes", Fault::Status(429, Some(0)));
    // Created although the answer says otherwise: it must be found, not created twice.
    fake.fail("POST /sandboxes", Fault::StatusAfter(500));
    fake.fail("/process.Process/Start", Fault::Hangup);
    let sandbox = provider.create(&spec("r1")).unwrap();
    assert_eq!(fake.made(), 1);
    // Paused although the answer says otherwise: the second try gets a 409.
    fake.fail("/pause", Fault::StatusAfter(500));
    sandbox.stop().unwrap();
    fake.fail("/connect", Fault::Status(503, None));
    sandbox.start().unwrap();
    fake.fail("POST /files", Fault::Status(503, None));
    sandbox.write("a".as_ref(), b"b", WriteMode::Replace).unwrap();
    assert_eq!(sandbox.read("a".as_ref()).unwrap(), Some(b"b".to_vec()));
}

#[test]
fn a_wrong_key_is_said_without_the_key() {
    let fake = FakeE2b::start().unwrap();
    let mut options = options(&fake);
    options.key = ["e2b", "wrong", "key"].join("_");
    let provider = E2b::new(options.clone());
    let error = provider.create(&spec("r1")).err().unwrap().to_string();
    assert!(error.contains("401") && error.contains("check the key"), "{error}");
    assert!(!error.contains(&options.key) && !format!("{provider:?}").contains(&options.key), "{error}");
}

#[test]
fn only_ours_are_listed_and_swept() {
    let fake = FakeE2b::start().unwrap();
    fake.page_size(1);
    let provider = E2b::new(options(&fake));
    let kept = provider.create(&spec("kept")).unwrap();
    let gone = provider.create(&spec("gone")).unwrap();
    gone.stop().unwrap();
    let foreign = fake.make_foreign("another-owner");
    let mut ids: Vec<String> = provider.list().unwrap().into_iter().map(|info| info.id).collect();
    ids.sort();
    assert_eq!(ids, [kept.id(), gone.id()]);
    assert!(provider.attach(&foreign).unwrap().is_none());
    provider.destroy(&foreign).unwrap();
    let swept = sweep(&provider, &BTreeSet::from([RunId::new("kept")])).unwrap();
    assert_eq!(swept, [gone.id()]);
    assert_eq!(provider.list().unwrap().len(), 1);
    assert!(fake.asked(&foreign).is_some(), "another owner's sandbox is gone");
}

#[test]
fn a_preview_carries_its_token() {
    let fake = FakeE2b::start().unwrap();
    let sandbox = E2b::new(options(&fake)).create(&spec("r1")).unwrap();
    let preview = sandbox.preview(3000).unwrap();
    assert_eq!(preview.url, format!("https://3000-{}.e2b.invalid", sandbox.id()));
    assert_eq!(preview.headers["e2b-traffic-access-token"], format!("traffic-{}", sandbox.id()));
}

#[test]
fn volumes_are_made_once() {
    let fake = FakeE2b::start().unwrap();
    let provider = E2b::new(options(&fake));
    for run in ["r1", "r2"] {
        let mut spec = spec(run);
        spec.volumes = vec![("cargo".into(), "/cache".into())];
        provider.create(&spec).unwrap();
    }
    let made = fake.seen().into_iter().filter(|seen| seen.line == "POST /volumes").count();
    assert_eq!(made, 1);
}

struct Quiet;

impl ExecSink for Quiet {
    fn output(&mut self, _: Stream, _: &[u8]) {}
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

#[test]
fn long_command_extends_the_lifetime() {
    let fake = FakeE2b::start().unwrap();
    let mut options = options(&fake);
    options.lifetime = Duration::from_secs(3);
    let sandbox = E2b::new(options).create(&spec("r1")).unwrap();
    // Prints often, so that the loop runs often.
    let argv = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.2; done"]
        .map(String::from)
        .to_vec();
    sandbox.exec(&ExecRequest::new(argv), &mut Quiet).unwrap();
    let (timeout, times) = fake.extended(sandbox.id());
    assert!(timeout == 3 && times >= 1, "{timeout} s, {times} times");
}

#[test]
fn expired_sandbox_wakes_with_its_files() {
    let fake = FakeE2b::start().unwrap();
    let provider = E2b::new(options(&fake));
    let sandbox = provider.create(&spec("r1")).unwrap();
    sandbox.write("f".as_ref(), b"x", WriteMode::Replace).unwrap();
    fake.expire(sandbox.id());
    let again = provider.create(&spec("r1")).unwrap();
    assert_eq!(again.id(), sandbox.id());
    assert_eq!(again.read("f".as_ref()).unwrap(), Some(b"x".to_vec()));
}
