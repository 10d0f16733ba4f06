//! A command whose client died is ended inside.
#![allow(clippy::disallowed_methods, reason = "looks again and again until a deadline")]

use ralph_loop_domain::ports::{ExecRequest, ExecSink, SandboxProvider, SandboxSpec, StopCause, Stream};
use ralph_loop_protocol::id::RunId;
use ralph_loop_providers::{Daytona, DaytonaOptions};
use ralph_loop_testkit::fake_daytona::FakeDaytona;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

/// Dies as soon as the command has printed its process id.
struct Dies(std::sync::mpsc::Sender<String>);

impl ExecSink for Dies {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.0.send(String::from_utf8_lossy(bytes).trim().to_owned()).unwrap();
        std::panic::resume_unwind(Box::new("the client dies"));
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

#[test]
fn a_command_ends_when_its_client_is_gone() {
    let fake = FakeDaytona::start().unwrap();
    let mut options = DaytonaOptions::new(fake.key());
    options.api_url = fake.url();
    options.backoff = Duration::from_millis(20);
    options.orphan_after = Duration::from_secs(1);
    let sandbox = Daytona::new(options).create(&SandboxSpec::of_run(RunId::new("r1"))).unwrap();
    let (told, pid) = std::sync::mpsc::channel();
    let client = std::thread::spawn(move || {
        // In its own session and ignoring SIGTERM.
        let script = "setsid sh -c 'trap \"\" TERM HUP; echo $$ $RALPH_EXEC; while :; do sleep 1; done'";
        let argv = ["sh", "-c", script].map(String::from).to_vec();
        sandbox.exec(&ExecRequest::new(argv), &mut Dies(told))
    });
    let pid = pid.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(client.join().is_err(), "the client did not die");
    let (pid, token) = pid.split_once(' ').unwrap();
    // Both are removed: the process, and the command's folder.
    for path in [format!("/proc/{pid}"), format!("/tmp/.ralph-{token}")] {
        let end = Instant::now() + Duration::from_secs(60);
        while Path::new(&path).exists() {
            assert!(Instant::now() < end, "{path} outlived its client");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}
