//! Checks our clients and fakes against the vendors' published specifications: `prism` is between them and refuses
//! requests and answers that violate the specification.

use ralph_loop_domain::ports::{
    ExecEnd, ExecRequest, ExecSink, ManagedSandbox, Resources, SandboxProvider, SandboxSpec, StopCause,
    Stream, WriteMode,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_providers::{Daytona, DaytonaOptions, E2b, E2bOptions};
use ralph_loop_testkit::fake_daytona::FakeDaytona;
use ralph_loop_testkit::fake_e2b::FakeE2b;
use ralph_loop_testkit::prism::{Prism, tools};
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

struct Quiet(Vec<u8>);

impl ExecSink for Quiet {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

/// Every part of the API, once.
fn use_it(sandbox: &dyn ManagedSandbox) {
    let file = Path::new("a/ü.txt");
    // Only text: prism treats bodies as text. Other tests check bytes.
    sandbox.write(file, b"one\n", WriteMode::Replace).unwrap();
    sandbox.write(file, b"two", WriteMode::Append).unwrap();
    assert_eq!(sandbox.read(file).unwrap().unwrap(), b"one\ntwo");
    sandbox.set_mode(file, 0o755).unwrap();
    sandbox.make_dir(Path::new("b/c")).unwrap();
    assert_eq!(sandbox.list(Path::new("")).unwrap(), ["a", "b"]);
    assert!(sandbox.exists(Path::new("b")).unwrap());
    sandbox.remove(file).unwrap();
    assert_eq!(sandbox.read(file).unwrap(), None);
    let mut sink = Quiet(Vec::new());
    let argv = ["sh", "-c", "echo hi; exit 3"].map(String::from).to_vec();
    assert_eq!(sandbox.exec(&ExecRequest::new(argv), &mut sink).unwrap().end, ExecEnd::Exited(3));
    assert_eq!(sink.0, b"hi\n");
    sandbox.preview(3000).unwrap();
    sandbox.keep_alive().unwrap();
    sandbox.stop().unwrap();
    sandbox.start().unwrap();
}

fn spec() -> SandboxSpec {
    let mut spec = SandboxSpec::of_run(RunId::new("prism"));
    spec.env.insert("A".into(), "b".into());
    spec.allowed_hosts = vec!["example.com".into()];
    spec
}

#[test]
fn daytona_keeps_to_its_specification() {
    let Some((program, specs)) = tools("the vendors' specifications") else { return };
    let fake = FakeDaytona::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    // The toolbox is below the sandbox's id, which its specification leaves out.
    let text = std::fs::read_to_string(specs.join("daytona-toolbox-v0.205.1.openapi.json")).unwrap();
    let mut toolbox: Value = serde_json::from_str(&text).unwrap();
    let below = toolbox["paths"].as_object().unwrap().iter().map(|(path, methods)| {
        let mut methods = methods.clone();
        for (_, method) in methods.as_object_mut().unwrap() {
            let id = json!({ "name": "sandboxOfOurs", "in": "path", "required": true, "type": "string" });
            match method["parameters"].as_array_mut() {
                Some(list) => list.push(id),
                None => method["parameters"] = json!([id]),
            }
        }
        if path == "/files/bulk-upload" {
            // The specification has the type of its body but not the parts.
            let list = methods["post"]["parameters"].as_array_mut().unwrap();
            list.push(
                json!({ "name": "files[0].path", "in": "formData", "required": true, "type": "string" }),
            );
            list.push(
                json!({ "name": "files[0].file", "in": "formData", "required": true, "type": "string" }),
            );
        }
        (format!("/{{sandboxOfOurs}}{path}"), methods)
    });
    toolbox["paths"] = Value::Object(below.collect());
    let below = folder.path().join("toolbox.json");
    std::fs::write(&below, toolbox.to_string()).unwrap();
    let inside = Prism::start(&program, &below, &fake.toolbox_url());
    let api = Prism::start(&program, &specs.join("daytona-api-v0.205.1.openapi.json"), &fake.url());
    fake.announce_toolbox(&inside.url);

    let mut options = DaytonaOptions::new(fake.key());
    options.api_url = api.url.clone();
    options.backoff = Duration::from_millis(50);
    let provider = Daytona::new(options);
    let mut spec = spec();
    spec.image = Some("debian:12".into());
    spec.resources.vcpu = Some(2.0);
    spec.volumes = vec![("cache".into(), "/cache".into())];
    spec.auto_stop = Some(Duration::from_secs(3600));
    let sandbox = provider.create(&spec).unwrap_or_else(|e| panic!("{e}\n{:#?}", fake.seen()));
    use_it(sandbox.as_ref());
    assert_eq!(provider.list().unwrap().len(), 1);
    provider.destroy(sandbox.id()).unwrap();
    assert!(provider.attach(sandbox.id()).unwrap().is_none());
    // From a snapshot, which defines its size.
    (spec.image, spec.snapshot, spec.resources) = (None, Some("team-base".into()), Resources::default());
    let sandbox = provider.create(&spec).unwrap_or_else(|e| panic!("{e}\n{:#?}", fake.seen()));
    assert_eq!(fake.asked(sandbox.id()).unwrap()["snapshot"], "team-base");
    provider.destroy(sandbox.id()).unwrap();
}

#[test]
fn e2b_keeps_to_its_specification() {
    let Some((program, specs)) = tools("the vendors' specifications") else { return };
    let fake = FakeE2b::start().unwrap();
    let api = Prism::start(&program, &specs.join("e2b-api.openapi.yml"), &fake.url());
    let mut options = E2bOptions::new(fake.key());
    options.api_url = api.url.clone();
    // `envd` uses Connect, which no OpenAPI file describes: the vendor's SDK checks that part of the fake.
    options.sandbox_url = Some(fake.url());
    options.backoff = Duration::from_millis(50);
    let provider = E2b::new(options);
    let mut spec = spec();
    spec.volumes = vec![("cache".into(), "/cache".into())];
    let sandbox = provider.create(&spec).unwrap_or_else(|e| panic!("{e}\n{:#?}", fake.seen()));
    use_it(sandbox.as_ref());
    assert_eq!(provider.list().unwrap().len(), 1);
    provider.destroy(sandbox.id()).unwrap();
    assert!(provider.attach(sandbox.id()).unwrap().is_none());
}
