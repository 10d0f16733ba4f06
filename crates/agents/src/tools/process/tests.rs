//! Processes over a simulated sandbox, so that time can pass without waiting.

use super::*;
use ralph_loop_domain::ports::{
    ExecEnd, ExecOutcome, ExecSink, HostAccess, SandboxCapabilities, SandboxError, StopCause, Stream,
    WriteMode,
};
use std::ops::ControlFlow;
use std::path::Path;

/// Prints its command; exits with a code if the command is `exit <code>`, else runs until stopped.
#[derive(Default, Clone, Copy)]
struct ScriptedSandbox {
    /// Every command exits with this code at once.
    end: Option<i32>,
}

impl Sandbox for ScriptedSandbox {
    fn kind(&self) -> &'static str {
        "played"
    }
    fn capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities { surroundings: HostAccess::Host }
    }
    fn root(&self) -> &Path {
        Path::new("/w")
    }
    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        let command = request.argv.last().unwrap();
        let outcome = |end| Ok(ExecOutcome { end, duration: Duration::ZERO, survivors: 0 });
        if let Some(code) = self.end {
            return outcome(ExecEnd::Exited(code));
        }
        sink.output(Stream::Stdout, format!("{command}\n").as_bytes());
        if let Some(code) = command.strip_prefix("exit ") {
            return outcome(ExecEnd::Exited(code.parse().unwrap()));
        }
        loop {
            if let ControlFlow::Break(cause) = sink.poll() {
                return outcome(ExecEnd::Stopped(cause));
            }
            std::thread::yield_now();
        }
    }
    fn read(&self, _: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        Ok(None)
    }
    fn write(&self, _: &Path, _: &[u8], _: WriteMode) -> Result<(), SandboxError> {
        Ok(())
    }
    fn remove(&self, _: &Path) -> Result<(), SandboxError> {
        Ok(())
    }
    fn list(&self, _: &Path) -> Result<Vec<String>, SandboxError> {
        Ok(Vec::new())
    }
    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(*self))
    }
    fn with_root(&self, _: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        Ok(Box::new(*self))
    }
}

fn start(processes: &Processes, name: &str, command: &str) -> Ready {
    let signal = if command.starts_with("exit") { "never printed" } else { command };
    let start = ProcessStart {
        name: name.into(),
        command: command.into(),
        cwd: PathBuf::new(),
        env: vec![],
        signal: Some(Signal::new(signal)),
    };
    let (view, _) = processes.start(start, &ScriptedSandbox::default()).unwrap();
    processes.wait(&view, true, Duration::from_secs(60), &Halt::default())
}

fn names(processes: &Processes) -> Vec<String> {
    processes.list().into_iter().map(|one| one.name).collect()
}

#[test]
fn idle_and_broken_processes_end_and_connected_ones_stay() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let processes = Processes::default();
    assert_eq!(start(&processes, "served", &format!("on http://{address}/")), Ready::Yes);
    assert_eq!(start(&processes, "watcher", "watching"), Ready::Yes);
    assert_eq!(start(&processes, "broken", "exit 3"), Ready::Ended(ProcessEnd::Exec(ExecEnd::Exited(3))));
    assert_eq!(start(&processes, "ended", "exit 0"), Ready::Ended(ProcessEnd::Exec(ExecEnd::Exited(0))));
    assert_eq!(processes.list()[2].url, Some(format!("http://{address}/")));

    processes.tidy(Instant::now());
    assert_eq!(names(&processes), ["served", "watcher"], "a moment later only the ended ones are gone");
    let word = processes.word_to_next();
    assert!(
        word.contains("- `broken` exited with code 3 and is gone") && !word.contains("`ended`"),
        "{word}"
    );
    assert!(!processes.word_to_next().contains("broken"), "told once");

    let client = std::net::TcpStream::connect(address).unwrap();
    let served = listener.accept().unwrap();
    let later = Instant::now() + idle::IDLE + Duration::from_secs(1);
    processes.tidy(later);
    if Path::new("/proc/net/tcp").exists() {
        assert_eq!(names(&processes), ["served"], "a client is connected");
    }
    assert!(processes.word_to_next().contains("- `watcher` was idle and is stopped"));
    drop((client, served));
    processes.end_all();
    assert_eq!(names(&processes), Vec::<String>::new());
}

#[test]
fn number_of_processes_is_limited() {
    let processes = Processes::default();
    for n in 0..MOST {
        assert_eq!(start(&processes, &format!("p{n}"), "on"), Ready::Yes);
    }
    let one_more = ProcessStart {
        name: "more".into(),
        command: "on".into(),
        cwd: PathBuf::new(),
        env: vec![],
        signal: None,
    };
    let refused = processes.start(one_more, &ScriptedSandbox::default()).map(|_| ()).unwrap_err();
    assert!(refused.starts_with("12 processes exist already (p0, p1, p10"), "{refused}");
    assert_eq!(start(&processes, "p0", "again"), Ready::Yes, "one of the same name takes its place");
}

#[test]
fn a_wait_ends_with_the_session() {
    let processes = Processes::default();
    let start = ProcessStart {
        name: "slow".into(),
        command: "on".into(),
        cwd: PathBuf::new(),
        env: vec![],
        signal: None,
    };
    let (view, _) = processes.start(start, &ScriptedSandbox::default()).unwrap();
    let halt = Halt::default();
    let stop = crate::tools::halt::Stop::Cause(StopCause::Rotated);
    halt.stop(stop);
    let waited = processes.wait(&view, true, Duration::from_secs(3600), &halt);
    assert_eq!(waited, Ready::Halted(stop));
}

#[test]
fn missing_chromium_is_reported_with_the_install_command() {
    use crate::tools::browser::Browsers;
    let opened = Browsers::default().open(
        "main",
        "http://localhost/",
        &ScriptedSandbox { end: Some(127) },
        &Halt::default(),
    );
    let why = opened.map(|_| ()).unwrap_err();
    assert!(
        why.starts_with("there is no Chromium here") && why.contains("apt-get install chromium"),
        "{why}"
    );
}
