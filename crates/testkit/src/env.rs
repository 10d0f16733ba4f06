//! A user's machine in a temporary folder: home, state, configuration, and a way to run `ralph` in it.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct TestEnv {
    temp: tempfile::TempDir,
    ralph: PathBuf,
}

#[derive(Debug, Clone)]
pub struct Finished {
    /// Exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    pub fn json(&self) -> serde_json::Value {
        let line = self.stdout.lines().last().unwrap_or_default();
        serde_json::from_str(line).unwrap_or_else(|e| panic!("no JSON ({e}) in the last line of {self:?}"))
    }
    /// Asserts the exit code; shows all output if it differs.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// The PATH without the shims of version managers, which choose by settings of a home that isn't the test's.
pub(crate) fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = path.split(':').filter(|folder| !folder.ends_with("/shims"));
    folders.collect::<Vec<_>>().join(":")
}

impl TestEnv {
    /// A machine with this `ralph`.
    pub fn new(ralph: impl Into<PathBuf>) -> Self {
        // File modes must not depend on the user's umask.
        nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o022));
        let temp = tempfile::Builder::new().prefix("ralph-test-").tempdir().expect("a temporary folder");
        let env = Self { temp, ralph: ralph.into() };
        for dir in ["home", "state", "config", "tmp"] {
            std::fs::create_dir_all(env.path(dir)).expect("a folder");
        }
        env
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.temp.path().canonicalize().expect("the folder exists").join(name)
    }

    pub fn vars(&self) -> Vec<(String, String)> {
        let path = |name: &str| self.path(name).display().to_string();
        let mut vars = vec![
            ("HOME".into(), path("home")),
            ("XDG_STATE_HOME".into(), path("state")),
            ("XDG_CONFIG_HOME".into(), path("config")),
            ("TMPDIR".into(), path("tmp")),
            ("PATH".into(), search_path()),
            ("LANG".into(), "C.UTF-8".into()),
            ("USER".into(), "tester".into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("TZ".into(), "UTC".into()),
        ];
        if let Ok(profile) = std::env::var("LLVM_PROFILE_FILE") {
            vars.push(("LLVM_PROFILE_FILE".into(), profile));
        }
        vars
    }

    pub fn user_config(&self, value: &serde_json::Value) {
        self.write_config("config/ralph", value);
    }

    pub fn server_config(&self, value: &serde_json::Value) {
        self.write_config("config/ralph/server", value);
    }

    fn write_config(&self, folder: &str, value: &serde_json::Value) {
        std::fs::create_dir_all(self.path(folder)).expect("a folder");
        std::fs::write(self.path(folder).join("config.json"), value.to_string()).expect("a file");
    }

    pub fn command(&self, program: impl AsRef<Path>, folder: &Path) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear().envs(self.vars()).current_dir(folder).stdin(Stdio::null());
        command
    }

    /// `ralph` with these arguments, not started yet.
    pub fn ralph_command(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = self.command(&self.ralph, folder);
        command.args(args);
        command
    }

    /// Runs `ralph` to its end.
    pub fn ralph(&self, folder: &Path, args: &[&str]) -> Finished {
        Self::finish(&mut self.ralph_command(folder, args))
    }

    pub fn finish(command: &mut Command) -> Finished {
        let output = command.output().unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts `ralph` in the background; its output is kept for [`TestEnv::wait`].
    pub fn spawn(&self, folder: &Path, args: &[&str]) -> Child {
        let mut command = self.ralph_command(folder, args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"))
    }

    pub fn wait(child: Child) -> Finished {
        let output = child.wait_with_output().expect("the child can be waited for");
        Finished {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// Polls until `look` finds something; fails the test after some minutes, just before the test runner's
/// own limit, so that a busy machine doesn't fail the test.
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(200);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process with this id exists and isn't a zombie.
pub fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next())
        .is_some_and(|state| state != "Z" && state != "X")
}
