//! Shared by the tests with real processes.

use ralph_loop_domain::ports::{
    ExecOutcome, ExecRequest, ExecSink, Sandbox, SandboxError, StopCause, Stream,
};
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Starts, in a new session, a process and its child that both ignore every signal but KILL; their ids go to `pids`.
/// Continues when both are running.
pub const STUBBORN: &str = r#"
setsid sh -c 'trap "" TERM HUP INT; sh -c "echo \$\$ >> pids; exec sleep 1000" & echo $$ >> pids; while :; do sleep 1000; done' </dev/null >/dev/null 2>&1 &
while [ ! -e pids ] || [ $(wc -l < pids) -lt 2 ]; do sleep 0.005; done
"#;

pub const PROBE: &str = env!("CARGO_BIN_EXE_guard-probe");

pub fn options(run_id: &str) -> LocalOptions {
    LocalOptions {
        guard_exe: Some(PathBuf::from(PROBE)),
        ..LocalOptions::new(run_id, &ralph_loop_testkit::vars())
    }
}

pub struct Box_ {
    pub dir: tempfile::TempDir,
    pub sandbox: LocalSandbox,
}

/// A sandbox as the binary `ralph` has it: this process adopts what a killed guard leaves behind.
pub fn fresh() -> Box_ {
    ralph_loop_sandbox::become_subreaper().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let run_id = dir.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.').to_owned();
    let sandbox = LocalSandbox::start(dir.path(), options(&run_id)).unwrap();
    Box_ { dir, sandbox }
}

impl Box_ {
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn sh(&self, script: &str) -> Output {
        run(&self.sandbox, &sh(script))
    }

    pub fn pids(&self) -> Vec<i32> {
        pids(&self.path().join("pids"))
    }

    pub fn assert_two_dead(&self) {
        let pids = self.pids();
        assert_eq!(pids.len(), 2, "{pids:?}");
        for pid in pids {
            assert!(!alive(pid), "{pid} lives");
        }
    }
}

pub fn sh(script: &str) -> ExecRequest {
    ExecRequest::new(["sh", "-c", script].map(String::from).to_vec())
}

pub fn pids(file: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Whether a process lives; a zombie doesn't count.
pub fn alive(pid: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit(')').next().unwrap().trim_start().chars().next().unwrap();
    !matches!(state, 'Z' | 'X')
}

pub struct Output {
    pub outcome: ExecOutcome,
    pub stdout: String,
    pub stderr: String,
}

pub fn run(sandbox: &dyn Sandbox, request: &ExecRequest) -> Output {
    let mut sink = Sink::default();
    let outcome = sandbox.exec(request, &mut sink).unwrap();
    sink.output_of(outcome)
}

pub fn refused(sandbox: &dyn Sandbox, request: &ExecRequest) -> SandboxError {
    sandbox.exec(request, &mut Sink::default()).unwrap_err()
}

/// Collects output, and calls `each` on every poll.
pub struct Sink<'a> {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub polls: u32,
    pub longest_gap: Duration,
    last: Instant,
    pub each: Box<dyn FnMut() -> ControlFlow<StopCause> + 'a>,
}

impl Default for Sink<'_> {
    fn default() -> Self {
        Self::asking(|| ControlFlow::Continue(()))
    }
}

impl<'a> Sink<'a> {
    pub fn asking(each: impl FnMut() -> ControlFlow<StopCause> + 'a) -> Self {
        Self {
            stdout: Vec::new(),
            stderr: Vec::new(),
            polls: 0,
            longest_gap: Duration::ZERO,
            last: Instant::now(),
            each: Box::new(each),
        }
    }

    pub fn output_of(self, outcome: ExecOutcome) -> Output {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Output { outcome, stdout: text(self.stdout), stderr: text(self.stderr) }
    }
}

impl ExecSink for Sink<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.extend_from_slice(bytes),
            Stream::Stderr => self.stderr.extend_from_slice(bytes),
        }
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        self.polls += 1;
        self.longest_gap = self.longest_gap.max(self.last.elapsed());
        self.last = Instant::now();
        (self.each)()
    }
}

/// Polls until `what` is true; fails only after some minutes, because a machine may be busy.
pub fn until(label: &str, mut what: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(200);
    while !what() {
        assert!(Instant::now() < deadline, "waited in vain: {label}");
        nix::poll::poll(&mut [], 2u8).unwrap();
    }
}

/// A number of `/proc/<pid>/status`, in kB.
pub fn status_kb(pid: u32, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}
