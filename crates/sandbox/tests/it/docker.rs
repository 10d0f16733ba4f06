//! Containers of a real engine. If none can run, these tests say why.
#![allow(clippy::disallowed_methods, reason = "the engine is started by a script")]

use crate::common;
use crate::common::run;
use ralph_loop_domain::ports::{
    ExecEnd, ExecRequest, ManagedSandbox, SandboxProvider, SandboxSpec, WriteMode,
};
use ralph_loop_protocol::id::RunId;
use ralph_loop_sandbox::docker::{Address, DOCKERFILE, DockerOptions, DockerProvider, Network, ProxySocket};
use ralph_loop_testkit::conformance::{self, Subject};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const IMAGE: &str = "ralph-test:local";

/// The engine for the tests: `RALPH_TEST_DOCKER`, or one that the script starts; `None` if none can run.
fn engine() -> Option<DockerOptions> {
    let address = ralph_loop_testkit::docker::engine()?;
    let mut options = DockerOptions::at(Address::parse(&address).unwrap());
    options.image = IMAGE.to_owned();
    options.dockerfile = String::new();
    Some(options)
}

fn sh(script: &str) -> ExecRequest {
    ExecRequest { timeout: Some(Duration::from_secs(60)), ..common::sh(script) }
}

/// A run id of this process alone, so that tests don't collide.
fn spec(word: &str) -> SandboxSpec {
    SandboxSpec::of_run(RunId::new(format!("test-{word}-{}", std::process::id())))
}

/// Removes what a failing test would leave.
struct Made(Box<dyn ManagedSandbox>);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = self.0.destroy();
    }
}

fn make(options: DockerOptions, spec: &SandboxSpec) -> (DockerProvider, Made) {
    let provider = DockerProvider::new(options);
    let made = Made(provider.create(spec).unwrap());
    (provider, made)
}

#[test]
fn a_container_passes_the_suite() {
    let Some(mut options) = engine() else { return };
    options.network = Network::Named("ralph-test".to_owned());
    let provider = DockerProvider::new(options);
    let spec = spec("suite");
    let _made = Made(provider.create(&spec).unwrap());
    let report = conformance::run(&Subject::of_provider(&provider, &spec).unwrap());
    report.assert_passed();
    assert_eq!(report.skipped(), Vec::<&str>::new());
}

#[test]
fn container_with_a_mounted_workspace_passes_the_suite() {
    let Some(mut options) = engine() else { return };
    let dir = tempfile::tempdir().unwrap();
    options.workspace = Some(dir.path().to_owned());
    let provider = DockerProvider::new(options);
    let spec = spec("bound");
    let made = Made(provider.create(&spec).unwrap());
    made.0.write(Path::new("from-inside"), b"x", WriteMode::Replace).unwrap();
    assert_eq!(std::fs::read(dir.path().join("from-inside")).unwrap(), b"x");
    std::fs::write(dir.path().join("from-outside"), "y").unwrap();
    assert_eq!(made.0.read(Path::new("from-outside")).unwrap().unwrap(), b"y");
    // Its folder stays, so the last check is for volumes only.
    let subject = Subject::of_provider(&provider, &spec).unwrap();
    conformance::run(&subject).assert_passed();
    assert!(dir.path().join("from-inside").exists(), "the folder is not the container's to remove");
}

#[test]
fn container_is_reused_only_for_the_same_folder() {
    let Some(options) = engine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let provider = |folder: &Path| {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        DockerProvider::new(DockerOptions { workspace: Some(folder.to_owned()), ..options.clone() })
    };
    let spec = spec("folders");
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    // Files in a container's home exist as long as the container.
    let first = Made(provider(&one).create(&spec).unwrap());
    run(first.0.as_ref(), &sh("echo x > ~/same"));
    let again = provider(&one).create(&spec).unwrap();
    assert_eq!(run(again.as_ref(), &sh("cat ~/same")).stdout, "x\n");
    let elsewhere = provider(&other).create(&spec).unwrap();
    assert_eq!(run(elsewhere.as_ref(), &sh("cat ~/same; echo y > made")).stdout, "");
    assert!(other.join("made").exists());
    // The folder was recreated: the old mount leads nowhere.
    std::fs::remove_dir_all(&other).unwrap();
    let second = provider(&other).create(&spec).unwrap();
    run(second.as_ref(), &sh("echo z > made"));
    assert!(other.join("made").exists());
}

#[test]
fn container_has_no_privileges() {
    let Some(options) = engine() else { return };
    let mut spec = spec("sandboxed");
    spec.resources.memory_gib = Some(0.25);
    spec.resources.vcpu = Some(0.5);
    spec.env.insert("OF_THE_RUN".to_owned(), "yes".to_owned());
    let (_provider, made) = make(options, &spec);
    let says = |script: &str| run(made.0.as_ref(), &sh(script));
    assert_eq!(says("id -u").stdout.trim(), "1000");
    assert_eq!(says("echo $OF_THE_RUN").stdout.trim(), "yes");
    let status =
        says("grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t ' ' '").stdout;
    for line in ["CapEff: 0000000000000000", "CapBnd: 0000000000000000", "NoNewPrivs: 1"] {
        assert!(status.contains(line), "{status}");
    }
    assert_ne!(says("echo x > /etc/x").outcome.end, ExecEnd::Exited(0), "the root is read-only");
    assert_eq!(says("echo x > /tmp/x && echo x > ~/x && cat /tmp/x").stdout, "x\n");
    assert_eq!(says("ls /sys/class/net").stdout.trim(), "lo", "there is no network");
    let limit =
        says("cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max");
    assert_eq!(limit.stdout.trim(), (256 * 1024 * 1024).to_string());
    // Exceeding memory ends the command, not the container.
    let greedy = says("head -c 400000000 /dev/zero | tail -c 399999999 | wc -c");
    assert_ne!(greedy.stdout.trim(), "399999999", "{}", greedy.stderr);
    assert_eq!(says("echo alive").stdout.trim(), "alive");
}

#[test]
fn processes_are_limited() {
    let Some(mut options) = engine() else { return };
    options.pids = 40;
    let (_provider, made) = make(options, &spec("pids"));
    let flood = run(made.0.as_ref(), &sh("i=0; while [ $i -lt 100 ]; do sleep 100 & i=$((i+1)); done; wait"));
    assert!(flood.stderr.contains("fork"), "{:?} {}", flood.outcome, flood.stderr);
    assert_eq!(
        run(made.0.as_ref(), &sh("echo alive")).stdout.trim(),
        "alive",
        "nothing is left of the flood"
    );
}

#[test]
fn process_without_its_mark_is_ended_too() {
    let Some(options) = engine() else { return };
    let (_provider, made) = make(options, &spec("unmarked"));
    let script = "env -i /bin/setsid /bin/sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do sleep 0.05; done";
    let done = run(made.0.as_ref(), &sh(script));
    assert_eq!(done.outcome.end, ExecEnd::Exited(0));
    assert!(done.outcome.survivors >= 1);
    let left = run(made.0.as_ref(), &sh("test ! -e /proc/$(cat pid) && echo gone")).stdout;
    assert_eq!(left.trim(), "gone");
}

#[test]
fn only_our_own_containers_are_listed_and_removed() {
    let Some(options) = engine() else { return };
    let address = options.address.to_string();
    let (provider, made) = make(options, &spec("ours"));
    let foreign = format!("foreign-{}", std::process::id());
    let socket = address.strip_prefix("unix://").unwrap();
    let curl = |method: &str, path: &str, body: &str| {
        let mut command = Command::new("curl");
        command.args(["-sS", "--max-time", "20", "--unix-socket", socket, "-X", method]);
        command.args(["-H", "Content-Type: application/json", "-d", body, &format!("http://docker{path}")]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let body =
        format!(r#"{{"Image":"{IMAGE}","Cmd":["sleep","1000"],"HostConfig":{{"NetworkMode":"none"}}}}"#);
    let made_foreign = curl("POST", &format!("/containers/create?name={foreign}"), &body);
    assert!(made_foreign.contains("\"Id\""), "{made_foreign}");
    let ids: Vec<String> = provider.list().unwrap().into_iter().map(|info| info.id).collect();
    assert!(ids.iter().any(|id| id == made.0.id()) && !ids.contains(&foreign), "{ids:?}");
    let refused = provider.destroy(&foreign).unwrap_err().to_string();
    let attached = provider.attach(&foreign).unwrap().is_some();
    let there = curl("GET", &format!("/containers/{foreign}/json"), "").contains("\"Id\"");
    curl("DELETE", &format!("/containers/{foreign}?force=true"), "");
    assert!(refused.contains("wasn't created by ralph"), "{refused}");
    assert!(!attached && there);
}

#[test]
fn next_create_ends_commands_of_a_crashed_process() {
    let Some(options) = engine() else { return };
    let address = options.address.to_string();
    let spec = spec("crash");
    let (provider, made) = make(options, &spec);
    // An unfinished command of another process of ours.
    let socket = address.strip_prefix("unix://").unwrap();
    let curl = |path: &str, body: &str| {
        let mut command = Command::new("curl");
        command.args(["-sS", "--max-time", "20", "--unix-socket", socket, "-X", "POST"]);
        command.args(["-H", "Content-Type: application/json", "-d", body, &format!("http://docker{path}")]);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let body =
        r#"{"Cmd":["sh","-c","echo $$ > /workspace/pid; exec sleep 1000"],"Env":["RALPH_EXEC=0123.0;"]}"#;
    let told = curl(&format!("/containers/{}/exec", made.0.id()), body);
    let id = told.split('"').nth(3).unwrap().to_owned();
    curl(&format!("/exec/{id}/start"), r#"{"Detach":true}"#);
    let alive = "while [ ! -s pid ]; do sleep 0.05; done; test -e /proc/$(cat pid) && echo alive";
    assert_eq!(run(made.0.as_ref(), &sh(alive)).stdout.trim(), "alive", "another's command is left alone");
    let again = provider.create(&spec).unwrap();
    assert_eq!(run(again.as_ref(), &sh("test -e /proc/$(cat pid) || echo gone")).stdout.trim(), "gone");
}

#[test]
fn the_default_image_is_built_from_its_file() {
    let Some(mut options) = engine() else { return };
    options.image = format!("ralph-test-built:{}", std::process::id());
    options.dockerfile = format!("FROM {IMAGE}\nENV BUILT=yes\n");
    let (provider, made) = make(options.clone(), &spec("built"));
    assert_eq!(run(made.0.as_ref(), &sh("echo $BUILT")).stdout.trim(), "yes");
    provider.prepare_image(None).unwrap();
    options.image.push('x');
    options.dockerfile = format!("FROM {IMAGE}\nRUN false\n");
    let error = DockerProvider::new(options).prepare_image(None).unwrap_err().to_string();
    assert!(error.contains("could not be built") && error.contains("false"), "{error}");
}

/// The tools in the default image: each with its version output, and that of a wrong version.
const TOOLS: &[(&str, &str, &str)] = &[
    ("node", "v24.11.1", "v22.11.0"),
    ("npm", "11.6.2", "9.2.0"),
    ("pnpm", "10.20.0", "9.15.0"),
    ("python3", "Python 3.12.12", "Python 3.11.2"),
    ("uv", "uv 0.9.9", "uv 0.4.0"),
    ("git", "git version 2.39.5", "git version 1.8.3"),
    ("jq", "jq-1.6", "jq-0.9"),
    ("curl", "curl 7.88.1 (x86_64-pc-linux-gnu)", "curl 6.5"),
    ("rg", "ripgrep 13.0.0", "ripgrep 0.10.0"),
    ("chromium", "Chromium 142.0.7444.59 built on Debian", "Chromium 90.0"),
];

#[test]
fn the_build_of_the_default_image_checks_the_version_of_every_tool() {
    use std::os::unix::fs::PermissionsExt as _;
    let check = DOCKERFILE.split("\nRUN ").find(|run| run.starts_with("node --version")).unwrap();
    let check = check.split("\n\n").next().unwrap();
    let bin = tempfile::tempdir().unwrap();
    let install = |tool: &str, says: &str| {
        let path = bin.path().join(tool);
        std::fs::write(&path, format!("#!/bin/sh\n[ \"$1\" = --version ] && echo '{says}'\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let builds = || {
        let path = format!("{}:/usr/bin:/bin", bin.path().display());
        Command::new("sh").args(["-c", check]).env("PATH", path).status().unwrap().success()
    };
    TOOLS.iter().for_each(|(tool, right, _)| install(tool, right));
    assert!(builds(), "{check}");
    for (tool, right, wrong) in TOOLS {
        install(tool, wrong);
        assert!(!builds(), "`{wrong}` of {tool} was taken");
        install(tool, right);
    }
    for base in DOCKERFILE.lines().filter_map(|line| line.strip_prefix("FROM ")) {
        let tag = base.split_whitespace().next().and_then(|image| image.rsplit_once(':')).map(|(_, tag)| tag);
        assert!(tag.is_some_and(|tag| tag.starts_with(|c: char| c.is_ascii_digit())), "{base}");
    }
}

#[test]
fn a_port_of_a_container_without_a_network_is_shown_through_the_proxy() {
    use ralph_loop_sandbox::egress::{Egress, EgressPolicy};
    use std::io::{Read as _, Write as _};
    let Some(mut options) = engine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let egress = Egress::start(EgressPolicy::new(Vec::new(), Vec::new()), dir.path(), false).unwrap();
    for path in [dir.path(), egress.socket()] {
        std::os::unix::fs::chown(path, Some(1000), Some(1000)).unwrap();
    }
    options.proxy = Some(ProxySocket::socat(egress.socket()));
    let (_provider, made) = make(options, &spec("shown"));
    // It listens before it prints.
    let serve = "echo from-inside > hello; httpd -p 127.0.0.1:8123; until wget -q -O - http://127.0.0.1:8123/hello; do :; done; : > up; sleep 1000";
    let connection = made.0.new_connection().unwrap();
    let (told, stop) = std::sync::mpsc::channel::<()>();
    let server = std::thread::spawn(move || connection.exec(&sh(serve), &mut UntilDropped(stop)));
    run(made.0.as_ref(), &sh("until [ -e up ]; do sleep 0.05; done"));
    let ask = |port: u16| {
        let mut stream = std::net::TcpStream::connect(egress.shown_at(port).unwrap()).unwrap();
        let _ = stream.write_all(b"GET /hello HTTP/1.0\r\n\r\n");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    };
    // The way back appears a moment after the container.
    let answer =
        ralph_loop_testkit::env::until("an answer", || Some(ask(8123)).filter(|answer| !answer.is_empty()));
    assert!(answer.contains("from-inside"), "{answer}");
    assert_eq!(ask(8124), "", "nothing listens there");
    assert_eq!(egress.shown_at(8123).unwrap(), egress.shown_at(8123).unwrap());
    drop(told);
    server.join().unwrap().unwrap();
}

/// Ends its command when the other end is dropped.
struct UntilDropped(std::sync::mpsc::Receiver<()>);

impl ralph_loop_domain::ports::ExecSink for UntilDropped {
    fn output(&mut self, _: ralph_loop_domain::ports::Stream, _: &[u8]) {}
    fn poll(&mut self) -> std::ops::ControlFlow<ralph_loop_domain::ports::StopCause> {
        match self.0.try_recv() {
            Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                std::ops::ControlFlow::Break(ralph_loop_domain::ports::StopCause::Cancelled)
            }
            _ => std::ops::ControlFlow::Continue(()),
        }
    }
}

#[test]
fn container_without_a_network_uses_the_proxy_socket() {
    use std::io::{Read as _, Write as _};
    let Some(mut options) = engine() else { return };
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("proxy.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::os::unix::fs::chown(&socket, Some(1000), Some(1000)).unwrap();
    std::os::unix::fs::chown(dir.path(), Some(1000), Some(1000)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = [0u8; 4096];
            let count = stream.read(&mut asked).unwrap();
            let answer =
                if asked[..count].starts_with(b"GET http://example.test/ ") { "proxied" } else { "what?" };
            let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
            stream.write_all(head.as_bytes()).unwrap();
        }
    });
    options.proxy = Some(ProxySocket::socat(&socket));
    let mut spec = spec("proxy");
    spec.allowed_hosts = vec!["example.test".to_owned()];
    let (provider, made) = make(options, &spec);
    assert!(provider.capabilities().network_policy);
    let ask = "i=0; until wget -q -O - http://example.test/ || [ $i -gt 100 ]; do i=$((i+1)); sleep 0.1; done; ls /sys/class/net";
    let done = run(made.0.as_ref(), &sh(ask));
    assert_eq!(done.stdout, "proxiedlo\n", "{}", done.stderr);
}

#[test]
fn hosts_cannot_be_allowed_without_a_proxy() {
    let Some(options) = engine() else { return };
    let mut spec = spec("hosts");
    spec.allowed_hosts = vec!["example.test".to_owned()];
    let error = DockerProvider::new(options).create(&spec).err().unwrap().to_string();
    assert!(error.contains("without the proxy"), "{error}");
}

#[test]
fn missing_engine_is_reported() {
    let options = DockerOptions::at(Address::parse("unix:///nowhere/docker.sock").unwrap());
    let error = DockerProvider::new(options).ping().unwrap_err().to_string();
    assert!(error.contains("unix:///nowhere/docker.sock"), "{error}");
}
