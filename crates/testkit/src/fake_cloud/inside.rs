//! A fake machine: a temporary folder whose commands really run on this machine until it is stopped.
#![allow(clippy::disallowed_methods, reason = "a fake cloud starts the requested commands")]

use std::collections::BTreeMap;
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const MARK: &str = "FAKE_CLOUD_MACHINE";

#[derive(Debug, Default)]
pub(crate) struct Job<'a> {
    pub argv: Vec<String>,
    pub cwd: Option<&'a str>,
    pub env: BTreeMap<String, String>,
    pub stdin: Vec<u8>,
    pub timeout: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Ran {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub timed_out: bool,
}

#[derive(Debug)]
pub(crate) struct Inside {
    folder: tempfile::TempDir,
    mark: String,
    env: BTreeMap<String, String>,
}

impl Inside {
    pub(crate) fn new(env: BTreeMap<String, String>) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let folder = tempfile::Builder::new().prefix("fake-cloud-").tempdir()?;
        std::fs::create_dir(folder.path().join("home"))?;
        let mark = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        Ok(Self { folder, mark, env })
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A path inside; relative ones start at home.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.home().join(path)
    }

    pub(crate) fn run(&self, job: &Job<'_>) -> io::Result<Ran> {
        let (program, arguments) = job.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()));
        command.env("HOME", self.home()).env("LANG", "C.UTF-8").envs(&self.env).envs(&job.env);
        command.env(MARK, &self.mark);
        command.current_dir(job.cwd.map_or_else(|| self.home(), |cwd| self.path(cwd)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            let bytes = job.stdin.clone();
            std::thread::spawn(move || stdin.write_all(&bytes));
        }
        let stdout = drain(child.stdout.take());
        let stderr = drain(child.stderr.take());
        let timed_out = !ended_in_time(&mut child, job.timeout)?;
        if timed_out {
            let _ = kill_group(child.id());
        }
        let status = child.wait()?;
        let code = status.code().unwrap_or_else(|| {
            128 + std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or_default()
        });
        let read = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().unwrap_or_default();
        Ok(Ran { code, stdout: read(stdout), stderr: read(stderr), timed_out })
    }

    pub(crate) fn kill_all(&self) {
        let script = format!(
            "for f in $(grep -ls {MARK}={} /proc/[0-9]*/environ); do p=${{f#/proc/}}; kill -9 ${{p%/environ}}; done",
            self.mark
        );
        for _ in 0..2 {
            let _ = Command::new("sh").args(["-c", &script]).stderr(Stdio::null()).status();
        }
    }
}

impl Inside {
    /// Ends it permanently: its processes and files. Threads that still answer a request may keep it alive a little longer.
    pub(crate) fn end(&self) {
        self.kill_all();
        let _ = std::fs::remove_dir_all(self.folder.path());
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.kill_all();
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

fn ended_in_time(child: &mut Child, limit: Option<Duration>) -> io::Result<bool> {
    let Some(limit) = limit else { return Ok(true) };
    let end = Instant::now() + limit;
    while child.try_wait()?.is_none() {
        if Instant::now() >= end {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(true)
}

fn kill_group(pid: u32) -> io::Result<()> {
    Command::new("kill").args(["-9", "--", &format!("-{pid}")]).stderr(Stdio::null()).status().map(drop)
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    std::fs::write(path, bytes)
}
