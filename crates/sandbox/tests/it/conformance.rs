//! Runs the conformance suite on the two backends without requirements.

use crate::common;
use crate::local_provider::LocalProvider;
use ralph_loop_domain::ports::{Capabilities, SandboxSpec};
use ralph_loop_protocol::id::RunId;
use ralph_loop_sandbox::MemorySandbox;
use ralph_loop_testkit::conformance::{self, Subject};

#[test]
fn local_passes() {
    let dir = tempfile::tempdir().unwrap();
    let provider = LocalProvider(dir.path().join("boxes"));
    let spec = SandboxSpec::of_run(RunId::new("conformance-local"));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let subject = Subject::of_provider(&provider, &spec).unwrap().port(free);
    let report = conformance::run(&subject);
    report.assert_passed();
    assert_eq!(report.skipped(), Vec::<&str>::new());
}

#[test]
fn plain_local_sandbox_passes_the_applicable_suite() {
    let b = common::fresh();
    let capabilities = Capabilities {
        streaming: true,
        separate_stderr: true,
        stdin: true,
        parallel: true,
        ..Capabilities::default()
    };
    let report = conformance::run(&Subject::of_sandbox(&b.sandbox, capabilities));
    report.assert_passed();
    assert!(report.skipped().iter().all(|name| name.starts_with("life") || name.starts_with("files")));
}

ralph_loop_testkit::sandbox_conformance!(
    memory_passes,
    MemorySandbox::default,
    Capabilities::default(),
    "exec: " => "it has no processes",
    "ends: " => "it has no processes",
    "git: " => "it has no processes",
    "paths: links" => "it has no links",
);

#[test]
fn suite_notices_a_backend_without_its_declared_features() {
    let sandbox = MemorySandbox::default();
    let report = conformance::run(&Subject::of_sandbox(&sandbox, Capabilities::default()));
    let failed = report.failed();
    for name in [
        "exec: the exit code comes back",
        "ends: a time-out ends the whole tree",
        "paths: links that lead out are refused",
    ] {
        assert!(failed.contains(&name), "{report}");
    }
    assert!(!failed.contains(&"files: 32 MB"), "{report}");
}
