//! Daytona against its fake: the complete conformance suite, and vendor specifics.

use ralph_loop_domain::ports::{Resources, SandboxProvider, SandboxSpec};
use ralph_loop_protocol::id::RunId;
use ralph_loop_providers::{Daytona, DaytonaOptions, sweep};
use ralph_loop_testkit::conformance::{self, Subject};
use ralph_loop_testkit::fake_daytona::{FakeDaytona, Fault};
use std::collections::BTreeSet;
use std::time::Duration;

fn options(fake: &FakeDaytona) -> DaytonaOptions {
    let mut options = DaytonaOptions::new(fake.key());
    options.api_url = fake.url();
    options.backoff = Duration::from_millis(20);
    options
}

fn spec(run: &str) -> SandboxSpec {
    SandboxSpec::of_run(RunId::new(run))
}

#[test]
fn it_passes_the_conformance_suite() {
    let fake = FakeDaytona::start().unwrap();
    let provider = Daytona::new(options(&fake));
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
    let fake = FakeDaytona::start().unwrap();
    let provider = Daytona::new(options(&fake));
    fake.fail("POST /sandbox", Fault::Status(429, Some(0)));
    // Created although the answer says otherwise: it must be found, not created twice.
    fake.fail("POST /sandbox", Fault::StatusAfter(500));
    fake.fail("/work-dir", Fault::Hangup);
    let sandbox = provider.create(&spec("r1")).unwrap();
    assert_eq!(fake.made(), 1);
    fake.fail("/stop", Fault::Status(409, None));
    sandbox.stop().unwrap();
    fake.fail("/start", Fault::Status(409, None));
    sandbox.start().unwrap();
    fake.fail("/files/bulk-upload", Fault::Status(503, None));
    sandbox.write("a".as_ref(), b"b", ralph_loop_domain::ports::WriteMode::Append).unwrap();
    // It took effect, but the answer is lost: appended only once.
    fake.fail("/process/execute", Fault::Slow(Duration::from_millis(1)));
    fake.fail("/process/execute", Fault::StatusAfter(502));
    sandbox.write("a".as_ref(), b"c", ralph_loop_domain::ports::WriteMode::Append).unwrap();
    assert_eq!(sandbox.read("a".as_ref()).unwrap(), Some(b"bc".to_vec()));
}

#[test]
fn a_wrong_key_is_said_without_the_key() {
    let fake = FakeDaytona::start().unwrap();
    let mut options = options(&fake);
    options.key = ["dtn", "wrong", "key"].join("_");
    let provider = Daytona::new(options.clone());
    let error = provider.create(&spec("r1")).err().unwrap().to_string();
    assert!(error.contains("401") && error.contains("check the key"), "{error}");
    assert!(!error.contains(&options.key) && !format!("{provider:?}").contains(&options.key), "{error}");
}

#[test]
fn persistent_errors_are_reported() {
    let fake = FakeDaytona::start().unwrap();
    let provider = Daytona::new(options(&fake));
    for _ in 0..5 {
        fake.fail("GET /sandbox?", Fault::Status(500, None));
    }
    let error = provider.list().unwrap_err().to_string();
    assert!(error.contains("could not list sandboxes: 500") && error.contains("5 tries"), "{error}");
    // A wait of an hour becomes an error.
    fake.fail("GET /sandbox?", Fault::Status(429, Some(3600)));
    let error = provider.list().unwrap_err().to_string();
    assert!(error.contains("429") && error.contains("1 tries"), "{error}");
}

#[test]
fn only_ours_are_listed_and_swept() {
    let fake = FakeDaytona::start().unwrap();
    fake.page_size(1);
    let provider = Daytona::new(options(&fake));
    let kept = provider.create(&spec("kept")).unwrap();
    let gone = provider.create(&spec("gone")).unwrap();
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
fn image_size_volumes_and_hosts_are_asked_for() {
    let fake = FakeDaytona::start().unwrap();
    let provider = Daytona::new(options(&fake));
    let mut spec = spec("built");
    spec.image = Some("FROM debian:12\nRUN apt-get update\n".into());
    spec.resources = Resources { vcpu: Some(2.0), memory_gib: Some(4.0), disk_gib: Some(5.0) };
    spec.volumes = vec![("cargo".into(), "/cache".into())];
    spec.allowed_hosts = vec!["crates.io".into()];
    spec.env.insert("GREETING".into(), "hello".into());
    spec.auto_stop = Some(Duration::from_secs(30 * 60));
    let sandbox = provider.create(&spec).unwrap();
    let asked = fake.asked(sandbox.id()).unwrap();
    assert_eq!(asked["volumes"][0]["volumeId"], "vol-cargo");
    assert_eq!((&asked["cpu"], &asked["autoStopInterval"]), (&2.into(), &30.into()));
    let mut out = Keep::default();
    let argv = ["sh", "-c", "printf %s \"$GREETING\""].map(String::from).to_vec();
    sandbox.exec(&ralph_loop_domain::ports::ExecRequest::new(argv), &mut out).unwrap();
    assert_eq!(out.0, b"hello");
}

#[test]
fn a_preview_carries_its_token() {
    let fake = FakeDaytona::start().unwrap();
    let sandbox = Daytona::new(options(&fake)).create(&spec("r1")).unwrap();
    let preview = sandbox.preview(3000).unwrap();
    assert!(preview.url.starts_with("https://3000-"), "{preview:?}");
    assert_eq!(preview.headers["X-Daytona-Preview-Token"], "token-1");
}

#[test]
fn idle_stopped_sandbox_is_restarted() {
    let fake = FakeDaytona::start().unwrap();
    let provider = Daytona::new(options(&fake));
    let sandbox = provider.create(&spec("r1")).unwrap();
    sandbox.write("f".as_ref(), b"x", ralph_loop_domain::ports::WriteMode::Replace).unwrap();
    fake.stop_idle(sandbox.id());
    let error = sandbox.read("f".as_ref()).unwrap_err().to_string();
    assert!(error.contains("not running"), "{error}");
    let again = provider.create(&spec("r1")).unwrap();
    assert_eq!(again.id(), sandbox.id());
    assert_eq!(sandbox.read("f".as_ref()).unwrap(), Some(b"x".to_vec()));
    sandbox.keep_alive().unwrap();
    assert_eq!(fake.activity(sandbox.id()), 1);
}

#[test]
fn older_daemons_run_the_same_commands() {
    let fake = FakeDaytona::start().unwrap();
    fake.old_daemon();
    let sandbox = Daytona::new(options(&fake)).create(&spec("r1")).unwrap();
    let mut out = Keep::default();
    let argv = ["printf", "%s|", "it's", "a \"b\""].map(String::from).to_vec();
    sandbox.exec(&ralph_loop_domain::ports::ExecRequest::new(argv), &mut out).unwrap();
    assert_eq!(out.0, b"it's|a \"b\"|");
}

#[test]
fn hourly_price_follows_the_list() {
    let mut options = DaytonaOptions::new("k");
    assert_eq!(Daytona::new(options.clone()).hourly(&Resources::default()), None);
    options.prices = Some(ralph_loop_providers::Prices { vcpu: 0.05, memory_gib: 0.02, disk_gib: 0.01 });
    let asked = Resources { vcpu: Some(2.0), memory_gib: Some(4.0), disk_gib: None };
    let price = Daytona::new(options).hourly(&asked).unwrap();
    assert!((price.dollars() - 0.21).abs() < 1e-9, "{price:?}");
}

#[derive(Default)]
struct Keep(Vec<u8>);

impl ralph_loop_domain::ports::ExecSink for Keep {
    fn output(&mut self, stream: ralph_loop_domain::ports::Stream, bytes: &[u8]) {
        if stream == ralph_loop_domain::ports::Stream::Stdout {
            self.0.extend_from_slice(bytes);
        }
    }
    fn poll(&mut self) -> std::ops::ControlFlow<ralph_loop_domain::ports::StopCause> {
        std::ops::ControlFlow::Continue(())
    }
}
